"""Definitions of custom resources (apiextensions-apiserver ``controller/openapi/builder``).

The schema of the served version is the one of ``ResourceInfo.custom``; a resource without one takes any object.
"""

from __future__ import annotations

from typing import Any

from apiserver.resources.resource_info import ResourceInfo
from apiserver.schemas.openapi.definitions import META, Dialect
from apiserver.schemas.published import GVK, Schema

SCHEMA_KEY = "openapi_v3_schema"

_API_VERSION_DESCRIPTION = (
    "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest "
    "internal value, and may reject unrecognized values. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources"
)
_KIND_DESCRIPTION = (
    "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client "
    "submits requests to. Cannot be updated. In CamelCase. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds"
)
_METADATA_DESCRIPTION = (
    "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)
_LIST_METADATA_DESCRIPTION = (
    "Standard list metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds"
)
_COMBINATIONS = ("allOf", "anyOf", "oneOf", "not")
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"
_SELECTABLE = "x-kubernetes-selectable-fields"


def schema_of(info: ResourceInfo) -> Any:
    """The schema as the definition has it, or None."""
    return info.extra.get(SCHEMA_KEY) if info.custom is None else info.custom.openapi_v3_schema()


def mark_of(info: ResourceInfo) -> Any:
    """What changes with the schema, and costs less than it."""
    return info.extra.get(SCHEMA_KEY) if info.custom is None else info.custom.mark


def definition_name(info: ResourceInfo, kind: str = "") -> str:
    """``com.example.v1.Widget``; of a built-in resource the name in the published schemas."""
    if info.builtin:
        return info.schema.rpartition(".")[0] + "." + (kind or info.kind)
    return ".".join([*reversed(info.group.split(".")), info.version, kind or info.kind])


def definitions(info: ResourceInfo, dialect: Dialect) -> dict[str, Schema]:
    """The definitions of the kind and of its list."""
    name = definition_name(info)
    found = {name: _kind(info, dialect)}
    if info.list_kind:
        found[definition_name(info, info.list_kind)] = _list(info, name, dialect)
    if info.custom is not None and info.custom.selectable_paths:
        for schema in found.values():
            schema[_SELECTABLE] = [{"fieldPath": path.removeprefix(".")} for path in info.custom.selectable_paths]
    return found


def _kind(info: ResourceInfo, dialect: Dialect) -> Schema:
    schema = schema_of(info)
    if not isinstance(schema, dict) or (dialect is Dialect.SWAGGER_2 and schema.get(_PRESERVE)):
        # kubectl would complain of every field beyond those that are listed, so none is
        out: Schema = {"type": "object"}
    else:
        out = _swagger(schema) if dialect is Dialect.SWAGGER_2 else _openapi(schema)
        out["properties"] = {
            **out.get("properties", {}),
            **_type_meta(),
            "metadata": _metadata("ObjectMeta", _METADATA_DESCRIPTION, dialect),
        }
    out[GVK] = [{"group": info.group, "kind": info.kind, "version": info.version}]
    return out


def _list(info: ResourceInfo, name: str, dialect: Dialect) -> Schema:
    return {
        "description": f"{info.list_kind} is a list of {info.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            **_type_meta(),
            "items": {
                "description": f"List of {info.resource}. More info: "
                "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md",
                "type": "array",
                "items": {"$ref": dialect.value + name},
            },
            "metadata": _metadata("ListMeta", _LIST_METADATA_DESCRIPTION, dialect),
        },
        GVK: [{"group": info.group, "kind": info.list_kind, "version": info.version}],
    }


def _type_meta() -> Schema:
    return {
        "apiVersion": {"description": _API_VERSION_DESCRIPTION, "type": "string"},
        "kind": {"description": _KIND_DESCRIPTION, "type": "string"},
    }


def _metadata(type_: str, description: str, dialect: Dialect) -> Schema:
    reference = {"$ref": dialect.value + META + type_}
    if dialect is Dialect.SWAGGER_2:
        return {"description": description, **reference}
    return {"description": description, "allOf": [reference]}


def _openapi(schema: Schema) -> Schema:
    out = _mapped(schema, _openapi)
    if out.get(_INT_OR_STRING) and not any(key in out for key in ("type", *_COMBINATIONS)):
        out["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if out.get(_EMBEDDED):
        _embed(out, Dialect.OPENAPI_3)
    return out


def _swagger(schema: Schema) -> Schema:
    """Without what version 2 has no words for, or what clients that read it stumble over."""
    out = _mapped({key: value for key, value in schema.items() if key not in (*_COMBINATIONS, "default")}, _swagger)
    # those clients take a type, properties or items for the whole truth
    if out.pop("nullable", False) or out.get(_PRESERVE):
        for key in ("type", "properties", "items", "additionalProperties", "required"):
            out.pop(key, None)
    elif out.get(_EMBEDDED):
        _embed(out, Dialect.SWAGGER_2)
    return out


def _embed(out: Schema, dialect: Dialect) -> None:
    metadata = _metadata("ObjectMeta", _METADATA_DESCRIPTION, dialect)
    out["properties"] = {**out.get("properties", {}), **_type_meta(), "metadata": metadata}
    out["required"] = list(dict.fromkeys([*out.get("required", []), "kind", "apiVersion"]))


def _mapped(schema: Schema, convert: Any) -> Schema:
    """The schema with ``convert`` applied to the schemas of fields and elements."""
    out: Schema = {}
    for key, value in schema.items():
        if key == "properties":
            out[key] = {name: convert(sub) for name, sub in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            out[key] = convert(value)
        else:
            out[key] = value
    return out
