"""The schema and the object that expressions are asked about, in the server's words and in ours."""

from __future__ import annotations

from typing import Any

from apiserver import cel

_UNBOUNDED_TEXT = 3 * 1024 * 1024 - 2  # the longest string that a request can hold


def _object(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **more}


SCHEMA: dict[str, Any] = _object(
    {
        "i": {"type": "integer"},
        "j": {"type": "integer"},
        "d": {"type": "number"},
        "s": {"type": "string", "maxLength": 20},
        "long": {"type": "string", "maxLength": 50},
        "b": {"type": "boolean"},
        "t": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "dur": {"type": "string", "format": "duration"},
        "raw": {"type": "string", "format": "byte", "maxLength": 16},
        "ios": {"x-kubernetes-int-or-string": True},
        "li": {"type": "array", "maxItems": 10, "items": {"type": "integer"}},
        "ls": {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 10}},
        "lo": {
            "type": "array",
            "maxItems": 5,
            "items": _object({"n": {"type": "integer"}, "s": {"type": "string", "maxLength": 10}}),
        },
        "set": {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "set", "items": {"type": "string", "maxLength": 10}},
        "lm": {
            "type": "array",
            "maxItems": 5,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": _object({"k": {"type": "string", "maxLength": 10}, "v": {"type": "integer"}}, required=["k"]),
        },
        "m": {"type": "object", "maxProperties": 10, "additionalProperties": {"type": "string", "maxLength": 10}},
        "mi": {"type": "object", "maxProperties": 10, "additionalProperties": {"type": "integer"}},
        "o": _object({"p": {"type": "integer"}, "q": {"type": "string", "maxLength": 10}, "t": {"type": "string", "format": "date-time"}}),
        "nul": {"type": "string", "nullable": True, "maxLength": 10},
        "namespace": {"type": "string", "maxLength": 10},
        "dash-prop": {"type": "string", "maxLength": 10},
        "absent": {"type": "string", "maxLength": 10},
    }
)

OBJECT: dict[str, Any] = {
    "i": 7,
    "j": -3,
    "d": 2,
    "s": "héllo wörld",
    "long": "a,b,c",
    "b": True,
    "t": "2024-02-29T12:34:56.789Z",
    "day": "2024-03-01",
    "dur": "1h30m",
    "raw": "aGVsbG8=",
    "ios": "50%",
    "li": [3, 1, 2],
    "ls": ["b", "a", "c"],
    "lo": [{"n": 1, "s": "one"}, {"n": 2}],
    "set": ["x", "y"],
    "lm": [{"k": "a", "v": 1}, {"k": "b", "v": 2}],
    "m": {"k1": "v1", "k2": "v2"},
    "mi": {"one": 1},
    "o": {"p": 5, "q": "Q", "t": "2024-01-01T00:00:00Z"},
    "nul": None,
    "namespace": "ns",
    "dash-prop": "dash",
}


def type_of(schema: dict[str, Any], name: str) -> cel.Type:
    """The CEL type of a schema, with the greatest sizes it allows. Only what this world uses."""
    if schema.get("x-kubernetes-int-or-string"):
        return cel.DYN.sized(_UNBOUNDED_TEXT)
    kind = schema["type"]
    if kind == "object":
        if "additionalProperties" in schema:
            return cel.map_of(cel.STRING, type_of(schema["additionalProperties"], f"{name}.@values")).sized(schema["maxProperties"])
        fields = {}
        for key, part in schema["properties"].items():
            escaped = cel.escape(key)
            assert escaped is not None
            fields[escaped] = type_of(part, f"{name}.{key}")
        return cel.ObjectType(name, fields)
    if kind == "array":
        keys = tuple(schema.get("x-kubernetes-list-map-keys", ()))
        element = type_of(schema["items"], f"{name}.@idx")
        return cel.list_of(element, list_type=schema.get("x-kubernetes-list-type"), keys=keys).sized(schema["maxItems"])
    if kind != "string":
        return {"integer": cel.INT, "number": cel.DOUBLE, "boolean": cel.BOOL}[kind]
    format_ = schema.get("format")
    if format_ in ("date-time", "duration"):
        return (cel.TIMESTAMP if format_ == "date-time" else cel.DURATION).sized(32)
    if format_ == "date":
        return cel.TIMESTAMP.sized(12)
    if format_ == "byte":
        return cel.BYTES.sized(schema["maxLength"])
    return cel.STRING.sized(schema["maxLength"] * 4 if "maxLength" in schema else _UNBOUNDED_TEXT)


SELF = type_of(SCHEMA, "Spec")
ENVIRONMENT = cel.Environment({"self": SELF})
