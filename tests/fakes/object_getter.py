"""A trusted ``ObjectGetter``: objects in a dict."""

from __future__ import annotations

from typing import Any

from apiserver.machinery import objects
from apiserver.machinery.objects import Object


class FakeObjects:
    def __init__(self) -> None:
        self._objects: dict[tuple[str, str, str, str], Object] = {}

    def put(self, group: str, resource: str, obj: Object) -> Object:
        """Add or replace an object under its own name and namespace."""
        self._objects[(group, resource, objects.namespace(obj), objects.name(obj))] = obj
        return obj

    def add(self, group: str, resource: str, name: str, namespace: str = "", **fields: Any) -> Object:
        """An object of its name, a uid made of it, and ``fields``."""
        metadata: dict[str, Any] = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
        if namespace:
            metadata["namespace"] = namespace
        metadata |= fields.pop("metadata", {})
        return self.put(group, resource, {"metadata": metadata, **fields})

    def remove(self, group: str, resource: str, name: str, namespace: str = "") -> None:
        del self._objects[(group, resource, namespace, name)]

    def get(self, group: str, resource: str, namespace: str, name: str) -> Object | None:
        return self._objects.get((group, resource, namespace, name))

    def list(self, group: str, resource: str, namespace: str = "") -> list[Object]:
        return [o for (g, r, ns, _), o in self._objects.items() if (g, r) == (group, resource) and namespace in ("", ns)]
