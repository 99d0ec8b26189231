"""From published definitions to ``machinery.types.Type``.

Types of one definition share their ``fields``; a field that refers to a definition gets a ``Type`` of its own, since what a patch
does with it (strategy, list type) is said at the field. Recursion (JSONSchemaProps) closes over the shared ``fields``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from apiserver.machinery.types import ListType, Shape, Type
from apiserver.schemas.always_written import always_written
from apiserver.schemas.known_defaults import KNOWN_DEFAULTS
from apiserver.schemas.omitted_zeros import OMITTED_ZEROS
from apiserver.schemas.published import GVK, Schema, json_type, reference, short_name

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."

#: definitions whose JSON is not what their Go type would suggest
_SPECIAL_SHAPES: dict[str, Shape] = {
    _META + "Time": Shape.TIME,
    _META + "MicroTime": Shape.MICRO_TIME,
    _META + "FieldsV1": Shape.ANY,
    "io.k8s.apimachinery.pkg.api.resource.Quantity": Shape.QUANTITY,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": Shape.INT_OR_STRING,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": Shape.ANY,
    _CRD + "JSON": Shape.ANY,
    _CRD + "JSONSchemaPropsOrArray": Shape.ANY,
    _CRD + "JSONSchemaPropsOrBool": Shape.ANY,
    _CRD + "JSONSchemaPropsOrStringArray": Shape.ANY,
}
#: unions of a schema with something else: the element says what the schema is
_SCHEMA_UNIONS = (_CRD + "JSONSchemaPropsOrArray", _CRD + "JSONSchemaPropsOrBool", _CRD + "JSONSchemaPropsOrStringArray")

_TYPE_META = ("apiVersion", "kind")
_SCALAR_SHAPES = {"string": Shape.STRING, "integer": Shape.INTEGER, "number": Shape.NUMBER, "boolean": Shape.BOOLEAN}


class TypeBuilder:
    """Builds each definition's type once, on demand, with everything it refers to."""

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions
        self._built: dict[str, Type] = {}

    def definition(self, name: str) -> Type:
        """Raises KeyError for a name that no definition has."""
        built = self._built.get(name)
        if built is not None:
            return built
        schema = self._definitions[name]
        shape = _SPECIAL_SHAPES.get(name)
        go_name = name.rpartition(".")[2]
        if shape is None and json_type(schema) != "object":
            built = self._plain(schema)
            built.definition, built.go_name = name, go_name
            self._built[name] = built
            return built
        built = Type(
            shape=shape or Shape.STRUCT,
            definition=name,
            go_name=go_name,
            description=schema.get("description", ""),
            format=schema.get("format", ""),
            required=tuple(schema.get("required", ())),
            map_is_atomic=schema.get("x-kubernetes-map-type") == "atomic",
            preserve_unknown=shape is Shape.ANY,
        )
        # known before its fields are, so that a definition may contain itself
        self._built[name] = built
        if name in _SCHEMA_UNIONS:
            built.element = self.definition(_CRD + "JSONSchemaProps")
        omitted = OMITTED_ZEROS.get(short_name(name), "").split()
        for field_name, field_schema in schema.get("properties", {}).items():
            field = self._field(field_schema)
            field.zero_is_absent = field_name in omitted
            if field_name in _TYPE_META and GVK in schema:
                field.enum = ()  # pinned by the package that publishes the schemas, not by Kubernetes
            if (name, field_name) in KNOWN_DEFAULTS:
                field.default, field.has_default = KNOWN_DEFAULTS[(name, field_name)], True
            built.fields[field_name] = field
        built.always_written = always_written(name, short_name(name), built)
        return built

    def _field(self, schema: Schema) -> Type:
        """A type that belongs to this use alone."""
        target = reference(schema)
        if target:
            shared = self.definition(target)
            field = dataclasses.replace(shared, description=schema.get("description", "") or shared.description)
            if shared.shape is Shape.STRUCT:
                field.fields = shared.fields
        else:
            field = self._plain(schema)
        self._apply_extensions(field, schema)
        return field

    def _plain(self, schema: Schema) -> Type:
        kind = json_type(schema)
        common = {"description": schema.get("description", ""), "format": schema.get("format", ""), "enum": tuple(schema.get("enum", ()))}
        if kind == "array":
            return Type(shape=Shape.LIST, element=self._element(schema.get("items", {})), **common)
        if kind == "object":
            if "properties" in schema:
                fields = {name: self._field(sub) for name, sub in schema["properties"].items()}
                return Type(shape=Shape.STRUCT, fields=fields, required=tuple(schema.get("required", ())), **common)
            return Type(shape=Shape.MAP, element=self._element(schema.get("additionalProperties", {})), **common)
        shape = _SCALAR_SHAPES.get(kind)
        if shape is None:
            return Type(shape=Shape.ANY, preserve_unknown=True, **common)
        return Type(shape=shape, **common)

    def _element(self, schema: object) -> Type:
        if not isinstance(schema, dict):
            return Type(shape=Shape.ANY, preserve_unknown=True)
        target = reference(schema)
        return self.definition(target) if target else self._field(schema)

    @staticmethod
    def _apply_extensions(field: Type, schema: Schema) -> None:
        strategies = schema.get("x-kubernetes-patch-strategy", "")
        field.patch_strategies = tuple(strategies.split(",")) if strategies else ()
        field.patch_merge_key = schema.get("x-kubernetes-patch-merge-key", "")
        if "x-kubernetes-map-type" in schema:
            field.map_is_atomic = schema["x-kubernetes-map-type"] == "atomic"
        if field.shape is Shape.LIST:
            field.list_type, field.list_map_keys = _list_type(schema, field)


def _list_type(schema: Schema, field: Type) -> tuple[ListType, tuple[str, ...]]:
    """How apply merges the list: what ``x-kubernetes-list-type`` says, else what strategic merge would do (kube-openapi
    ``schemaconv``: a merge key makes it a map, merge alone a set)."""
    said = schema.get("x-kubernetes-list-type")
    if said == "map":
        return ListType.MAP, tuple(schema.get("x-kubernetes-list-map-keys", ()))
    if said == "set":
        return ListType.SET, ()
    if said is None and "merge" in field.patch_strategies:
        return (ListType.MAP, (field.patch_merge_key,)) if field.patch_merge_key else (ListType.SET, ())
    return ListType.ATOMIC, ()
