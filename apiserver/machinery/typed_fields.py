"""Which fields an object has, and which differ between two objects, by type (structured-merge-diff ``typed``).

Objects are ``metadata``-bearing JSON dicts. The fields that nobody owns (apiVersion, kind, name, uid, resourceVersion …) are left out
of all answers but that of ``of_whole_object``. Nothing here changes an object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from apiserver.machinery import apply_types, json_patch
from apiserver.machinery.apply_types import DEDUCED, ApplyType, Form
from apiserver.machinery.fieldset import EMPTY, SELF, FieldSet, encode_scalar
from apiserver.machinery.objects import Object

#: what no manager owns, in the object and in its metadata
UNOWNED = frozenset({"apiVersion", "kind"})
UNOWNED_METADATA = frozenset(
    {
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    }
)
_METADATA = "f:metadata"


class TypedError(ValueError):
    """A value does not fit its type; the text is structured-merge-diff's."""


@dataclass(frozen=True, slots=True)
class Changes:
    """``changed``: what the new object has and the old has not, or has otherwise. ``removed``: what only the old object has."""

    changed: FieldSet
    removed: FieldSet


class Duplicates:
    """The items of a list that have one and the same path element, which should not be."""

    __slots__ = ("items",)

    def __init__(self, items: list[Any]) -> None:
        self.items = items


# --- path elements of list items -------------------------------------------------------------------------------------------------


def item_element(kind: ApplyType, item: Any) -> str:
    """The path element of an item of a keyed list or set. ``TypedError`` where it has none."""
    if not kind.keys:
        if item is None or isinstance(item, (dict, list)):
            raise TypedError(_NO_SET_ITEM[type(item)])
        return "v:" + encode_scalar(item)
    if not isinstance(item, dict):
        what = "a null element" if item is None else "non-map elements"
        raise TypedError(f"associative list with keys may not have {what}")
    parts = []
    for key in kind.keys:
        value = item.get(key.name, key.default)
        if value is not None or key.name in item:
            parts.append(key.start + encode_scalar(value))
    if not parts:
        names = " ".join(f'"{key.name}"' for key in kind.keys)
        raise TypedError(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return "k:{" + ",".join(parts) + "}"


_NO_SET_ITEM: dict[type, str] = {
    dict: "associative list without keys has an element that's a map type",
    list: "not supported: associative list with lists as elements",
    type(None): "associative list without keys has an element that's an explicit null",
}


def index(kind: ApplyType, items: list[Any]) -> dict[str, Any]:
    """Items by path element; ``Duplicates`` where several have the same."""
    out: dict[str, Any] = {}
    for position, item in enumerate(items):
        try:
            element = item_element(kind, item)
        except TypedError as e:
            raise TypedError(f"element {position}: {e}") from None
        if element not in out:
            out[element] = item
        elif isinstance(found := out[element], Duplicates):
            found.items.append(item)
        else:
            out[element] = Duplicates([found, item])
    return out


# --- the fields of one object ----------------------------------------------------------------------------------------------------


def of_object(kind: ApplyType, obj: Object) -> FieldSet:
    """What an applied configuration names: leaves, items of lists and maps, and empty maps; not the structs on the way."""
    out = _named(kind, obj, UNOWNED)
    if isinstance(metadata := obj.get("metadata"), dict):
        named = _named(kind.child("metadata")[1], metadata, UNOWNED_METADATA)
        out.pop(_METADATA, None)
        if named:
            out[_METADATA] = named
    return out


def of_whole_object(kind: ApplyType, obj: Object) -> FieldSet:
    """As ``of_object``, with the fields that nobody owns."""
    return _named(kind, obj)


def _named(kind: ApplyType, value: dict[str, Any], leave_out: frozenset[str] = frozenset()) -> FieldSet:
    out: FieldSet = {}
    for name, part in value.items():
        if name in leave_out:
            continue
        key, child = kind.child(name)
        below = _fields(child, part, member=not kind.declares(name))
        if below is not None:
            out[key] = below
    return out


def _fields(kind: ApplyType, value: Any, *, member: bool) -> FieldSet | None:
    """The set at and below a value; None for nothing. ``member``: the value is itself owned, as items and map entries are."""
    form = kind.form
    if form is Form.LEAF or value is None or (form is Form.DEDUCED and not isinstance(value, dict)):
        return EMPTY
    if isinstance(value, dict):
        if not value:
            return EMPTY
        out = _named(kind, value)
    elif isinstance(value, list) and form in (Form.KEYED, Form.SET):
        out = {}
        element = kind.element or DEDUCED
        for key, item in index(kind, value).items():
            out[key] = EMPTY if isinstance(item, Duplicates) else _fields(element, item, member=True) or EMPTY
    else:
        return EMPTY
    if not out:
        return EMPTY if member else None
    if member:
        out[SELF] = EMPTY
    return out


def with_named_fields(kind: ApplyType, fields: FieldSet) -> FieldSet:
    """``fields`` and, besides, the declared fields on the way to them."""
    out: FieldSet = {}
    for key, below in fields.items():
        if key == SELF or not below:
            out[key] = below
            continue
        named = key.startswith("f:")
        child = kind.child(key[2:])[1] if named else kind.element or DEDUCED
        ensured = with_named_fields(child, below)
        if named and kind.declares(key[2:]) and SELF not in ensured:
            ensured[SELF] = EMPTY
        out[key] = ensured
    return out


def collapsed(kind: ApplyType, fields: FieldSet) -> FieldSet:
    """``fields`` where nothing is below what is owned as a whole: a list or map may have become atomic since they were recorded."""
    if kind.form is Form.DEDUCED:
        return fields
    out: FieldSet | None = None
    for key, below in fields.items():
        if key == SELF or not below:
            continue
        child = kind.child(key[2:])[1] if key.startswith("f:") else kind.element or DEDUCED
        if child.leaf:
            kept = EMPTY if child.source.shape not in apply_types.SCALARS else below
        else:
            kept = collapsed(child, below)
        if kept is not below:
            out = dict(fields) if out is None else out
            out[key] = kept
    return fields if out is None else out


# --- the difference of two objects -----------------------------------------------------------------------------------------------


def compare(kind: ApplyType, old: Object, new: Object) -> Changes:
    """What a write that makes ``new`` of ``old`` changed and removed; ``old`` is ``{}`` for a creation. ``TypedError`` where a list
    cannot be told apart by its keys."""
    changed: FieldSet = {}
    removed: FieldSet = {}
    before, after = old.get("metadata") or {}, new.get("metadata") or {}
    if old:
        _compare_maps(kind, old, new, changed, removed, _OUTER)
    else:
        _compare_with_nothing(kind, new, changed, removed)
    if before is not after:
        metadata_changed: FieldSet = {}
        metadata_removed: FieldSet = {}
        _compare_maps(kind.child("metadata")[1], before, after, metadata_changed, metadata_removed, UNOWNED_METADATA)
        if metadata_changed:
            changed[_METADATA] = metadata_changed
        if metadata_removed:
            removed[_METADATA] = metadata_removed
    return Changes(changed, removed)


#: of one kind: parts of created objects whose fields are remembered, and how long the JSON of one may be, in bytes
REMEMBERED_MAX = 128
REMEMBERED_BYTES_MAX = 16 * 1024


def _compare_with_nothing(kind: ApplyType, new: Object, changed: FieldSet, removed: FieldSet) -> None:
    """``_compare_maps`` for a creation. Objects made of one template (the pods of a ReplicaSet, or of a load test) have equal specs, and
    the fields of equal values are equal: they are looked up by the value's JSON, which takes 2 µs for a Pod where the walk takes 100."""
    for name, value in new.items():
        if name in _OUTER:
            continue
        part = {name: value}
        if kind.child(name)[1].form is not Form.STRUCT:
            _compare_maps(kind, _NO_FIELDS, part, changed, removed)
            continue
        try:
            text = orjson.dumps(value)
        except TypeError:  # an integer of more than 64 bits
            text = b""
        known = kind.created.get((name, text)) if text else None
        if known is None:
            part_changed: FieldSet = {}
            part_removed: FieldSet = {}
            _compare_maps(kind, _NO_FIELDS, part, part_changed, part_removed)
            known = part_changed, part_removed
            if 0 < len(text) <= REMEMBERED_BYTES_MAX:
                if len(kind.created) >= REMEMBERED_MAX:
                    kind.created.clear()
                kind.created[name, text] = known
        changed.update(known[0])
        removed.update(known[1])


_NO_FIELDS: Object = {}
_OUTER = UNOWNED | {"metadata"}
_NOTHING: frozenset[str] = frozenset()
_ABSENT = object()


def _compare_maps(
    kind: ApplyType,
    old: dict[str, Any],
    new: dict[str, Any],
    changed: FieldSet,
    removed: FieldSet,
    leave_out: frozenset[str] = _NOTHING,
) -> None:
    present = kind.present
    exact = kind.exact
    for name, value in new.items():
        before = old.get(name, _ABSENT)
        if before is value or (exact and before == value) or name in leave_out:
            continue
        key, child = kind.child(name)
        if before is not _ABSENT:
            if not child.exact or before != value:
                _compare(child, key, before, value, changed, removed)
        elif name not in present:
            changed[key] = EMPTY if child.leaf or not value else _all(child, value)
        elif value != child.zero:
            _compare(child, key, child.zero, value, changed, removed)
    for name, before in old.items():
        if name in new or name in leave_out:
            continue
        key, child = kind.child(name)
        if name not in present:
            removed[key] = _all(child, before)
        elif before != child.zero:
            _compare(child, key, before, child.zero, changed, removed)


def _compare(kind: ApplyType, key: str, old: Any, new: Any, changed: FieldSet, removed: FieldSet) -> None:
    """Both are there (null is); equal ones may come only where ``kind`` is not exact."""
    form = kind.form
    if form is Form.LEAF:
        if kind.exact or not json_patch.equal(old, new):
            changed[key] = EMPTY
        return
    if not old and not new and not _scalar(old) and not _scalar(new):
        if not json_patch.equal(old, new):
            changed[key] = EMPTY
        return
    below_changed: FieldSet = {}
    below_removed: FieldSet = {}
    old_map, new_map = isinstance(old, dict), isinstance(new, dict)
    if form in (Form.STRUCT, Form.MAP, Form.DEDUCED) and (old_map or old is None) and (new_map or new is None):
        _compare_maps(kind, old or {}, new or {}, below_changed, below_removed)
    elif form in (Form.KEYED, Form.SET) and (old is None or isinstance(old, list)) and (new is None or isinstance(new, list)):
        _compare_lists(kind, old or [], new or [], below_changed, below_removed)
    else:
        if json_patch.equal(old, new):
            return
        if old_map:
            _compare_maps(kind, old, {}, below_changed, below_removed)
        changed[key] = _all(kind, new)
    if below_changed:
        changed[key] = below_changed
    if below_removed:
        removed[key] = below_removed


def _scalar(value: Any) -> bool:
    return value is not None and not isinstance(value, (dict, list))


def _compare_lists(kind: ApplyType, old: list[Any], new: list[Any], changed: FieldSet, removed: FieldSet) -> None:
    element = kind.element or DEDUCED
    before = index(kind, old)
    after = index(kind, new)
    for key, item in after.items():
        if key not in before:
            changed[key] = EMPTY if isinstance(item, Duplicates) else _all(element, item)
            continue
        was = before[key]
        if was is item or (element.exact and not isinstance(was, Duplicates) and was == item):
            continue
        if isinstance(item, Duplicates):
            if not isinstance(was, Duplicates):
                removed[key] = _all(element, was)
                changed[key] = EMPTY
            elif not json_patch.equal(was.items, item.items):
                changed[key] = EMPTY
        elif isinstance(was, Duplicates):
            changed[key] = _all(element, item)
            removed[key] = EMPTY
        else:
            _compare(element, key, was, item, changed, removed)
    for key, was in before.items():
        if key not in after:
            removed[key] = EMPTY if isinstance(was, Duplicates) else _all(element, was)


def _all(kind: ApplyType, value: Any) -> FieldSet:
    """Everything at and below a value that was not there at all before: structs and lists themselves too."""
    if not value or kind.leaf:
        return EMPTY
    if isinstance(value, dict):
        if kind.listed:
            return EMPTY
        out: FieldSet = {SELF: EMPTY}
        children = kind.children
        for name, part in value.items():
            pair = children.get(name)
            key, child = kind.child(name) if pair is None else pair
            out[key] = EMPTY if child.leaf or not part else _all(child, part)
        return out
    if isinstance(value, list) and kind.listed:
        element = kind.element or DEDUCED
        out = {SELF: EMPTY}
        for key, item in index(kind, value).items():
            out[key] = EMPTY if isinstance(item, Duplicates) else _all(element, item)
        return out
    return EMPTY
