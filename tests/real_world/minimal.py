"""A small object that a schema allows: what is required, with the least value that each constraint lets pass. Pure."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

#: values tried for a pattern, in order; real patterns are of names, versions, times, addresses and numbers
_CANDIDATES = (
    "a",
    "a-b",
    "v1",
    "1",
    "1.2.3",
    "1s",
    "1m",
    "1Mi",
    "a.b",
    "a.example.com",
    "a/b",
    "example.com/a",
    "a.example.com/v1",
    "http://a.example.com",
    "https://a.example.com/x",
    "/a",
    "arn:aws:iam::123456789012:role/a",
    "12345678-1234-1234-1234-123456789012",
    "2026-01-01T00:00:00Z",
    "10.0.0.1",
    "10.0.0.0/8",
    "A",
    "Aa",
    "Aa1",
    "A_B",
    "sha256:" + "a" * 64,
    "a" * 40,
    "a@b.cd",
    "spiffe://a/b",
    "2026-01",
    "00:00",
    "* * * * *",
    "Get",
    "100%",
    "200-299",
    "",
)
_FORMATS = {
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "duration": "1s",
    "byte": "YQ==",
    "ipv4": "10.0.0.1",
    "ipv6": "fd00::1",
    "cidr": "10.0.0.0/8",
    "uri": "http://a.example.com",
    "hostname": "a.example.com",
    "email": "a@example.com",
    "uuid": "12345678-1234-1234-1234-123456789012",
    "mac": "00:00:00:00:00:01",
}


def value(schema: Schema, depth: int = 0) -> Any:
    """Raises ValueError where none is found."""
    if "default" in schema and depth:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("x-kubernetes-int-or-string"):
        return _string(schema) if schema.get("pattern") else 1
    kind = schema.get("type") or ("object" if "properties" in schema else "")
    if kind == "object":
        return _object(schema, depth)
    if kind == "array":
        items = schema.get("items") or {}
        return [value(items, depth + 1) for _ in range(schema.get("minItems", 0))]
    if kind == "string":
        return _string(schema)
    if kind in ("integer", "number"):
        least = schema.get("minimum", min(0, schema.get("maximum", 0)))
        if schema.get("exclusiveMinimum"):
            least += 1
        step = schema.get("multipleOf")
        return least if not step else -(-least // step) * step
    if kind == "boolean":
        return False
    return {}


def _object(schema: Schema, depth: int) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    wanted = list(schema.get("required") or ())
    for choice in ("oneOf", "anyOf"):
        for branch in (schema.get(choice) or ())[:1]:
            wanted += [name for name in branch.get("required") or () if name not in wanted]
    for branch in schema.get("allOf") or ():
        wanted += [name for name in branch.get("required") or () if name not in wanted]
    found = {name: value(properties.get(name) or {}, depth + 1) for name in wanted}
    missing = schema.get("minProperties", 0) - len(found)
    for name in [name for name in properties if name not in found][: max(0, missing)]:
        found[name] = value(properties[name], depth + 1)
    more = schema.get("additionalProperties")
    if len(found) < schema.get("minProperties", 0) and isinstance(more, dict):
        found["a"] = value(more, depth + 1)
    return found


def _string(schema: Schema) -> str:
    import re2

    least, most = schema.get("minLength", 0), schema.get("maxLength", 1 << 30)
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    for candidate in _CANDIDATES if (schema.get("pattern") or least) else ("a",):
        text = candidate if len(candidate) >= least or not candidate else candidate * -(-least // len(candidate))
        if least <= len(text) <= most and (not schema.get("pattern") or re2.search(schema["pattern"], text)):
            return text
    raise ValueError(f"no text found for {schema.get('pattern')!r}, {least} to {most} characters")
