"""Random requests about one object of a kind: every verb, patch type and subresource, with what can be wrong with each."""

from __future__ import annotations

import random
from typing import Any
from urllib.parse import quote

from tests.custom_objects.definitions import GROUP, Kind
from tests.custom_objects.schemas import Schema
from tests.custom_objects.texts import Raw, written
from tests.custom_objects.values import Values
from tests.differential_writes.client import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, YAML, Step

MANAGERS = ("m1", "m2", "m3")
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
_PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
_ACCEPTS = (
    *(_TABLE, _PARTIAL, "application/json;as=Table;v=v1beta1;g=meta.k8s.io", f"{_TABLE},application/json", "application/xml"),
    *("*/*", "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json", "application/json;as=Foo"),
    *("text/html", "application/json;as=Table;v=v2;g=meta.k8s.io", f"{_PARTIAL}, */*", "application/json;q=0.5", ""),
)


class Requests:
    """About one object ``name``; ``calm``: how seldom something is wrong."""

    def __init__(self, source: random.Random, kind: Kind, name: str) -> None:
        self.source = source
        self.kind = kind
        self.name = name
        self.values = Values(source, source.choice((0.0, 0.02, 0.05, 0.12)))
        self.calm = source.random() < 0.5

    def steps(self, count: int) -> list[Step]:
        steps = [self.create()]
        while len(steps) < count:
            steps.append(self.any())
        return steps

    def updates(self, count: int) -> list[Step]:
        """Of an object that is there."""
        return [self.any(create=0, delete=0, collection=0, list=0, odd=0) for _ in range(count)]

    def any(self, **weights: int) -> Step:
        kinds = {
            "create": 10,
            "put": 14,
            "merge": 12,
            "json": 10,
            "apply": 22,
            "status": 9,
            "scale": 4,
            "delete": 5,
            "collection": 1,
            "get": 4,
            "list": 3,
            "odd": 2,
        } | weights
        chosen = self.source.choices(tuple(kinds), weights=tuple(kinds.values()))[0]
        return getattr(self, chosen)()  # type: ignore[no-any-return]

    # -- parts

    def maybe(self, often: float) -> bool:
        return self.source.random() < often * (0.3 if self.calm else 1)

    @property
    def version(self) -> str:
        return self.source.choice(tuple(self.kind.schemas))

    def path(self, version: str, sub: str = "") -> str:
        return f"{self.kind.path(version)}/{self.name}{sub}"

    def body(self, version: str, name: str | None = None, fill: float = 0.0) -> dict[str, Any]:
        source = self.source
        body = self.values.of(self.kind.schemas[version], fill or source.choice((0.15, 0.4, 0.8)))
        if not isinstance(body, dict):
            body = {}
        body = {
            "apiVersion": f"{GROUP}/{version}",
            "kind": self.kind.kind,
            "metadata": self.values.metadata(name or self.name),
            **body,
        }
        if self.maybe(0.03):
            body["apiVersion"] = source.choice((f"{GROUP}/v9", "v1", "", None, 1, "a/b/c", f"other/{version}"))
        if self.maybe(0.03):
            body["kind"] = source.choice(("Other", "", None, 1, self.kind.kind + "List"))
        if self.maybe(0.02):
            body.pop(source.choice(("apiVersion", "kind", "metadata")), None)
        if isinstance(body.get("metadata"), dict):
            labels = body["metadata"].setdefault("labels", {})
            if isinstance(labels, dict):
                labels["seq"] = self.name
        return body

    def sent(self, value: Any) -> str:
        source = self.source
        text = written(value, source, 0.03 if self.maybe(0.12) else 0.0, escape=source.random() < 0.5)
        if self.maybe(0.01):
            text = source.choice(
                (text[:-1], text + "x", text + "{}", "[]", "null", "1", '"x"', "", "{}", "{", text.replace(":", "=", 1), " " + text)
            )
        return text

    def query(self, *, apply: bool = False, manager: bool = True) -> str:
        source, parts = self.source, []
        if manager and (apply or source.random() < 0.8):
            parts.append(f"fieldManager={source.choice(MANAGERS)}")
        if self.maybe(0.02):
            parts = [f"fieldManager={quote(source.choice(('', 'a b', 'é', 'x' * 129, 'a%0Ab')))}"]
        if source.random() < 0.5:
            parts.append(f"fieldValidation={source.choice(('Strict', 'Strict', 'Warn', 'Ignore', 'Ignore'))}")
        elif self.maybe(0.03):
            parts.append(f"fieldValidation={source.choice(('strict', '', 'x'))}")
        if source.random() < 0.06:
            parts.append("dryRun=" + ("All" if not self.maybe(0.2) else source.choice(("", "x", "all"))))
        if (apply and source.random() < 0.5) or self.maybe(0.01):
            parts.append(f"force={source.choice(('true', 'true', 'true', 'false', '1', 'x', ''))}" if self.maybe(0.2) else "force=true")
        if self.maybe(0.01):
            parts.append(source.choice(("pretty=true", "unknown=1", "timeoutSeconds=x", "resourceVersion=1", "limit=1")))
        return "&".join(parts)

    # -- writes

    def create(self) -> Step:
        version = self.version
        return Step(method="POST", path=self.kind.path(version), body=self.sent(self.body(version)), query=self.query())

    def put(self, sub: str = "") -> Step:
        version = self.version
        body = self.body(version)
        if isinstance(body.get("metadata"), dict) and not self.maybe(0.08):
            body["metadata"]["resourceVersion"] = "{rv}"
        if self.maybe(0.03) and isinstance(body.get("metadata"), dict):
            body["metadata"] |= self.source.choice(
                ({"name": "other"}, {"uid": "{uid}"}, {"uid": "x"}, {"resourceVersion": "1"}, {"generation": 9})
            )
        return Step(method="PUT", path=self.path(version, sub), body=self.sent(body), query=self.query())

    def merge(self, sub: str = "") -> Step:
        version, source = self.version, self.source
        body: dict[str, Any] = self.values.of(self.kind.schemas[version], source.choice((0.1, 0.3)))
        if isinstance(body, dict):
            if source.random() < 0.3:
                body["metadata"] = self.values.metadata(None, 0.4)
            if source.random() < 0.3:
                self._nulls(body)
            if self.maybe(0.03):
                body |= source.choice(({"kind": "X"}, {"apiVersion": "v9"}, {"apiVersion": None}, {"kind": None}, {"metadata": None}))
        return Step(method="PATCH", path=self.path(version, sub), body=self.sent(body), type=MERGE, query=self.query())

    def _nulls(self, value: dict[str, Any]) -> None:
        """Some field becomes null."""
        while True:
            if not value:
                return
            name = self.source.choice(list(value))
            if isinstance(value[name], dict) and value[name] and self.source.random() < 0.7:
                value = value[name]
                continue
            value[name] = None
            return

    def json(self, sub: str = "") -> Step:
        version, source = self.version, self.source
        operations: Any = []
        for _ in range(source.randint(1, 3)):
            pointer, schema = self._pointer(self.kind.schemas[version])
            operation: dict[str, Any] = {"op": source.choice(("add", "add", "add", "remove", "test")), "path": pointer}
            if operation["op"] != "remove":
                operation["value"] = self.values.of(schema, 0.4)
            if self.maybe(0.08):
                operation |= source.choice(
                    (
                        {"op": "move", "from": "/spec"},
                        {"op": "copy", "from": "/metadata/name"},
                        {"op": "x"},
                        {"extra": 1},
                        {"path": "spec"},
                        {"value": None},
                    )
                )
            operations.append(operation)
        if self.maybe(0.02):
            operations = source.choice(({}, [], None, [1], [{}], "x", [[]], [{"op": "add"}], [{"path": "/spec"}]))
        return Step(method="PATCH", path=self.path(version, sub), body=self.sent(operations), type=JSON_PATCH, query=self.query())

    def _pointer(self, schema: Schema) -> tuple[str, Schema]:
        source, parts = self.source, []
        if source.random() < 0.12:
            chosen = (
                "/metadata/labels/l1",
                "/metadata/annotations",
                "/metadata/finalizers/-",
                "/metadata/name",
                "/kind",
                "",
                "/metadata",
                "/x",
                "/spec/x~1y",
            )
            return source.choice(chosen), {"type": "string"}
        while True:
            if schema.get("properties"):
                name = source.choice(list(schema["properties"]))
                parts.append(name)
                schema = schema["properties"][name]
            elif isinstance(schema.get("additionalProperties"), dict):
                parts.append(source.choice(("a", "b", "d~1e", "é")))
                schema = schema["additionalProperties"]
            elif schema.get("type") == "array":
                parts.append(source.choice(("0", "-", "1", "00", "x", "-1", "9")) if self.maybe(0.3) else source.choice(("0", "-")))
                schema = schema["items"]
            else:
                break
            if source.random() < 0.35:
                break
        return "".join(f"/{part}" for part in parts), schema

    def apply(self, sub: str = "") -> Step:
        version = self.version
        body = self.body(version, fill=self.source.choice((0.08, 0.2, 0.5)))
        if self.maybe(0.04) and isinstance(body.get("metadata"), dict):
            body["metadata"] |= self.source.choice(
                ({"resourceVersion": "{rv}"}, {"uid": "x"}, {"managedFields": []}, {"name": "other"}, {"generateName": "x"})
            )
        return Step(method="PATCH", path=self.path(version, sub), body=self.sent(body), type=APPLY, query=self.query(apply=True))

    def status(self) -> Step:
        kind = self.source.choice((self.put, self.merge, self.merge, self.json, self.apply, self.apply))
        return kind("/status")

    def scale(self) -> Step:
        source, version = self.source, self.version
        path = self.path(version, "/scale")
        count = source.choice((0, 1, 3, 7, -1, 2147483648, "x", None, Raw("1.0"), Raw("1.5"))) if self.maybe(0.3) else source.randint(0, 4)
        kind = source.choice("gpmj")
        if kind == "g":
            return Step(method="GET", path=path, accept=source.choice((JSON, JSON, JSON, _TABLE, _PARTIAL)))
        if kind == "m":
            return Step(method="PATCH", path=path, body=self.sent({"spec": {"replicas": count}}), type=MERGE, query=self.query())
        if kind == "j":
            operations = [
                {"op": source.choice(("add", "test")), "path": source.choice(("/spec/replicas", "/status/replicas")), "value": count}
            ]
            return Step(method="PATCH", path=path, body=self.sent(operations), type=JSON_PATCH, query=self.query())
        body: dict[str, Any] = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": self.name, **({"namespace": "default"} if self.kind.namespaced else {})},
            "spec": {"replicas": count},
        }
        if source.random() < 0.4:
            body["metadata"]["resourceVersion"] = "{rv}"
        if self.maybe(0.2):
            body |= source.choice(
                ({"kind": "X"}, {"apiVersion": "v1"}, {"status": {"replicas": 9}}, {"extra": 1}, {"spec": {}}, {"metadata": {}})
            )
        return Step(method="PUT", path=path, body=self.sent(body), query=self.query())

    # -- others

    def delete(self) -> Step:
        source = self.source
        body = source.choice(
            (
                None,
                None,
                {"propagationPolicy": source.choice(("Foreground", "Background", "Orphan", "x", ""))},
                {"dryRun": ["All"]},
                {"preconditions": {"uid": source.choice(("{uid}", "x", ""))}},
                {"preconditions": {"resourceVersion": source.choice(("{rv}", "1", ""))}},
                {"gracePeriodSeconds": source.choice((0, 5, -1, "x"))},
                {"orphanDependents": source.choice((True, False, "x"))},
                {"orphanDependents": True, "propagationPolicy": "Orphan"},
                {
                    "kind": "DeleteOptions",
                    "apiVersion": source.choice(("v1", "meta.k8s.io/v1", f"{GROUP}/v1", "apps/v1", "x/y")),
                    "unknown": 1,
                },
                {"kind": source.choice(("Foo", "")), "apiVersion": "v1"},
            )
        )
        text = None if body is None else self.sent(body)
        query = source.choice(
            ("", "", "", "propagationPolicy=Foreground", "dryRun=All", "gracePeriodSeconds=3", "propagationPolicy=x", "orphanDependents=x")
        )
        return Step(method="DELETE", path=self.path(self.version), body=text, query=query)

    def collection(self) -> Step:
        query = f"labelSelector=seq%3D{self.name}" + self.source.choice(("", "&dryRun=All", "&propagationPolicy=Foreground", "&limit=1"))
        return Step(method="DELETE", path=self.kind.path(self.version), query=query)

    def get(self) -> Step:
        source = self.source
        accept = source.choice(_ACCEPTS) if source.random() < 0.5 else JSON
        sub = source.choice(("/status", "/scale", "/x", "/status/x")) if self.maybe(0.2) else ""
        query = (
            source.choice(("", "", "resourceVersion=0", "resourceVersion=x", "pretty=1", "includeObject=None")) if self.maybe(0.5) else ""
        )
        return Step(method="GET", path=self.path(self.version, sub), accept=accept, query=query)

    def list(self) -> Step:
        source = self.source
        accept = source.choice((*_ACCEPTS, _PARTIAL_LIST, _PARTIAL_LIST)) if source.random() < 0.5 else JSON
        field = source.choice(
            (
                *(
                    "",
                    "",
                    f"metadata.name={self.name}",
                    "metadata.name!=x",
                    "metadata.namespace=default",
                    "spec.color=ab",
                    "spec.n=1",
                    "spec.n!=1",
                ),
                *(
                    "spec.x=1",
                    "metadata.labels.x=1",
                    "spec.color=",
                    "spec.color",
                    "=",
                    "a=b,c=d",
                    "spec.color==ab",
                    "metadata.name=a,spec.n=1",
                ),
            )
        )
        query = f"labelSelector=seq%3D{self.name}" + (f"&fieldSelector={quote(field)}" if field else "")
        if "Table" in accept and source.random() < 0.5:
            query += "&includeObject=" + source.choice(("None", "Metadata", "Object", "x", ""))
        return Step(method="GET", path=self.kind.path(self.version), accept=accept, query=query)

    def odd(self) -> Step:
        """What no client should send."""
        source, version = self.source, self.version
        body = written(self.body(version))
        path = self.path(version)
        return source.choice(
            (
                Step(method="PATCH", path=path, body=body, type=STRATEGIC, query=self.query()),
                Step(method="PATCH", path=path, body=body, type=source.choice((JSON, "text/plain", "", YAML)), query=self.query()),
                Step(
                    method="POST",
                    path=self.kind.path(version),
                    body=body,
                    type=source.choice(("text/plain", "application/vnd.kubernetes.protobuf", "")),
                ),
                Step(
                    method="POST",
                    path=self.kind.path(version),
                    body=body,
                    type=source.choice((YAML, "application/json; charset=utf-8", "application/xml")),
                ),
                Step(
                    method="PUT",
                    path=path,
                    body=body,
                    type=source.choice((YAML, "application/vnd.kubernetes.protobuf", "application/cbor")),
                ),
                Step(method=source.choice(("POST", "OPTIONS", "HEAD")), path=path, body=body),
                Step(method=source.choice(("PUT", "PATCH")), path=self.kind.path(version), body=body),
                Step(method="POST", path=path + "/status", body=body),
                Step(method="DELETE", path=path + source.choice(("/status", "/scale"))),
            )
        )
