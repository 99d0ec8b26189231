"""The protobuf form of a Swagger 2.0 document (gnostic ``openapiv2/OpenAPIv2.proto``), in which kubectl asks for ``/openapi/v2``.

One table says for each message which JSON field goes under which number and how; the encoder walks a document along it. Fields that
the table does not know do not occur in the documents of ``swagger2``, except extensions (``x-…``), which every message that may
have them keeps as YAML texts (JSON is YAML).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeAlias

import orjson

#: JSON field → field number and kind of value: ``string``, ``strings``, ``bool``, ``int``, ``double``, ``any``, ``anys``, or the name of a
#: message (``Schema`` one of it, ``Schema*`` a list of them)
_Fields: TypeAlias = dict[str, tuple[int, str]]

_MESSAGES: dict[str, _Fields] = {
    "Document": {
        "swagger": (1, "string"),
        "info": (2, "Info"),
        "paths": (8, "Paths"),
        "definitions": (9, "Schemas"),
        "parameters": (10, "Parameters"),
        "security": (12, "SecurityRequirement*"),
        "securityDefinitions": (13, "SecurityDefinitions"),
    },
    "Info": {"title": (1, "string"), "version": (2, "string")},
    "PathItem": {
        "get": (2, "Operation"),
        "put": (3, "Operation"),
        "post": (4, "Operation"),
        "delete": (5, "Operation"),
        "options": (6, "Operation"),
        "head": (7, "Operation"),
        "patch": (8, "Operation"),
        "parameters": (9, "ParametersItem*"),
    },
    "Operation": {
        "tags": (1, "strings"),
        "description": (3, "string"),
        "operationId": (5, "string"),
        "produces": (6, "strings"),
        "consumes": (7, "strings"),
        "parameters": (8, "ParametersItem*"),
        "responses": (9, "Responses"),
        "schemes": (10, "strings"),
    },
    "BodyParameter": {
        "description": (1, "string"),
        "name": (2, "string"),
        "in": (3, "string"),
        "required": (4, "bool"),
        "schema": (5, "Schema"),
    },
    "QueryParameter": {
        "required": (1, "bool"),
        "in": (2, "string"),
        "description": (3, "string"),
        "name": (4, "string"),
        "type": (6, "string"),
        "uniqueItems": (20, "bool"),
    },
    "PathParameter": {
        "required": (1, "bool"),
        "in": (2, "string"),
        "description": (3, "string"),
        "name": (4, "string"),
        "type": (5, "string"),
        "uniqueItems": (19, "bool"),
    },
    "JsonReference": {"$ref": (1, "string")},
    "Response": {"description": (1, "string"), "schema": (2, "SchemaItem")},
    "Schema": {
        "$ref": (1, "string"),
        "format": (2, "string"),
        "title": (3, "string"),
        "description": (4, "string"),
        "default": (5, "any"),
        "multipleOf": (6, "double"),
        "maximum": (7, "double"),
        "exclusiveMaximum": (8, "bool"),
        "minimum": (9, "double"),
        "exclusiveMinimum": (10, "bool"),
        "maxLength": (11, "int"),
        "minLength": (12, "int"),
        "pattern": (13, "string"),
        "maxItems": (14, "int"),
        "minItems": (15, "int"),
        "uniqueItems": (16, "bool"),
        "maxProperties": (17, "int"),
        "minProperties": (18, "int"),
        "required": (19, "strings"),
        "enum": (20, "anys"),
        "additionalProperties": (21, "AdditionalProperties"),
        "type": (22, "Type"),
        "items": (23, "Items"),
        "allOf": (24, "Schema*"),
        "properties": (25, "Schemas"),
        "example": (30, "any"),
    },
    "ApiKeySecurity": {"type": (1, "string"), "name": (2, "string"), "in": (3, "string"), "description": (4, "string")},
}
#: where a message keeps its extensions
_EXTENSIONS = {"Operation": 13, "Schema": 31, "PathItem": 10, "Document": 16}

_VARINT, _FIXED64, _BYTES = 0, 1, 2


def encode(document: dict[str, Any]) -> bytes:
    """The document as a serialized ``openapi.v2.Document``."""
    return _message("Document", document)


def _varint(value: int) -> bytes:
    # negative numbers are written as if of 64 bits
    value &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _bytes(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(data)) + data


def _string(number: int, text: Any) -> bytes:
    return _bytes(number, str(text).encode("utf-8", "replace"))


def _any(value: Any) -> bytes:
    """An ``Any`` holds YAML text."""
    return _bytes(2, orjson.dumps(value) + b"\n")


def _named(name: str, data: bytes) -> bytes:
    return _string(1, name) + _bytes(2, data)


def _message(kind: str, value: dict[str, Any]) -> bytes:
    fields = _MESSAGES[kind]
    extensions = _EXTENSIONS.get(kind)
    parts: list[bytes] = []
    for key, item in value.items():
        known = fields.get(key)
        if known is not None:
            parts.append(_field(known[0], known[1], item))
        elif extensions is not None and key.startswith("x-"):
            parts.append(_bytes(extensions, _named(key, _any(item))))
    return b"".join(parts)


def _field(number: int, kind: str, value: Any) -> bytes:
    if kind == "string":
        return _string(number, value)
    if kind == "strings":
        return b"".join(_string(number, item) for item in value)
    if kind == "bool":
        return _varint(number << 3 | _VARINT) + _varint(int(bool(value)))
    if kind == "int":
        return _varint(number << 3 | _VARINT) + _varint(int(value))
    if kind == "double":
        return _varint(number << 3 | _FIXED64) + struct.pack("<d", value)
    if kind == "any":
        return _bytes(number, _any(value))
    if kind == "anys":
        return b"".join(_bytes(number, _any(item)) for item in value)
    if kind.endswith("*"):
        return b"".join(_bytes(number, _encode(kind[:-1], item)) for item in value)
    return _bytes(number, _encode(kind, value))


def _encode(kind: str, value: Any) -> bytes:
    special = _SPECIAL.get(kind)
    return special(value) if special is not None else _message(kind, value)


def _map(number: int, kind: str) -> Callable[[dict[str, Any]], bytes]:
    """A message whose only field is a list of named ones."""

    def encoded(value: dict[str, Any]) -> bytes:
        return b"".join(_bytes(number, _named(name, _encode(kind, item))) for name, item in value.items())

    return encoded


def _parameters_item(value: dict[str, Any]) -> bytes:
    return _bytes(2, _message("JsonReference", value)) if "$ref" in value else _bytes(1, _parameter(value))


def _parameter(value: dict[str, Any]) -> bytes:
    where = value["in"]
    if where == "body":
        return _bytes(1, _message("BodyParameter", value))
    number, kind = (3, "QueryParameter") if where == "query" else (4, "PathParameter")
    return _bytes(2, _bytes(number, _message(kind, value)))


def _additional_properties(value: Any) -> bytes:
    if isinstance(value, bool):
        return _varint(2 << 3 | _VARINT) + _varint(int(value))
    return _bytes(1, _message("Schema", value))


def _type(value: Any) -> bytes:
    return b"".join(_string(1, item) for item in (value if isinstance(value, list) else [value]))


def _items(value: Any) -> bytes:
    return b"".join(_bytes(1, _message("Schema", item)) for item in (value if isinstance(value, list) else [value]))


def _security_requirement(value: dict[str, list[str]]) -> bytes:
    return b"".join(_bytes(1, _named(name, b"".join(_string(1, scope) for scope in scopes))) for name, scopes in value.items())


_SPECIAL: dict[str, Callable[[Any], bytes]] = {
    "Paths": _map(2, "PathItem"),
    "Schemas": _map(1, "Schema"),
    "Parameters": _map(1, "Parameter"),
    "Parameter": _parameter,
    "ParametersItem": _parameters_item,
    "Responses": _map(1, "ResponseValue"),
    "ResponseValue": lambda value: _bytes(1, _message("Response", value)),
    "SchemaItem": lambda value: _bytes(1, _message("Schema", value)),
    "AdditionalProperties": _additional_properties,
    "Type": _type,
    "Items": _items,
    "SecurityRequirement": _security_requirement,
    "SecurityDefinitions": _map(1, "SecurityDefinition"),
    "SecurityDefinition": lambda value: _bytes(2, _message("ApiKeySecurity", value)),
}
