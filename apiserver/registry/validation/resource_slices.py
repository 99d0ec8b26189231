"""ResourceSlices: the devices that a driver offers (``resource.k8s.io``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from apiserver.machinery import names, quantity
from apiserver.machinery.field_errors import FieldError, forbidden, invalid, not_found, required, too_long, too_many
from apiserver.registry.validation import scheduling
from apiserver.registry.validation.common import IMMUTABLE, NEGATIVE, Errors, checked, each, equal
from apiserver.registry.validation.devices import (
    IDENTIFIER_LENGTH_MAX,
    binding_conditions,
    device_name,
    driver_name,
    pool_name,
    qualified_name,
    skipped_operations,
    taint,
)
from apiserver.registry.validation.resource_claims import distinct, few

Part = Mapping[str, Any]

_NOTHING: Part = {}
DEVICES_MAX = 128
#: of slices whose devices have taints, consume counters or have lists as attributes
DEVICES_WITH_MORE_MAX = 64
COUNTER_SETS_MAX = 8
COUNTERS_MAX = 32
CONSUMPTIONS_MAX = 2
ATTRIBUTES_AND_CAPACITIES_MAX = 32
ATTRIBUTE_VALUES_MAX = 48
ATTRIBUTE_LENGTH_MAX = 64
TAINTS_MAX = 16
VALID_VALUES_MAX = 10
_DOMAIN_LENGTH_MAX = 63
_KEY_LENGTH_MAX = _DOMAIN_LENGTH_MAX + 1 + IDENTIFIER_LENGTH_MAX
_LABEL_LENGTH_MAX = 63
_INT64_MAX = 2**63 - 1
_NODES = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_DEVICE_NODES = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the "
    "ResourceSlice spec"
)
_IDENTIFIERS = r"[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*"
_NUMBER = r"(0|[1-9][0-9]*)"
_PRERELEASE = r"(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMVER = re.compile(rf"^{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRERELEASE}(\.{_PRERELEASE})*)?(\+{_IDENTIFIERS})?\Z")
_SINGLE = ("bool", "int", "string", "version")
_LISTS = ("bools", "ints", "strings", "versions")
#: what of a node's own resources devices may take (core ``IsNodeAllocatableResourceName``)
_NODE_RESOURCES = ("cpu", "memory", "ephemeral-storage")


def slice_(new: Part, old: Part | None = None) -> list[FieldError]:
    out: Errors = []
    spec = new.get("spec") or _NOTHING
    had = None if old is None else old.get("spec") or _NOTHING
    driver_name(out, "spec.driver", spec.get("driver") or "")
    pool = spec.get("pool") or _NOTHING
    pool_name(out, "spec.pool.name", pool.get("name") or "")
    if (pool.get("resourceSliceCount") or 0) <= 0:
        out.append(invalid("spec.pool.resourceSliceCount", pool.get("resourceSliceCount") or 0, "must be greater than zero"))
    if (pool.get("generation") or 0) < 0:
        out.append(invalid("spec.pool.generation", pool["generation"], "must be greater than or equal to zero"))
    if had is not None:
        for path, now, was in (
            ("spec.pool.name", pool.get("name"), (had.get("pool") or _NOTHING).get("name")),
            ("spec.driver", spec.get("driver"), had.get("driver")),
            ("spec.nodeName", spec.get("nodeName"), had.get("nodeName")),
        ):
            if now != was:
                out.append(invalid(path, now, IMMUTABLE))
    _nodes(out, spec)
    if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
        out.append(invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    devices = spec.get("devices") or ()
    before = {} if had is None else {device.get("name") or "": device for device in had.get("devices") or ()}
    per_device = bool(spec.get("perDeviceNodeSelection"))

    def checked_device(out: Errors, path: str, device: Part) -> None:
        _device(out, path, device, before.get(device.get("name") or ""), per_device)

    most = DEVICES_WITH_MORE_MAX if any(map(_has_more, devices)) else DEVICES_MAX
    distinct(out, "spec.devices", devices, most, checked_device, _name)
    distinct(out, "spec.sharedCounters", spec.get("sharedCounters") or (), COUNTER_SETS_MAX, _counter_set, _name)
    skipped_operations(out, "spec.skipNodeOperations", spec.get("skipNodeOperations") or ())
    return out


def _name(item: Part) -> str:
    return item.get("name") or ""


def _has_more(device: Part) -> bool:
    if device.get("taints") or device.get("consumesCounters"):
        return True
    return any(attribute.get(kind) is not None for attribute in (device.get("attributes") or _NOTHING).values() for kind in _LISTS)


def _nodes(out: Errors, spec: Part) -> None:
    given = []
    node = spec.get("nodeName")
    if node:
        given.append("`nodeName`")
        checked(out, "spec.nodeName", node, names.dns1123_subdomain)
    elif node is not None:
        out.append(invalid("spec.nodeName", node, "must be either unset or set to a non-empty string"))
    if (selector := spec.get("nodeSelector")) is not None:
        given.append("`nodeSelector`")
        scheduling.node_selector(out, "spec.nodeSelector", selector)
        terms = selector.get("nodeSelectorTerms") or ()
        if len(terms) != 1:
            out.append(invalid("spec.nodeSelector.nodeSelectorTerms", list(terms) or None, "must have exactly one node selector term"))
    for field in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(field):
            given.append(f"`{field}`")
        elif spec.get(field) is not None:
            out.append(invalid(f"spec.{field}", spec[field], "must be either unset or set to true"))
    if not given:
        out.append(required("spec", _NODES))
    elif len(given) > 1:
        out.append(invalid("spec", "{" + ", ".join(given) + "}", f"{_NODES}, but multiple fields are set"))


def _device(out: Errors, path: str, device: Part, old: Part | None, per_device: bool) -> None:
    device_name(out, f"{path}.name", _name(device))
    attributes, capacity = device.get("attributes") or _NOTHING, device.get("capacity") or _NOTHING
    total = len(attributes) + len(capacity)
    if total > ATTRIBUTES_AND_CAPACITIES_MAX:
        words = f"the total number of attributes and capacities must not exceed {ATTRIBUTES_AND_CAPACITIES_MAX}"
        out.append(invalid(path, total, words))
    values = sum(sum(len(attribute.get(kind) or ()) for kind in _LISTS) or 1 for attribute in attributes.values())
    if values > ATTRIBUTE_VALUES_MAX:
        out.append(invalid(path, values, f"the total number of attribute values must not exceed {ATTRIBUTE_VALUES_MAX}"))
    for key, attribute in attributes.items():
        qualified_name(out, f"{path}.attributes", key)
        _attribute(out, f"{path}.attributes[{_shortened(key, _KEY_LENGTH_MAX)}]", attribute)
    if old is None or not equal(capacity, old.get("capacity")):
        for key, found in capacity.items():
            qualified_name(out, f"{path}.capacity", key)
            _capacity(out, f"{path}.capacity[{_shortened(key, _KEY_LENGTH_MAX)}]", found, bool(device.get("allowMultipleAllocations")))
    if old is None or not equal(device.get("taints"), old.get("taints")):
        few(out, f"{path}.taints", device.get("taints") or (), TAINTS_MAX, taint)
    consumed = device.get("consumesCounters") or ()
    distinct(out, f"{path}.consumesCounters", consumed, CONSUMPTIONS_MAX, _consumption, lambda c: c.get("counterSet") or "")
    _device_nodes(out, path, device, per_device)
    binding_conditions(out, path, device)
    for name, mapping in (device.get("nodeAllocatableResources") or _NOTHING).items():
        _node_resource(out, f"{path}.nodeAllocatableResources[{name}]", name, mapping, capacity)


def _shortened(key: str, most: int) -> str:
    """A long key with its middle left out."""
    if len(key) <= most:
        return key
    left = most - 3
    return key[: (left + 1) // 2] + "..." + key[len(key) - left // 2 :]


def _attribute(out: Errors, path: str, attribute: Part) -> None:
    given = 0
    for kind in (*_SINGLE, *_LISTS):
        value = attribute.get(kind)
        if value is None:
            continue
        given += 1
        if kind in _LISTS and not value:
            out.append(invalid(f"{path}.{kind}", value, "must not be empty if specified"))
        if kind in ("strings", "versions"):
            for i, item in each(out, value):
                _text(out, f"{path}.{kind}[{i}]", item, version=kind == "versions")
        elif kind in ("string", "version"):
            _text(out, f"{path}.{kind}", value, version=kind == "version")
    if given != 1:
        out.append(invalid(path, dict(attribute) if given else "", "exactly one value must be specified"))


def _text(out: Errors, path: str, value: str, *, version: bool) -> None:
    if version and not _SEMVER.match(value):
        out.append(invalid(path, value, "must be a string compatible with semver.org spec 2.0.0"))
    if names.byte_length(value) > ATTRIBUTE_LENGTH_MAX:
        out.append(too_long(path, ATTRIBUTE_LENGTH_MAX))


def _capacity(out: Errors, path: str, capacity: Part, shared: bool) -> None:
    policy = capacity.get("requestPolicy")
    if policy is None:
        return
    at = f"{path}.requestPolicy"
    if not shared:
        out.append(forbidden(at, "allowMultipleAllocations must be true"))
        return
    values, bounds, default = policy.get("validValues") or (), policy.get("validRange"), policy.get("default")
    if values and bounds is not None:
        words = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        out.append(forbidden(at, words))
        return
    if not values and bounds is None:
        return
    if default is None:
        out.append(required(f"{at}.default", f"required when {'validValues' if values else 'validRange'} is defined"))
        return
    most = quantity.parse(str(capacity.get("value") or 0))
    if values:
        _valid_values(out, f"{at}.validValues", [quantity.parse(str(v)) for v in values], quantity.parse(str(default)), most)
    else:
        _valid_range(out, f"{at}.validRange", bounds, quantity.parse(str(default)), most)


def _valid_values(out: Errors, path: str, values: list[quantity.Quantity], default: quantity.Quantity, most: quantity.Quantity) -> None:
    for i in range(1, len(values)):
        if values[i - 1] > values[i]:
            out.append(invalid(f"{path}[{i}]", str(values[i]), "values must be sorted in ascending order"))

    def option(out: Errors, path: str, value: quantity.Quantity) -> None:
        if value > most:
            out.append(invalid(path, str(value), f"option is larger than capacity value: {most}"))

    distinct(out, path, values, VALID_VALUES_MAX, option, lambda value: str(value.value()))
    if default not in values:
        out.append(invalid(path, str(default), "default value is not valid according to the requestPolicy"))


def _valid_range(out: Errors, path: str, bounds: Part, default: quantity.Quantity, capacity: quantity.Quantity) -> None:
    least, most, step = (None if bounds.get(f) is None else quantity.parse(str(bounds[f])) for f in ("min", "max", "step"))
    if least is None:
        out.append(required(f"{path}.min", "required when validRange is defined"))
        return
    if least > capacity:
        out.append(invalid(f"{path}.min", str(least), f"min is larger than capacity value: {capacity}"))
    if default < least:
        out.append(invalid(f"{path}.default", str(default), f"default is less than min: {least}"))
    if most is not None:
        if least > most:
            out.append(invalid(f"{path}.max", str(least), f"min is larger than max: {most}"))
        if most > capacity:
            out.append(invalid(f"{path}.max", str(most), f"max is larger than capacity value: {capacity}"))
        if default > most:
            out.append(invalid(f"{path}.default", str(default), f"default is more than max: {most}"))
    if step is None:
        return
    if step.sign <= 0:
        out.append(invalid(f"{path}.step", str(step), "must be greater than zero"))
        return
    if least + step > capacity:
        out.append(invalid(f"{path}.step", str(step), f"one step {least + step} is larger than capacity value: {capacity}"))
    before = len(out)
    for field, value in (("default", default), ("min", least), ("max", most), ("step", step)):
        if value is not None and value.sign < 0:
            out.append(invalid(f"{path}.{field}", str(value), NEGATIVE))
        elif value is not None and value.value() > _INT64_MAX:
            out.append(invalid(f"{path}.{field}", str(value), f"must not be larger than {_INT64_MAX}"))
    if len(out) > before:
        return
    for value in (default, most):
        if value is not None and (value.value() - least.value()) % step.value():
            words = f"value is not a multiple of a given step ({step}) from ({least})"
            out.append(invalid(f"{path}.step", str(value), words))


def _consumption(out: Errors, path: str, consumption: Part) -> None:
    name = consumption.get("counterSet") or ""
    if not name:
        out.append(required(f"{path}.counterSet"))
    else:
        checked(out, f"{path}.counterSet", name, names.dns1123_label)
    _counters(out, f"{path}.counters", consumption.get("counters") or _NOTHING)


def _counter_set(out: Errors, path: str, found: Part) -> None:
    if not _name(found):
        out.append(required(f"{path}.name"))
    else:
        checked(out, f"{path}.name", _name(found), names.dns1123_label)
    _counters(out, f"{path}.counters", found.get("counters") or _NOTHING)


def _counters(out: Errors, path: str, counters: Part) -> None:
    if not counters:
        out.append(required(path))
    elif len(counters) > COUNTERS_MAX:
        out.append(too_many(path, len(counters), COUNTERS_MAX))
    else:
        for key in counters:
            checked(out, path, key, names.dns1123_label)


def _device_nodes(out: Errors, path: str, device: Part, per_device: bool) -> None:
    node, selector, every = device.get("nodeName"), device.get("nodeSelector"), device.get("allNodes")
    if not per_device:
        if node is not None or selector is not None or every is not None:
            words = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the "
            out.append(invalid(path, None, words + "ResourceSlice spec"))
        return
    given = []
    if node:
        given.append("`nodeName`")
        checked(out, f"{path}.nodeName", node, names.dns1123_subdomain)
    elif node is not None:
        out.append(invalid(f"{path}.nodeName", node, "must not be empty"))
    if selector is not None:
        given.append("`nodeSelector`")
        scheduling.node_selector(out, f"{path}.nodeSelector", selector)
    if every:
        given.append("`allNodes`")
    elif every is not None:
        out.append(invalid(f"{path}.allNodes", every, "must be either unset or set to true"))
    if not given:
        out.append(required(path, _DEVICE_NODES))
    elif len(given) > 1:
        out.append(invalid(path, "{" + ", ".join(given) + "}", _DEVICE_NODES))


def _node_resource(out: Errors, path: str, name: str, found: Part, capacity: Part) -> None:
    if name not in _NODE_RESOURCES and not name.startswith("hugepages-"):
        out.append(invalid(path, name, "must be a node allocatable resource name"))
    mapping, overhead = found.get("mapping"), found.get("overhead")
    if mapping is None and overhead is None:
        out.append(required(path, "at least one of mapping or overhead must be set"))
    if mapping is not None:
        key, multiplier = mapping.get("capacityKey"), mapping.get("capacityMultiplier")
        if key == "":
            out.append(invalid(f"{path}.mapping.capacityKey", "", "capacityKey must not be an empty string"))
        elif key is not None and key not in capacity:
            out.append(not_found(f"{path}.mapping.capacityKey", key))
        if key is not None and multiplier is None:
            words = "capacityMultiplier is required when capacityKey is set"
            out.append(required(f"{path}.mapping.capacityMultiplier", words))
        elif key is not None:
            _signed(out, f"{path}.mapping.capacityMultiplier", multiplier, 1, "must be positive")
        _signed(out, f"{path}.mapping.deviceMultiplier", mapping.get("deviceMultiplier"), 1, "must be positive")
        if multiplier is not None and key is None:
            out.append(required(f"{path}.mapping.capacityKey", "capacityKey is required when capacityMultiplier is set"))
    if overhead is not None:
        if overhead.get("perPod") is None and overhead.get("perContainer") is None:
            out.append(invalid(f"{path}.overhead", "", "at least one of perPod or perContainer must be set"))
        for field in ("perPod", "perContainer"):
            _signed(out, f"{path}.overhead.{field}", overhead.get(field), 0, "must be non-negative")


def _signed(out: Errors, path: str, value: Any, least: int, words: str) -> None:
    if value is not None and quantity.parse(str(value)).sign < least:
        out.append(invalid(path, str(value), words))
