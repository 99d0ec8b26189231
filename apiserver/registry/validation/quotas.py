"""ResourceQuotas: names and amounts of what is limited, and scopes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.machinery.field_errors import FieldError, invalid, required
from apiserver.registry.validation import quantities
from apiserver.registry.validation.common import IMMUTABLE, Errors

Part = Mapping[str, Any]

_NOTHING: Part = {}
_SCOPES = frozenset((
    "Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity", "VolumeAttributesClass",
))  # fmt: skip
#: what a quota of compute may limit where its scope says something of the pods' resources
_POD_RESOURCES = frozenset((
    "pods", "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.ephemeral-storage", "limits.cpu",
    "limits.memory", "limits.ephemeral-storage",
))  # fmt: skip
_EXCLUSIVE = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_EXISTS_ONLY = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity")


def quota(obj: Part) -> list[FieldError]:
    return [*_spec(obj.get("spec") or _NOTHING), *status(obj.get("status") or _NOTHING)]


def _spec(spec: Part) -> Errors:
    out: Errors = []
    hard = spec.get("hard") or _NOTHING
    _amounts(out, "spec.hard", hard)
    scopes = list(spec.get("scopes") or ())
    for scope in scopes:
        _scope(out, "spec.scopes", "spec.scopes", scope, scopes, hard)
    _exclusive(out, "spec.scopes", scopes, scopes)
    selector = spec.get("scopeSelector")
    if selector is not None:
        path = "spec.scopeSelector.matchExpressions"
        expressions = selector.get("matchExpressions") or ()
        for expression in expressions:
            _expression(out, path, expression, selector, hard)
        _exclusive(out, path, [e.get("scopeName") for e in expressions], scopes)
    return out


def _amounts(out: Errors, path: str, amounts: Part) -> None:
    for name, value in amounts.items():
        quantities.quota_resource_name(out, f"{path}[{name}]", name)
        quantities.quantity_value(out, f"{path}[{name}]", name, value)


def _scope(out: Errors, name_path: str, path: str, scope: str, shown: Any, hard: Part) -> None:
    if scope not in _SCOPES:
        out.append(invalid(name_path, shown, "unsupported scope"))
    for name in sorted(hard):
        if quantities.is_standard_quota_resource(name) and not _applies(scope, name):
            out.append(invalid(path, shown, "unsupported scope applied to resource"))


def _applies(scope: str, name: str) -> bool:
    if scope == "BestEffort":
        return name == "pods"
    if scope == "VolumeAttributesClass":
        return name in ("persistentvolumeclaims", "requests.storage")
    return scope not in _SCOPES or name in _POD_RESOURCES


def _exclusive(out: Errors, path: str, found: Any, shown: Any) -> None:
    for pair in _EXCLUSIVE:
        if all(scope in found for scope in pair):
            out.append(invalid(path, shown, "conflicting scopes"))


def _expression(out: Errors, path: str, expression: Part, selector: Part, hard: Part) -> None:
    scope, operator, values = expression.get("scopeName") or "", expression.get("operator") or "", expression.get("values") or []
    if scope not in _SCOPES:
        out.append(invalid(f"{path}.scopeName", scope, "unsupported scope"))
    for name in sorted(hard):
        if quantities.is_standard_quota_resource(name) and not _applies(scope, name):
            out.append(invalid(path, dict(selector), "unsupported scope applied to resource"))
    if scope in _EXISTS_ONLY and operator != "Exists":
        words = (
            "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
            "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
        )
        out.append(invalid(f"{path}.operator", operator, words))
    if operator in ("In", "NotIn"):
        if not values:
            words = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            out.append(required(f"{path}.values", words))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            words = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            out.append(invalid(f"{path}.values", values, words))
    else:
        out.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))


def status(found: Part) -> Errors:
    out: Errors = []
    for side in ("hard", "used"):
        _amounts(out, f"status.{side}", found.get(side) or _NOTHING)
    return out


def update(new: Part, old: Part) -> list[FieldError]:
    have, had = new.get("spec") or _NOTHING, old.get("spec") or _NOTHING
    out = _spec(have)
    if set(have.get("scopes") or ()) != set(had.get("scopes") or ()):
        out.append(invalid("spec.scopes", list(have.get("scopes") or ()), IMMUTABLE))
    return out
