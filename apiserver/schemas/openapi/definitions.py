"""Published JSON schemas back to OpenAPI definitions: unions with null undone, references moved, pinned kinds freed."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Any

from apiserver.schemas.known_defaults import KNOWN_DEFAULTS
from apiserver.schemas.published import GVK, REFERENCE_PREFIX, Schema, json_type

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"

_QUANTITY_DESCRIPTION = (
    "Quantity is a fixed-point representation of a number, written with a suffix: a power of ten (n, u, m, k, M, G, T, P, E), a power of "
    'two (Ki, Mi, Gi, Ti, Pi, Ei) or a decimal exponent (e3, E3). Examples: "100m", "1.5", "64Mi", "1e3".'
)
_INT_OR_STRING_DESCRIPTION = "IntOrString is a type that can hold an int32 or a string."


class Dialect(enum.Enum):
    """The value is where references point."""

    SWAGGER_2 = "#/definitions/"
    OPENAPI_3 = "#/components/schemas/"


def definition(name: str, schema: Schema, dialect: Dialect) -> Schema:
    """One definition as Kubernetes publishes it in a dialect."""
    swagger = dialect is Dialect.SWAGGER_2
    if name == _QUANTITY:
        shape: Schema = {"type": "string"} if swagger else {"oneOf": [{"type": "string"}, {"type": "number"}]}
        return {"description": _QUANTITY_DESCRIPTION, **shape}
    if name == _INT_OR_STRING:
        shape = {"type": "string"} if swagger else {"oneOf": [{"type": "integer"}, {"type": "string"}]}
        return {"description": _INT_OR_STRING_DESCRIPTION, "format": "int-or-string", **shape}
    converted = _schema(schema, dialect)
    properties = converted.get("properties", {})
    if GVK in schema:
        for field in ("apiVersion", "kind"):
            if field in properties:
                properties[field].pop("enum", None)
    if not swagger:
        for (owner, field), default in KNOWN_DEFAULTS.items():
            if owner == name and field in properties:
                properties[field]["default"] = default
    return converted


def reachable(definitions: Mapping[str, Schema], names: Iterable[str]) -> list[str]:
    """The names and all that they refer to, sorted; names that no definition has are left out."""
    found: set[str] = set()
    waiting = [name for name in names if name in definitions]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        _collect_references(definitions[name], waiting)
    return sorted(found)


def _collect_references(schema: Any, into: list[str]) -> None:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref" and isinstance(value, str):
                into.append(value.removeprefix(REFERENCE_PREFIX))
            elif isinstance(value, (dict, list)):
                _collect_references(value, into)
    elif isinstance(schema, list):
        for entry in schema:
            _collect_references(entry, into)


def _schema(schema: Schema, dialect: Dialect) -> Schema:
    out: Schema = {}
    for key, value in schema.items():
        if key == "$ref":
            target = dialect.value + value.removeprefix(REFERENCE_PREFIX)
            if dialect is Dialect.OPENAPI_3 and len(schema) > 1:
                # in this dialect nothing may stand beside a reference
                out["allOf"] = [{"$ref": target}]
            else:
                out["$ref"] = target
        elif key == "type":
            out["type"] = json_type(schema)
        elif key == "properties":
            out["properties"] = {name: _schema(sub, dialect) for name, sub in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            out[key] = _schema(value, dialect)
        else:
            out[key] = value
    return out
