"""Types built from the published schemas."""

from __future__ import annotations

import pytest

from apiserver.kubernetes_versions import KUBERNETES_VERSIONS
from apiserver.machinery.types import ListType, Shape, Type
from apiserver.resources.table import ResourceTable
from apiserver.schemas.decoding import decode
from apiserver.schemas.schema_set import SchemaSet


@pytest.fixture(scope="module")
def schemas() -> SchemaSet:
    return SchemaSet.load("1.37")


def field(type_: Type, *path: str) -> Type:
    """The type at a path; ``[]`` and ``{}`` step into an element."""
    for part in path:
        if part in ("[]", "{}"):
            assert type_.element is not None
            type_ = type_.element
        else:
            type_ = type_.fields[part]
    return type_


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
def test_every_kind_of_every_version_has_a_type(version: str) -> None:
    schemas = SchemaSet.load(version)
    for info in ResourceTable(version):
        type_ = schemas.type_of(info.group, info.version, info.kind)
        assert type_.shape is Shape.STRUCT
        assert type_.definition == info.schema
        assert field(type_, "metadata", "uid").shape is Shape.STRING


def test_containers_merge_by_name(schemas: SchemaSet) -> None:
    containers = field(schemas.type_of("", "v1", "Pod"), "spec", "containers")
    assert containers.shape is Shape.LIST
    assert (containers.list_type, containers.list_map_keys) == (ListType.MAP, ("name",))
    assert (containers.patch_merge_key, containers.patch_strategies) == ("name", ("merge",))


def test_ports_have_two_keys_for_apply_and_one_for_strategic_merge(schemas: SchemaSet) -> None:
    ports = field(schemas.type_of("", "v1", "Pod"), "spec", "containers", "[]", "ports")
    assert ports.list_map_keys == ("containerPort", "protocol")
    assert ports.patch_merge_key == "containerPort"
    protocol = field(ports, "[]", "protocol")
    assert (protocol.has_default, protocol.default) == (True, "TCP")


def test_volumes_keep_their_keys_when_merged(schemas: SchemaSet) -> None:
    assert field(schemas.type_of("", "v1", "Pod"), "spec", "volumes").patch_strategies == ("merge", "retainKeys")
    assert field(schemas.type_of("apps", "v1", "Deployment"), "spec", "strategy").patch_strategies == ("retainKeys",)


def test_what_a_field_says_does_not_leak_into_other_uses_of_its_definition(schemas: SchemaSet) -> None:
    assert schemas.type_named("io.k8s.api.apps.v1.DeploymentStrategy").patch_strategies == ()


def test_finalizers_are_a_set_and_selectors_are_replaced_whole(schemas: SchemaSet) -> None:
    deployment = schemas.type_of("apps", "v1", "Deployment")
    assert field(deployment, "metadata", "finalizers").list_type is ListType.SET
    assert field(deployment, "spec", "selector").map_is_atomic
    assert not field(deployment, "metadata", "labels").map_is_atomic


def test_special_values_have_their_own_shapes(schemas: SchemaSet) -> None:
    pod = schemas.type_of("", "v1", "Pod")
    assert field(pod, "metadata", "creationTimestamp").shape is Shape.TIME
    assert field(pod, "spec", "containers", "[]", "resources", "limits", "{}").shape is Shape.QUANTITY
    assert field(pod, "spec", "containers", "[]", "readinessProbe", "httpGet", "port").shape is Shape.INT_OR_STRING
    assert field(pod, "metadata", "managedFields", "[]", "fieldsV1").shape is Shape.ANY
    assert field(schemas.type_of("coordination.k8s.io", "v1", "Lease"), "spec", "renewTime").shape is Shape.MICRO_TIME
    assert field(schemas.type_of("", "v1", "Secret"), "data", "{}").format == "byte"
    assert field(pod, "kind").enum == ()


def test_a_schema_contains_schemas(schemas: SchemaSet) -> None:
    props = schemas.type_named("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
    assert field(props, "properties", "{}").fields is props.fields
    assert field(props, "not").fields is props.fields
    assert field(props, "items").shape is Shape.ANY


def test_kinds_that_do_not_exist(schemas: SchemaSet) -> None:
    with pytest.raises(KeyError):
        schemas.type_of("apps", "v1beta1", "Deployment")
    assert not schemas.has_kind("", "v1", "pod")
    assert schemas.has_kind("", "v1", "Pod")


def test_every_kind_compiles(schemas: SchemaSet) -> None:
    for info in ResourceTable("1.37"):
        validator = schemas.validator_of(info.group, info.version, info.kind)
        least = decode(schemas.type_of(info.group, info.version, info.kind), {"metadata": {"name": "a"}}).obj
        assert validator.accepts({"apiVersion": info.api_version, "kind": info.kind, **least})
        assert not validator.accepts({"apiVersion": info.api_version, "kind": info.kind, "metadata": {"nane": "a"}})
