"""JSON Patch (RFC 6902) with the answers of Kubernetes' API server.

The library ``jsonpatch`` does RFC 6902; its errors, limits and corner cases are not those that clients of Kubernetes see, so this is code
of our own, and the library is what the tests compare it with. What differs from the RFC, as in Kubernetes:

* ``replace`` of a member that an object does not have adds it; ``copy`` of one adds null; ``test`` of one passes for null;
* an index may be negative, and then counts from the end (``-1`` of an ``add`` is behind the last);
* the whole document cannot be replaced;
* the first failure is answered by one and the same 422 that does not say which operation it was; the cause of the raised error does.

The argument is never changed: of what an operation changes, the containers on the way to it are copied, the rest is shared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from apiserver.machinery import go_json, objects, status
from apiserver.machinery.status import StatusError

#: more operations than this are refused with 413
OPERATIONS_MAX = 10_000
#: how much JSON all copy operations of a patch may make together, in bytes: a few lines could otherwise make gigabytes
COPIED_BYTES_MAX = 3 * 1024 * 1024
#: beyond this many digits a text is no index of a list that could be in a request
_INDEX_DIGITS_MAX = 10

_INDEX = re.compile(r"[+-]?[0-9]+").fullmatch


class PatchError(Exception):
    """Why an operation does not apply."""


class PatchTestError(PatchError):
    """A ``test`` found something else."""


def apply(document: Any, operations: Any) -> Any:
    """``document`` after all ``operations``. ``StatusError``: 400 where the patch is none, 413 where it is too long, 422 where an
    operation does not apply."""
    if not isinstance(operations, list):
        kind = go_json.kind_of(operations)
        raise status.bad_request(f"error decoding patch: json: cannot unmarshal {kind} into Go value of type []handlers.jsonPatchOp")
    if len(operations) > OPERATIONS_MAX:
        message = f"The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {len(operations)}"
        raise status.request_entity_too_large("Request entity too large: " + message)
    for operation in operations:
        if not isinstance(operation, dict):
            kind = go_json.kind_of(operation)
            raise status.bad_request(f"error decoding patch: json: cannot unmarshal {kind} into Go value of type handlers.jsonPatchOp")
    patcher = _Patcher(document)
    try:
        for operation in operations:
            patcher.apply(operation)
    except PatchError as e:
        raise _refusal() from e
    return patcher.document


def _refusal() -> StatusError:
    return StatusError(status.failure(422, "Invalid", "the server rejected our request due to an error in our request", {}))


class _Patcher:
    """A document on its way through a patch. ``_own`` holds the containers that were made here and so may be changed; they are kept
    by reference, so that no identity is given to another object meanwhile."""

    def __init__(self, document: Any) -> None:
        self.document = document
        self._own: dict[int, Any] = {}
        self._copied_bytes = 0

    def apply(self, operation: dict[str, Any]) -> None:
        kind = operation.get("op")
        run = _OPERATIONS.get(kind) if isinstance(kind, str) else None
        if run is None:
            raise PatchError(f"Unexpected kind: {kind}")
        run(self, operation)

    # -- finding

    def _owned(self, container: Any) -> Any:
        if id(container) in self._own:
            return container
        copy = dict(container) if isinstance(container, dict) else list(container)
        self._own[id(copy)] = copy
        return copy

    def _container(self, pointer: str, *, to_change: bool) -> tuple[Any, str]:
        """The container that ``pointer`` leads into, and the last part of the pointer."""
        parts = pointer.split("/")
        if len(parts) < 2 or not isinstance(self.document, (dict, list)):
            raise PatchError(f'doc is missing path: "{pointer}"')
        if to_change:
            self.document = self._owned(self.document)
        here = self.document
        for part in parts[1:-1]:
            key = _unescape(part)
            found = _get(here, key)
            if not isinstance(found, (dict, list)):
                raise PatchError(f'doc is missing path: "{pointer}"')
            if to_change and id(found) not in self._own:
                found = self._owned(found)
                _put(here, key, found)
            here = found
        return here, _unescape(parts[-1])

    # -- operations

    def add(self, operation: dict[str, Any]) -> None:
        self._add(_pointer(operation, "path"), operation.get("value"))

    def _add(self, pointer: str, value: Any) -> None:
        container, key = self._container(pointer, to_change=True)
        if isinstance(container, dict):
            container[key] = value
        elif key == "-":
            container.append(value)
        else:
            container.insert(_position(container, key, room_for_one=True), value)

    def remove(self, operation: dict[str, Any]) -> None:
        self._remove(_pointer(operation, "path"))

    def _remove(self, pointer: str) -> None:
        container, key = self._container(pointer, to_change=True)
        if isinstance(container, dict):
            if key not in container:
                raise PatchError(f"Unable to remove nonexistent key: {key}")
            del container[key]
        else:
            del container[_position(container, key)]

    def replace(self, operation: dict[str, Any]) -> None:
        container, key = self._container(_pointer(operation, "path"), to_change=True)
        _put(container, key, operation.get("value"))

    def move(self, operation: dict[str, Any]) -> None:
        source = _pointer(operation, "from")
        container, key = self._container(source, to_change=False)
        value = _get(container, key)
        self._remove(source)
        self._add(_pointer(operation, "path"), value)

    def copy(self, operation: dict[str, Any]) -> None:
        container, key = self._container(_pointer(operation, "from"), to_change=False)
        value = objects.deep_copy(_get(container, key))
        target = _pointer(operation, "path")
        self._container(target, to_change=False)
        self._copied_bytes += len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
        if self._copied_bytes > COPIED_BYTES_MAX:
            raise PatchError(
                f"Unable to complete the copy, the accumulated size increase of copy is {self._copied_bytes}, "
                f"exceeding the limit {COPIED_BYTES_MAX}"
            )
        self._add(target, value)

    def test(self, operation: dict[str, Any]) -> None:
        pointer = _pointer(operation, "path")
        container, key = self._container(pointer, to_change=False)
        if not equal(_get(container, key), operation.get("value")):
            raise PatchTestError(f"testing value {pointer} failed")


_OPERATIONS: dict[str, Callable[[_Patcher, dict[str, Any]], None]] = {
    "add": _Patcher.add,
    "remove": _Patcher.remove,
    "replace": _Patcher.replace,
    "move": _Patcher.move,
    "copy": _Patcher.copy,
    "test": _Patcher.test,
}


def _pointer(operation: dict[str, Any], field: str) -> str:
    pointer = operation.get(field)
    if not isinstance(pointer, str):
        raise PatchError(f"operation missing {field} field")
    return pointer


def _unescape(part: str) -> str:
    """RFC 6901 §4: first ``~1``, then ``~0``, so that ``~01`` is ``~1``."""
    return part.replace("~1", "/").replace("~0", "~") if "~" in part else part


def _get(container: Any, key: str) -> Any:
    return container.get(key) if isinstance(container, dict) else container[_position(container, key)]


def _put(container: Any, key: str, value: Any) -> None:
    if isinstance(container, dict):
        container[key] = value
    else:
        container[_position(container, key)] = value


def _position(items: list[Any], key: str, *, room_for_one: bool = False) -> int:
    """The place in a list that a part of a pointer names."""
    if not _INDEX(key) or len(key) > _INDEX_DIGITS_MAX:
        raise PatchError(f"value was not a proper array index: '{key}'")
    size = len(items) + (1 if room_for_one else 0)
    position = int(key)
    if not -size <= position < size:
        raise PatchError(f"Unable to access invalid index: {position}")
    return position + size if position < 0 else position


def equal(left: Any, right: Any) -> bool:
    """Equality of JSON values: numbers by value, and true is not 1."""
    if isinstance(left, dict):
        return isinstance(right, dict) and left.keys() == right.keys() and all(equal(v, right[k]) for k, v in left.items())
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)
