"""APIServices (kube-aggregator ``validation``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.machinery import names
from apiserver.machinery.field_errors import FieldError, invalid, not_supported, required
from apiserver.registry.validation.common import Errors, checked, each

Part = Mapping[str, Any]

_NOTHING: Part = {}


def api_service(obj: Part) -> list[FieldError]:
    out: Errors = []
    spec, name = obj.get("spec") or _NOTHING, (obj.get("metadata") or _NOTHING).get("name") or ""
    group, version = spec.get("group") or "", spec.get("version") or ""
    if name and name != f"{version}.{group}":
        words = f'must be `spec.version+"."+spec.group`: "{version}.{group}"'
        out.append(invalid("metadata.name", name, words))
    if not group and version != "v1":
        out.append(required("spec.group", "only v1 may have an empty group and it better be legacy kube"))
    if group:
        checked(out, "spec.group", group, names.dns1123_subdomain)
    checked(out, "spec.version", version, names.dns1035_label)
    for field, highest in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
        value = spec.get(field) or 0
        if not 0 < value <= highest:
            out.append(invalid(f"spec.{field}", value, f"must be positive and less than {highest}"))
    _service(out, spec)
    return out


def _service(out: Errors, spec: Part) -> None:
    service, bundle, insecure = spec.get("service"), spec.get("caBundle"), spec.get("insecureSkipTLSVerify")
    if service is None:
        if bundle:
            out.append(invalid("spec.caBundle", f"{len(bundle) * 3 // 4} bytes", "local APIServices may not have a caBundle"))
        if insecure:
            words = "local APIServices may not have insecureSkipTLSVerify"
            out.append(invalid("spec.insecureSkipTLSVerify", insecure, words))
        return
    for field in ("namespace", "name"):
        if not service.get(field):
            out.append(required(f"spec.service.{field}"))
    port = service.get("port") or 0
    if found := names.port_number(port):
        out.append(invalid("spec.service.port", port, "port is not valid: " + ", ".join(found)))
    if insecure and bundle:
        out.append(invalid("spec.insecureSkipTLSVerify", insecure, "may not be true if caBundle is present"))


def api_service_status(obj: Part) -> list[FieldError]:
    out: Errors = []
    for i, condition in each(out, (obj.get("status") or _NOTHING).get("conditions") or ()):
        value = condition.get("status") or ""
        if value not in ("True", "False", "Unknown"):
            out.append(not_supported(f"status.conditions[{i}].status", value, ["True", "False", "Unknown"]))
    return out
