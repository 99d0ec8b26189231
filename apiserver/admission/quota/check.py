"""Whether a request fits into the quotas of its namespace, and what they are used to afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apiserver.admission.configuration import LimitedResource
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
    quotas: Sequence[objects.Object],
    attributes: AdmissionAttributes,
    evaluator: Evaluator,
    now: float,
    limited: Sequence[LimitedResource] = (),
) -> list[Charge]:
    """What to charge. ``limited``: what may only be consumed where a quota covers it. Raises StatusError 403 where the request does not
    fit, does not say what a quota bounds, or a quota has not been counted yet."""
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
    if limited and attributes.operation is Operation.CREATE:
        _check_covered(concerned, attributes, evaluator, obj, now, limited)
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


def _check_covered(
    quotas: Sequence[objects.Object],
    attributes: AdmissionAttributes,
    evaluator: Evaluator,
    obj: objects.Object,
    now: float,
    limited: Sequence[LimitedResource],
) -> None:
    """Raises StatusError 403."""
    info = attributes.info
    limits = [one for one in limited if (one.group, one.resource) == (info.group, info.resource)]
    if not limits:
        return
    wanted = {
        name
        for name, amount in evaluator.usage(obj, now).items()
        if amount.sign and any(text in name for one in limits for text in one.match_contains)
    }
    covered = {name for quota in quotas for name in evaluator.matching_resources(quota["status"]["hard"])}
    if missing := sorted(wanted - covered):
        raise forbidden(attributes, f"insufficient quota to consume: {','.join(missing)}")
    scopes = [scope for one in limits for scope in one.match_scopes if evaluator.in_scope(scope, obj)]
    known = {scope.get("scopeName") for quota in quotas for scope in scopes_of(quota)}
    if bare := [scope for scope in scopes if scope["scopeName"] not in known]:
        told = " ".join(f"{{{scope['scopeName']} {scope['operator']} [{' '.join(scope['values'])}]}}" for scope in bare)
        raise forbidden(attributes, f"insufficient quota to match these scopes: [{told}]")


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
