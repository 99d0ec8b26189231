"""DeviceClasses, ResourceClaims and their templates (``resource.k8s.io``)."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from apiserver.machinery import names
from apiserver.machinery.field_errors import FieldError, duplicate, forbidden, invalid, not_supported, required, too_long, too_many
from apiserver.registry.validation import conditions, quantities, scheduling
from apiserver.registry.validation.common import IMMUTABLE, Errors, checked, each, equal, label_key, labels
from apiserver.registry.validation.devices import (
    binding_conditions,
    device_name,
    driver_name,
    pool_name,
    qualified_name,
    skipped_operations,
    uid,
)
from apiserver.registry.validation.formats import interface_address

Part = Mapping[str, Any]

_NOTHING: Part = {}
REQUESTS_MAX = RESULTS_MAX = 32
CONSTRAINTS_MAX = 32
CONFIG_MAX = 32
SELECTORS_MAX = 32
ALTERNATIVES_MAX = 8
RESERVED_FOR_MAX = 256
EXPRESSION_BYTES_MAX = 10 * 1024
PARAMETERS_BYTES_MAX = 10 * 1024
DEVICE_CONDITIONS_MAX = 8
_INTERFACE_NAME_BYTES_MAX = 256
_HARDWARE_ADDRESS_BYTES_MAX = 128
_ADDRESSES_MAX = 16
_MODES = ("All", "ExactCount")
_ADMIN_EFFECTS = ("NoExecute", "NoSchedule", "None")
_WHICH_REQUEST = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
_ONE_FORM = "exactly one of `exactly` or `firstAvailable` is required"

Check = Callable[[Errors, str, Any], None]


def few(out: Errors, path: str, items: Sequence[Any], most: int, check: Check) -> bool:
    """Check each of a bounded list; of a longer one only that it is too long. Answers whether it was short enough."""
    if len(items) > most:
        out.append(too_many(path, len(items), most))
        return False
    for i, item in each(out, items):
        check(out, f"{path}[{i}]", item)
    return True


def distinct(out: Errors, path: str, items: Sequence[Any], most: int, check: Check, key: Callable[[Any], Hashable]) -> None:
    """The same for a list whose items may not repeat."""
    if not few(out, path, items, most, check):
        return
    seen: set[Hashable] = set()
    for i, item in each(out, items):
        found = key(item)
        if found in seen:
            out.append(duplicate(f"{path}[{i}]", found))
        seen.add(found)


def device_class(obj: Part) -> list[FieldError]:
    out: Errors = []
    spec = obj.get("spec") or _NOTHING
    few(out, "spec.selectors", spec.get("selectors") or (), SELECTORS_MAX, _selector)
    few(out, "spec.config", spec.get("config") or (), CONFIG_MAX, _configuration)
    name = spec.get("extendedResourceName")
    if name is not None and not quantities.is_extended(name):
        out.append(invalid("spec.extendedResourceName", name, "must be a valid extended resource name"))
    return out


def claim(obj: Part) -> list[FieldError]:
    out: Errors = []
    _claim_spec(out, "spec", obj.get("spec") or _NOTHING)
    return out


def immutable_spec(new: Part, old: Part) -> list[FieldError]:
    """Of a claim, and of a template: nothing in it may change, and it is not looked at again."""
    return [] if equal(new.get("spec"), old.get("spec")) else [invalid("spec", new.get("spec"), IMMUTABLE)]


def claim_template(obj: Part) -> list[FieldError]:
    out: Errors = []
    spec = obj.get("spec") or _NOTHING
    metadata = spec.get("metadata") or _NOTHING
    for key in metadata.get("annotations") or ():
        checked(out, "spec.metadata.annotations", key.lower(), names.qualified_name)
    labels(out, "spec.metadata.labels", metadata.get("labels"))
    _claim_spec(out, "spec.spec", spec.get("spec") or _NOTHING)
    return out


def _claim_spec(out: Errors, path: str, spec: Part) -> None:
    devices = spec.get("devices") or _NOTHING
    known = _request_names(devices)

    def configured(out: Errors, path: str, config: Part) -> None:
        _request_references(out, path, config, known)
        _configuration(out, path, config)

    at = f"{path}.devices"
    distinct(out, f"{at}.requests", devices.get("requests") or (), REQUESTS_MAX, _request, _name)
    few(out, f"{at}.constraints", devices.get("constraints") or (), CONSTRAINTS_MAX, lambda o, p, c: _constraint(o, p, c, known))
    few(out, f"{at}.config", devices.get("config") or (), CONFIG_MAX, configured)


def _name(item: Part) -> str:
    return item.get("name") or ""


def _request_names(devices: Part) -> frozenset[str]:
    """``request`` and, of one with alternatives, ``request/alternative``."""
    known: set[str] = set()
    for request in devices.get("requests") or ():
        known.add(_name(request))
        known.update(f"{_name(request)}/{_name(alternative)}" for alternative in request.get("firstAvailable") or ())
    return frozenset(known)


def _request(out: Errors, path: str, request: Part) -> None:
    checked(out, f"{path}.name", _name(request), names.dns1123_label)
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable")
    if exactly is not None and alternatives:
        out.append(invalid(path, None, f"{_ONE_FORM}, but multiple fields are set"))
    elif alternatives:
        distinct(out, f"{path}.firstAvailable", alternatives, ALTERNATIVES_MAX, _alternative, _name)
    elif exactly is not None:
        _wanted_devices(out, f"{path}.exactly", exactly)
    else:
        out.append(required(path, _ONE_FORM))


def _alternative(out: Errors, path: str, request: Part) -> None:
    checked(out, f"{path}.name", _name(request), names.dns1123_label)
    _wanted_devices(out, path, request)


def _wanted_devices(out: Errors, path: str, request: Part) -> None:
    name = request.get("deviceClassName") or ""
    if not name:
        out.append(required(f"{path}.deviceClassName"))
    else:
        checked(out, f"{path}.deviceClassName", name, names.dns1123_subdomain)
    few(out, f"{path}.selectors", request.get("selectors") or (), SELECTORS_MAX, _selector)
    mode, count = request.get("allocationMode") or "", request.get("count") or 0
    if mode == "All" and count:
        out.append(invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'"))
    elif mode == "ExactCount" and count <= 0:
        out.append(invalid(f"{path}.count", count, "must be greater than zero"))
    elif mode not in _MODES:
        out.append(not_supported(f"{path}.allocationMode", mode, list(_MODES)))
    for i, toleration in each(out, request.get("tolerations") or ()):
        _toleration(out, f"{path}.tolerations[{i}]", toleration)


def _toleration(out: Errors, path: str, toleration: Part) -> None:
    if toleration.get("key"):
        label_key(out, f"{path}.key", toleration["key"])
    operator, value, effect = (toleration.get(field) or "" for field in ("operator", "value", "effect"))
    if operator == "Exists" and value:
        out.append(invalid(f"{path}.value", value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        checked(out, f"{path}.value", value, names.label_value)
    elif not operator:
        out.append(required(f"{path}.operator"))
    elif operator != "Exists":
        out.append(not_supported(f"{path}.operator", operator, ["Equal", "Exists"]))
    if effect and effect not in _ADMIN_EFFECTS:
        out.append(not_supported(f"{path}.effect", effect, list(_ADMIN_EFFECTS)))


def _selector(out: Errors, path: str, selector: Part) -> None:
    cel = selector.get("cel")
    if cel is None:
        out.append(required(f"{path}.cel"))
    elif names.byte_length(cel.get("expression") or "") > EXPRESSION_BYTES_MAX:
        out.append(too_long(f"{path}.cel.expression", EXPRESSION_BYTES_MAX))
    else:
        from apiserver.registry.validation import device_expressions

        device_expressions.check(out, f"{path}.cel.expression", cel.get("expression") or "")


def _constraint(out: Errors, path: str, constraint: Part, known: frozenset[str]) -> None:
    _request_references(out, path, constraint, known)
    for field in ("matchAttribute", "distinctAttribute"):
        if (attribute := constraint.get(field)) is not None:
            qualified_name(out, f"{path}.{field}", attribute)
            if "/" not in attribute:
                words = "a fully qualified name must be a domain and a name separated by a slash"
                out.append(invalid(f"{path}.{field}", attribute, words))
            return
    words = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
    out.append(required(path, words))


def _request_references(out: Errors, path: str, found: Part, known: frozenset[str]) -> None:
    distinct(out, f"{path}.requests", found.get("requests") or (), REQUESTS_MAX, lambda o, p, n: _request_reference(o, p, n, known), str)


def _request_reference(out: Errors, path: str, name: str, known: frozenset[str]) -> None:
    segments = name.split("/")
    if len(segments) > 2:
        out.append(invalid(path, name, _WHICH_REQUEST))
        return
    for segment in segments:
        checked(out, path, segment, names.dns1123_label)
    if name not in known:
        out.append(invalid(path, name, _WHICH_REQUEST))


def _configuration(out: Errors, path: str, config: Part) -> None:
    opaque = config.get("opaque")
    if opaque is None:
        out.append(required(f"{path}.opaque"))
        return
    driver_name(out, f"{path}.opaque.driver", opaque.get("driver") or "")
    _raw_object(out, f"{path}.opaque.parameters", opaque.get("parameters"))


def _raw_object(out: Errors, path: str, value: Any) -> None:
    if value is None:
        out.append(required(path))
    elif len(json.dumps(value, separators=(",", ":"))) > PARAMETERS_BYTES_MAX:
        out.append(too_long(path, PARAMETERS_BYTES_MAX))
    elif not isinstance(value, dict):
        out.append(invalid(path, "<value omitted>", "must be a valid JSON object"))


def claim_status(new: Part, old: Part) -> list[FieldError]:
    out: Errors = []
    status, was = new.get("status") or _NOTHING, old.get("status") or _NOTHING
    reserved, allocation = status.get("reservedFor") or (), status.get("allocation")
    distinct(out, "status.reservedFor", reserved, RESERVED_FOR_MAX, _consumer, lambda c: c.get("uid") or "")
    results = ((allocation or _NOTHING).get("devices") or _NOTHING).get("results") or ()
    allocated = {_device_id(result) for result in results}
    devices = status.get("devices") or ()
    distinct(out, "status.devices", devices, len(devices), lambda o, p, d: _device_status(o, p, d, allocated), _device_id)
    if reserved and allocation is None:
        out.append(forbidden("status.reservedFor", "may not be specified when `allocated` is not set"))
    elif reserved and (new.get("metadata") or _NOTHING).get("deletionTimestamp"):
        if any(consumer not in (was.get("reservedFor") or ()) for consumer in reserved):
            words = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
            out.append(forbidden("status.reservedFor", words))
    if allocation is not None and was.get("allocation") is not None:
        if not equal(allocation, was["allocation"]):
            out.append(invalid("status.allocation", allocation, IMMUTABLE))
    elif allocation is not None:
        _allocation(out, "status.allocation", allocation, _request_names((new.get("spec") or _NOTHING).get("devices") or _NOTHING))
    return out


def _device_id(found: Part) -> str:
    parts = [found.get(field) or "" for field in ("driver", "pool", "device", "shareID")]
    return "/".join(parts if parts[-1] else parts[:-1])


def _consumer(out: Errors, path: str, consumer: Part) -> None:
    for field in ("resource", "name", "uid"):
        if not consumer.get(field):
            out.append(required(f"{path}.{field}"))


def _device_status(out: Errors, path: str, device: Part, allocated: set[str]) -> None:
    driver_name(out, f"{path}.driver", device.get("driver") or "")
    pool_name(out, f"{path}.pool", device.get("pool") or "")
    device_name(out, f"{path}.device", device.get("device") or "")
    if device.get("shareID") is not None:
        uid(out, f"{path}.shareID", device["shareID"])
    if _device_id(device) not in allocated:
        out.append(invalid(path, _device_id(device), "must be an allocated device in the claim"))
    found = device.get("conditions") or ()
    if len(found) > DEVICE_CONDITIONS_MAX:
        out.append(too_many(f"{path}.conditions", len(found), DEVICE_CONDITIONS_MAX))
    conditions.conditions(out, f"{path}.conditions", found)
    if device.get("data") is not None:
        _raw_object(out, f"{path}.data", device["data"])
    network = device.get("networkData") or _NOTHING
    for field, most in (("interfaceName", _INTERFACE_NAME_BYTES_MAX), ("hardwareAddress", _HARDWARE_ADDRESS_BYTES_MAX)):
        if names.byte_length(network.get(field) or "") > most:
            out.append(too_long(f"{path}.networkData.{field}", most))
    addresses = network.get("ips") or ()
    distinct(out, f"{path}.networkData.ips", addresses, _ADDRESSES_MAX, lambda o, p, a: checked(o, p, a, interface_address), str)


def _allocation(out: Errors, path: str, allocation: Part, known: frozenset[str]) -> None:
    devices = allocation.get("devices") or _NOTHING

    def configured(out: Errors, path: str, config: Part) -> None:
        source = config.get("source") or ""
        if not source:
            out.append(required(f"{path}.source"))
        elif source not in ("FromClaim", "FromClass"):
            out.append(not_supported(f"{path}.source", source, ["FromClaim", "FromClass"]))
        _request_references(out, path, config, known)
        _configuration(out, path, config)

    few(out, f"{path}.devices.results", devices.get("results") or (), RESULTS_MAX, lambda o, p, r: _result(o, p, r, known))
    few(out, f"{path}.devices.config", devices.get("config") or (), 2 * CONFIG_MAX, configured)
    if allocation.get("nodeSelector") is not None:
        scheduling.node_selector(out, f"{path}.nodeSelector", allocation["nodeSelector"])


def _result(out: Errors, path: str, result: Part, known: frozenset[str]) -> None:
    _request_reference(out, f"{path}.request", result.get("request") or "", known)
    driver_name(out, f"{path}.driver", result.get("driver") or "")
    pool_name(out, f"{path}.pool", result.get("pool") or "")
    device_name(out, f"{path}.device", result.get("device") or "")
    binding_conditions(out, path, result)
    for i, toleration in each(out, result.get("tolerations") or ()):
        _toleration(out, f"{path}.tolerations[{i}]", toleration)
    if result.get("shareID") is not None:
        uid(out, f"{path}.shareID", result["shareID"])
    skipped_operations(out, f"{path}.skipNodeOperations", result.get("skipNodeOperations") or ())
