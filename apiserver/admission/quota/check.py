"""Whether a request fits into the quotas of its namespace, and what they are used to afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from apiserver.admission.configuration import LimitedResource
from apiserver.admission.interfaces import AdmissionAttributes
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
    usage = evaluator.usage(obj, now) if limited else None
    concerned: list[objects.Object] = []
    scopes_covered: set[Any] = set()
    resources_covered: set[str] = set()
    for quota in quotas:
        scopes_covered |= {scope.get("scopeName") for scope in scopes_of(quota) if evaluator.in_scope(scope, obj)}
        if not matches(quota, evaluator, obj):
            continue
        status = quota.get("status") or {}
        restricted = evaluator.matching_resources(status.get("hard") or {})
        name = objects.name(quota)
        if missing := evaluator.missing(obj, restricted):
            raise forbidden(attributes, f"failed quota: {name}: {missing}")
        if not set(restricted) <= set(status.get("used") or {}):
            raise forbidden(attributes, f"status unknown for quota: {name}, resources: {','.join(sorted(restricted))}")
        resources_covered.update(restricted)
        concerned.append(quota)
    if not concerned and not limited:
        return []
    if usage is None:
        usage = evaluator.usage(obj, now)
    if negative := sorted(name for name, amount in usage.items() if amount.sign < 0):
        raise forbidden(attributes, f"quota usage is negative for resource(s): {','.join(negative)}")
    grown = usage if old is None else without_zeros(increase(usage, evaluator.usage(old, now)))
    # a quota that was not about the object before is charged with all of it
    deltas = [without_zeros(grown if old is not None and matches(quota, evaluator, old) else usage) for quota in concerned]
    if not any(deltas) if concerned else not without_zeros(grown):
        return []
    if limited:
        _check_covered(attributes, evaluator, obj, usage, limited, resources_covered, scopes_covered)
    charges = (_charge(quota, delta, attributes) for quota, delta in zip(concerned, deltas, strict=True) if delta)
    return [charge for charge in charges if charge is not None]


def _check_covered(
    attributes: AdmissionAttributes,
    evaluator: Evaluator,
    obj: objects.Object,
    usage: Amounts,
    limited: Sequence[LimitedResource],
    resources: set[str],
    scopes: set[Any],
) -> None:
    """``resources`` and ``scopes``: what quotas cover. Raises StatusError 403."""
    info = attributes.info
    texts = [text for one in limited if (one.group, one.resource) == (info.group, info.resource) for text in one.match_contains]
    wanted = {name for name, amount in usage.items() if amount.sign and any(text in name for text in texts)}
    if missing := sorted(wanted - resources):
        raise forbidden(attributes, f"insufficient quota to consume: {','.join(missing)}")
    asked = [scope for one in limited for scope in one.match_scopes if evaluator.in_scope(scope, obj)]
    if bare := [scope for scope in asked if scope["scopeName"] not in scopes]:
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
