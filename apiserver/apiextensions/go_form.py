"""Versions, schemas and rules of a definition as Kubernetes shows them in messages: its internal Go structs in JSON, every field of them,
by its Go name (apiextensions-apiserver ``pkg/apis/apiextensions/types.go``, ``types_jsonschema.go``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.apiextensions.embedded import sorted_keys
from apiserver.apiextensions.nodes import EMBEDDED, INT_OR_STRING, LIST_MAP_KEYS, LIST_TYPE, MAP_TYPE, PRESERVE, RULES

Part = Mapping[str, Any]

_RULE = (
    ("Rule", "rule", ""),
    ("Message", "message", ""),
    ("MessageExpression", "messageExpression", ""),
    ("Reason", "reason", None),
    ("FieldPath", "fieldPath", ""),
    ("OptionalOldSelf", "optionalOldSelf", None),
)
_COLUMN = (
    ("Name", "name", ""),
    ("Type", "type", ""),
    ("Format", "format", ""),
    ("Description", "description", ""),
    ("Priority", "priority", 0),
    ("JSONPath", "jsonPath", ""),
)
_SCALE = (
    ("SpecReplicasPath", "specReplicasPath", ""),
    ("StatusReplicasPath", "statusReplicasPath", ""),
    ("LabelSelectorPath", "labelSelectorPath", None),
)
_SCHEMA = (
    ("ID", "id", ""),
    ("Schema", "$schema", ""),
    ("Ref", "$ref", None),
    ("Description", "description", ""),
    ("Type", "type", ""),
    ("Nullable", "nullable", False),
    ("Format", "format", ""),
    ("Title", "title", ""),
    ("Default", "default", None),
    ("Maximum", "maximum", None),
    ("ExclusiveMaximum", "exclusiveMaximum", False),
    ("Minimum", "minimum", None),
    ("ExclusiveMinimum", "exclusiveMinimum", False),
    ("MaxLength", "maxLength", None),
    ("MinLength", "minLength", None),
    ("Pattern", "pattern", ""),
    ("MaxItems", "maxItems", None),
    ("MinItems", "minItems", None),
    ("UniqueItems", "uniqueItems", False),
    ("MultipleOf", "multipleOf", None),
    ("Enum", "enum", None),
    ("MaxProperties", "maxProperties", None),
    ("MinProperties", "minProperties", None),
    ("Required", "required", None),
    ("Items", "items", None),
    ("AllOf", "allOf", None),
    ("OneOf", "oneOf", None),
    ("AnyOf", "anyOf", None),
    ("Not", "not", None),
    ("Properties", "properties", None),
    ("AdditionalProperties", "additionalProperties", None),
    ("PatternProperties", "patternProperties", None),
    ("Dependencies", "dependencies", None),
    ("AdditionalItems", "additionalItems", None),
    ("Definitions", "definitions", None),
    ("ExternalDocs", "externalDocs", None),
    ("Example", "example", None),
    ("XPreserveUnknownFields", PRESERVE, None),
    ("XEmbeddedResource", EMBEDDED, False),
    ("XIntOrString", INT_OR_STRING, False),
    ("XListMapKeys", LIST_MAP_KEYS, None),
    ("XListType", LIST_TYPE, None),
    ("XMapType", MAP_TYPE, None),
    ("XValidations", RULES, None),
)


_UNSAID_UNLESS_TRUE = frozenset(name for _, name, zero in _SCHEMA if zero is not None)


def said(schema: Part) -> set[str]:
    """The fields of a schema that are not what Go leaves a field at: empty texts and false are, empty lists and objects are not."""
    return {name for name, value in schema.items() if value is not None and (value or name not in _UNSAID_UNLESS_TRUE)}


def _struct(fields: Sequence[tuple[str, str, Any]], part: Part) -> dict[str, Any]:
    return {go_name: part.get(name, zero) for go_name, name, zero in fields}


def versions(said: Sequence[Part] | None) -> list[dict[str, Any]] | None:
    """Of an internal form, which keeps apart what all versions have alike."""
    return None if said is None else [_version(version) for version in said]


def _version(version: Part) -> dict[str, Any]:
    validation, subresources = version.get("schema"), version.get("subresources")
    columns, selectable = version.get("additionalPrinterColumns"), version.get("selectableFields")
    return {
        "Name": version.get("name") or "",
        "Served": bool(version.get("served")),
        "Storage": bool(version.get("storage")),
        "Deprecated": bool(version.get("deprecated")),
        "DeprecationWarning": version.get("deprecationWarning"),
        "Schema": None if validation is None else {"OpenAPIV3Schema": schema(validation.get("openAPIV3Schema"))},
        "Subresources": None if subresources is None else _subresources(subresources),
        "AdditionalPrinterColumns": None if columns is None else [_struct(_COLUMN, column) for column in columns],
        "SelectableFields": None if selectable is None else [{"JSONPath": one.get("jsonPath") or ""} for one in selectable],
    }


def _subresources(said: Part) -> dict[str, Any]:
    scale = said.get("scale")
    return {"Status": said.get("status"), "Scale": None if scale is None else _struct(_SCALE, scale)}


def rule(said: Part) -> dict[str, Any]:
    return _struct(_RULE, said)


def schema(said: Part | None) -> dict[str, Any] | None:
    if said is None:
        return None
    out = _struct(_SCHEMA, said)
    for name in ("AllOf", "OneOf", "AnyOf"):
        out[name] = None if out[name] is None else [schema(sub) for sub in out[name]]
    for name in ("Properties", "PatternProperties", "Definitions"):
        out[name] = None if out[name] is None else {key: schema(out[name][key]) for key in sorted(out[name])}
    out["Not"] = schema(out["Not"])
    out["Items"] = items(out["Items"])
    for name in ("AdditionalProperties", "AdditionalItems"):
        if out[name] is not None:
            is_schema = isinstance(out[name], dict)
            out[name] = {"Allows": is_schema or bool(out[name]), "Schema": schema(out[name]) if is_schema else None}
    if out["Dependencies"] is not None:
        out["Dependencies"] = {key: _dependency(out["Dependencies"][key]) for key in sorted(out["Dependencies"])}
    if out["ExternalDocs"] is not None:
        docs = out["ExternalDocs"]
        out["ExternalDocs"] = {"Description": docs.get("description") or "", "URL": docs.get("url") or ""}
    for name in ("Default", "Example", "Enum"):
        out[name] = sorted_keys(out[name])
    if out["XValidations"] is not None:
        out["XValidations"] = [rule(one) for one in out["XValidations"]]
    return out


def items(said: Any) -> dict[str, Any] | None:
    if said is None:
        return None
    if isinstance(said, list):
        return {"Schema": None, "JSONSchemas": [schema(sub) for sub in said]}
    if said == ():  # neither a schema nor a list of them
        return {"Schema": None, "JSONSchemas": None}
    return {"Schema": schema(said), "JSONSchemas": None}


def _dependency(said: Any) -> dict[str, Any]:
    if isinstance(said, dict):
        return {"Schema": schema(said), "Property": None}
    return {"Schema": None, "Property": said}
