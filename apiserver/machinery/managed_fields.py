"""Who set which field: ``metadata.managedFields`` (apimachinery ``util/managedfields``).

An entry belongs to a manager, an operation (``Apply``, or ``Update`` for every other write) and a subresource; one of ``Update`` also to
the version in which it was written. A write of one manager takes the fields that it changes from all others, and those that it removes
from everybody.

The registry calls ``update`` for writes that are not applies, ``server_side_apply.apply`` for those that are. Entries that a write does
not touch are handed on as the very same dicts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from apiserver.machinery import apply_types, fieldset, release, timestamps, typed_fields, typed_merge
from apiserver.machinery.apply_types import ApplyType
from apiserver.machinery.fieldset import EMPTY, FieldSet
from apiserver.machinery.object_versions import Convert, ObjectVersions, SchemaOf, VersionError
from apiserver.machinery.objects import Object
from apiserver.machinery.typed_fields import Changes, TypedError
from apiserver.machinery.types import Type

APPLY = "Apply"
UPDATE = "Update"
FIELDS_TYPE = "FieldsV1"
_OUTER = frozenset({"apiVersion", "kind", "metadata"})

#: how many Update entries an object keeps; the oldest are joined beyond that, or each writer with a name of its own would add one
UPDATE_MANAGERS_MAX = 10
ANCIENT_CHANGES = "ancient-changes"
UNKNOWN_MANAGER = "unknown"


class ManagedFieldsError(ValueError):
    """Entries that a client sent are none."""


class ManagerId(NamedTuple):
    """What makes an entry a manager's own. ``api_version`` is "" for ``Apply``."""

    manager: str
    operation: str
    api_version: str
    subresource: str


def order_of(identity: ManagerId) -> str:
    """What upstream sorts managers by: the identity as JSON, so that a subresource comes before none."""
    said = {"manager": identity.manager, "operation": identity.operation, "apiVersion": identity.api_version}
    if identity.subresource:
        said["subresource"] = identity.subresource
    return json.dumps({name: value for name, value in said.items() if value}, ensure_ascii=False, separators=(",", ":"))


def manager_id(manager: str, operation: str, api_version: str, subresource: str) -> ManagerId:
    return ManagerId(manager or UNKNOWN_MANAGER, operation, "" if operation == APPLY else api_version, subresource)


class Entry(NamedTuple):
    """``time`` is RFC 3339 to the second, "" where none was recorded. ``source`` is the entry as it stands in the object, while nothing
    in it has changed."""

    id: ManagerId
    api_version: str
    time: str
    fields: FieldSet
    source: Object | None = None

    def with_fields(self, fields: FieldSet) -> Entry:
        return self if fields is self.fields else self._replace(fields=fields, source=None)

    def encoded(self) -> Object:
        if self.source is not None:
            return self.source
        out: Object = {"manager": self.id.manager, "operation": self.id.operation, "apiVersion": self.api_version}
        if self.time:
            out["time"] = self.time
        out["fieldsType"] = FIELDS_TYPE
        out["fieldsV1"] = self.fields
        if self.id.subresource:
            out["subresource"] = self.id.subresource
        return out


Entries: TypeAlias = dict[ManagerId, Entry]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldFilter:
    """The fields that an endpoint resets, and so nobody comes to own through it: ``exclude`` and all below it.
    ``every_version``: also in the versions that other managers wrote in."""

    exclude: FieldSet = field(default_factory=dict)
    every_version: bool = True

    def kept(self, fields: FieldSet) -> FieldSet:
        return fieldset.recursive_difference(fields, self.exclude) if self.exclude else fields

    def resets(self, name: str) -> bool:
        """Whether the endpoint resets a whole field of the object."""
        return self.exclude.get("f:" + name) == EMPTY

    def filtered(self, changes: Changes) -> Changes:
        if not self.exclude:
            return changes
        return Changes(self.kept(changes.changed), self.kept(changes.removed))


NO_FILTER = FieldFilter()
#: the main endpoint of a kind with a status subresource
WITHOUT_STATUS = FieldFilter(exclude=fieldset.of_paths(fieldset.fields("status")))
#: the same of a custom resource, whose strategy speaks of its own version alone
WITHOUT_OWN_STATUS = FieldFilter(exclude=WITHOUT_STATUS.exclude, every_version=False)
#: the status endpoint of a built-in kind
WITHOUT_SPEC = FieldFilter(exclude=fieldset.of_paths(fieldset.fields("spec")))
#: the status endpoint of a custom resource; other fields of the root are put back too, but may be owned by who wrote them there
ONLY_STATUS = FieldFilter(exclude=fieldset.of_paths(fieldset.fields("metadata"), fieldset.fields("spec")), every_version=False)


# --- reading and writing entries -------------------------------------------------------------------------------------------------


def _decode_one(entry: Any, position: int, *, trusted: bool) -> Entry:
    if not isinstance(entry, dict):
        raise ManagedFieldsError("managed fields entry is not an object")
    operation = entry.get("operation")
    if operation not in (APPLY, UPDATE):
        raise ManagedFieldsError("operation must be `Apply` or `Update`")
    api_version = entry.get("apiVersion")
    if not api_version:
        raise ManagedFieldsError("apiVersion must not be empty")
    fields_type = entry.get("fieldsType")
    if fields_type != FIELDS_TYPE:
        if not fields_type:
            raise ManagedFieldsError(f"missing fieldsType in managed fields entry {position}")
        raise ManagedFieldsError(f'invalid fieldsType "{fields_type}" in managed fields entry {position}')
    fields = entry.get("fieldsV1") or EMPTY
    source: Object | None = entry
    time = entry.get("time") or ""
    if not trusted:
        source = None
        fields = fieldset.parse(fields)
        time = timestamps.canonical_time(time) if time else ""
    identity = ManagerId(
        str(entry.get("manager") or ""), operation, "" if operation == APPLY else api_version, str(entry.get("subresource") or "")
    )
    return Entry(id=identity, api_version=api_version, time=time, fields=fields, source=source)


def decode(entries: Iterable[Any], *, trusted: bool) -> Entries:
    """Entries by manager. ``trusted``: they were written here, and need no checks of their paths. ``ManagedFieldsError`` where an entry
    is none."""
    try:
        decoded = [_decode_one(entry, i, trusted=trusted) for i, entry in enumerate(entries)]
    except (fieldset.FieldSetError, timestamps.TimestampError) as e:
        raise ManagedFieldsError(f"error decoding set: {e}") from e
    return {entry.id: entry for entry in decoded}


def encode(entries: Entries) -> list[Object]:
    """As they stand in an object: applies first, then by time and name."""
    ordered = sorted(entries.values(), key=lambda e: (e.id.operation, e.time, e.id.manager, e.api_version, e.id.subresource))
    return [entry.encoded() for entry in ordered]


def reconciled(entries: Entries, versions: ObjectVersions, live: Object) -> Entries:
    """The entries where nothing is owned below what the type in their version says is owned as a whole, without those of versions that are
    gone. Raises VersionError where the live object cannot be had in a version of them."""
    out: Entries = {}
    for identity, entry in entries.items():
        kind = versions.shape(entry.api_version)
        if kind is not None:
            versions.converted(live, entry.api_version)
            out[identity] = entry.with_fields(typed_fields.collapsed(kind, entry.fields))
    return out


def of_object(obj: Object | None) -> list[Any]:
    metadata = (obj or {}).get("metadata") or {}
    found = metadata.get("managedFields") if isinstance(metadata, dict) else None
    return found if isinstance(found, list) else []


def with_entries(obj: Object, entries: list[Object]) -> Object:
    """A copy of ``obj`` that has these entries; the rest is shared."""
    metadata = dict(obj.get("metadata") or {})
    if entries:
        metadata["managedFields"] = entries
    else:
        metadata.pop("managedFields", None)
    return {**obj, "metadata": metadata}


def without_entries(obj: Object) -> Object:
    return with_entries(obj, []) if "managedFields" in (obj.get("metadata") or {}) else obj


def restore_timestamps(old: Object, new: Object) -> Object:
    """``new``, with the old entries where nothing but their times differs between the two objects: such a write is none."""
    before, after = of_object(old), of_object(new)
    if before is after or len(before) != len(after):
        return new
    timeless = [[{k: v for k, v in entry.items() if k != "time"} for entry in entries] for entries in (before, after)]
    if timeless[0] != timeless[1] or before == after:
        return new
    restored = with_entries(new, before)
    return restored if restored == old else new


# --- what a write does to the entries --------------------------------------------------------------------------------------------


def _is_reset(entries: Any) -> bool:
    """A client lets managedFields be forgotten with ``[]`` or ``[{}]``."""
    return isinstance(entries, list) and (not entries or entries == [{}])


def _entries_before(old: Object | None, new: Object, subresource: str) -> Entries:
    """The entries that a write starts from: those in the body, where it has any, else those of the object."""
    live = of_object(old)
    sent = (new.get("metadata") or {}).get("managedFields")
    if not subresource and sent is not live and sent is not None:
        if _is_reset(sent):
            return {}
        if sent != live:
            try:
                decoded = decode(sent, trusted=False)
            except (ManagedFieldsError, TypeError):
                decoded = {}
            if decoded:
                return decoded
    try:
        return decode(live, trusted=True)
    except ManagedFieldsError:
        return {}


class Comparer:
    """The changes between two objects, which have no managedFields, in each version that some entry is of."""

    def __init__(self, old: Object, new: Object, versions: ObjectVersions, field_filter: FieldFilter) -> None:
        self._old, self._new = old, new
        self._versions = versions
        self._filter = field_filter
        self.changes = field_filter.filtered(typed_fields.compare(versions.kind, old, new))
        self._by_version: dict[str, Changes | None] = {versions.api_version: self.changes}

    def in_version(self, api_version: str) -> Changes | None:
        """None where the version is not served any more. Raises VersionError."""
        if api_version not in self._by_version:
            self._by_version[api_version] = self._compared(api_version)
        return self._by_version[api_version]

    def _compared(self, api_version: str) -> Changes | None:
        versions = self._versions
        kind = versions.shape(api_version)
        if kind is None:
            return None
        if versions.are_alike and kind is versions.kind:
            return self.changes
        old = versions.converted(self._old, api_version, "failed to convert old object: ")
        new = versions.converted(self._new, api_version, "failed to convert new object: ")
        changes = typed_fields.compare(kind, old, new)
        return self._filter.filtered(changes) if self._filter.every_version else changes


def take_from_others(entries: Entries, comparer: Comparer, keep: ManagerId | None = None) -> Entries:
    """The entries without what a write changed and removed; those left empty, or of a version that is gone, are dropped. ``keep`` is
    the entry of the applier itself."""
    out: Entries = {}
    for identity, entry in entries.items():
        if identity == keep:
            out[identity] = entry
            continue
        changes = comparer.in_version(entry.api_version)
        if changes is None:
            continue
        fields = fieldset.difference(fieldset.difference(entry.fields, changes.changed), changes.removed)
        if fields:
            out[identity] = entry.with_fields(fields)
    return out


def record_update(
    entries: Entries,
    old: Object,
    new: Object,
    *,
    versions: ObjectVersions,
    manager: str,
    subresource: str,
    now: str,
    reset_fields: FieldFilter = NO_FILTER,
) -> Entries:
    """The entries after a write that made ``new`` of ``old`` (``{}``: of nothing). Raises VersionError."""
    comparer = Comparer(old, new, versions, reset_fields)
    out = take_from_others(entries, comparer)
    own = comparer.changes.changed
    if own:
        identity = manager_id(manager, UPDATE, versions.api_version, subresource)
        previous = out.get(identity)
        fields = fieldset.union(previous.fields, own) if previous is not None else own
        out[identity] = Entry(id=identity, api_version=versions.api_version, time=now, fields=fields)
    return _cap(out)


def _cap(entries: Entries) -> Entries:
    """At most ``UPDATE_MANAGERS_MAX`` entries of updates: of each version the two oldest and more become ``ancient-changes``."""
    updates = [e for e in entries.values() if e.id.operation == UPDATE]
    excess = len(updates) - UPDATE_MANAGERS_MAX
    if excess <= 0:
        return entries
    out = dict(entries)
    oldest: dict[str, Entry] = {}
    for entry in sorted(updates, key=lambda e: (e.time, order_of(e.id))):
        if excess == 0:
            break
        first = oldest.get(entry.api_version)
        if first is None:
            oldest[entry.api_version] = entry
            continue
        bucket = ManagerId(ANCIENT_CHANGES, UPDATE, entry.api_version, "")
        into = out.get(bucket)
        if into is None:
            into = out.pop(first.id)
        fields = fieldset.union(into.fields, entry.fields)
        del out[entry.id]
        out[bucket] = Entry(id=bucket, api_version=entry.api_version, time=entry.time, fields=fields)
        excess -= 1
    return out


def update(
    old_object: Object | None,
    new_object: Object,
    *,
    type: Type | None,
    manager: str,
    api_version: str,
    subresource: str = "",
    now: str,
    schema_of: SchemaOf | None = None,
    convert: Convert | None = None,
    reset_fields: FieldFilter = NO_FILTER,
) -> list[Object]:
    """The managedFields of an object after a create, update or patch; empty: leave the field out.

    Args:
        old_object: the stored object; None for a creation.
        new_object: the object to be stored, defaulted; its own managedFields are what the client sent.
        type: of the kind in ``api_version``; None where it has no schema.
        now: RFC 3339 to the second. It becomes the entry's time only where the write changes something.
        schema_of: types in other versions; None: all versions are alike.
        convert: objects in other versions; None: they are the same in all.
        reset_fields: what the endpoint does not let through (``WITHOUT_STATUS`` …).

    An object that is updated without having managedFields gets none. Where the objects do not fit their type, or cannot be had in the
    version of a manager, nothing is tracked (``after_failure``).
    """
    entries = _entries_before(old_object, new_object, subresource)
    if not entries and old_object is not None:
        return []
    versions = ObjectVersions(apply_types.of(type), api_version, schema_of, convert)
    live, new = ({}, new_object) if old_object is None else (old_object, new_object)
    custom = type is not None and not apply_types.is_builtin(type)
    if custom or convert is not None:
        live, new = without_entries(live), without_entries(new)
    try:
        if custom:
            entries = reconciled(entries, versions, live)
            _check_reset(versions.kind, live, new, reset_fields)
        after = record_update(
            entries, live, new, versions=versions, manager=manager, subresource=subresource, now=now, reset_fields=reset_fields
        )
    except (TypedError, VersionError):
        return after_failure(old_object)
    return encode(after)


def after_failure(old_object: Object | None) -> list[Object]:
    """The managedFields of an object whose write could not be tracked: those that it had, or before 1.37 none (apimachinery
    ``UpdateNoErrors`` of v0.36 and v0.37)."""
    return of_object(old_object) if release.since(37) else []


def _check_reset(kind: ApplyType, old: Object, new: Object, reset_fields: FieldFilter) -> None:
    """What an endpoint does not let through is not validated, but has to fit its type as everything has. Raises TypedError."""
    for name, value in new.items():
        if name in _OUTER or not reset_fields.resets(name) or old.get(name) == value:
            continue
        if problems := typed_merge.validate(kind.child(name)[1], value, duplicates=True):
            raise TypedError(typed_merge.in_words(problems))
