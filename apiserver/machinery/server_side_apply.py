"""Server-side apply: an applied configuration becomes part of an object (apimachinery ``util/managedfields``,
structured-merge-diff ``merge``).

    live object + configuration  -> merged object
      - what this manager applied last time, does not apply now, and nobody else owns -> pruned object
    live object vs pruned object -> changed fields; one that another manager owns is a conflict (409), or with ``force`` is taken over

An apply that changes nothing gives the live object itself back.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from apiserver.machinery import apply_types, fieldset, object_meta_validation, objects, status, typed_fields, typed_merge
from apiserver.machinery.apply_types import ApplyType
from apiserver.machinery.fieldset import EMPTY, FieldSet
from apiserver.machinery.managed_fields import (
    APPLY,
    NO_FILTER,
    UPDATE,
    Comparer,
    Entries,
    Entry,
    FieldFilter,
    ManagedFieldsError,
    ManagerId,
    decode,
    encode,
    manager_id,
    of_object,
    order_of,
    reconciled,
    record_update,
    take_from_others,
    with_entries,
    without_entries,
)
from apiserver.machinery.object_versions import Convert, ObjectVersions, SchemaOf, VersionError
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.machinery.typed_fields import TypedError
from apiserver.machinery.types import Type

#: who owns what was there before the first apply, where nothing was tracked
BEFORE_FIRST_APPLY = "before-first-apply"

#: kubectl's client-side apply keeps its last configuration here
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_KUBECTL = "kubectl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    manager: ManagerId
    path: fieldset.Path


def apply(
    live: Object | None,
    applied: Any,
    *,
    type: Type | None,
    manager: str,
    force: bool = False,
    api_version: str,
    kind: str = "",
    subresource: str = "",
    now: str,
    schema_of: SchemaOf | None = None,
    convert: Convert | None = None,
    reset_fields: FieldFilter = NO_FILTER,
) -> Object:
    """The object after ``manager`` applies a configuration, with its managedFields; ``live`` itself where nothing changes.

    Neither argument is changed, and the result shares parts with both: copy it before changing it in place.

    Args:
        live: the stored object in ``api_version``; None: it is created.
        kind: that the configuration must be of ("" takes that of ``live``).
        now: RFC 3339 to the second.
        schema_of, convert, reset_fields: as in ``managed_fields.update``.

    Raises:
        StatusError: 400 for a configuration of another kind or version or with managedFields, 409 for conflicts, 500 (without a reason,
            as in Kubernetes) where the configuration or the live object do not fit the type, or cannot be had in a manager's version.
    """
    _check(applied, api_version, kind or str((live or {}).get("kind", "")))
    shape = apply_types.of(type)
    custom = type is not None and not apply_types.is_builtin(type)
    if problems := typed_merge.validate(shape, applied):
        raise _failed(f"failed to create typed patch object ({_described(applied)}): {typed_merge.in_words(problems)}")
    if custom and live is not None and (problems := typed_merge.validate(shape, without_entries(live), duplicates=True)):
        raise _failed(f"failed to create typed live object ({_described(live)}): {typed_merge.in_words(problems)}")
    try:
        entries = decode(of_object(live), trusted=True)
    except ManagedFieldsError as e:
        raise _failed(f"failed to decode managed fields: {e}") from e
    applier = _Applier(
        live=None if live is None else without_entries(live),
        applied=applied,
        shape=shape,
        versions=ObjectVersions(shape, api_version, schema_of, convert),
        identity=manager_id(manager, APPLY, api_version, subresource),
        api_version=api_version,
        now=now,
        reset_fields=reset_fields,
    )
    try:
        if not entries and live is not None:
            entries = applier.owned_by_before_first_apply()
        entries = reconciled(entries, applier.versions, applier.live or {})
        entries, merged, conflicts = applier.run(entries)
    except VersionError as e:
        raise _failed(str(e)) from e
    except TypedError as e:
        raise _failed(f"failed to apply ({_described(applied)}): {e}") from e
    if conflicts and not force:
        if manager == _KUBECTL:
            conflicts = _not_applied_by_client(conflicts, live or {}, shape, api_version)
        if conflicts:
            raise _conflict_status(conflicts)
    if manager == _KUBECTL and objects.annotations(merged).get(LAST_APPLIED):
        merged = _with_last_applied(merged, applied)
    encoded = encode(entries)
    if live is not None and encoded == of_object(live) and typed_merge.same(shape, merged, applier.live):
        return live
    return with_entries(merged, encoded)


def _failed(message: str) -> StatusError:
    return StatusError(status.failure(500, "", message))


def _gvk(obj: Object) -> str:
    api_version, kind = (said if isinstance(said := obj.get(name), str) else "" for name in ("apiVersion", "kind"))
    if api_version.count("/") > 1:
        return "/, Kind="
    group, version = objects.group_version(api_version)
    return f"{group}/{version}, Kind={kind}"


def _described(obj: Object) -> str:
    said = (objects.metadata(obj).get(field) for field in ("namespace", "name"))
    namespace, name = (text if isinstance(text, str) else "" for text in said)
    return f"{namespace}/{name}; {_gvk(obj).removeprefix('/')}"


def _check(applied: Any, api_version: str, kind: str) -> None:
    if not isinstance(applied, dict):
        raise status.bad_request("error decoding YAML: the applied configuration must be an object")
    wrong_kind = bool(kind) and applied.get("kind") != kind
    if wrong_kind or applied.get("apiVersion") != api_version:
        raise status.bad_request(f"invalid object type: {_gvk(applied)}")
    metadata = applied.get("metadata")
    if isinstance(metadata, dict) and _says_managers(metadata.get("managedFields")):
        raise status.bad_request("metadata.managedFields must be nil")


def _says_managers(entries: Any) -> bool:
    """What is no list of objects is nothing to Go, and left to the type."""
    return isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Applier:
    live: Object | None
    applied: Object
    shape: ApplyType
    versions: ObjectVersions
    identity: ManagerId
    api_version: str
    now: str
    reset_fields: FieldFilter

    def owned_by_before_first_apply(self) -> Entries:
        assert self.live is not None
        return record_update(
            {},
            {},
            self.live,
            versions=self.versions,
            manager=BEFORE_FIRST_APPLY,
            subresource=self.identity.subresource,
            now=self.now,
            reset_fields=self.reset_fields,
        )

    def run(self, entries: Entries) -> tuple[Entries, Object, list[Conflict]]:
        """The entries and the object as if forced, and the conflicts that there are."""
        live = self.live or {}
        last = entries.get(self.identity)
        own = self.reset_fields.kept(typed_fields.of_object(self.shape, self.applied))
        merged: Object = typed_merge.merge(self.shape, live, self.applied)
        if last is not None and (last.api_version != self.api_version or fieldset.difference(last.fields, own)):
            merged = self._pruned(merged, entries, last)
        comparer = Comparer(live, merged, self.versions, self.reset_fields)
        conflicts = self._conflicts(entries, comparer)
        after = take_from_others(entries, comparer, keep=self.identity)
        after.pop(self.identity, None)
        if own:
            after[self.identity] = self._own_entry(own, last, changed=self.live is None or not typed_merge.same(self.shape, live, merged))
        return after, merged, conflicts

    def _own_entry(self, own: FieldSet, last: Entry | None, *, changed: bool) -> Entry:
        """Time moves only where the object does."""
        time = self.now if changed else last.time if last is not None else ""
        if last is not None and last.fields == own and last.time == time and last.api_version == self.api_version:
            return last
        return Entry(id=self.identity, api_version=self.api_version, time=time, fields=own)

    def _conflicts(self, entries: Entries, comparer: Comparer) -> list[Conflict]:
        out: list[Conflict] = []
        for identity in sorted(entries, key=order_of):
            if identity == self.identity:
                continue
            changes = comparer.in_version(entries[identity].api_version)
            if changes is not None and changes.changed:
                shared = fieldset.intersection(entries[identity].fields, changes.changed)
                out += [Conflict(manager=identity, path=path) for path in fieldset.paths(shared)]
        return out

    def _pruned(self, merged: Object, entries: Entries, last: Entry) -> Object:
        """``merged`` without what ``last`` owned and nobody owns now.

        Taking out all that ``last`` owned may take too much (a struct with what others own in it), so first everything is put back that
        somebody owns, in the version in which they do, and then everything that was never this manager's."""
        failing = "failed to prune fields: "
        version = last.api_version
        shape = self.versions.shape(version)
        assert shape is not None, "entries of versions that are gone were taken out"
        whole = self.versions.converted(merged, version, f"{failing}failed to convert merged object to last applied version: ")
        last_fields = typed_fields.with_named_fields(shape, last.fields)
        pruned = typed_merge.remove(shape, whole, last_fields) or {}
        pruned = self._with_owned_by_others(whole, pruned, entries, version)
        pruned = self.versions.converted(
            pruned, version, f"{failing}failed add back dangling items: failed to convert pruned object to last applied version: "
        )
        all_fields = typed_fields.with_named_fields(shape, typed_fields.of_whole_object(shape, whole))
        left = typed_fields.with_named_fields(shape, typed_fields.of_whole_object(shape, pruned))
        unwanted = fieldset.intersection(fieldset.difference(all_fields, left), last_fields)
        pruned = typed_merge.remove(shape, whole, unwanted) or {}
        return self.versions.converted(pruned, self.api_version, failing)

    def _with_owned_by_others(self, whole: Object, pruned: Object, entries: Entries, first: str) -> Object:
        """``pruned`` with what somebody owns of ``whole``; in the version ``first`` first, since an object may not be convertible without
        it."""
        failing = "failed to prune fields: failed add back owned items: failed to convert {} object at version {}: "
        owned: dict[str, FieldSet] = {self.api_version: typed_fields.of_whole_object(self.shape, self.applied)}
        for identity, entry in entries.items():
            if identity != self.identity:
                owned[entry.api_version] = fieldset.union(owned.get(entry.api_version, EMPTY), entry.fields)
        for version in sorted(owned, key=lambda version: (version != first, version)):
            shape = self.versions.shape(version)
            assert shape is not None, "entries of versions that are gone were taken out"
            whole = self.versions.converted(whole, version, failing.format("merged", version))
            pruned = self.versions.converted(pruned, version, failing.format("pruned", version))
            all_fields = typed_fields.with_named_fields(shape, typed_fields.of_whole_object(shape, whole))
            left = typed_fields.with_named_fields(shape, typed_fields.of_whole_object(shape, pruned))
            kept = fieldset.union(left, typed_fields.with_named_fields(shape, owned[version]))
            pruned = typed_merge.remove(shape, whole, fieldset.difference(all_fields, kept)) or {}
        return pruned


# --- conflicts -------------------------------------------------------------------------------------------------------------------


def _shown_manager(manager: ManagerId) -> str:
    shown = json.dumps(manager.manager, ensure_ascii=False)
    if manager.subresource:
        shown += f" with subresource {json.dumps(manager.subresource, ensure_ascii=False)}"
    return f"{shown} using {manager.api_version}" if manager.operation == UPDATE else shown


def _conflict_status(conflicts: list[Conflict]) -> StatusError:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_shown_manager(c.manager)}",
            "field": fieldset.text_of(c.path),
        }
        for c in conflicts
    ]
    if len(conflicts) == 1:
        message = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        lines: list[str] = []
        for manager in dict.fromkeys(c.manager for c in conflicts):
            lines.append(f"conflicts with {_shown_manager(manager)}:")
            lines += [f"- {fieldset.text_of(c.path)}" for c in conflicts if c.manager == manager]
        message = f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
    return StatusError(status.failure(409, "Conflict", message, {"causes": causes}))


# --- moving from kubectl's client-side apply -------------------------------------------------------------------------------------


def _not_applied_by_client(conflicts: list[Conflict], live: Object, shape: ApplyType, api_version: str) -> list[Conflict]:
    """The conflicts over fields other than those that kubectl's client-side apply set last, and that are still as it set them: kubectl
    does not conflict with itself."""
    allowed = _last_applied_fields(live, shape, api_version)
    return [c for c in conflicts if not fieldset.has(allowed, c.path)]


def _last_applied_fields(live: Object, shape: ApplyType, api_version: str) -> FieldSet:
    text = objects.annotations(live).get(LAST_APPLIED)
    if not text:
        return EMPTY
    try:
        last = json.loads(text)
    except (ValueError, RecursionError):
        return EMPTY
    if not isinstance(last, dict) or last.get("apiVersion") != api_version or typed_merge.validate(shape, last):
        return EMPTY
    changes = typed_fields.compare(shape, last, live)
    fields = typed_fields.of_object(shape, last)
    return fieldset.difference(fieldset.difference(fields, changes.changed), changes.removed)


def _with_last_applied(obj: Object, applied: Object) -> Object:
    """``obj`` with what was applied in kubectl's annotation, where there is room for it, so that client-side apply can go on."""
    metadata = dict(applied.get("metadata") or {})
    if isinstance(metadata.get("annotations"), dict):
        metadata["annotations"] = {k: v for k, v in metadata["annotations"].items() if k != LAST_APPLIED}
    text = json.dumps({**applied, "metadata": metadata}, sort_keys=True, ensure_ascii=False, separators=(",", ":")) + "\n"
    annotations = {**objects.annotations(obj), LAST_APPLIED: text}
    if object_meta_validation.annotations_size(annotations) > object_meta_validation.ANNOTATIONS_SIZE_MAX:
        del annotations[LAST_APPLIED]
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}
