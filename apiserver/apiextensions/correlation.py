"""``Correlation``: a value beside the one that stood in its place before, for what is lenient with what did not change (apiserver
``cel/common/equality.go``).

Fields and map entries belong together by name, items of a keyed list by their keys; items of other lists belong to nothing. A part of
which the schema says nothing has no correlation.
"""

from __future__ import annotations

from typing import Any

from apiserver.apiextensions.nodes import Node

_UNKNOWN = object()


class Correlation:
    __slots__ = ("_children", "_equal", "_keyed", "new", "node", "old")

    def __init__(self, new: Any, old: Any, node: Node) -> None:
        self.new = new
        self.old = old
        self.node = node
        self._equal: bool | None = None
        self._children: dict[str | int, Correlation | None] = {}
        self._keyed: dict[tuple[Any, ...], Any] | None = None

    def field(self, name: str) -> Correlation | None:
        """None where one of the two has no such field, or the schema does not name it."""
        found = self._children.get(name, _UNKNOWN)
        if found is _UNKNOWN:
            found = None
            node = self.node.field(name)
            both = isinstance(self.new, dict) and isinstance(self.old, dict)
            if both and node is not None and name in self.new and name in self.old:
                found = Correlation(self.new[name], self.old[name], node)
            self._children[name] = found
        assert found is None or isinstance(found, Correlation)
        return found

    def item(self, position: int) -> Correlation | None:
        found = self._children.get(position, _UNKNOWN)
        if found is _UNKNOWN:
            found = None
            old = self._old_item(position)
            if old is not None and self.node.items is not None:
                found = Correlation(self.new[position], old, self.node.items)
            self._children[position] = found
        assert found is None or isinstance(found, Correlation)
        return found

    def _old_item(self, position: int) -> Any:
        keys = self.node.list_map_keys
        if self.node.list_type != "map" or not keys or not isinstance(self.old, list) or not isinstance(self.new, list):
            return None
        if self._keyed is None:
            self._keyed = {}
            for item in self.old:
                key = _key(item, keys)
                if key is not None:
                    self._keyed.setdefault(key, item)
        key = _key(self.new[position], keys)
        return None if key is None else self._keyed.get(key)

    def equal(self) -> bool:
        """Whether nothing changed. Of a keyed list the order does not count; a value with parts that the schema does not name has always
        changed."""
        if self._equal is None:
            self._equal = self._compare()
        return self._equal

    def _compare(self) -> bool:
        new, old = self.new, self.old
        if isinstance(new, dict) and isinstance(old, dict):
            return len(new) == len(old) and all((child := self.field(name)) is not None and child.equal() for name in new)
        if isinstance(new, list) and isinstance(old, list):
            if len(new) != len(old):
                return False
            if self.node.list_type != "map" or not self.node.list_map_keys:
                return identical(new, old)
            return all((child := self.item(position)) is not None and child.equal() for position in range(len(new)))
        return identical(new, old)


def _key(item: Any, names: tuple[str, ...]) -> tuple[Any, ...] | None:
    """The values of an item's keys with their types, since 1 and true are different keys; None for an item without them."""
    if not isinstance(item, dict):
        return None
    key: list[Any] = []
    for name in names:
        value = item.get(name)
        if value is None or isinstance(value, (dict, list)):
            return None
        key += [type(value), value]
    return tuple(key)


def identical(a: Any, b: Any) -> bool:
    """Equal in JSON: neither ``1 == True`` nor ``1 == 1.0`` as in Python."""
    if isinstance(a, dict):
        return isinstance(b, dict) and len(a) == len(b) and all(name in b and identical(value, b[name]) for name, value in a.items())
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(identical, a, b))
    return type(a) is type(b) and bool(a == b)
