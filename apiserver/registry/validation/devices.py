"""The names and lists that claims, slices and taint rules of ``resource.k8s.io`` share, and taints of devices."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.machinery import names
from apiserver.machinery.field_errors import FieldError, duplicate, invalid, not_supported, required, too_long, too_many
from apiserver.registry.validation import conditions
from apiserver.registry.validation.common import Errors, checked, each, label_key
from apiserver.registry.validation.volumes import csi_driver_name

Part = Mapping[str, Any]

_NOTHING: Part = {}
POOL_NAME_LENGTH_MAX = 253
IDENTIFIER_LENGTH_MAX = 32
BINDING_CONDITIONS_MAX = 4
RULE_CONDITIONS_MAX = 8
_EFFECTS = ("NoExecute", "NoSchedule", "None")
_BINDINGS = ("bindingConditions", "bindingFailureConditions")
_PREPARE, _UNPREPARE = "NodePrepareResources", "NodeUnprepareResources"

#: the rules of CSI drivers' names, since the allowed values are the same
driver_name = csi_driver_name


def device_name(out: Errors, path: str, name: str) -> None:
    checked(out, path, name, names.dns1123_label)


def pool_name(out: Errors, path: str, name: str) -> None:
    if not name:
        out.append(required(path))
        return
    if len(name) > POOL_NAME_LENGTH_MAX:
        out.append(too_long(path, POOL_NAME_LENGTH_MAX))
    for part in name.split("/"):
        checked(out, path, part, names.dns1123_subdomain)


def uid(out: Errors, path: str, value: str) -> None:
    try:
        canonical = str(uuid.UUID(value))
    except ValueError:
        out.append(invalid(path, value, f"error validating uid: invalid UUID length: {len(value)}"))
        return
    if value != canonical:
        words = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters"
        out.append(invalid(path, value, words))


def qualified_name(out: Errors, path: str, name: str) -> None:
    """``[domain/]identifier``: of attributes and capacities."""
    parts = name.split("/")
    if len(parts) > 2:
        out.append(invalid(path, name, "must not contain more than one slash"))
        return
    if len(parts) == 2:
        if not parts[0]:
            out.append(invalid(path, "", "the domain must not be empty"))
        else:
            driver_name(out, path, parts[0])
    if len(parts) == 2 and not parts[1]:
        out.append(invalid(path, "", "the name must not be empty"))
        return
    if len(parts[-1]) > IDENTIFIER_LENGTH_MAX:
        out.append(too_long(path, IDENTIFIER_LENGTH_MAX))
    checked(out, path, parts[-1], names.c_identifier)


def binding_conditions(out: Errors, path: str, found: Part) -> None:
    """Conditions that must hold, and those that must not, before a pod is bound: none twice, none in both, both or neither."""
    lists = {field: found.get(field) or () for field in _BINDINGS}
    for field, items in lists.items():
        if len(items) > BINDING_CONDITIONS_MAX:
            out.append(too_many(f"{path}.{field}", len(items), BINDING_CONDITIONS_MAX))
            continue
        for i, item in each(out, items):
            label_key(out, f"{path}.{field}[{i}]", item)
    wanted, failing = lists.values()
    for field, items in lists.items():
        seen: set[str] = set()
        for i, item in each(out, items):
            if item in seen:
                out.append(duplicate(f"{path}.{field}[{i}]", item))
            seen.add(item)
            if field == _BINDINGS[1] and item in wanted:
                words = "bindingFailureConditions must not overlap with bindingConditions"
                out.append(invalid(f"{path}.{field}[{i}]", item, words))
    if failing and not wanted:
        words = "bindingConditions are required to use bindingFailureConditions"
        out.append(invalid(f"{path}.{_BINDINGS[0]}", wanted or None, words))
    if wanted and not failing:
        words = "bindingFailureConditions are required to use bindingConditions"
        out.append(invalid(f"{path}.{_BINDINGS[1]}", failing or None, words))


def skipped_operations(out: Errors, path: str, operations: Sequence[str]) -> None:
    if _PREPARE in operations and _UNPREPARE not in operations and "*" not in operations:
        words = f"{_PREPARE} cannot be skipped unless {_UNPREPARE} is also skipped"
        out.append(invalid(path, list(operations), words))


def taint(out: Errors, path: str, found: Part, old: Part | None = None) -> None:
    label_key(out, f"{path}.key", found.get("key") or "")
    if found.get("value"):
        checked(out, f"{path}.value", found["value"], names.label_value)
    effect = found.get("effect") or ""
    if old is not None and effect == (old.get("effect") or ""):
        return
    if not effect:
        out.append(required(f"{path}.effect"))
    elif effect not in _EFFECTS:
        out.append(not_supported(f"{path}.effect", effect, list(_EFFECTS)))


def taint_rule(new: Part, old: Part | None = None) -> list[FieldError]:
    out: Errors = []
    spec = new.get("spec") or _NOTHING
    selector = spec.get("deviceSelector") or _NOTHING
    for field, check in (("driver", driver_name), ("pool", pool_name), ("device", device_name)):
        if selector.get(field) is not None:
            check(out, f"spec.deviceSelector.{field}", selector[field])
    before = None if old is None else (old.get("spec") or _NOTHING).get("taint") or _NOTHING
    taint(out, "spec.taint", spec.get("taint") or _NOTHING, before)
    return out


def taint_rule_status(obj: Part) -> list[FieldError]:
    out: Errors = []
    found = (obj.get("status") or _NOTHING).get("conditions") or ()
    conditions.conditions(out, "status.conditions", found)
    if len(found) > RULE_CONDITIONS_MAX:
        out.append(too_many("status.conditions", len(found), RULE_CONDITIONS_MAX))
    return out
