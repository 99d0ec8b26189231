"""Requests from a Swagger 2 document and a ``random.Random``."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

Document = dict[str, Any]

#: objects within objects; the schema of schemas has no bottom
DEPTH_MAX = 7
ITEMS_MAX = 3
#: properties beside the required ones
PROPERTIES_MAX = 6
NAMES = ("a", "b", "default", "kube-system", "a.b", "A_", "", "x" * 254, "é", "..", "system:x", "v1.apps")
ODD_TEXTS = (
    "",
    "a",
    "0",
    "-1",
    "1.5Gi",
    "\u0000",
    "é😀",
    "a/b",
    "2020-01-01T00:00:00Z",
    "10.0.0.1",
    "::1",
    "*",
    "None",
    "x" * 300,
    "%",
    "{{}}",
)
ODD_NUMBERS = (0, 1, -1, 80, 65536, 2**31, 2**63 - 1, -(2**63), 2**64, 1.5, 1e300)
QUERY_TEXTS = (
    "",
    "1",
    "0",
    "true",
    "abc",
    "-1",
    "All",
    "a=b",
    "a in (b,c)",
    "metadata.name=a",
    "!a",
    "Strict",
    "Foreground",
    "9" * 30,
    "é",
)
#: a chance that a value is of another type than it should be
WRONG = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    path: str
    query: str
    content_type: str
    body: bytes | None

    def __str__(self) -> str:
        return f"{self.method} {self.path}?{self.query}\n{self.content_type}\n{(self.body or b'').decode('utf-8', 'replace')[:4000]}"


class Generator:
    def __init__(self, document: Document, source: random.Random) -> None:
        self._definitions = document["definitions"]
        self._parameters = document.get("parameters", {})
        self._random = source
        self._operations = [
            (path, method, operation, item.get("parameters", []))
            for path, item in sorted(document["paths"].items())
            for method, operation in sorted(item.items())
            if method != "parameters"
        ]

    def requests(self) -> Iterator[Request]:
        """Without end; every operation comes once in each round."""
        while True:
            order = list(self._operations)
            self._random.shuffle(order)
            for path, method, operation, shared in order:
                yield self._request(path, method.upper(), operation, [*shared, *operation.get("parameters", [])])

    def _request(self, path: str, method: str, operation: Document, parameters: list[Document]) -> Request:
        source, query, body, content_type = self._random, [], None, ""
        for parameter in parameters:
            if "$ref" in parameter:
                parameter = self._parameters[parameter["$ref"].rpartition("/")[2]]
            place, name = parameter["in"], parameter["name"]
            if place == "path":
                path = path.replace("{" + name + "}", quote(source.choice(NAMES[:4] if source.random() < 0.8 else NAMES), safe=""))
            elif place == "query" and name != "watch" and source.random() < 0.15:
                query.append((name, source.choice(QUERY_TEXTS)))
            elif place == "body":
                value = self.value(parameter["schema"], 0)
                body = json.dumps(value).encode("utf-8", "replace")
                content_type = self._content_type(operation, method)
                if source.random() < 0.02:
                    body = body[: source.randrange(len(body) + 1)]
        return Request(method=method, path=path, query=urlencode(query), content_type=content_type, body=body)

    def _content_type(self, operation: Document, method: str) -> str:
        offered = [kind for kind in operation.get("consumes", []) if "protobuf" not in kind and "cbor" not in kind]
        if method == "PATCH" and offered and offered != ["*/*"]:
            return str(self._random.choice(offered))
        return "application/json"

    def value(self, schema: Document, depth: int) -> Any:
        source = self._random
        if source.random() < WRONG:
            return source.choice([None, [], {}, "text", 7, True, [None], {"a": None}])
        if "$ref" in schema:
            return self._defined(schema["$ref"].rpartition("/")[2], depth)
        kind = schema.get("type", "object")
        if kind == "string":
            options = schema.get("enum") or ODD_TEXTS
            return source.choice(options) if source.random() < 0.7 else source.choice(ODD_TEXTS)
        if kind == "integer" or kind == "number":
            return source.choice(ODD_NUMBERS[:5]) if source.random() < 0.8 else source.choice(ODD_NUMBERS)
        if kind == "boolean":
            return source.random() < 0.5
        if depth > DEPTH_MAX:
            return [] if kind == "array" else {}
        if kind == "array":
            return [self.value(schema["items"], depth + 1) for _ in range(source.randrange(ITEMS_MAX + 1))]
        return self._object(schema, depth)

    def _defined(self, name: str, depth: int) -> Any:
        schema = self._definitions[name]
        value = self.value(schema, depth + 1)
        if isinstance(value, dict) and depth == 0:
            for kind in schema.get("x-kubernetes-group-version-kind", [])[:1]:
                group = f"{kind['group']}/" if kind["group"] else ""
                value |= {"kind": kind["kind"], "apiVersion": group + kind["version"]}
            if self._random.random() < 0.9:
                value["metadata"] = {"name": self._random.choice(NAMES[:5]), "labels": {"a": "b"}}
        return value

    def _object(self, schema: Document, depth: int) -> Any:
        source, properties = self._random, schema.get("properties")
        if properties is None:
            extra = schema.get("additionalProperties")
            if not isinstance(extra, dict):
                return source.choice([{}, {"a": 1}, {"a": {"b": [1, "2", None]}}])
            return {source.choice(ODD_TEXTS): self.value(extra, depth + 1) for _ in range(source.randrange(ITEMS_MAX))}
        wanted = set(schema.get("required", ())) | set(
            source.sample(sorted(properties), min(len(properties), source.randrange(PROPERTIES_MAX)))
        )
        found = {name: self.value(properties[name], depth + 1) for name in sorted(wanted) if name in properties}
        if source.random() < WRONG:
            found["bogus"] = 1
        return found
