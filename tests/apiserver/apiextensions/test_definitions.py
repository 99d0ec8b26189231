"""What a definition must be: rules that the golden transcripts do not reach, rules of updates, warnings."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from apiserver.apiextensions import definition_warnings
from apiserver.apiextensions.definition_validation import approval_state, validate_definition
from apiserver.registry.strategies.extension import CustomResourceDefinitionStrategy
from apiserver.registry.strategy import StrategyContext
from apiserver.schemas.schema_set import SchemaSet

SCHEMAS = SchemaSet.load("1.36")
STRING = {"type": "string"}
ROOT = "spec.validation.openAPIV3Schema"


def version(name: str = "v1", schema: Any = None, **more: Any) -> dict[str, Any]:
    shape = {"type": "object", "x-kubernetes-preserve-unknown-fields": True} if schema is None else schema
    return {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": shape}, **more}


def definition(*versions: dict[str, Any], **spec: Any) -> dict[str, Any]:
    obj = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "widgets", "kind": "Widget"},
            "scope": "Namespaced",
            "versions": list(versions or (version(),)),
            **spec,
        },
    }
    strategy = CustomResourceDefinitionStrategy()
    strategy.default(obj)
    strategy.prepare_for_create(StrategyContext(namespace="", now=""), obj)
    return obj


def errors(obj: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [e.text() for e in validate_definition(obj, old, SCHEMAS)]


def of_field(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}}


def established(obj: dict[str, Any]) -> dict[str, Any]:
    obj["status"]["conditions"] = [{"type": "Established", "status": "True"}]
    return obj


def test_a_good_definition_has_no_errors() -> None:
    assert errors(definition()) == []


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "id": "x"}, ["[x].id: Forbidden: id is not supported"]),
        ({"type": "string", "$ref": "#/x"}, ["[x].$ref: Forbidden: $ref is not supported"]),
        (
            {"type": "object", "patternProperties": {"a": STRING}},
            ["[x].patternProperties: Forbidden: patternProperties is not supported"],
        ),
        ({"type": "array", "items": [STRING]}, ["[x].items: Forbidden: items must be a schema object and not an array"]),
        (
            {"type": "array", "items": STRING, "uniqueItems": True},
            ["[x].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"],
        ),
        (
            {"type": "object", "properties": {"a": STRING}, "additionalProperties": STRING},
            ["[x].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"],
        ),
        (
            {"type": "string", "x-kubernetes-embedded-resource": True},
            [
                "[x].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without "
                "x-kubernetes-preserve-unknown-fields",
                '[x].type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true',
            ],
        ),
        (
            {"type": "string", "pattern": "a("},
            [
                '[x].pattern: Invalid value: "a(": must be a valid regular expression, but isn\'t: '
                "error parsing regexp: missing closing ): `a(`"
            ],
        ),
        (
            {"type": "string", "anyOf": [{"type": "string", "description": "d"}]},
            [
                "[x].anyOf[0].description: Forbidden: must be empty to be structural",
                "[x].anyOf[0].type: Forbidden: must be empty to be structural",
            ],
        ),
        ({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}, []),
        ({"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"minLength": 1}]}, []),
        (
            {"type": "object", "not": {"additionalProperties": {"minLength": 1}}},
            ["[x].not.additionalProperties: Forbidden: must be undefined to be structural"],
        ),
        (
            {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
            ["[x].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"],
        ),
        (
            {"type": "string", "x-kubernetes-validations": [{"rule": " "}]},
            ["[x].x-kubernetes-validations[0].rule: Required value: rule is not specified"],
        ),
        (
            {"type": "string", "x-kubernetes-validations": [{"rule": "true\n", "reason": "Bad", "message": "a\nb"}]},
            [
                '[x].x-kubernetes-validations[0].message: Invalid value: "a\\nb": must not contain line breaks',
                '[x].x-kubernetes-validations[0].reason: Unsupported value: "Bad": supported values: "FieldValueDuplicate", '
                '"FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"',
            ],
        ),
        (
            {"type": "object", "properties": {"a": STRING}, "x-kubernetes-validations": [{"rule": "true", "fieldPath": ".b"}]},
            ['[x].x-kubernetes-validations[0].fieldPath: Invalid value: ".b": must be a valid path'],
        ),
    ],
)
def test_schemas(schema: dict[str, Any], expected: list[str]) -> None:
    found = errors(definition(version(schema=of_field(schema))))
    assert found == [f"{ROOT}.properties{text}" for text in expected]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (
            {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"data": STRING}, "default": {"data": "x"}},
            ["[x].default.apiVersion: Required value", "[x].default.kind: Required value"],
        ),
        (
            {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
                "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "default": "a/b"}}}},
            },
            [
                '[x].properties[metadata].properties[name].default: Invalid value: "a/b": must result in valid metadata: '
                "metadata.name: Invalid value: \"a/b\": may not contain '/'"
            ],
        ),
        (
            {"type": "array", "items": {"type": "string", "default": 1}},
            ['[x].items.default: Invalid value: "integer":  in body must be of type string: "integer"'],
        ),
    ],
)
def test_defaults(schema: dict[str, Any], expected: list[str]) -> None:
    found = errors(definition(version(schema=of_field(schema))))
    assert found == [f"{ROOT}.properties{text}" for text in expected]


def test_restrictions_of_the_whole_speak_of_fields_that_have_a_type() -> None:
    shape = {
        **of_field({"type": "array", "items": STRING}),
        "allOf": [{"properties": {"y": {"minLength": 1}, "x": {"items": {"minLength": 1}}}}],
    }
    assert errors(definition(version(schema=shape))) == [
        f"{ROOT}.properties[y]: Required value: because it is defined in {ROOT}.allOf[0].properties[y]"
    ]


def test_what_versions_do_not_have_alike_is_told_of_each() -> None:
    bad = {"type": "object", "properties": {"x": {}}}
    found = errors(definition(version(), version("v2", schema=bad)))
    assert found == [
        "spec.versions[1].schema.openAPIV3Schema.properties[x].type: Required value: must not be empty for specified object fields"
    ]
    found = errors(definition(version(subresources={"scale": {}}), version("v2")))
    assert found == [
        "spec.versions[0].subresources.scale.specReplicasPath: Required value",
        "spec.versions[0].subresources.scale.statusReplicasPath: Required value",
    ]


def test_a_kind_with_a_status_restricts_nothing_as_a_whole() -> None:
    found = errors(definition(version(schema={"type": "object", "minProperties": 1, "required": ["spec"]}, subresources={"status": {}})))
    assert len(found) == 1
    assert found[0].startswith(f'{ROOT}: Invalid value: {{"ID":"","Schema":""')
    assert "only [Description Type Format Title Maximum" in found[0]
    assert found[0].endswith("fields are allowed at the root of the schema if the status subresource is enabled")


def test_selectable_fields() -> None:
    shape = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"a": STRING, "o": {"type": "object"}, "l": {"type": "array", "items": STRING}}}
        },
    }
    fields = [{"jsonPath": path} for path in (".spec.a", ".spec.a", ".spec.z", ".spec.o", "spec", ".spec['a']", "", ".metadata.name")]
    found = errors(definition(version(schema=shape, selectableFields=fields)))
    assert [text.removeprefix("spec.selectableFields") for text in found] == [
        '[1].jsonPath: Duplicate value: ".spec.a"',
        '[2].jsonPath: Invalid value: ".spec.z": is an invalid path: does not refer to a valid field',
        '[3].jsonPath: Invalid value: ".spec.o": must point to a field of type string, boolean or integer. '
        "Enum string fields and strings with formats are allowed.",
        '[4].jsonPath: Invalid value: "spec": is an invalid path: expected [ or . but got: spec',
        "[5].jsonPath: Invalid value: \".spec['a']\": is an invalid path: array notation is not allowed",
        "[6].jsonPath: Required value",
        '[7].jsonPath: Invalid value: ".metadata.name": is an invalid path: does not refer to a valid field',
    ]


@pytest.mark.parametrize(
    ("conversion", "expected"),
    [
        (
            {"strategy": "Webhook"},
            ["webhookClientConfig: Required value: required when strategy is set to Webhook", "conversionReviewVersions: Required value"],
        ),
        ({"strategy": "Magic"}, ['strategy: Unsupported value: "Magic": supported values: "None", "Webhook"']),
        (
            {"strategy": "None", "webhook": {"clientConfig": {"url": "https://x/"}, "conversionReviewVersions": ["v1"]}},
            [
                "webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook",
                "conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook",
            ],
        ),
        (
            {"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"name": "n"}}, "conversionReviewVersions": ["v7", "v7"]}},
            [
                "webhookClientConfig.service.name: Required value",
                'conversionReviewVersions[1]: Invalid value: "v7": duplicate version',
                'conversionReviewVersions: Invalid value: ["v7","v7"]: must include at least one of v1, v1beta1',
            ],
        ),
        (
            {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://x/"}, "conversionReviewVersions": ["v1"]}},
            [],
        ),
    ],
)
def test_conversion(conversion: dict[str, Any], expected: list[str]) -> None:
    assert errors(definition(conversion=conversion)) == [f"spec.conversion.{text}" for text in expected]


def test_names_are_fixed_once_they_are_established_and_the_resource_always() -> None:
    old = definition()
    new = copy.deepcopy(old)
    new["spec"]["scope"] = "Cluster"
    new["spec"]["names"] |= {"kind": "Gadget", "plural": "gadgets"}
    assert errors(new, old) == ['spec.names.plural: Invalid value: "gadgets": field is immutable']
    assert errors(new, established(copy.deepcopy(old))) == [
        'spec.scope: Invalid value: "Cluster": field is immutable',
        'spec.names.kind: Invalid value: "Gadget": field is immutable',
        'spec.names.plural: Invalid value: "gadgets": field is immutable',
    ]


def test_a_version_that_has_stored_objects_stays() -> None:
    old = definition(version(), version("v2"))
    new = copy.deepcopy(old)
    new["spec"]["versions"] = [{**version("v2"), "storage": True}]
    new["status"]["storedVersions"] = ["v1", "v2"]
    assert errors(new, old) == [
        'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must remain '
        "in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions"
    ]


def test_an_update_may_keep_what_was_wrong_before() -> None:
    items = {"type": "object", "properties": {"k": STRING}}
    bad = of_field({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": items})
    assert len(errors(definition(version(schema=bad)))) == 1
    assert errors(definition(version(schema=bad)), definition(version(schema=bad))) == []
    unpruned = of_field({"type": "object", "properties": {"a": STRING}, "default": {"b": 1}})
    assert len(errors(definition(version(schema=unpruned)), definition())) == 1
    assert errors(definition(version(schema=unpruned)), definition(version(schema=unpruned))) == []
    kept = definition(preserveUnknownFields=True)
    assert errors(kept, copy.deepcopy(kept)) == []
    assert errors(kept, definition())[0].startswith("spec.preserveUnknownFields: Invalid value: true: cannot set to true")


def test_a_storage_version_without_a_name_is_one() -> None:
    nameless = {**version(), "name": "", "storage": True}
    assert [text.partition(": ")[0] for text in errors(definition(nameless))] == ["spec.versions[0].name"]


def test_defaults_need_pruning() -> None:
    found = errors(definition(version(schema=of_field({"type": "string", "default": "a"})), preserveUnknownFields=True))
    assert "spec.preserveUnknownFields: Invalid value: true: must be false in order to use defaults in the schema" in found


@pytest.mark.parametrize(
    ("annotation", "state"),
    [
        ("", "missing"),
        ("unapproved, legacy", "bypassed"),
        ("https://github.com/x/pull/1", "approved"),
        ("github.com/x", "invalid"),
        ("/x", "invalid"),
    ],
)
def test_approval(annotation: str, state: str) -> None:
    assert approval_state(annotation) == state


def test_an_update_that_leaves_the_approval_as_it_was_needs_none() -> None:
    def protected(annotation: str) -> dict[str, Any]:
        obj = definition(group="x.k8s.io")
        obj["metadata"] = {"name": "widgets.x.k8s.io", "annotations": {"api-approved.kubernetes.io": annotation}}
        return obj

    assert len(errors(protected(""))) == 1
    assert errors(protected(""), protected("")) == []
    assert len(errors(protected("maybe"), protected(""))) == 1


def test_warnings_tell_what_is_new() -> None:
    strange = definition(version(schema=of_field({"type": "string", "format": "strange"})))
    sets = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object", "x-kubernetes-map-type": "atomic"}}
    assert definition_warnings.warnings(strange, None) == ['unrecognized format "strange"']
    assert definition_warnings.warnings(strange, strange) == []
    assert definition_warnings.warnings(definition(version(schema=of_field(sets))), strange) == [
        'x-kubernetes-list-type: set for items of type "object" is not supported by server-side apply or CEL validation rules'
    ]
