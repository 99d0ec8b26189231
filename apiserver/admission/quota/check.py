"""Whether a request fits into the quotas of its namespace, and what they are used to afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apiserver.admission.interfaces import AdmissionAttributes, Operation
from apiserver.admission.plugin import forbidden, new_object
from apiserver.machinery import objects
from apiserver.machinery.quota.amounts import Amounts, add, increase, masked, parsed, shown, without_zeros
from apiserver.machinery.quota.evaluators import Evaluator, scopes_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A quota (as read) and its ``status.used`` with the request in it."""

    quota: objects.Object
    used: Amounts


def matches(quota: objects.Object, evaluator: Evaluator, obj: objects.Object) -> bool:
    """Whether a quota is about an object."""
    hard = objects.get(quota, "status", "hard", default={})
    if not evaluator.matching_resources(hard):
        return False
    return all(evaluator.in_scope(scope, obj) for scope in scopes_of(quota))


def check_request(
    quotas: Sequence[objects.Object], attributes: AdmissionAttributes, evaluator: Evaluator, now: float
) -> list[Charge]:
    """What to charge. Raises StatusError 403 where the request does not fit, does not say what a quota bounds, or a quota has not been
    counted yet."""
    obj, old = new_object(attributes), attributes.old_object
    concerned: list[objects.Object] = []
    for quota in quotas:
        if not matches(quota, evaluator, obj):
            continue
        status = quota.get("status") or {}
        restricted = evaluator.matching_resources(status.get("hard") or {})
        name = objects.name(quota)
        if missing := evaluator.missing(obj, restricted):
            raise forbidden(attributes, f"failed quota: {name}: {missing}")
        if not set(restricted) <= set(status.get("used") or {}):
            raise forbidden(attributes, f"status unknown for quota: {name}, resources: {','.join(sorted(restricted))}")
        concerned.append(quota)
    if not concerned:
        return []
    usage = evaluator.usage(obj, now)
    if negative := sorted(name for name, amount in usage.items() if amount.sign < 0):
        raise forbidden(attributes, f"quota usage is negative for resource(s): {','.join(negative)}")
    charges: list[Charge] = []
    for quota in concerned:
        delta = usage
        if attributes.operation is Operation.UPDATE and old is not None and matches(quota, evaluator, old):
            delta = increase(usage, evaluator.usage(old, now))
        charge = _charge(quota, without_zeros(delta), attributes)
        if charge is not None:
            charges.append(charge)
    return charges


def _charge(quota: objects.Object, delta: Amounts, attributes: AdmissionAttributes) -> Charge | None:
    hard, used = parsed(quota["status"].get("hard")), parsed(quota["status"].get("used"))
    requested = masked(delta, hard)
    if not requested:
        return None
    new = add(used, requested)
    exceeded = [name for name in requested if new[name] > hard[name]]
    if exceeded and attributes.subresource != "status":
        parts = (shown(masked(amounts, exceeded)) for amounts in (requested, used, hard))
        told = "exceeded quota: {}, requested: {}, used: {}, limited: {}".format(objects.name(quota), *parts)
        raise forbidden(attributes, told)
    return Charge(quota=quota, used=new)
