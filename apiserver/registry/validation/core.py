"""ConfigMaps, Secrets, Namespaces, Nodes, Events' neighbours: the smaller kinds of the core group."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from apiserver.machinery import go_json, names
from apiserver.machinery.field_errors import FieldError, duplicate, forbidden, invalid, required, too_long
from apiserver.machinery.quantity import NANOS
from apiserver.registry.validation import formats, quantities, scheduling
from apiserver.registry.validation.common import Errors, checked, each, equal, immutable

Part = Mapping[str, Any]

#: of all values of a ConfigMap or Secret together, in bytes
DATA_BYTES_MAX = 1024 * 1024
_FIXED = "field is immutable when `immutable` is set"
_NOTHING: Part = {}


def decoded_length(encoded: str) -> int:
    """The length in bytes of what base64 text holds."""
    return len(encoded) * 3 // 4 - encoded[-2:].count("=") if encoded else 0


def config_map(obj: Part) -> list[FieldError]:
    out: Errors = []
    data, binary = obj.get("data") or _NOTHING, obj.get("binaryData") or _NOTHING
    size = 0
    for key, value in data.items():
        checked(out, f"data[{key}]", key, names.config_map_key)
        if key in binary:
            out.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        size += names.byte_length(value)
    for key, value in binary.items():
        checked(out, f"binaryData[{key}]", key, names.config_map_key)
        size += decoded_length(value)
    if size > DATA_BYTES_MAX:
        # the path of a field without a name
        out.append(too_long("[]", DATA_BYTES_MAX))
    return out


def config_map_update(new: Part, old: Part) -> list[FieldError]:
    return [*_immutable_data(new, old, ("data", "binaryData")), *config_map(new)]


def _immutable_data(new: Part, old: Part, fields: tuple[str, ...]) -> Errors:
    out: Errors = []
    if old.get("immutable"):
        if not new.get("immutable"):
            out.append(forbidden("immutable", _FIXED))
        for field in fields:
            if (new.get(field) or {}) != (old.get(field) or {}):
                out.append(forbidden(field, _FIXED))
    return out


def secret(obj: Part) -> list[FieldError]:
    out: Errors = []
    data = obj.get("data") or _NOTHING
    size = 0
    for key, value in data.items():
        checked(out, f"data[{key}]", key, names.config_map_key)
        size += decoded_length(value or "")
    if size > DATA_BYTES_MAX:
        out.append(too_long("data", DATA_BYTES_MAX))
    _secret_type(out, obj, data)
    return out


def _secret_type(out: Errors, obj: Part, data: Part) -> None:
    """What the well-known types must hold."""
    kind = obj.get("type")
    if kind == "kubernetes.io/service-account-token":
        annotations = (obj.get("metadata") or _NOTHING).get("annotations") or _NOTHING
        if not annotations.get("kubernetes.io/service-account.name"):
            out.append(required("metadata.annotations[kubernetes.io/service-account.name]"))
    elif kind in ("kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson"):
        key = ".dockercfg" if kind.endswith("cfg") else ".dockerconfigjson"
        if key not in data:
            out.append(required(f"data[{key}]"))
        elif (wrong := _not_a_json_object(data[key])) is not None:
            out.append(invalid(f"data[{key}]", "<secret contents redacted>", wrong))
    elif kind == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            out.append(required("data[username]"))
            out.append(required("data[password]"))
    elif kind == "kubernetes.io/ssh-auth":
        if not data.get("ssh-privatekey"):
            out.append(required("data[ssh-privatekey]"))
    elif kind == "kubernetes.io/tls":
        for key in ("tls.crt", "tls.key"):
            if key not in data:
                out.append(required(f"data[{key}]"))


def _not_a_json_object(encoded: str) -> str | None:
    """What Go's decoder of JSON says of the text, None if it is an object (or null)."""
    try:
        found = go_json.decode_json(base64.b64decode(encoded or ""))
    except go_json.GoError as error:
        return str(error)
    if found is None or isinstance(found, dict):
        return None
    kind = {bool: "bool", str: "string", list: "array"}.get(type(found), "number")
    return f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"


def secret_update(new: Part, old: Part) -> list[FieldError]:
    out: Errors = []
    immutable(out, "type", new.get("type"), old.get("type"))
    out.extend(_immutable_data(new, old, ("data",)))
    return out + secret(new)


def namespace(obj: Part) -> list[FieldError]:
    out: Errors = []
    for finalizer in (obj.get("spec") or _NOTHING).get("finalizers") or ():
        _namespace_finalizer(out, "spec.finalizers", finalizer)
    return out


def namespace_finalize(obj: Part) -> list[FieldError]:
    out: Errors = []
    for i, finalizer in each(out, (obj.get("spec") or _NOTHING).get("finalizers") or ()):
        _namespace_finalizer(out, f"spec.finalizers[{i}]", finalizer)
    return out


def _namespace_finalizer(out: Errors, path: str, finalizer: str) -> None:
    checked(out, path, finalizer, names.qualified_name)
    if "/" not in finalizer and finalizer not in ("kubernetes", "orphan", "foregroundDeletion"):
        out.append(invalid(path, finalizer, "name is neither a standard finalizer name nor is it fully qualified"))


def namespace_status_update(new: Part, old: Part) -> list[FieldError]:
    out: Errors = []
    phase = (new.get("status") or _NOTHING).get("phase") or ""
    if (new.get("metadata") or _NOTHING).get("deletionTimestamp"):
        if phase != "Terminating":
            out.append(invalid("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty"))
    elif phase != "Active":
        out.append(invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty"))
    return out


def node(obj: Part) -> list[FieldError]:
    out: Errors = []
    spec = obj.get("spec") or _NOTHING
    if taints := spec.get("taints"):
        scheduling.taints(out, "metadata.taints", taints)
    _node_resources(out, obj.get("status") or _NOTHING)
    _pod_cidrs(out, list(spec.get("podCIDRs") or ()))
    return out


def _node_resources(out: Errors, status: Part) -> None:
    for side in ("capacity", "allocatable"):
        for name, value in (status.get(side) or _NOTHING).items():
            quantities.quantity_value(out, f"status.{side}.{name}", name, value)


def _pod_cidrs(out: Errors, cidrs: list[str]) -> None:
    if not cidrs:
        return
    for i, value in each(out, cidrs):
        for message in formats.cidr(value):
            out.append(invalid(f"spec.podCIDRs[{i}]", value, message))
    if len(cidrs) > 1:
        if len(cidrs) > 2 or len({":" in value for value in cidrs}) != 2:
            out.append(invalid("spec.podCIDRs", cidrs, "may specify no more than one CIDR for each IP family"))
        seen: set[str] = set()
        for i, value in each(out, cidrs):
            if value in seen:
                out.append(duplicate(f"spec.podCIDRs[{i}]", value))
            seen.add(value)


def node_update(new: Part, old: Part) -> list[FieldError]:
    """A node's spec is its administrator's taints and its unschedulability; what identifies it to a cloud is set once."""
    out: Errors = []
    have, had, status = new.get("spec") or _NOTHING, old.get("spec") or _NOTHING, new.get("status") or _NOTHING
    _node_resources(out, status)
    addresses = status.get("addresses") or ()
    for i, address in each(out, addresses):
        if address in addresses[:i]:
            out.append(duplicate(f"status.addresses[{i}]", address))
    if had.get("podCIDRs") and not equal(have.get("podCIDRs"), had.get("podCIDRs")):
        out.append(forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'))
    if had.get("providerID") and have.get("providerID") != had["providerID"]:
        out.append(forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid'))
    if taints := have.get("taints"):
        scheduling.taints(out, "metadata.taints", taints)
    changeable = ["unschedulable", "taints", "configSource"]
    if not had.get("podCIDRs"):
        changeable += ["podCIDR", "podCIDRs"]
    if not had.get("providerID"):
        changeable.append("providerID")
    rest, old_rest = ({k: v for k, v in spec.items() if k not in changeable} for spec in (have, had))
    if not equal(rest, old_rest):
        out.append(forbidden("[]", "node updates may only change labels, taints, or capacity"))
    return out


def limit_range(obj: Part) -> list[FieldError]:
    out: Errors = []
    seen: set[str] = set()
    for i, limit in each(out, (obj.get("spec") or _NOTHING).get("limits") or ()):
        path, kind = f"spec.limits[{i}]", limit.get("type") or ""
        quantities.limit_range_type(out, f"{path}.type", kind)
        if kind in seen:
            out.append(duplicate(f"{path}.type", kind))
        seen.add(kind)
        _limit_range_item(out, path, kind, limit)
    return out


def _limit_range_item(out: Errors, path: str, kind: str, limit: Part) -> None:
    sides: dict[str, Part] = {}
    for side in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
        found = limit.get(side) or _NOTHING
        if kind == "Pod" and side in ("default", "defaultRequest"):
            if found:
                out.append(forbidden(f"{path}.{side}", "may not be specified when `type` is 'Pod'"))
            found = _NOTHING
        if side == "maxLimitRequestRatio" and kind == "PersistentVolumeClaim":
            if "storage" not in (limit.get("min") or _NOTHING) and "storage" not in (limit.get("max") or _NOTHING):
                words = "either minimum or maximum storage value is required, but neither was provided"
                out.append(required(f"{path}.limits", words))
        for name in found:
            quantities.limit_range_resource_name(out, f"{path}.{side}[{name}]", kind, name)
        sides[side] = found
    for name in dict.fromkeys(name for found in sides.values() for name in found):
        _limit_order(out, path, name, {side: found[name] for side, found in sides.items() if name in found})


#: (smaller, larger, at which side the error stands, whose value it shows, how each is called)
_ORDER = (
    ("min", "max", "min", "min", "min value {0} is greater than max value {1}"),
    ("min", "defaultRequest", "defaultRequest", "defaultRequest", "min value {0} is greater than default request value {1}"),
    ("defaultRequest", "max", "defaultRequest", "defaultRequest", "default request value {0} is greater than max value {1}"),
    ("defaultRequest", "default", "defaultRequest", "defaultRequest", "default request value {0} is greater than default limit value {1}"),
    ("min", "default", "default", "min", "min value {0} is greater than default value {1}"),
    ("default", "max", "default", "max", "default value {0} is greater than max value {1}"),
)


def _limit_order(out: Errors, path: str, name: str, values: dict[str, Any]) -> None:
    amount = quantities.amount
    for small, large, side, shown, words in _ORDER:
        if small in values and large in values and amount(values[small]) > amount(values[large]):
            out.append(invalid(f"{path}.{side}[{name}]", str(values[shown]), words.format(values[small], values[large])))
    ratio = values.get("maxLimitRequestRatio")
    if ratio is not None:
        at = f"{path}.maxLimitRequestRatio[{name}]"
        if amount(ratio) < NANOS:
            out.append(invalid(at, str(ratio), f"ratio {ratio} is less than 1"))
        if "min" in values and "max" in values and amount(values["min"]):
            limit = amount(values["max"]) / amount(values["min"])
            if amount(ratio) / NANOS > limit:
                out.append(invalid(at, str(ratio), f"ratio {ratio} is greater than max/min = {limit:f}"))
    if not quantities.may_be_overcommitted(name) and "default" in values and "defaultRequest" in values:
        if not quantities.same_amount(values["default"], values["defaultRequest"]):
            words = f"default value {values['default']} must equal to defaultRequest value {values['defaultRequest']} in {name}"
            out.append(invalid(f"{path}.defaultRequest[{name}]", str(values["defaultRequest"]), words))
