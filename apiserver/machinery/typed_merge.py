"""Merging an applied configuration into an object, and taking owned fields out of it, by type (structured-merge-diff ``typed``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apiserver.machinery import apply_types, go_json, json_patch
from apiserver.machinery.apply_types import DEDUCED, ApplyType, Form
from apiserver.machinery.fieldset import FieldSet, is_member, text_of
from apiserver.machinery.typed_fields import Duplicates, TypedError, index, item_element
from apiserver.machinery.types import Shape, Type

_MAPS = (Form.STRUCT, Form.MAP, Form.DEDUCED)
_LISTS = (Form.KEYED, Form.SET)
_DUPLICATE = "duplicate entries for key "


# --- merging ---------------------------------------------------------------------------------------------------------------------


def merge(kind: ApplyType, live: Any, applied: Any) -> Any:
    """``live`` with all that ``applied`` says; ``live`` itself where that is nothing new. Nothing is removed: an empty or null map or
    list in ``applied`` leaves what is there.

    Items of keyed lists and sets: those that only ``live`` has stay between the neighbours that they had; the order of the others is
    that of ``applied``."""
    form = kind.form
    if isinstance(applied, dict) or (applied is None and isinstance(live, dict)):
        if form in _MAPS and isinstance(live, dict) and (live or applied):
            return _merge_maps(kind, live, applied or {})
    elif isinstance(applied, list) or (applied is None and isinstance(live, list)):
        if form in _LISTS and isinstance(live, list) and (live or applied):
            return _merge_lists(kind, live, applied or [])
    return live if same(kind, live, applied) else applied


def same(kind: ApplyType, left: Any, right: Any) -> bool:
    """Whether two values are equal in JSON (Python alone would take true for 1)."""
    return bool(left == right) and (kind.exact or json_patch.equal(left, right))


def _merge_maps(kind: ApplyType, live: dict[str, Any], applied: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] | None = None
    for name, value in applied.items():
        if name in live:
            merged = merge(kind.child(name)[1], live[name], value)
            if merged is live[name]:
                continue
        else:
            merged = value
        if out is None:
            out = dict(live)
        out[name] = merged
    return live if out is None else out


def _merge_lists(kind: ApplyType, live: list[Any], applied: list[Any]) -> list[Any]:
    element = kind.element or DEDUCED
    there = index(kind, live)
    wanted = index(kind, applied)

    def merged(key: str) -> Any:
        old = there.get(key)
        return wanted[key] if old is None or isinstance(old, Duplicates) else merge(element, old, wanted[key])

    out = list(_in_order(kind, live, there, wanted, merged))
    unchanged = len(out) == len(live) and all(new is old for new, old in zip(out, live, strict=True))
    return live if unchanged else out


def _in_order(kind: ApplyType, live: list[Any], there: dict[str, Any], wanted: dict[str, Any], merged: Any) -> Iterator[Any]:
    """Goes along ``wanted``, and before each of its items along ``live`` up to that item: what only ``live`` has is taken on the way;
    what comes too early there is skipped, since its turn in ``wanted`` will come."""
    shared = [key for key in wanted if key in there]
    next_shared = 0
    placed: set[str] = set()
    position = 0
    keys = [item_element(kind, item) for item in live]
    for key in wanted:
        expected = shared[next_shared] if next_shared < len(shared) else None
        while position < len(keys) and keys[position] != key:
            here = keys[position]
            if here in wanted and (expected is None or here == expected):
                if here in placed:
                    position += 1
                break
            if here not in wanted:
                yield live[position]
            position += 1
        if position < len(keys) and keys[position] == key:
            position += 1
        placed.add(key)
        if key == expected:
            next_shared += 1
        yield merged(key)
    for rest in range(position, len(keys)):
        if keys[rest] not in wanted:
            yield live[rest]


# --- removing --------------------------------------------------------------------------------------------------------------------


def remove(kind: ApplyType, value: Any, unwanted: FieldSet) -> Any:
    """``value`` without the members of ``unwanted``. What is emptied by it becomes null, as in structured-merge-diff; whatever is owned
    as a whole goes as a whole."""
    if not unwanted:
        return value
    if isinstance(value, dict) and kind.form in _MAPS:
        return _remove_from_map(kind, value, unwanted) if value else value
    if isinstance(value, list) and kind.form in _LISTS:
        return _remove_from_list(kind, value, unwanted) if value else value
    return None if isinstance(value, (dict, list)) else value


def _remove_from_map(kind: ApplyType, value: dict[str, Any], unwanted: FieldSet) -> dict[str, Any] | None:
    out = {}
    for name, part in value.items():
        key, child = kind.child(name)
        below = unwanted.get(key)
        if below is None:
            out[name] = part
        elif not is_member(below):
            out[name] = remove(child, part, below)
    return out or None


def _remove_from_list(kind: ApplyType, value: list[Any], unwanted: FieldSet) -> list[Any] | None:
    element = kind.element or DEDUCED
    out = []
    for item in value:
        below = unwanted.get(item_element(kind, item))
        if below is None:
            out.append(item)
        elif not is_member(below):
            out.append(remove(element, item, below))
    return out or None


# --- checking --------------------------------------------------------------------------------------------------------------------


def validate(kind: ApplyType, value: Any, *, duplicates: bool = False) -> list[str]:
    """Why an applied configuration does not fit its type: ``.spec.replicas: expected numeric (int or float), got string``. With
    ``duplicates`` the items of a set or keyed list may be there more than once."""
    found = [(path, problem) for path, problem in _problems(kind, value, ()) if not duplicates or not problem.startswith(_DUPLICATE)]
    return [f"{text_of(path)}: {problem}" if path else problem for path, problem in found]


def in_words(problems: list[str]) -> str:
    """All of them as the one error that they are in Go."""
    return problems[0] if len(problems) == 1 else "errors:\n  " + "\n  ".join(problems)


def _problems(kind: ApplyType, value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if value is None:
        return
    form = kind.form
    if form is Form.LEAF:
        problem = _leaf_problem(kind, value)
        if problem:
            yield path, problem
        elif isinstance(value, (dict, list)):
            yield from _atomic_problems(kind.source, value, path)
    elif form in (Form.STRUCT, Form.MAP):
        if not isinstance(value, dict):
            yield path, f"expected map, got &{{{go_json.shown(value)}}}"
            return
        for name, part in value.items():
            if form is Form.STRUCT and not kind.declares(name) and not kind.source.preserve_unknown:
                yield (*path, "f:" + name), "field not declared in schema"
                return
            key, child = kind.child(name)
            yield from _problems(child, part, (*path, key))
    elif form in _LISTS:
        if not isinstance(value, list):
            yield path, f"expected list, got &{{{go_json.shown(value)}}}"
            return
        yield from _list_problems(kind, value, path)


def _list_problems(kind: ApplyType, items: list[Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    seen: set[str] = set()
    for position, item in enumerate(items):
        try:
            key = item_element(kind, item)
        except TypedError as e:
            yield path, f"element {position}: {e}"
            return
        if key in seen:
            yield path, f"{_DUPLICATE}{text_of((key,))}"
        seen.add(key)
        yield from _problems(kind.element or DEDUCED, item, (*path, key))


def _atomic_problems(kind: Type, value: dict[str, Any] | list[Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Inside of a list or map that is owned as a whole."""
    if isinstance(value, list):
        if kind.shape is Shape.LIST:
            for position, item in enumerate(value):
                yield from _problems(apply_types.of(kind.element), item, (*path, f"i:{position}"))
    elif kind.shape is Shape.MAP:
        for name, part in value.items():
            yield from _problems(apply_types.of(kind.element), part, (*path, "f:" + name))
    elif kind.shape is Shape.STRUCT and (kind.fields or not kind.definition):
        for name, part in value.items():
            field = kind.fields.get(name)
            if field is not None:
                yield from _problems(apply_types.of(field), part, (*path, "f:" + name))
            elif not kind.preserve_unknown:
                yield (*path, "f:" + name), "field not declared in schema"
                return


def _leaf_problem(kind: ApplyType, value: Any) -> str:
    shape = kind.source.shape
    container = isinstance(value, (dict, list))
    if shape in (Shape.INTEGER, Shape.NUMBER):
        if container or isinstance(value, (str, bool)):
            return f"expected numeric (int or float), got {go_json.type_name(value)}"
    elif shape is Shape.STRING:
        if not isinstance(value, str):
            return f"expected string, got &value.valueUnstructured{{Value:{go_json.shown_in_syntax(value)}}}"
    elif shape is Shape.BOOLEAN:
        if not isinstance(value, bool):
            return f"expected boolean, got &{{{go_json.shown(value)}}}"
    elif shape in (Shape.INT_OR_STRING, Shape.QUANTITY, Shape.TIME, Shape.MICRO_TIME):
        if container:
            return f"expected any scalar, got &{{{go_json.shown(value)}}}"
    elif shape is Shape.LIST:
        if not isinstance(value, list):
            return f"expected list, got &{{{go_json.shown(value)}}}"
    elif shape in (Shape.MAP, Shape.STRUCT) and not isinstance(value, dict):
        return f"expected map, got &{{{go_json.shown(value)}}}"
    return ""
