"""A field that is a schema or something else (``items`` of a definition) keeps what the schema's own type has."""

from __future__ import annotations

from apiserver.schemas import pruning
from apiserver.schemas.schema_set import SchemaSet


def test_schemas_in_a_definition_keep_their_fields_where_an_older_kubernetes_is_served() -> None:
    type_ = SchemaSet.load("1.30").type_of("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    items = {"type": "object", "properties": {"k": {"type": "string", "later": 1}}, "required": ["k"]}
    schema = {"type": "array", "items": items, "additionalProperties": True, "dependencies": {"a": ["b"]}}
    obj = {"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}}
    pruning.drop_unknown(type_, obj)
    assert schema == {
        "type": "array",
        "items": {"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]},
        "additionalProperties": True,
        "dependencies": {"a": ["b"]},
    }
