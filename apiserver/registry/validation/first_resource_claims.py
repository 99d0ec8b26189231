"""The first designs of dynamic resource allocation (``resource.k8s.io`` v1alpha1 of 1.26, v1alpha2 of 1.27 to 1.30): a claim names a class,
the class's driver allocates. Rules after that time's ``pkg/apis/resource/validation``; CEL selectors are not looked into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.machinery import names
from apiserver.machinery.field_errors import FieldError, duplicate, forbidden, invalid, required, too_long
from apiserver.registry.validation import scheduling
from apiserver.registry.validation.common import IMMUTABLE, Errors, checked, each, equal, labels, one_of
from apiserver.registry.validation.devices import driver_name
from apiserver.registry.validation.resource_claims import distinct, few

Part = Mapping[str, Any]

_NOTHING: Part = {}
_MODES = ("Immediate", "WaitForFirstConsumer")
RESERVED_FOR_MAX = 32
NODES_MAX = 128
HANDLES_MAX = 32
#: upstream has no bound of its own; a stored object is smaller
INSTANCES_MAX = 100_000
HANDLE_BYTES_MAX = 16 * 1024
_ONE_MODEL = "exactly one structured model field must be set"


def claim(obj: Part) -> list[FieldError]:
    out: Errors = []
    _claim_spec(out, "spec", obj.get("spec") or _NOTHING)
    return out


def claim_template(obj: Part) -> list[FieldError]:
    out: Errors = []
    spec = obj.get("spec") or _NOTHING
    labels(out, "spec.metadata.labels", (spec.get("metadata") or _NOTHING).get("labels"))
    _claim_spec(out, "spec.spec", spec.get("spec") or _NOTHING)
    return out


def _claim_spec(out: Errors, path: str, spec: Part) -> None:
    checked(out, f"{path}.resourceClassName", spec.get("resourceClassName") or "", names.dns1123_subdomain)
    _reference(out, f"{path}.parametersRef", spec.get("parametersRef"))
    one_of(out, f"{path}.allocationMode", spec.get("allocationMode") or "", _MODES, need=False)


def _reference(out: Errors, path: str, found: Part | None) -> None:
    if found is None:
        return
    for field in ("kind", "name"):
        if not found.get(field):
            out.append(required(f"{path}.{field}"))
    if found.get("namespace"):
        checked(out, f"{path}.namespace", found["namespace"], names.dns1123_label)


def resource_class(obj: Part) -> list[FieldError]:
    out: Errors = []
    driver_name(out, "driverName", obj.get("driverName") or "")
    _reference(out, "parametersRef", obj.get("parametersRef"))
    if obj.get("suitableNodes") is not None:
        scheduling.node_selector(out, "suitableNodes", obj["suitableNodes"])
    return out


def claim_status(new: Part, old: Part) -> list[FieldError]:
    out: Errors = []
    status, before = new.get("status") or _NOTHING, old.get("status") or _NOTHING
    allocation, reserved = status.get("allocation"), status.get("reservedFor") or ()
    if status.get("driverName"):
        driver_name(out, "status.driverName", status["driverName"])
    elif allocation is not None:
        out.append(required("status.driverName", "must be specified when `allocation` is set"))
    if allocation is not None:
        _allocation(out, "status.allocation", allocation)
    distinct(out, "status.reservedFor", reserved, RESERVED_FOR_MAX, _consumer, lambda consumer: consumer.get("uid"))
    if reserved:
        if allocation is None:
            out.append(forbidden("status.reservedFor", "may not be specified when `allocated` is not set"))
        elif len(reserved) > 1 and not allocation.get("shareable"):
            out.append(forbidden("status.reservedFor", "may not be reserved more than once"))
        leaves = status.get("deallocationRequested") or new["metadata"].get("deletionTimestamp")
        known = [consumer.get("uid") for consumer in before.get("reservedFor") or ()]
        if leaves and any(consumer.get("uid") not in known for consumer in reserved):
            why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
            out.append(forbidden("status.reservedFor", why))
    if allocation is not None and before.get("allocation") is not None and not equal(allocation, before["allocation"]):
        out.append(invalid("status.allocation", allocation, IMMUTABLE))
    if status.get("deallocationRequested"):
        at = "status.deallocationRequested"
        if allocation is None:
            out.append(forbidden(at, "must be cleared when `allocation` is unset"))
        elif not before.get("deallocationRequested") and reserved:
            out.append(forbidden(at, "deallocation cannot be requested while `reservedFor` is set"))
    return out


def _allocation(out: Errors, path: str, allocation: Part) -> None:
    few(out, f"{path}.resourceHandles", allocation.get("resourceHandles") or (), HANDLES_MAX, _handle)
    if allocation.get("availableOnNodes") is not None:
        scheduling.node_selector(out, f"{path}.availableOnNodes", allocation["availableOnNodes"])


def _handle(out: Errors, path: str, handle: Part) -> None:
    driver_name(out, f"{path}.driverName", handle.get("driverName") or "")
    if len(handle.get("data") or "") > HANDLE_BYTES_MAX:
        out.append(too_long(f"{path}.data", HANDLE_BYTES_MAX))


def _consumer(out: Errors, path: str, consumer: Part) -> None:
    for field in ("resource", "name", "uid"):
        if not consumer.get(field):
            out.append(required(f"{path}.{field}"))


def _nodes(out: Errors, path: str, found: Sequence[str]) -> None:
    distinct(out, path, found, NODES_MAX, lambda o, p, name: checked(o, p, name, names.dns1123_subdomain), lambda name: name)


def pod_scheduling(obj: Part) -> list[FieldError]:
    out: Errors = []
    _nodes(out, "spec.potentialNodes", (obj.get("spec") or _NOTHING).get("potentialNodes") or ())
    return out


def pod_scheduling_status(obj: Part) -> list[FieldError]:
    out: Errors = []
    seen: set[str] = set()
    for i, one in each(out, (obj.get("status") or _NOTHING).get("resourceClaims") or ()):
        path = f"status.resourceClaims[{i}]"
        _nodes(out, f"{path}.unsuitableNodes", one.get("unsuitableNodes") or ())
        if one.get("name") in seen:
            out.append(duplicate(f"{path}.name", one["name"]))
        seen.add(one.get("name") or "")
    return out


def claim_parameters(obj: Part) -> list[FieldError]:
    """What a driver's own parameters mean for the scheduler, of 1.30."""
    out: Errors = []
    _reference(out, "generatedFrom", obj.get("generatedFrom"))
    for i, one in each(out, obj.get("driverRequests") or ()):
        driver_name(out, f"driverRequests[{i}].driverName", one.get("driverName") or "")
        for j, request in each(out, one.get("requests") or ()):
            if request.get("namedResources") is None:
                out.append(required(f"driverRequests[{i}].requests[{j}]", _ONE_MODEL))
    return out


def class_parameters(obj: Part) -> list[FieldError]:
    out: Errors = []
    _reference(out, "generatedFrom", obj.get("generatedFrom"))
    for i, one in each(out, obj.get("filters") or ()):
        driver_name(out, f"filters[{i}].driverName", one.get("driverName") or "")
        if one.get("namedResources") is None:
            out.append(required(f"filters[{i}]", _ONE_MODEL))
    for i, one in each(out, obj.get("vendorParameters") or ()):
        driver_name(out, f"vendorParameters[{i}].driverName", one.get("driverName") or "")
    return out


def resource_slice(new: Part, old: Part | None = None) -> list[FieldError]:
    out: Errors = []
    if new.get("nodeName"):
        checked(out, "nodeName", new["nodeName"], names.dns1123_subdomain)
    driver_name(out, "driverName", new.get("driverName") or "")
    model = new.get("namedResources")
    if model is None:
        out.append(required("", _ONE_MODEL))
    else:
        key = "namedResources.instances"
        distinct(out, key, model.get("instances") or (), INSTANCES_MAX, _instance, lambda instance: instance.get("name"))
    for field in ("nodeName", "driverName") if old is not None else ():
        if not equal(new.get(field), (old or _NOTHING).get(field)):
            out.append(invalid(field, new.get(field), IMMUTABLE))
    return out


def _instance(out: Errors, path: str, instance: Part) -> None:
    checked(out, f"{path}.name", instance.get("name") or "", names.dns1123_label)
