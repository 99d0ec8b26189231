"""``Validator``: one compiled yes-or-no question about an object, "would decoding leave it exactly as it is?".

Yes is the answer for nearly every body and costs some microseconds in native code: no unknown fields, no nulls, no empty optional
lists, maps or strings, none missing of what Go always writes, every value of its type and within its bounds, quantities, times and
base64 already in their canonical form. After a no, ``decoding`` walks the object and finds out what it was; a no may be cautious, a
yes must be true.
"""

from __future__ import annotations

from typing import Any

import jsonschema_rs

from apiserver.machinery.types import Shape, Type
from apiserver.schemas.published import Schema

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

#: integers up to this are each a float64 of their own
FLOAT64_EXACT_MAX = 2**53

#: Quantities that are surely canonical: no larger suffix would do. Of decimal ones those that are no multiple of 1000 (by their last three
#: digits), of binary ones those that are no multiple of 4 (by their last two); and all of at most three digits.
_CANONICAL_QUANTITY = (
    "^(0"
    "|[1-9][0-9]{0,2}(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?"
    "|[1-9][0-9]{0,11}([1-9][0-9][0-9]|[0-9][1-9][0-9]|[0-9][0-9][1-9])(m|k)?"
    "|[1-9][0-9]{0,2}([1-9][0-9][0-9]|[0-9][1-9][0-9]|[0-9][0-9][1-9])(M|G|T)"
    "|[1-9][0-9]{0,6}([0-9][13579]|[02468][26]|[13579][048])(Ki|Mi|Gi)"
    ")$"
)
_MONTH_AND_DAY = "((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
#: RFC 3339 in UTC and whole seconds, as metav1.Time is written (but for leap days)
_CANONICAL_TIME = f"^[0-9]{{4}}-{_MONTH_AND_DAY}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z$"
#: the same with six digits of a second, as metav1.MicroTime is written
_CANONICAL_MICRO_TIME = _CANONICAL_TIME.replace("Z$", "\\.[0-9]{6}Z$")
#: RFC 4648 with padding and with zeros in the bits beyond the last byte
_CANONICAL_BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"

#: the engine without back-tracking: long strings cost linear time
_LINEAR = jsonschema_rs.RegexOptions()

_SCALARS: dict[Shape, Schema] = {
    Shape.STRING: {"type": "string"},
    Shape.BOOLEAN: {"type": "boolean"},
    Shape.NUMBER: {"type": "number", "minimum": -FLOAT64_EXACT_MAX, "maximum": FLOAT64_EXACT_MAX},
    Shape.QUANTITY: {"type": "string", "pattern": _CANONICAL_QUANTITY},
    Shape.TIME: {"type": "string", "pattern": _CANONICAL_TIME},
    Shape.MICRO_TIME: {"type": "string", "pattern": _CANONICAL_MICRO_TIME},
    Shape.INT_OR_STRING: {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": INT32_MIN, "maximum": INT32_MAX}]},
}


class Validator:
    """Of one type. ``accepts`` never raises."""

    __slots__ = ("_compiled",)

    def __init__(self, type_: Type) -> None:
        # draft 4 is the last in which 1.0 is not an integer; Go refuses it for integer fields as well
        self._compiled = jsonschema_rs.Draft4Validator(strict_schema(type_), validate_formats=False, pattern_options=_LINEAR)

    def accepts(self, obj: Any) -> bool:
        try:
            return bool(self._compiled.is_valid(obj))
        except ValueError:  # nested deeper than the native code follows
            return False


def strict_schema(type_: Type) -> Schema:
    """The JSON schema (draft 4) of the values of a type that decoding would not change."""
    definitions: dict[str, Schema] = {}
    root = _schema(type_, definitions)
    return {**root, "definitions": definitions}


def _schema(type_: Type, definitions: dict[str, Schema]) -> Schema:
    if type_.shape is Shape.STRUCT:
        if not type_.definition:
            return _struct(type_, definitions)
        if type_.definition not in definitions:
            definitions[type_.definition] = {}  # stands while the fields, which may refer back here, are made
            definitions[type_.definition] = _struct(type_, definitions)
        return {"$ref": f"#/definitions/{type_.definition}"}
    if type_.shape is Shape.LIST:
        assert type_.element is not None
        return {"type": "array", "items": _schema(type_.element, definitions)}
    if type_.shape is Shape.MAP:
        assert type_.element is not None
        return {"type": "object", "additionalProperties": _schema(type_.element, definitions)}
    if type_.shape is Shape.ANY:
        # of a union with a schema, unknown fields inside have to be looked for
        return {"not": {}} if type_.element is not None else {"not": {"type": "null"}}
    if type_.shape is Shape.INTEGER:
        low, high = (INT32_MIN, INT32_MAX) if type_.format == "int32" else (INT64_MIN, INT64_MAX)
        return {"type": "integer", "minimum": low, "maximum": high}
    if type_.shape is Shape.STRING and type_.format == "byte":
        return {"type": "string", "pattern": _CANONICAL_BASE64}
    return _SCALARS[type_.shape]


def _not_zero(type_: Type, schema: Schema) -> Schema:
    if type_.shape is Shape.STRING:
        return {**schema, "minLength": 1}
    return {**schema, "not": {"enum": [False if type_.shape is Shape.BOOLEAN else 0]}}


def _struct(type_: Type, definitions: dict[str, Schema]) -> Schema:
    properties = {name: _schema(field, definitions) for name, field in type_.fields.items()}
    for name, field in type_.fields.items():
        if field.zero_is_absent:
            properties[name] = _not_zero(field, properties[name])
        # empty optional lists and maps are left out
        if name not in type_.required and field.shape is Shape.LIST:
            properties[name]["minItems"] = 1
        elif name not in type_.required and field.shape is Shape.MAP:
            properties[name]["minProperties"] = 1
    schema: Schema = {"type": "object", "additionalProperties": False, "properties": properties}
    if type_.always_written:
        schema["required"] = list(type_.always_written)
    return schema
