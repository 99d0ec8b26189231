"""The group storage.k8s.io: classes, attachments, CSI drivers and what nodes say of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.machinery import names
from apiserver.machinery.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from apiserver.registry.validation import formats, persistent_volumes, quantities
from apiserver.registry.validation.common import (
    IMMUTABLE,
    Errors,
    checked,
    each,
    equal,
    immutable,
    known_value,
    label_key,
    label_selector,
    nonnegative,
)
from apiserver.registry.validation.volumes import csi_driver_name

Part = Mapping[str, Any]

PARAMETERS_MAX = 512
PARAMETERS_BYTES_MAX = 256 * 1024
ERROR_MESSAGE_BYTES_MAX = 1024
NODE_ID_LENGTH_MAX = 192
UPDATE_PERIOD_SECONDS_MIN = 10
_TOKEN_SECONDS_MIN = 600
_TOKEN_SECONDS_MAX = 1 << 32
_NOTHING: Part = {}


def storage_class(obj: Part) -> list[FieldError]:
    out: Errors = []
    _provisioner(out, "provisioner", obj.get("provisioner") or "")
    _parameters(out, "parameters", obj.get("parameters") or _NOTHING, may_be_empty=True)
    policy = obj.get("reclaimPolicy")
    if policy and policy not in ("Delete", "Retain"):
        out.append(not_supported("reclaimPolicy", policy, ["Delete", "Retain"]))
    mode = obj.get("volumeBindingMode")
    if mode is None:
        out.append(required("volumeBindingMode"))
    else:
        known_value(out, "volumeBindingMode", mode, ("Immediate", "WaitForFirstConsumer"))
    _topologies(out, obj.get("allowedTopologies") or ())
    return out


def _provisioner(out: Errors, path: str, name: str) -> None:
    if not name:
        out.append(required(path))
    else:
        for message in formats.qualified_name(name.lower()):
            out.append(invalid(path, name, message))


def _parameters(out: Errors, path: str, parameters: Part, *, may_be_empty: bool) -> None:
    if not parameters and not may_be_empty:
        out.append(required(path, "must contain at least one key/value pair"))
    if len(parameters) > PARAMETERS_MAX:
        out.append(too_long(path, PARAMETERS_MAX))
        return
    size = 0
    for key, value in parameters.items():
        if not key:
            out.append(invalid(path, key, "field can not be empty."))
        size += len(key) + len(value)
    if size > PARAMETERS_BYTES_MAX:
        out.append(too_long(path, PARAMETERS_BYTES_MAX))


def _topologies(out: Errors, terms: Any) -> None:
    # a term that says nothing equals the nothing before all terms
    earlier: list[dict[str, set[str]]] = [{}]
    for i, term in each(out, terms):
        found: dict[str, set[str]] = {}
        for j, expression in each(out, term.get("matchLabelExpressions") or ()):
            at, key = f"allowedTopologies[{i}].matchLabelExpressions[{j}]", expression.get("key") or ""
            values = expression.get("values") or ()
            if not values:
                out.append(required(f"{at}.values"))
            for k, value in each(out, values):
                if value in values[:k]:
                    out.append(duplicate(f"{at}.values[{k}]", value))
            label_key(out, f"{at}.key", key)
            if key in found:
                out.append(duplicate(f"{at}.key", key))
            found[key] = set(values)
        if found in earlier:
            out.append(duplicate(f"allowedTopologies[{i}].matchLabelExpressions", ""))
        earlier.append(found)


def storage_class_update(new: Part, old: Part) -> list[FieldError]:
    out: Errors = []
    if (new.get("parameters") or {}) != (old.get("parameters") or {}):
        out.append(forbidden("parameters", "updates to parameters are forbidden."))
    if new.get("provisioner") != old.get("provisioner"):
        out.append(forbidden("provisioner", "updates to provisioner are forbidden."))
    if new.get("reclaimPolicy") != old.get("reclaimPolicy"):
        out.append(forbidden("reclaimPolicy", "updates to reclaimPolicy are forbidden."))
    immutable(out, "volumeBindingMode", new.get("volumeBindingMode"), old.get("volumeBindingMode"))
    return out


def volume_attributes_class(obj: Part) -> list[FieldError]:
    out: Errors = []
    _provisioner(out, "driverName", obj.get("driverName") or "")
    _parameters(out, "parameters", obj.get("parameters") or _NOTHING, may_be_empty=False)
    return out


def volume_attributes_class_update(new: Part, old: Part) -> list[FieldError]:
    out: Errors = []
    if new.get("driverName") != old.get("driverName"):
        out.append(forbidden("driverName", "updates to driverName are forbidden."))
    if (new.get("parameters") or {}) != (old.get("parameters") or {}):
        out.append(forbidden("parameters", "updates to parameters are forbidden."))
    return out


def volume_attachment(obj: Part) -> list[FieldError]:
    out: Errors = []
    spec, status = obj.get("spec") or _NOTHING, obj.get("status") or _NOTHING
    if not spec.get("attacher"):
        out.append(required("spec.attacher"))
    source = spec.get("source") or _NOTHING
    volume, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    words = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if volume is None and inline is None:
        out.append(required("spec.source", words))
    elif volume is not None and inline is not None:
        out.append(forbidden("spec.source", words))
    elif volume is not None:
        if not volume:
            out.append(required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName"))
    elif inline is not None:
        persistent_volumes.spec(out, "spec.source.inlineVolumeSpec", inline, inline=True)
    checked(out, "spec.nodeName", spec.get("nodeName") or "", names.dns1123_subdomain)
    metadata = status.get("attachmentMetadata") or _NOTHING
    if sum(len(k) + len(v) for k, v in metadata.items()) > PARAMETERS_BYTES_MAX:
        out.append(too_long("status.attachmentMetadata", PARAMETERS_BYTES_MAX))
    for field in ("attachError", "detachError"):
        if len((status.get(field) or _NOTHING).get("message") or "") > ERROR_MESSAGE_BYTES_MAX:
            out.append(too_long(f"status.{field}.message", ERROR_MESSAGE_BYTES_MAX))
    return out


def volume_attachment_create(obj: Part) -> list[FieldError]:
    """What storage.k8s.io/v1 checks of new ones only."""
    out = volume_attachment(obj)
    spec = obj.get("spec") or _NOTHING
    csi_driver_name(out, "spec.attacher", spec.get("attacher") or "")
    if (volume := (spec.get("source") or _NOTHING).get("persistentVolumeName")) is not None:
        checked(out, "spec.source.persistentVolumeName", volume, names.dns1123_subdomain)
    return out


def volume_attachment_update(new: Part, old: Part) -> list[FieldError]:
    out = volume_attachment(new)
    if not equal(new.get("spec"), old.get("spec")):
        out.append(invalid("spec", new.get("spec"), IMMUTABLE))
    return out


def csi_node(obj: Part) -> list[FieldError]:
    out: Errors = []
    seen: set[str] = set()
    for i, driver in each(out, (obj.get("spec") or _NOTHING).get("drivers") or ()):
        at, name, node_id = f"spec.drivers[{i}]", driver.get("name") or "", driver.get("nodeID") or ""
        csi_driver_name(out, f"{at}.name", name)
        if not node_id:
            out.append(required(f"{at}.nodeID"))
        if len(node_id) > NODE_ID_LENGTH_MAX:
            out.append(invalid(f"{at}.nodeID", node_id, f"must be {NODE_ID_LENGTH_MAX} characters or less"))
        nonnegative(out, f"{at}.allocatable.count", (driver.get("allocatable") or _NOTHING).get("count"))
        if name in seen:
            out.append(duplicate(f"{at}.name", name))
        seen.add(name)
        keys: set[str] = set()
        for key in driver.get("topologyKeys") or ():
            if not key:
                out.append(required(at))
            if key in keys:
                out.append(duplicate(at, key))
            keys.add(key)
            for message in formats.qualified_name(key):
                out.append(invalid(at, list(driver["topologyKeys"]), message))
    return out


def csi_node_update(new: Part, old: Part) -> list[FieldError]:
    """A driver's entry may be added or removed, but never changed, except how many volumes it takes."""
    out = csi_node(new)
    had = {d.get("name"): d for d in (old.get("spec") or _NOTHING).get("drivers") or ()}
    for driver in (new.get("spec") or _NOTHING).get("drivers") or ():
        before = had.get(driver.get("name"))
        if before is not None and not equal({**driver, "allocatable": None}, {**before, "allocatable": None}):
            out.append(invalid("CSINodeDriver", dict(driver), IMMUTABLE))
    return out


def csi_driver(obj: Part) -> list[FieldError]:
    out: Errors = []
    spec = obj.get("spec") or _NOTHING
    if spec.get("attachRequired") is None:
        out.append(required("spec.attachedRequired"))
    for field in ("podInfoOnMount", "storageCapacity"):
        if spec.get(field) is None:
            out.append(required(f"spec.{field}"))
    policy = spec.get("fsGroupPolicy")
    if policy is not None and policy not in ("File", "None", "ReadWriteOnceWithFSType"):
        out.append(not_supported("spec.fsGroupPolicy", policy, ["File", "None", "ReadWriteOnceWithFSType"]))
    _token_requests(out, spec.get("tokenRequests") or ())
    for mode in spec.get("volumeLifecycleModes") or ():
        if mode not in ("Persistent", "Ephemeral"):
            out.append(not_supported("spec.volumeLifecycleModes", mode, ["Persistent", "Ephemeral"]))
    if spec.get("seLinuxMount") is None:
        out.append(required("spec.seLinuxMount"))
    seconds = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if seconds is not None and seconds < UPDATE_PERIOD_SECONDS_MIN:
        words = f"must be greater than or equal to {UPDATE_PERIOD_SECONDS_MIN}"
        out.append(invalid("spec.nodeAllocatableUpdatePeriodSeconds", seconds, words))
    return out


def _token_requests(out: Errors, requests: Any) -> None:
    audiences: set[str] = set()
    for i, request in each(out, requests):
        at, audience = f"spec.tokenRequests[{i}]", request.get("audience") or ""
        if audience in audiences:
            out.append(duplicate(f"{at}.audience", audience))
            continue
        audiences.add(audience)
        seconds = request.get("expirationSeconds")
        if seconds is not None and seconds < _TOKEN_SECONDS_MIN:
            out.append(invalid(f"{at}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes"))
        if seconds is not None and seconds > _TOKEN_SECONDS_MAX:
            out.append(invalid(f"{at}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds"))


def csi_driver_update(new: Part, old: Part) -> list[FieldError]:
    out: Errors = []
    have, had = new.get("spec") or _NOTHING, old.get("spec") or _NOTHING
    immutable(out, "spec.attachedRequired", have.get("attachRequired"), had.get("attachRequired"))
    immutable(out, "spec.volumeLifecycleModes", have.get("volumeLifecycleModes"), had.get("volumeLifecycleModes"))
    _token_requests(out, have.get("tokenRequests") or ())
    return out


def csi_storage_capacity(obj: Part) -> list[FieldError]:
    out: Errors = []
    label_selector(out, "nodeTopology", obj.get("nodeTopology"))
    checked(out, "storageClassName", obj.get("storageClassName") or "", names.dns1123_subdomain)
    for field in ("capacity", "maximumVolumeSize"):
        if obj.get(field) is not None:
            quantities.nonnegative_quantity(out, field, obj[field])
    return out


def csi_storage_capacity_update(new: Part, old: Part) -> list[FieldError]:
    out = csi_storage_capacity(new)
    for field in ("nodeTopology", "storageClassName"):
        immutable(out, field, new.get(field), old.get(field))
    return out
