"""Random sequences of writes to one object by several field managers, through every kind of write but those of the Scale.

A real server splits an entry of managedFields when the Scale of its owner is written (it loses the version in which the owner is known),
and fails to apply the Scale of a custom resource at all; ours does neither.
"""

from __future__ import annotations

import random
from typing import Any

from tests.differential_writes.client import APPLY, JSON_PATCH, MERGE, Step

GROUP = "writes.demo.test"
GADGETS = f"/apis/{GROUP}/v1/namespaces/{{ns}}/gadgets"
MANAGERS = ("m1", "m2", "m3")

_STRING, _INTEGER = {"type": "string"}, {"type": "integer", "format": "int32"}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _named_item() -> dict[str, Any]:
    item = _object(
        name=_STRING,
        port={**_INTEGER, "default": 1},
        value=_STRING,
        tags={"type": "array", "items": _STRING, "x-kubernetes-list-type": "set"},
    )
    return {**item, "required": ["name"]}


#: one field of each kind that server-side apply tells apart
SPEC = _object(
    color=_STRING,
    replicas=_INTEGER,
    size={**_INTEGER, "default": 3},
    labels={"type": "object", "additionalProperties": _STRING},
    atomic={**_object(a=_STRING, b=_STRING), "x-kubernetes-map-type": "atomic"},
    nested=_object(a=_STRING, deep=_object(x=_STRING, y=_STRING)),
    items={"type": "array", "items": _named_item(), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "port"]},
    set={"type": "array", "items": _STRING, "x-kubernetes-list-type": "set"},
    plain={"type": "array", "items": _STRING},
    any={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
)
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"gadgets.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": _object(
                        spec=SPEC,
                        status=_object(
                            phase=_STRING, replicas=_INTEGER, seen={"type": "array", "items": _STRING, "x-kubernetes-list-type": "set"}
                        ),
                    )
                },
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
            }
        ],
    },
}


class Writer:
    """Makes the steps of one sequence from a source of randomness."""

    def __init__(self, source: random.Random, name: str) -> None:
        """``name``: of the one object."""
        self._random = source
        self._name = name
        self._path = f"{GADGETS}/{name}"

    def steps(self, count: int) -> list[Step]:
        return [self._step() for _ in range(count)]

    def _step(self) -> Step:
        kind = self._random.choices(
            ("apply", "put", "merge", "json", "status", "delete", "create", "get"), weights=(40, 8, 12, 8, 10, 4, 6, 2)
        )[0]
        return getattr(self, "_" + kind)()  # type: ignore[no-any-return]

    # -- parts of objects

    def _some(self, of: tuple[str, ...], least: int = 0) -> list[str]:
        return self._random.sample(of, self._random.randint(least, len(of)))

    def _text(self) -> str:
        return self._random.choice(("x", "y", "z"))

    def _item(self) -> dict[str, Any]:
        item: dict[str, Any] = {"name": self._random.choice("abc")}
        if self._random.random() < 0.4:
            item["port"] = self._random.choice((1, 2))
        if self._random.random() < 0.6:
            item["value"] = self._text()
        if self._random.random() < 0.3:
            item["tags"] = self._some(("s", "t"))
        return item

    def _items(self) -> list[dict[str, Any]]:
        found: dict[tuple[str, int], dict[str, Any]] = {}
        for _ in range(self._random.randint(0, 3)):
            item = self._item()
            found[item["name"], item.get("port", 1)] = item
        return list(found.values())

    def _spec(self) -> dict[str, Any]:
        made: dict[str, Any] = {
            "color": self._text,
            "replicas": lambda: self._random.randint(0, 2),
            "size": lambda: self._random.randint(3, 5),
            "labels": lambda: {key: self._text() for key in self._some(("p", "q"))},
            "atomic": lambda: {key: self._text() for key in self._some(("a", "b"))},
            "nested": lambda: self._random.choice(({}, {"a": self._text()}, {"deep": {"x": self._text()}}, {"a": "x", "deep": {}})),
            "items": self._items,
            "set": lambda: self._some(("u", "v", "w")),
            "plain": lambda: self._some(("u", "v", "w")),
            "any": lambda: self._random.choice(({}, {"k": 1}, {"k": "x", "l": [1, {"m": 2}]}, {"k": {"n": True}})),
        }
        return {name: made[name]() for name in self._some(tuple(made))}

    def _metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = {"name": self._name}
        if self._random.random() < 0.3:
            metadata["labels"] = {key: self._text() for key in self._some(("l1", "l2"))}
        if self._random.random() < 0.2:
            metadata["annotations"] = {key: self._text() for key in self._some(("a1", "a2"))}
        if self._random.random() < 0.15:
            metadata["finalizers"] = [f"x/{name}" for name in self._some(("f1", "f2"))]
        return metadata

    def _object(self) -> dict[str, Any]:
        found: dict[str, Any] = {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": self._metadata()}
        if self._random.random() < 0.9:
            found["spec"] = self._spec()
        if self._random.random() < 0.2:
            found["status"] = {"phase": self._text()}
        return found

    def _query(self, manager: str = "") -> str:
        query = f"fieldManager={manager or self._random.choice(MANAGERS)}"
        return query + ("&dryRun=All" if self._random.random() < 0.08 else "")

    # -- writes

    def _apply(self) -> Step:
        force = "&force=true" if self._random.random() < 0.4 else ""
        sub = "/status" if self._random.random() < 0.12 else ""
        body = self._object()
        if sub:
            body["status"] = {"phase": self._text(), "seen": self._some(("u", "v"))}
        return Step(method="PATCH", path=self._path + sub, body=body, type=APPLY, query=self._query() + force)

    def _put(self) -> Step:
        body = self._object()
        body["metadata"]["resourceVersion"] = "{rv}"
        if self._random.random() < 0.1:
            body["metadata"]["managedFields"] = self._random.choice(([], [{}]))
        return Step(method="PUT", path=self._path, body=body, query=self._query())

    def _merge(self) -> Step:
        body: dict[str, Any] = {"spec": self._spec()}
        if body["spec"] and self._random.random() < 0.4:
            body["spec"][self._random.choice(list(body["spec"]))] = None
        if self._random.random() < 0.3:
            body["metadata"] = {"labels": {"l1": self._random.choice((None, "x", "y"))}}
        if self._random.random() < 0.1:
            body["metadata"] = {"finalizers": self._random.choice((None, [], ["x/f1"]))}
        return Step(method="PATCH", path=self._path, body=body, type=MERGE, query=self._query())

    def _json(self) -> Step:
        paths = (
            "/spec/color",
            "/spec/set/0",
            "/spec/items/0/value",
            "/spec/labels/p",
            "/metadata/labels/l2",
            "/spec/any/k",
            "/spec/plain/-",
        )
        # no replace: what it does where nothing is there depends on the library's version
        operations = [
            {"op": self._random.choice(("add", "remove", "test")), "path": self._random.choice(paths), "value": self._text()}
            for _ in range(self._random.randint(1, 3))
        ]
        return Step(method="PATCH", path=self._path, body=operations, type=JSON_PATCH, query=self._query())

    def _status(self) -> Step:
        body = {
            "status": {"phase": self._text(), "replicas": self._random.randint(0, 2)},
            "spec": self._spec(),
            "metadata": {"labels": {"l1": "s"}},
        }
        return Step(method="PATCH", path=f"{self._path}/status", body=body, type=MERGE, query=self._query())

    def _delete(self) -> Step:
        body = self._random.choice((None, {"propagationPolicy": "Foreground"}, {"propagationPolicy": "Orphan"}, {"dryRun": ["All"]}))
        return Step(method="DELETE", path=self._path, body=body)

    def _create(self) -> Step:
        return Step(method="POST", path=GADGETS, body=self._object(), query=self._query())

    def _get(self) -> Step:
        return Step(method="GET", path=self._path)
