"""Texts that schemas have (patterns, formats), great schemas, and ways to ask: queries, media types, bodies that are no definition."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.crd_definitions.bodies import changed, definition, of_field, of_root
from tests.crd_definitions.exchange import Case, create

V = "spec.versions.0"
PATTERNS: list[str] = json.loads((Path(__file__).parent / "patterns.json").read_text())


def text_cases() -> Iterator[Case]:
    for name, body in _texts():
        yield Case(name=name, steps=(create(body),))
    yield from _requests()


def _texts() -> Iterator[tuple[str, Any]]:
    for number, pattern in enumerate(PATTERNS):
        yield f"pattern-text-{number}", of_field({"type": "string", "pattern": pattern})
        yield f"pattern-text-{number}-nested", of_field({"type": "string", "anyOf": [{"pattern": pattern}]})
    formats = [
        "bsonobjectid",
        "uri",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "cidr",
        "mac",
        "uuid",
        "uuid3",
        "uuid4",
        "uuid5",
        "isbn",
        "isbn10",
        "isbn13",
        "creditcard",
        "ssn",
        "hexcolor",
        "rgbcolor",
        "byte",
        "password",
        "date",
        "duration",
        "datetime",
        "date-time",
        "int32",
        "int64",
        "float",
        "double",
        "k8s-short-name",
        "k8s-long-name",
        "regex",
        "uint32",
        "Date",
        "DATE-TIME",
        "color",
        "time",
        "json-pointer",
    ]
    for name in formats:
        for type_ in ("string", "integer", "number", "object"):
            yield f"format-{name}-{type_}", of_field({"type": type_, "format": name})
        for number, default in enumerate(
            ("x", "2020-01-01", 1, "1.2.3.4", "a@b.c", "00000000-0000-4000-8000-000000000000", "2020-01-01T00:00:00Z", "1h", "YQ==")
        ):
            if isinstance(default, int):
                yield f"format-{name}-default-{number}", of_field({"type": "integer", "format": name, "default": default})
            else:
                yield f"format-{name}-default-{number}", of_field({"type": "string", "format": name, "default": default})
    deep: dict[str, Any] = {"type": "string"}
    for depth in range(1, 120):
        deep = {"type": "object", "properties": {"p": deep}}
        if depth in (20, 60, 119):
            yield f"depth-{depth}", of_root(deep)
            yield f"depth-of-items-{depth}", of_field(_nested_lists(depth))
    yield "many-fields", of_root({"type": "object", "properties": {f"field{n}": {"type": "string", "maxLength": n} for n in range(400)}})


def _nested_lists(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return schema


def _requests() -> Iterator[Case]:
    """Ways to say it: queries, bodies that are no definition, duplicate and unknown fields by fieldValidation."""
    good = definition()
    unknown = changed(
        good, {"spec.unknown": 1, f"{V}.schema.openAPIV3Schema.foo": 1, f"{V}.schema.openAPIV3Schema.properties.spec.Type": "x"}
    )
    text = json.dumps(good)
    twice = text.replace('"scope": "Namespaced"', '"scope": "Namespaced", "scope": "Cluster"').encode()
    inner = text.replace('"type": "object"', '"type": "object", "type": "object"').encode()
    for validation in ("", "Strict", "Warn", "Ignore", "Other", "strict"):
        query = f"dryRun=All&fieldValidation={validation}"
        for name, body in (("unknown", unknown), ("twice", twice), ("inner", inner), ("bad", changed(unknown, {"spec.scope": "x"}))):
            yield Case(name=f"request-{name}-{validation or 'none'}", steps=(create(body, query=query),))
    yield Case(name="request-dryRun-other", steps=(create(good, query="dryRun=Some"),))
    yield Case(name="request-dryRun-twice", steps=(create(good, query="dryRun=All&dryRun=All"),))
    yield Case(name="request-manager", steps=(create(good, query="dryRun=All&fieldManager=me"),))
    yield Case(name="request-manager-long", steps=(create(good, query="dryRun=All&fieldManager=" + "m" * 129),))
    bodies: list[bytes] = [
        b"",
        b"{",
        b"[]",
        b"null",
        b"1",
        b'"x"',
        b"{}",
        b'{"kind": "CustomResourceDefinition"}',
        text.encode() + b"x",
        text.encode() + text.encode(),
    ]
    for number, raw in enumerate(bodies):
        yield Case(name=f"request-body-{number}", steps=(create(raw),))
    yaml = b"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: w.x.y}\nspec: {scope: x}\n"
    yield Case(name="request-yaml", steps=(create(yaml, content_type="application/yaml"),))
    yield Case(name="request-text", steps=(create(text.encode(), content_type="text/plain"),))
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    yield Case(name="request-table", steps=(create(good, accept=table),))
    partial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    yield Case(name="request-partial", steps=(create(good, accept=partial),))
