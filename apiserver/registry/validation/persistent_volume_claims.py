"""PersistentVolumeClaims and the templates of them in StatefulSets and ephemeral volumes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.machinery import names, release, spec_diff
from apiserver.machinery.field_errors import FieldError, forbidden, invalid, not_supported, required
from apiserver.registry.validation import formats, quantities
from apiserver.registry.validation.common import Errors, checked, equal, immutable, label_selector, labels

Part = Mapping[str, Any]

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
_NOTHING: Part = {}
_IMMUTABLE = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"


def spec(out: Errors, path: str, found: Part) -> None:
    modes = found.get("accessModes") or ()
    if not modes:
        out.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    if (selector := found.get("selector")) is not None:
        label_selector(out, f"{path}.selector", selector)
    access_modes(out, f"{path}.accessModes", modes)
    requests = (found.get("resources") or _NOTHING).get("requests") or _NOTHING
    storage = requests.get("storage")
    if storage is None:
        out.append(required(f"{path}.resources[storage]"))
    elif quantities.amount(storage) <= 0:
        out.append(invalid(f"{path}.resources[storage]", str(storage), "must be greater than zero"))
    if storage_class := found.get("storageClassName"):
        checked(out, f"{path}.storageClassName", storage_class, names.dns1123_subdomain)
    mode = found.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        out.append(not_supported(f"{path}.volumeMode", mode, list(VOLUME_MODES)))
    _data_source(out, f"{path}.dataSource", found.get("dataSource"))
    _data_source(out, f"{path}.dataSourceRef", found.get("dataSourceRef"))
    source, reference = found.get("dataSource"), found.get("dataSourceRef")
    if source is not None and reference is not None and not reference.get("namespace"):
        if not equal({**source, "namespace": None}, {**reference, "namespace": None}):
            out.append(invalid(path, source, "must match dataSourceRef"))
    if attributes_class := found.get("volumeAttributesClassName"):
        checked(out, f"{path}.volumeAttributesClassName", attributes_class, names.dns1123_subdomain)


def access_modes(out: Errors, path: str, modes: Any) -> None:
    for mode in modes:
        if mode not in ACCESS_MODES:
            out.append(not_supported(path, mode, list(ACCESS_MODES)))
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        out.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))


def _data_source(out: Errors, path: str, source: Part | None) -> None:
    if source is None:
        return
    if not source.get("name"):
        out.append(required(f"{path}.name"))
    kind = source.get("kind") or ""
    if not kind:
        out.append(required(f"{path}.kind"))
    group = source.get("apiGroup") or ""
    if not group and kind != "PersistentVolumeClaim":
        out.append(invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"))
    if group:
        checked(out, f"{path}.apiGroup", group, names.dns1123_subdomain)


def template(out: Errors, path: str, found: Part) -> None:
    """Of an ephemeral volume: only labels and annotations in its metadata."""
    metadata = found.get("metadata") or _NOTHING
    for key in metadata.get("annotations") or ():
        checked(out, f"{path}.metadata.annotations", key, lambda k: formats.qualified_name(k.lower()))
    labels(out, f"{path}.metadata.labels", metadata.get("labels"))
    for field, value in metadata.items():
        if field not in ("annotations", "labels") and value:
            out.append(forbidden(f"{path}.metadata.{field}", "cannot be set for an ephemeral volume"))
    spec(out, f"{path}.spec", found.get("spec") or _NOTHING)


def create(obj: Part) -> list[FieldError]:
    out: Errors = []
    spec(out, "spec", obj.get("spec") or _NOTHING)
    return out


def update(new: Part, old: Part) -> list[FieldError]:
    """A claim is fixed but for its volume (while it has none), and the size and attributes class of a bound one."""
    out: Errors = []
    have, had = new.get("spec") or _NOTHING, old.get("spec") or _NOTHING
    spec(out, "spec", have)
    if have == had:
        return out
    kept = dict(have)
    if not had.get("volumeName"):
        kept["volumeName"] = had.get("volumeName")
    if not had.get("storageClassName") and had.get("storageClassName") is None and have.get("storageClassName") is not None:
        if not had.get("volumeName"):
            kept["storageClassName"] = had.get("storageClassName")
    size, old_size = _storage(have), _storage(had)
    bound = ((new.get("status") or _NOTHING).get("phase")) == "Bound"
    if bound and (have.get("resources") or _NOTHING).get("requests"):
        requests = {**have["resources"]["requests"], "storage": old_size}
        kept["resources"] = {**have["resources"], "requests": {k: v for k, v in requests.items() if v is not None}}
    # the class of a claim's attributes may change; what it may change to is asked below
    kept["volumeAttributesClassName"] = had.get("volumeAttributesClassName")
    if not _equal_specs(kept, had):
        out.append(forbidden("spec", f"{_IMMUTABLE}\n{spec_diff.describe(had, kept)}"))
    if quantities.amount(size) < quantities.amount(old_size):
        # A request may come back down after a failed expansion, but never to what the volume already has.
        # Until 1.31 it never may (RecoverVolumeExpansionFailure is on by default since 1.32, KEP-1790).
        actual = ((old.get("status") or _NOTHING).get("capacity") or _NOTHING).get("storage")
        if not release.since(32):
            out.append(forbidden("spec.resources.requests.storage", "field can not be less than previous value"))
        elif quantities.amount(size) <= quantities.amount(actual):
            out.append(forbidden("spec.resources.requests.storage", "field can not be less than status.capacity"))
    immutable(out, "volumeMode", have.get("volumeMode"), had.get("volumeMode"))
    _attributes_class(out, have.get("volumeAttributesClassName"), had.get("volumeAttributesClassName"), old.get("status") or _NOTHING)
    return out


def _attributes_class(out: Errors, new: str | None, old: str | None, status: Part) -> None:
    """A class may be taken away only as long as the volume has none of its attributes yet."""
    path = "spec.volumeAttributesClassName"
    if old is None or new == old:
        return
    if new is None and status.get("currentVolumeAttributesClassName") is not None:
        words = "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil"
        out.append(forbidden(path, words))
    elif new == "":
        out.append(forbidden(path, "update from non-nil value to an empty string is forbidden"))


def _storage(found: Part) -> Any:
    return ((found.get("resources") or _NOTHING).get("requests") or _NOTHING).get("storage")


def _equal_specs(new: Part, old: Part) -> bool:
    if equal(new, old):
        return True
    return equal({**new, "resources": None}, {**old, "resources": None}) and all(
        _equal_amounts((new.get("resources") or _NOTHING).get(side) or {}, (old.get("resources") or _NOTHING).get(side) or {})
        for side in ("requests", "limits")
    )


def _equal_amounts(new: Part, old: Part) -> bool:
    """Quantities are compared by what they come to, not by how they are written."""
    return new.keys() == old.keys() and all(quantities.same_amount(new[name], old[name]) for name in new)


def status_update(new: Part, old: Part) -> list[FieldError]:
    out: Errors = []
    for name, value in ((new.get("status") or _NOTHING).get("capacity") or _NOTHING).items():
        if quantities.whole(value) < 0:
            out.append(invalid(f"status.capacity[{name}]", quantities.whole(value), "must be a valid resource quantity"))
    return out
