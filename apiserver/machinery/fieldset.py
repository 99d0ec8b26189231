"""Sets of field paths, as managedFields has them (structured-merge-diff ``fieldpath``).

A set *is* its FieldsV1 JSON form: a tree of dicts whose keys are path elements.

    f:<name>     a field of a struct or an entry of a map
    k:<object>   the item of a keyed list that has these key fields
    v:<value>    the item of a set
    i:<index>    the item of a list by position
    .            the path so far is itself in the set, besides what is below it

    {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:replicas": {}}}

has three members: ``.metadata.labels``, ``.metadata.labels.app`` and ``.spec.replicas``. A path whose dict is empty is a member; one whose
dict is not empty is a member only if ``.`` is in it. The root is the empty path, and never a member: ``{}`` is the empty set.

Sets are never changed once built: results share what they can with their arguments, and are the argument itself where nothing differs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from json.encoder import encode_basestring
from typing import Any, TypeAlias

from apiserver.machinery import go_json

FieldSet: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str, ...]

#: the empty set; below the root, a member without children
EMPTY: FieldSet = {}
SELF = "."
#: deeper sets are refused: they could come from clients only, and take the stack
_DEPTH_MAX = 200


class FieldSetError(ValueError):
    """What a client sent as FieldsV1 is not."""


# --- algebra ---------------------------------------------------------------------------------------------------------------------


def is_member(node: FieldSet) -> bool:
    """Whether the path of ``node`` is itself in the set (not for the root)."""
    return not node or SELF in node


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    if not right or left is right:
        return left
    if not left:
        return right
    return _joined(left, right)


def _joined(left: FieldSet, right: FieldSet) -> FieldSet:
    out: FieldSet | None = None
    for key, theirs in right.items():
        ours = left.get(key)
        both = theirs if ours is None else ours if ours is theirs else _union_below(ours, theirs)
        if both is not ours:
            if out is None:
                out = dict(left)
            out[key] = both
    return left if out is None else out


def _union_below(left: FieldSet, right: FieldSet) -> FieldSet:
    if not left:
        return right if is_member(right) else {SELF: EMPTY, **right}
    if not right:
        return left if SELF in left else {SELF: EMPTY, **left}
    return _joined(left, right)


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """The members of ``left`` that are not in ``right``. A member of ``right`` does not take what is below it."""
    if not right:
        return left
    return _without(left, right) or EMPTY


def _without(left: FieldSet, right: FieldSet) -> FieldSet | None:
    """None for nothing left. Both have children, or are roots."""
    out: FieldSet | None = None
    for key, theirs in right.items():
        ours = left.get(key)
        if ours is None:
            continue
        rest = None if key == SELF else _difference_below(ours, theirs)
        if rest is ours:
            continue
        if out is None:
            out = dict(left)
        if rest is None:
            del out[key]
        else:
            out[key] = rest
    if out is None:
        return left
    if len(out) == 1 and SELF in out:
        return EMPTY
    return out or None


def _difference_below(left: FieldSet, right: FieldSet) -> FieldSet | None:
    if not left:
        return None if is_member(right) else left
    if not right:
        if SELF not in left:
            return left
        return {key: node for key, node in left.items() if key != SELF} or None
    return _without(left, right)


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    out: FieldSet = {}
    small, large = (left, right) if len(left) <= len(right) else (right, left)
    for key, node in small.items():
        other = large.get(key)
        if other is None or key == SELF:
            continue
        both = _intersection_below(node, other)
        if both is not None:
            out[key] = both
    return out


def _intersection_below(left: FieldSet, right: FieldSet) -> FieldSet | None:
    if left is right:
        return left
    below = intersection(left, right) if left and right else EMPTY
    if is_member(left) and is_member(right):
        return {SELF: EMPTY, **below} if below else EMPTY
    return below or None


def recursive_difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """``left`` without the members of ``right`` and all that is below them."""
    if not right:
        return left
    return _without_all(left, right) or EMPTY


def _without_all(left: FieldSet, right: FieldSet) -> FieldSet | None:
    """None for nothing left. Both have children, or are roots."""
    out: FieldSet | None = None
    for key, theirs in right.items():
        ours = left.get(key)
        if ours is None or key == SELF:
            continue
        rest = None if is_member(theirs) else _without_all(ours, theirs) if ours else ours
        if rest is ours:
            continue
        if out is None:
            out = dict(left)
        if rest is None:
            del out[key]
        else:
            out[key] = rest
    if out is None:
        return left
    if len(out) == 1 and SELF in out:
        return EMPTY
    return out or None


def leaves(fields: FieldSet) -> FieldSet:
    """The members below which there are no others."""
    return {key: leaves(node) if node else EMPTY for key, node in fields.items() if key != SELF}


def has(fields: FieldSet, path: Path) -> bool:
    node = fields
    for element in path:
        found = node.get(element)
        if found is None:
            return False
        node = found
    return bool(path) and is_member(node)


def of_paths(*paths: Path) -> FieldSet:
    out: FieldSet = EMPTY
    for path in paths:
        node: FieldSet = EMPTY
        for element in reversed(path):
            node = {element: node}
        out = union(out, node)
    return out


def fields(*names: str) -> Path:
    """The path of nested fields."""
    return tuple("f:" + name for name in names)


def paths(of: FieldSet, prefix: Path = ()) -> Iterator[Path]:
    """All members: those of one level before those further down, each level in order."""
    ordered = sorted((key for key in of if key != SELF), key=_order)
    for key in ordered:
        if is_member(of[key]):
            yield (*prefix, key)
    for key in ordered:
        if of[key]:
            yield from paths(of[key], (*prefix, key))


# --- path elements ---------------------------------------------------------------------------------------------------------------

_ORDER = {"f": 0, "k": 1, "v": 2, "i": 3}
_KIND_ORDER = {"number": 0, "string": 1, "bool": 2, "null": 3, "array": 4, "object": 5}


def _order(element: str) -> tuple[Any, ...]:
    """Fields by name, then keyed items by their keys, then values, then positions; numbers as numbers."""
    kind, rest = element[:1], element[2:]
    if kind == "f":
        return (0, rest)
    value = json.loads(rest)
    if kind == "k":
        return (1, *((name, *_value_order(part)) for name, part in value.items()))
    return (_ORDER[kind], *_value_order(value))


def _value_order(value: Any) -> tuple[Any, ...]:
    return (_KIND_ORDER[go_json.kind_of(value)], value)


def encode_scalar(value: Any) -> str:
    """A key or value in a path element, as Go writes JSON: ``<``, ``>``, ``&`` and the separators of lines and paragraphs
    are escaped."""
    if isinstance(value, str):
        text = encode_basestring(value)
        if "<" in text or ">" in text or "&" in text:
            text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
        if "\u2028" in text or "\u2029" in text:
            text = text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
        return text
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return go_json.written(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def text_of(path: Path) -> str:
    """``.spec.ports[port=53,protocol="UDP"].name``, as conflicts name a field."""
    return "".join(_element_text(element) for element in path)


def _element_text(element: str) -> str:
    kind, rest = element[:1], element[2:]
    if kind == "f":
        return "." + rest
    if kind == "k":
        return "[" + ",".join(f"{name}={_shown(value)}" for name, value in json.loads(rest).items()) + "]"
    if kind == "v":
        return f"[={_shown(json.loads(rest))}]"
    return f"[{rest}]"


def _shown(value: Any) -> str:
    return go_json.quote(value) if isinstance(value, str) else encode_scalar(value)


# --- what clients send -----------------------------------------------------------------------------------------------------------


def parse(fields_v1: Any) -> FieldSet:
    """The set of FieldsV1 from a client, its path elements in the form that we write. ``FieldSetError`` where it is none."""
    return _parse(fields_v1, 0) if fields_v1 is not None else EMPTY


def _parse(node: Any, depth: int) -> FieldSet:
    if not isinstance(node, Mapping):
        raise FieldSetError("expected a map of path elements")
    if depth > _DEPTH_MAX:
        raise FieldSetError("too deep")
    out: FieldSet = {}
    for key, below in node.items():
        if key == SELF:
            if depth:
                out[SELF] = EMPTY
            continue
        out[_canonical(key)] = _parse(below, depth + 1) if below else EMPTY
    return EMPTY if len(out) == 1 and SELF in out else out


def _canonical(element: str) -> str:
    if len(element) < 2:
        raise FieldSetError("key must be 2 characters long:")
    kind, rest = element[0], element[2:]
    if element[1] != ":":
        raise FieldSetError(f"missing colon: {element}")
    if kind == "f":
        return element
    try:
        value = json.loads(rest)
    except (ValueError, RecursionError) as e:
        raise FieldSetError(f"not a path element: {element}") from e
    if kind == "v" and not isinstance(value, (dict, list)):
        return "v:" + encode_scalar(value)
    if kind == "i" and isinstance(value, int) and not isinstance(value, bool):
        return f"i:{value}"
    if kind == "k" and isinstance(value, dict) and not any(isinstance(v, (dict, list)) for v in value.values()):
        return "k:{" + ",".join(f"{encode_scalar(k)}:{encode_scalar(value[k])}" for k in sorted(value)) + "}"
    raise FieldSetError(f"not a path element: {element}")
