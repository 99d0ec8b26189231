"""Types of custom resources for tests: from an openAPIV3Schema, as far as these tests need it."""

from __future__ import annotations

from typing import Any

from apiserver.machinery.types import ListType, Shape, Type

_SHAPES = {"string": Shape.STRING, "integer": Shape.INTEGER, "number": Shape.NUMBER, "boolean": Shape.BOOLEAN}


def of_schema(schema: dict[str, Any]) -> Type:
    kind = schema.get("type")
    if kind == "object":
        made = Type(shape=Shape.STRUCT, preserve_unknown=bool(schema.get("x-kubernetes-preserve-unknown-fields")))
        if "additionalProperties" in schema:
            made = Type(shape=Shape.MAP, element=of_schema(schema["additionalProperties"]))
        made.map_is_atomic = schema.get("x-kubernetes-map-type") == "atomic"
        for name, sub in schema.get("properties", {}).items():
            made.fields[name] = of_schema(sub)
        return made
    if kind == "array":
        made = Type(shape=Shape.LIST, element=of_schema(schema["items"]))
        made.list_type = ListType(schema.get("x-kubernetes-list-type", "atomic"))
        made.list_map_keys = tuple(schema.get("x-kubernetes-list-map-keys", ()))
        return made
    if kind is None:
        return Type(shape=Shape.ANY, preserve_unknown=True)
    made = Type(shape=_SHAPES[kind])
    if "default" in schema:
        made.default, made.has_default = schema["default"], True
    return made


def of_custom_resource(schema: dict[str, Any], object_meta: Type) -> Type:
    made = of_schema(schema)
    made.fields["apiVersion"] = Type(shape=Shape.STRING)
    made.fields["kind"] = Type(shape=Shape.STRING)
    made.fields["metadata"] = object_meta
    return made
