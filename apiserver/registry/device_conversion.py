"""The two shapes of ``resource.k8s.io``: v1alpha3 and v1beta1 say flatly what v1beta2 and v1 say under ``exactly``; the other way round
they put under ``basic`` what a device has.
"""

from __future__ import annotations

from collections.abc import Callable

from apiserver.machinery.objects import Object

_Change = Callable[[Object], Object]

#: what a request for one class of devices says
_EXACTLY = ("deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity", "derivedAttributes")
FLAT_VERSIONS = ("v1alpha3", "v1beta1")
STRUCTURED_VERSIONS = ("v1beta2", "v1")


def is_flat(obj: Object) -> bool:
    return str(obj.get("apiVersion") or "").partition("/")[2] in FLAT_VERSIONS


def structured(obj: Object) -> Object:
    """An object of any kind of the group in the newer shape; it shares what does not differ."""
    return _with_spec(obj, _structured_request, _structured_device)


def flat(obj: Object) -> Object:
    """The same in the older shape."""
    return _with_spec(obj, _flat_request, _flat_device)


def _with_spec(obj: Object, request: _Change, device: _Change) -> Object:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return obj
    if isinstance(spec.get("spec"), dict):  # a template
        return {**obj, "spec": {**spec, "spec": _claim(spec["spec"], request)}}
    devices = spec.get("devices")
    if isinstance(devices, dict):
        return {**obj, "spec": _claim(spec, request)}
    if isinstance(devices, list):
        return {**obj, "spec": {**spec, "devices": [device(found) for found in devices]}}
    return obj


def _claim(spec: Object, request: _Change) -> Object:
    devices = spec.get("devices") or {}
    if not devices.get("requests"):
        return spec
    return {**spec, "devices": {**devices, "requests": [request(found) for found in devices["requests"]]}}


def _structured_request(request: Object) -> Object:
    exactly = {field: request[field] for field in _EXACTLY if field in request}
    rest = {field: value for field, value in request.items() if field not in _EXACTLY}
    return {**rest, "exactly": exactly} if any(exactly.values()) else rest


def _flat_request(request: Object) -> Object:
    rest = {field: value for field, value in request.items() if field != "exactly"}
    return {**rest, **(request.get("exactly") or {})}


def _structured_device(device: Object) -> Object:
    rest = {field: value for field, value in device.items() if field != "basic"}
    return {**rest, **(device.get("basic") or {})}


def _flat_device(device: Object) -> Object:
    return {"name": device.get("name") or "", "basic": {field: value for field, value in device.items() if field != "name"}}
