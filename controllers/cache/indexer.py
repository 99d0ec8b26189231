"""``Indexer``: objects by key, and by any number of indexes kept up to date with each change. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from apiserver.machinery import objects
from apiserver.machinery.objects import Object

IndexFunction = Callable[[Object], list[str]]
# inside a class with a method ``list`` the type goes by other names
Objects: TypeAlias = list[Object]
Keys: TypeAlias = list[str]

BY_NAMESPACE = "namespace"


def key_of(obj: Object) -> str:
    """``namespace/name``; ``name`` for objects without a namespace."""
    return key(objects.namespace(obj), objects.name(obj))


def key(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def split_key(text: str) -> tuple[str, str]:
    namespace, _, name = text.rpartition("/")
    return namespace, name


def index_by_namespace(obj: Object) -> list[str]:
    return [objects.namespace(obj)]


class Indexer:
    """Objects come out in the order of their keys, so that nothing depends on the order of arrival."""

    def __init__(self, indexes: dict[str, IndexFunction] | None = None) -> None:
        self._objects: dict[str, Object] = {}
        self._functions: dict[str, IndexFunction] = {BY_NAMESPACE: index_by_namespace}
        self._indexes: dict[str, dict[str, set[str]]] = {BY_NAMESPACE: {}}
        for name, function in (indexes or {}).items():
            self.add_index(name, function)

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Adds an index, also over what is there already; the same name twice must mean the same function."""
        if name in self._functions:
            assert self._functions[name] is function, f"index {name} is there with another function"
            return
        self._functions[name] = function
        index: dict[str, set[str]] = {}
        self._indexes[name] = index
        for stored_key, obj in self._objects.items():
            for value in function(obj):
                index.setdefault(value, set()).add(stored_key)

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, stored_key: str) -> bool:
        return stored_key in self._objects

    def get(self, stored_key: str) -> Object | None:
        return self._objects.get(stored_key)

    def keys(self) -> Keys:
        return sorted(self._objects)

    def list(self) -> Objects:
        return [self._objects[k] for k in sorted(self._objects)]

    def by_index(self, name: str, value: str) -> Objects:
        return [self._objects[k] for k in sorted(self._indexes[name].get(value, ()))]

    def in_namespace(self, namespace: str) -> Objects:
        return self.by_index(BY_NAMESPACE, namespace)

    def set(self, stored_key: str, obj: Object) -> None:
        self._unindex(stored_key)
        self._objects[stored_key] = obj
        for name, function in self._functions.items():
            index = self._indexes[name]
            for value in function(obj):
                index.setdefault(value, set()).add(stored_key)

    def remove(self, stored_key: str) -> Object | None:
        self._unindex(stored_key)
        return self._objects.pop(stored_key, None)

    def replace(self, found: Iterable[Object]) -> None:
        self._objects.clear()
        for index in self._indexes.values():
            index.clear()
        for obj in found:
            self.set(key_of(obj), obj)

    def _unindex(self, stored_key: str) -> None:
        old = self._objects.get(stored_key)
        if old is None:
            return
        for name, function in self._functions.items():
            index = self._indexes[name]
            for value in function(old):
                members = index.get(value)
                if members is not None:
                    members.discard(stored_key)
                    if not members:
                        del index[value]
