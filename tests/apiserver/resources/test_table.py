"""Which resources each Kubernetes version serves, and what is known of them."""

from __future__ import annotations

import dataclasses

import pytest

from apiserver.kubernetes_versions import KUBERNETES_VERSIONS
from apiserver.resources.resource_info import ResourceInfo
from apiserver.resources.table import ResourceTable, version_priority
from apiserver.schemas import published


@pytest.fixture(scope="module", params=KUBERNETES_VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_served_resource_has_its_kind_in_the_published_schemas(version: str) -> None:
    definitions = published.read_definitions(version)
    for info in ResourceTable(version):
        kinds = definitions[info.schema][published.GVK]
        assert {"group": info.group, "version": info.version, "kind": info.kind} in kinds
        if info.list_kind:
            assert definitions[info.schema + "List"][published.GVK][0]["kind"] == info.list_kind


def test_every_stable_kind_of_the_schemas_is_served(version: str) -> None:
    served = {info.schema for info in ResourceTable(version)}
    subresource_bodies = {"TokenRequest", "Scale", "Eviction", "APIGroup", "APIVersions", "Status"}
    for name, schema in published.read_definitions(version).items():
        kinds = schema.get(published.GVK, [])
        if len(kinds) != 1 or name.endswith("List") or kinds[0]["kind"] in subresource_bodies:
            continue
        if "alpha" not in kinds[0]["version"] and "beta" not in kinds[0]["version"]:
            assert name in served


def test_stored_versions_are_served(version: str) -> None:
    table = ResourceTable(version)
    for info in table:
        stored = table.storage_info(info)
        assert stored is not None, info
        assert stored.storage_prefix == info.storage_prefix
        assert table.storage_info(stored) is stored


def test_betas_end_where_kubernetes_ended_them() -> None:
    def served(version: str, group: str) -> list[str]:
        return ResourceTable(version).versions(group)

    assert served("1.25", "autoscaling") == ["v2", "v1", "v2beta2"]
    assert served("1.26", "autoscaling") == ["v2", "v1"]
    assert served("1.25", "flowcontrol.apiserver.k8s.io") == ["v1beta2", "v1beta1"]
    assert served("1.30", "flowcontrol.apiserver.k8s.io") == ["v1", "v1beta3"]
    assert served("1.32", "flowcontrol.apiserver.k8s.io") == ["v1"]
    assert served("1.33", "resource.k8s.io") == []
    assert served("1.34", "resource.k8s.io") == ["v1"]


def test_flow_schemas_are_stored_in_the_newest_version_of_each_release() -> None:
    for version, stored in (("1.25", "v1beta2"), ("1.27", "v1beta3"), ("1.29", "v1")):
        info = ResourceTable(version).lookup(
            "flowcontrol.apiserver.k8s.io", ResourceTable(version).versions("flowcontrol.apiserver.k8s.io")[-1], "flowschemas"
        )
        assert info is not None and info.storage_version == stored


def test_pods_resize_came_with_1_33() -> None:
    def subresources(version: str) -> list[str]:
        info = ResourceTable(version).lookup("", "v1", "pods")
        assert info is not None
        return [s.name for s in info.subresources]

    assert "resize" not in subresources("1.32")
    assert "resize" in subresources("1.33")
    assert subresources("1.33") == sorted(subresources("1.33"))


@pytest.mark.parametrize(
    ("group", "resource", "prefix"),
    [
        ("", "nodes", "minions"),
        ("", "services", "services/specs"),
        ("", "endpoints", "services/endpoints"),
        ("", "replicationcontrollers", "controllers"),
        ("networking.k8s.io", "ingresses", "ingress"),
        ("apps", "deployments", "deployments"),
        ("rbac.authorization.k8s.io", "clusterroles", "clusterroles"),
        ("apiextensions.k8s.io", "customresourcedefinitions", "apiextensions.k8s.io/customresourcedefinitions"),
        ("apiregistration.k8s.io", "apiservices", "apiregistration.k8s.io/apiservices"),
    ],
)
def test_objects_lie_where_a_real_cluster_has_them(group: str, resource: str, prefix: str) -> None:
    info = ResourceTable("1.37").preferred(group, resource)
    assert info is not None and info.storage_prefix == prefix


def test_both_groups_of_events_share_one_stored_type() -> None:
    table = ResourceTable("1.37")
    second = table.lookup("events.k8s.io", "v1", "events")
    assert second is not None
    assert table.storage_info(second) is table.lookup("", "v1", "events")


def test_versions_rank_as_kubernetes_ranks_them() -> None:
    shuffled = ["foo1", "v1alpha1", "v2", "v11beta2", "v10", "v1beta10", "foo10", "v12alpha1", "v1", "v3beta1"]
    assert sorted(shuffled, key=version_priority) == [
        "v10",
        "v2",
        "v1",
        "v11beta2",
        "v3beta1",
        "v1beta10",
        "v12alpha1",
        "v1alpha1",
        "foo1",
        "foo10",
    ]


def _gadget(version: str) -> ResourceInfo:
    return ResourceInfo(group="demo.test", version=version, resource="gadgets", kind="Gadget", builtin=False)


def test_custom_resources_come_and_go() -> None:
    table = ResourceTable("1.37")
    before = len(table)
    table.replace_custom((), (_gadget("v1beta1"), _gadget("v1")))
    assert table.generation == 1
    assert table.groups()[-1] == "demo.test"
    assert table.versions("demo.test") == ["v1", "v1beta1"]
    assert table.by_kind("demo.test", "v1", "Gadget") == _gadget("v1")
    renamed = dataclasses.replace(_gadget("v1"), short_names=("g",))
    table.add(renamed)
    assert table.lookup("demo.test", "v1", "gadgets") is renamed
    table.replace_custom((_gadget("v1"), _gadget("v1beta1"), _gadget("v7")), ())
    assert len(table) == before
    assert not table.serves("demo.test", "v1")
    assert table.versions("demo.test") == []


def test_a_built_in_resource_cannot_be_taken_away() -> None:
    table = ResourceTable("1.37")
    pods = table.lookup("", "v1", "pods")
    assert pods is not None
    with pytest.raises(AssertionError):
        table.remove(pods)


def test_unknown_versions_are_refused() -> None:
    for version in ("1.24", "1.38", "2.0", "latest"):
        with pytest.raises(ValueError, match="is not among"):
            ResourceTable(version)
