"""The checks of metadata: apimachinery ``api/validation``."""

from __future__ import annotations

from typing import Any

from apiserver.machinery import object_meta_validation as meta
from apiserver.machinery.field_errors import FieldError


def create(metadata: dict[str, Any], *, namespaced: bool = True, builtin: bool = True) -> list[FieldError]:
    return meta.validate({"metadata": metadata}, namespaced=namespaced, name_rule="dns_subdomain", builtin=builtin)


def update(new: dict[str, Any], old: dict[str, Any]) -> list[FieldError]:
    base = {"name": "a", "namespace": "ns", "resourceVersion": "1"}
    return meta.validate_update({"metadata": base | new}, {"metadata": base | old})


def texts(errors: list[FieldError]) -> list[str]:
    return [e.text() for e in errors]


def test_plain_metadata_is_right() -> None:
    assert create({"name": "a", "namespace": "ns", "labels": {"a": "b"}, "annotations": {"Example.com/X": "y"}}) == []
    assert create({"name": "a"}, namespaced=False) == []


def test_names_and_namespaces() -> None:
    assert texts(create({"namespace": "ns"})) == ["metadata.name: Required value: name or generateName is required"]
    assert texts(create({"name": "a"})) == ["metadata.namespace: Required value"]
    assert texts(create({"name": "a", "namespace": "ns"}, namespaced=False)) == ["metadata.namespace: Forbidden: not allowed on this type"]
    assert [e.field for e in create({"name": "Bad_x", "generateName": "Bad_", "namespace": "N"})] == [
        "metadata.generateName",
        "metadata.name",
        "metadata.namespace",
    ]


def test_labels_annotations_and_finalizers() -> None:
    errors = create({"name": "a", "namespace": "ns", "labels": {"-x": "-"}, "annotations": {"a b": ""}, "finalizers": ["hold", "x.y/a b"]})
    assert [e.field for e in errors] == [
        "metadata.labels",
        "metadata.labels",
        "metadata.annotations",
        "metadata.finalizers",
        "metadata.finalizers[0]",
    ]
    assert errors[-1].body() == 'Invalid value: "hold": name is neither a standard finalizer name nor is it fully qualified'
    both = create({"name": "a", "namespace": "ns", "finalizers": ["orphan", "foregroundDeletion"]})
    assert texts(both) == [
        'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set'
    ]
    assert create({"name": "a", "namespace": "ns", "finalizers": ["hold"]}, builtin=False) == []


def test_annotations_have_a_limit_of_bytes() -> None:
    assert create({"name": "a", "namespace": "ns", "annotations": {"k": "x" * (262144 - 1)}}) == []
    over = create({"name": "a", "namespace": "ns", "annotations": {"k": "ü" * 131072}})
    assert texts(over) == ["metadata.annotations: Too long: may not be more than 262144 bytes"]


def test_owner_references() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
    assert create({"name": "a", "namespace": "ns", "ownerReferences": [owner]}) == []
    wrong = [{}, {"apiVersion": "a/b/c", "kind": "K", "name": "n", "uid": "u"}, owner | {"kind": "Event"}, owner]
    errors = create({"name": "a", "namespace": "ns", "ownerReferences": wrong})
    assert [e.field.removeprefix("metadata.ownerReferences") for e in errors] == [
        "[0].apiVersion",
        "[0].kind",
        "[0].name",
        "[0].uid",
        "[1].apiVersion",
        "[2]",
        "",
    ]
    assert errors[4].detail == "must be <group>/<version> or <version>"
    assert errors[5].detail == "/v1, Kind=Event is disallowed from being an owner"
    assert errors[6].detail == ('Only one reference can have Controller set to true. Found "true" in references for Event/p and Pod/p')


def test_an_update_keeps_what_is_immutable() -> None:
    assert update({}, {}) == []
    assert texts(update({"resourceVersion": ""}, {})) == ['metadata.resourceVersion: Invalid value: "": must be specified for an update']
    changed = update(
        {"uid": "v", "creationTimestamp": "x", "deletionTimestamp": "y", "deletionGracePeriodSeconds": 5, "generation": 1},
        {"uid": "u", "generation": 2},
    )
    assert texts(changed) == [
        "metadata.generation: Invalid value: 1: must not be decremented",
        'metadata.uid: Invalid value: "v": field is immutable',
        'metadata.creationTimestamp: Invalid value: "x": field is immutable',
        'metadata.deletionTimestamp: Invalid value: "y": field is immutable',
        "metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable",
    ]


def test_no_finalizer_may_be_added_to_what_is_being_deleted() -> None:
    deleted = {"deletionTimestamp": "2024-01-01T00:00:00Z", "finalizers": ["example.com/hold"]}
    assert update(deleted | {"finalizers": []}, deleted) == []
    assert texts(update(deleted | {"finalizers": ["example.com/hold", "example.com/more"]}, deleted)) == [
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
        '[]string{"example.com/more"}'
    ]


def test_managers() -> None:
    assert texts(meta.validate_field_manager("x" * 129, "fieldManager")) == ["fieldManager: Too long: may not be more than 128 bytes"]
    assert texts(meta.validate_field_manager("tab\there", "fieldManager")) == [
        'fieldManager: Invalid value: "tab\\there": invalid character U+0009 (at position 3)'
    ]
    entries = [{"operation": ""}, {"operation": "Delete"}, {"operation": "Apply", "fieldsType": "X"}]
    assert texts(meta.validate_managed_fields(entries, "m")) == [
        "m[0].operation: Required value: must not be empty",
        'm[1].operation: Unsupported value: "Delete": supported values: "Apply", "Update"',
        'm[2].fieldsType: Invalid value: "X": must be `FieldsV1`',
    ]
