"""Strategic merge patch (apimachinery ``util/strategicpatch``): a merge patch that knows the types.

Maps merge. A list is replaced, unless its field has the patch strategy ``merge``: then items are found by the merge key and merged, or,
where they are scalars, joined without duplicates. Directives:

    $patch: replace | delete            in a map: this map instead of the old one, or nothing of it
    - $patch: delete, <key>: <value>    in a list: no such item;  ``- $patch: replace``: only the items of the patch
    $retainKeys: [<field> …]            all other fields of the old map go
    $deleteFromPrimitiveList/<field>    these scalars go from the list
    $setElementOrder/<field>            the order of the items, or of their keys, that the patch knows

Order of a merged list: what the patch names comes in the order of the patch (or of ``$setElementOrder``); what only the server has comes
before the first item of the patch that it stood before on the server, else behind.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from typing import Any, NoReturn

from apiserver.machinery import go_json, status
from apiserver.machinery.status import StatusError
from apiserver.machinery.types import Shape, Type

PATCH = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM_PRIMITIVE_LIST = "$deleteFromPrimitiveList"
SET_ELEMENT_ORDER = "$setElementOrder"

_DIRECTIVES = (RETAIN_KEYS, DELETE_FROM_PRIMITIVE_LIST, SET_ELEMENT_ORDER)

_MERGE = "merge"
_REPLACE = "replace"
_DELETE = "delete"

_BAD_PRIMITIVE_LIST = "invalid patch format of primitive list"
_BAD_RETAIN_KEYS = "invalid patch format of retainKeys"
_BAD_ELEMENT_ORDER = "invalid patch format of setElementOrder list"

_UNKNOWN = Type(shape=Shape.ANY, preserve_unknown=True)


def apply(document: dict[str, Any], patch: Any, type: Type | None) -> dict[str, Any]:
    """``document`` after ``patch``. Neither is changed; the result shares parts with both. ``type`` None is for kinds without a schema:
    custom resources, which have no strategic merge patch.

    Raises:
        StatusError: 400 for what is no patch or a malformed directive, 422 for lists of lists, 500 without a reason, as in Kubernetes,
            for all others: a missing merge key, an unknown directive, wrong types in a list.
    """
    if type is None:
        raise status.bad_request("strategic merge patch format is not supported")
    if not isinstance(patch, dict):
        kind = go_json.kind_of(patch)
        raise status.bad_request(f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}")
    return _merge_maps(document, patch, type)


def _fail(message: str) -> NoReturn:
    raise StatusError(status.failure(500, "", message))


def _wrong_type(expected: Any, found: Any) -> NoReturn:
    received = "%!s(<nil>)" if found is None else go_json.type_name(found)
    _fail(f"expected a {go_json.type_name(expected)}, but received a {received}")


def _no_merge_key(item: dict[str, Any], merge_key: str) -> NoReturn:
    _fail(f"map: {go_json.shown(item)} does not contain declared merge key: {merge_key}")


def _unknown_directive(directive: Any, item: dict[str, Any]) -> NoReturn:
    shown = directive if isinstance(directive, str) else f"%!s({go_json.type_name(directive)}={go_json.shown(directive)})"
    _fail(f"unknown patch type: {shown} in map: {go_json.shown(item)}")


# --- types -----------------------------------------------------------------------------------------------------------------------


def _field_type(kind: Type, name: str) -> Type:
    if kind.shape is Shape.STRUCT:
        field = kind.fields.get(name)
        if field is None:
            if kind.preserve_unknown:
                return _UNKNOWN
            _fail(f"unable to find api field in struct {kind.go_name} for the json field {go_json.quote(name)}")
        return field
    return kind.element or _UNKNOWN


def _strategy(field: Type) -> str:
    return next((s for s in field.patch_strategies if s in (_MERGE, _REPLACE)), "")


def _directive_field(name: str, prefix: str, wrong_format: str) -> str:
    """``finalizers`` of ``$deleteFromPrimitiveList/finalizers``."""
    found, slash, field = name.partition("/")
    if found != prefix or not slash:
        raise status.bad_request(wrong_format)
    return field


# --- maps ------------------------------------------------------------------------------------------------------------------------


def _merge_maps(document: dict[str, Any], patch: dict[str, Any], kind: Type) -> dict[str, Any]:
    if PATCH in patch:
        directive = patch[PATCH]
        if directive == _REPLACE:
            return {name: value for name, value in patch.items() if name != PATCH}
        if directive == _DELETE:
            return {}
        _unknown_directive(directive, patch)
    out = dict(document)
    rest = dict(patch)
    if RETAIN_KEYS in rest:
        out = _retained(out, rest)
    for name in [n for n in rest if n.startswith(SET_ELEMENT_ORDER)]:
        _set_element_order(out, rest, name, kind)
    for name, value in rest.items():
        if name.startswith(DELETE_FROM_PRIMITIVE_LIST):
            _delete_from_list(out, _directive_field(name, DELETE_FROM_PRIMITIVE_LIST, _BAD_PRIMITIVE_LIST), value, kind)
        elif value is None:
            out.pop(name, None)
        else:
            _merge_field(out, name, value, kind)
    return out


def _merge_field(out: dict[str, Any], name: str, value: Any, kind: Type) -> None:
    current = out.get(name)
    if isinstance(current, dict) and isinstance(value, dict):
        field = _field_type(kind, name)
        out[name] = value if _strategy(field) == _REPLACE else _merge_maps(current, value, field)
    elif isinstance(current, list) and isinstance(value, list):
        field = _field_type(kind, name)
        out[name] = _merge_lists(current, value, field) if _strategy(field) == _MERGE else value
    elif isinstance(value, dict) and PATCH in value:
        out.pop(name, None)
    else:
        out[name] = _added(value)


def _retained(document: dict[str, Any], rest: dict[str, Any]) -> dict[str, Any]:
    """``document`` with the fields that ``$retainKeys`` names; the directive is taken out of ``rest``."""
    keys = rest.pop(RETAIN_KEYS)
    if not isinstance(keys, list):
        raise status.bad_request(_BAD_RETAIN_KEYS)
    retained = {key for key in keys if isinstance(key, str)}
    for name, value in rest.items():
        if value is not None and not name.startswith(_DIRECTIVES) and name not in retained:
            raise status.bad_request(_BAD_RETAIN_KEYS)
    return {name: value for name, value in document.items() if name in retained}


def _added(value: Any) -> Any:
    """A value of the patch for which there is nothing to merge with: without its nulls and directives. (Kubernetes leaves
    ``$retainKeys`` and the like in, to be refused as unknown fields in strict validation although kubectl sent them itself.)"""
    if isinstance(value, dict):
        return {
            n: _added(v)
            for n, v in value.items()
            if v is not None and not n.startswith(_DIRECTIVES) and not (isinstance(v, dict) and PATCH in v)
        }
    if isinstance(value, list):
        return [_added(v) for v in value if not (isinstance(v, dict) and PATCH in v)]
    return value


# --- lists -----------------------------------------------------------------------------------------------------------------------


def _merge_lists(current: list[Any], patch: list[Any], field: Type) -> list[Any]:
    if not current and not patch:
        return current
    element = field.element or _UNKNOWN
    if not _are_maps(current, patch):
        return _in_order(_unique([*current, *patch]), patch, current, "")
    merge_key = field.patch_merge_key
    if not merge_key:
        _fail(f"cannot merge lists without merge key for {'map' if element.shape is Shape.MAP else 'struct'}")
    server, items = _apply_list_directives(current, patch, merge_key)
    merged = list(server)
    places = _places(merged, merge_key)
    for item in items:
        if merge_key not in item:
            _no_merge_key(item, merge_key)
        position = places.setdefault(_comparable(item[merge_key]), len(merged))
        if position == len(merged):
            merged.append(_added(item))
        else:
            merged[position] = _merge_maps(merged[position], item, element)
    return _in_order(merged, items, server, merge_key)


def _are_maps(*lists: list[Any]) -> bool:
    """Whether the items are maps; all must be of one type."""
    first: Any = None
    for value in (v for items in lists for v in items):
        if first is None:
            if isinstance(value, list):
                raise StatusError(status.failure(422, "Invalid", "the server rejected our request due to an error in our request", {}))
            first = value
        if type(value) is not type(first) or value is None:
            _fail(f"list element types are not identical: {go_json.shown(list(lists))}")
    if first is None:
        _fail("no elements in any of the given slices")
    return isinstance(first, dict)


def _unique(items: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(items))


def _apply_list_directives(current: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """The items on the server and those of the patch, after and without the items that are directives."""
    deleted = set()
    items = []
    replace = False
    for item in patch:
        directive = item.get(PATCH)
        if PATCH not in item:
            items.append(item)
        elif directive == _DELETE:
            if merge_key not in item:
                _no_merge_key(item, merge_key)
            deleted.add(_comparable(item[merge_key]))
        elif directive == _REPLACE:
            replace = True
        elif directive == _MERGE:
            _fail("merging lists cannot yet be specified in the patch")
        else:
            _unknown_directive(directive, item)
    if replace:
        return items, []
    return [old for old in current if _comparable(old.get(merge_key)) not in deleted] if deleted else current, items


def _comparable(value: Any) -> Hashable:
    """Equal for values that are the same in JSON: 1, 1.0 and true are three."""
    if isinstance(value, (dict, list)):
        return type(value), json.dumps(value, sort_keys=True)
    return type(value), value


def _key(item: Any, merge_key: str) -> Any:
    if not merge_key:
        return item
    return item.get(merge_key) if isinstance(item, dict) else None


def _places(items: list[Any], merge_key: str) -> dict[Hashable, int]:
    """Where the first item of each key is. Lists may have 100 000 items, so that none is searched for another."""
    places: dict[Hashable, int] = {}
    for position, item in enumerate(items):
        places.setdefault(_comparable(_key(item, merge_key)), position)
    return places


def _delete_from_list(out: dict[str, Any], name: str, values: Any, kind: Type) -> None:
    current = out.get(name)
    if values is None:
        out.pop(name, None)
    elif isinstance(current, list) and isinstance(values, list) and (current or values):
        if _are_maps(current, values):
            out[name] = _merge_lists(current, values, _field_type(kind, name))
        else:
            deleted = set(values)
            out[name] = [value for value in current if value not in deleted]


# --- order -----------------------------------------------------------------------------------------------------------------------


def _in_order(merged: list[Any], patch_order: list[Any], server_order: list[Any], merge_key: str) -> list[Any]:
    """``merged`` in the order that the text of the module tells."""
    in_patch, on_server = _places(patch_order, merge_key), _places(server_order, merge_key)
    of_patch: list[tuple[int, int, Any]] = []
    of_server: list[tuple[int, Any]] = []
    for item in merged:
        if merge_key and (not isinstance(item, dict) or merge_key not in item):
            if not isinstance(item, dict):
                _wrong_type({}, item)
            _no_merge_key(item, merge_key)
        key = _comparable(_key(item, merge_key))
        position = in_patch.get(key)
        if position is not None:
            of_patch.append((position, on_server.get(key, -1), item))
        else:
            of_server.append((on_server.get(key, len(server_order)), item))
    of_patch.sort(key=lambda pair: pair[0])
    of_server.sort(key=lambda pair: pair[0])
    out: list[Any] = []
    waiting = iter(of_server)
    only_server = next(waiting, None)
    for _, place, item in of_patch:
        while only_server is not None and only_server[0] < place:
            out.append(only_server[1])
            only_server = next(waiting, None)
        out.append(item)
    if only_server is not None:
        out.append(only_server[1])
    out.extend(item for _, item in waiting)
    return out


def _set_element_order(out: dict[str, Any], rest: dict[str, Any], directive: str, kind: Type) -> None:
    """Merges the list that a ``$setElementOrder`` is for, and takes both out of ``rest``."""
    order = rest.pop(directive)
    if not isinstance(order, list):
        _wrong_type([], order)
    name = _directive_field(directive, SET_ELEMENT_ORDER, _BAD_ELEMENT_ORDER)
    current, items = out.get(name), rest.get(name)
    if name in out and not isinstance(current, list):
        _wrong_type([], current)
    if name in rest and not isinstance(items, list):
        _wrong_type([], items)
    field = _field_type(kind, name)
    _check_order(items or [], order, field.patch_merge_key)
    if current is None and items is None:
        return
    if items is None:
        merged = current or []
    elif current is None:
        merged = _added(items)
    else:
        merged = _merge_lists(current, items, field) if _strategy(field) == _MERGE else items
    if current or items:
        _are_maps(current or [], items or [])
    else:
        _fail("no elements in any of the given slices")
    out[name] = _in_order(merged, order, current or [], field.patch_merge_key)
    rest.pop(name, None)


def _check_order(items: list[Any], order: list[Any], merge_key: str) -> None:
    """The items of the patch must be in ``order``, and come in it in the same order."""
    if not items or not order:
        return
    wanted = []
    for item in items:
        if merge_key and not isinstance(item, dict):
            _wrong_type({}, item)
        if not (isinstance(item, dict) and PATCH in item):
            wanted.append(item)
    place = 0
    for entry in order:
        if place == len(wanted):
            break
        if merge_key:
            for one in (wanted[place], entry):
                if not isinstance(one, dict):
                    _wrong_type({}, one)
                if merge_key not in one:
                    _no_merge_key(one, merge_key)
        place += _comparable(_key(wanted[place], merge_key)) == _comparable(_key(entry, merge_key))
    if place < len(wanted):
        _fail(f"The order in patch list:\n{go_json.shown(items)}\n doesn't match {SET_ELEMENT_ORDER} list:\n{go_json.shown(order)}\n")
