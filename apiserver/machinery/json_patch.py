"""JSON Patch (RFC 6902) with the answers of Kubernetes' API server.

The library ``jsonpatch`` does RFC 6902; its errors, limits and corner cases are not those that clients of Kubernetes see, so this is code
of our own, and the library is what the tests compare it with. What differs from the RFC, as in Kubernetes:

* ``replace`` of a member that an object does not have adds it; ``copy`` of one adds null; ``test`` of one passes for null;
* an index may be negative, and then counts from the end (``-1`` of an ``add`` is behind the last);
* of the operations on the whole document there are ``replace``, with an object or a list (anything else changes nothing), and ``test``;
* the first failure is answered by one and the same 422 that does not say which operation it was; the cause of the raised error does, in
  the words of the library that Kubernetes uses, which answers about webhooks and mutating policies repeat.

The argument is never changed: of what an operation changes, the containers on the way to it are copied, the rest is shared.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
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

    def _container(self, pointer: str, missing: str, *, to_change: bool) -> tuple[Any, str]:
        """The container that ``pointer`` leads into, and the last part of the pointer. ``missing``: what is said where there is none."""
        parts = pointer.split("/")
        if len(parts) < 2 or not isinstance(self.document, (dict, list)):
            raise PatchError(f"{missing}: missing value")
        if to_change:
            self.document = self._owned(self.document)
        here = self.document
        for part in parts[1:-1]:
            key = _unescape(part)
            try:
                found = _get(here, key)
            except PatchError:
                found = None
            if not isinstance(found, (dict, list)):
                raise PatchError(f"{missing}: missing value")
            if to_change and id(found) not in self._own:
                found = self._owned(found)
                _put(here, key, found)
            here = found
        return here, _unescape(parts[-1])

    # -- operations

    def add(self, operation: dict[str, Any]) -> None:
        path = _pointer(operation, "path", "add operation failed to decode path")
        self._add(
            path, operation.get("value"), f'add operation does not apply: doc is missing path: "{path}"', f"error in add for path: '{path}'"
        )

    def _add(self, pointer: str, value: Any, missing: str, wrong: str) -> None:
        container, key = self._container(pointer, missing, to_change=True)
        if isinstance(container, dict):
            container[key] = value
        elif key == "-":
            container.append(value)
        else:
            with _said_of(wrong):
                container.insert(_position(container, key, adding=True), value)

    def remove(self, operation: dict[str, Any]) -> None:
        path = _pointer(operation, "path", "remove operation failed to decode path")
        missing = f'remove operation does not apply: doc is missing path: "{path}"'
        self._remove(path, missing, f"error in remove for path: '{path}'")

    def _remove(self, pointer: str, missing: str, wrong: str) -> None:
        container, key = self._container(pointer, missing, to_change=True)
        with _said_of(wrong):
            if isinstance(container, list):
                del container[_position(container, key)]
            elif key in container:
                del container[key]
            else:
                raise PatchError(f"Unable to remove nonexistent key: {key}: missing value")

    def replace(self, operation: dict[str, Any]) -> None:
        path = _pointer(operation, "path", "replace operation failed to decode path: operation missing path field")
        if not path:
            value = operation.get("value")
            if isinstance(value, (dict, list)):  # nothing else can be a whole document, and nothing is said of it
                self.document = value
            return
        container, key = self._container(path, f"replace operation does not apply: doc is missing path: {path}", to_change=True)
        try:
            _put(container, key, operation.get("value"))
        except PatchError as error:
            raise PatchError(f"replace operation does not apply: doc is missing key: {path}: missing value") from error

    def move(self, operation: dict[str, Any]) -> None:
        source = _pointer(operation, "from", "move operation failed to decode from: operation, missing from field")
        missing = f"move operation does not apply: doc is missing from path: {source}"
        container, key = self._container(source, missing, to_change=False)
        wrong = f"error in move for path: '{key}'"
        with _said_of(wrong):
            value = _get(container, key)
        self._remove(source, missing, wrong)
        target = _pointer(operation, "path", "move operation failed to decode path: operation missing path field")
        missing = f"move operation does not apply: doc is missing destination path: {target}"
        self._add(target, value, missing, f"error in move for path: '{target}'")

    def copy(self, operation: dict[str, Any]) -> None:
        source = _pointer(operation, "from", "copy operation failed to decode from: operation, missing from field")
        missing = f"copy operation does not apply: doc is missing from path: {source}"
        container, key = self._container(source, missing, to_change=False)
        with _said_of(f"error in copy for from: '{source}'"):
            value = objects.deep_copy(_get(container, key))
        target = _pointer(operation, "path", "copy operation failed to decode path")
        missing = f"copy operation does not apply: doc is missing destination path: {target}"
        self._container(target, missing, to_change=False)
        self._copied_bytes += len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
        if self._copied_bytes > COPIED_BYTES_MAX:
            raise PatchError(
                f"Unable to complete the copy, the accumulated size increase of copy is {self._copied_bytes}, "
                f"exceeding the limit {COPIED_BYTES_MAX}"
            )
        self._add(target, value, missing, "error while adding value during copy")

    def test(self, operation: dict[str, Any]) -> None:
        path = _pointer(operation, "path", "test operation failed to decode path: operation missing path field")
        found = self.document
        if path:
            container, key = self._container(path, f"test operation does not apply: is missing path: {path}", to_change=False)
            with _said_of(f"error in test for path: '{path}'"):
                found = _get(container, key)
        if not equal(found, operation.get("value")):
            raise PatchTestError(f"testing value {path} failed: test failed")


@contextlib.contextmanager
def _said_of(what: str) -> Iterator[None]:
    """Where what goes wrong inside has happened."""
    try:
        yield
    except PatchError as error:
        raise PatchError(f"{what}: {error}") from error


_OPERATIONS: dict[str, Callable[[_Patcher, dict[str, Any]], None]] = {
    "add": _Patcher.add,
    "remove": _Patcher.remove,
    "replace": _Patcher.replace,
    "move": _Patcher.move,
    "copy": _Patcher.copy,
    "test": _Patcher.test,
}


def _pointer(operation: dict[str, Any], field: str, missing: str) -> str:
    pointer = operation.get(field)
    if not isinstance(pointer, str):
        raise PatchError(f"{missing}: missing value")
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


def _position(items: list[Any], key: str, *, adding: bool = False) -> int:
    """The place in a list that a part of a pointer names."""
    if not _INDEX(key) or len(key) > _INDEX_DIGITS_MAX:
        wrong = f"strconv.Atoi: parsing {go_json.quote(key)}: invalid syntax"
        raise PatchError(f"value was not a proper array index: '{key}': {wrong}" if adding else wrong)
    size = len(items) + (1 if adding else 0)
    position = int(key)
    if not -size <= position < size:
        raise PatchError(f"Unable to access invalid index: {position}: invalid index detected")
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
