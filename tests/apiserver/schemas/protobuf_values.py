"""Random JSON values for any message of the protobuf table, as valid objects have them."""

from __future__ import annotations

import base64
import random
from typing import Any

from apiserver.schemas.protobuf import special, table
from apiserver.schemas.protobuf.table import Field

_INT64 = (0, 1, -1, 127, 128, 300, -(2**31), 2**31 - 1, 2**53, -(2**63), 2**63 - 1)
_INT32 = (0, 1, -1, 127, 128, 65_535, -(2**31), 2**31 - 1)
_TEXTS = ("", "a", "web-0", "日本", "x" * 130, "a\nb", "\u0000", "é" * 70)
_TIMES = ("2024-01-02T03:04:05Z", "1970-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "0001-01-02T00:00:00Z", "9999-12-31T23:59:59Z")
_MICRO_TIMES = ("2024-01-02T03:04:05.000006Z", "1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:00.000000Z")
_QUANTITIES = ("0", "1", "100m", "1536Mi", "12e6", "-3k")
_RAW: tuple[Any, ...] = ({"a": [1, None, "x"]}, "text", 7, [True], {})

#: Fields beyond which a value has none: recursion ends.
DEPTH_MAX = 4


def value_of(message: str, rng: random.Random, depth: int = 0) -> Any:
    if message == table.META + "Time":
        return rng.choice(_TIMES)
    if message == table.META + "MicroTime":
        return rng.choice(_MICRO_TIMES)
    if message == table.META + "Duration":
        return rng.choice(("0s", "1h30m0s", "-1.5s", "100ms"))
    if message == table.QUANTITY:
        return rng.choice(_QUANTITIES)
    if message == table.INT_OR_STRING:
        return rng.choice((0, 8080, -1, "", "http", "25%"))
    if message in special.RAW_JSON:
        return {"f:metadata": {}} if message.endswith("FieldsV1") else rng.choice(_RAW)
    if message in special.SPREAD:
        schema = message.rpartition(".")[0] + ".JSONSchemaProps"
        if rng.random() < 0.3 and depth < DEPTH_MAX:
            return value_of(schema, rng, depth + 1) or {"type": "string"}
        return rng.random() < 0.5 if message.endswith("OrBool") else []
    if table.is_list_type(message):
        return [rng.choice(_TEXTS) for _ in range(rng.randrange(3))]
    found: dict[str, Any] = {}
    for field in table.fields_of(message):
        if field.inline and field.is_message:
            found.update(value_of(field.type, rng, depth))
        elif rng.random() < (0.5 if depth < 2 else 0.2) and (depth < DEPTH_MAX or not field.is_message):
            found[field.name] = _field_value(field, rng, depth)
    return found


def _field_value(field: Field, rng: random.Random, depth: int) -> Any:
    if field.is_map:
        return {f"{rng.choice(_TEXTS)}{position}": _element(field, rng, depth) for position in range(rng.randrange(1, 4))}
    if field.repeated:
        return [_element(field, rng, depth) for _ in range(rng.randrange(1, 3))]
    return _element(field, rng, depth)


def _element(field: Field, rng: random.Random, depth: int) -> Any:
    if field.is_message:
        return value_of(field.type, rng, depth + 1)
    if field.type == "string":
        return rng.choice(_TEXTS)
    if field.type == "bytes":
        return base64.b64encode(rng.randbytes(rng.randrange(5))).decode()
    if field.type == "bool":
        return rng.random() < 0.5
    if field.type == "double":
        return rng.choice((0.0, 1.5, -2.25, 1e300))
    return rng.choice(_INT32 if field.type == "int32" else _INT64)
