"""Versions that are switched on and off."""

from __future__ import annotations

import pytest

from apiserver.resources.deprecation import warnings_of
from apiserver.resources.previews import RESOURCES
from apiserver.resources.table import ResourceTable
from apiserver.schemas.schema_set import SchemaSet


@pytest.mark.parametrize("minor", (25, 26, 27, 28, 30, 31, 33, 34, 36, 37))
def test_previews_are_exactly_what_a_release_has_and_does_not_serve_by_default(minor: int) -> None:
    schemas = SchemaSet.load(f"1.{minor}")
    ours = {(i.group, i.version, i.kind) for i in RESOURCES if i.since <= minor <= i.until}
    assert not [key for key in ours if not schemas.has_kind(*key)], "no schema"
    default = {(i.group, i.version, i.kind) for i in ResourceTable(f"1.{minor}")}
    assert not ours & default
    published = {
        (gvk["group"], gvk["version"], gvk["kind"])
        for definition in schemas.definitions.values()
        for gvk in definition.get("x-kubernetes-group-version-kind", ())
    }
    unserved = {key for key in published - ours - default if "alpha" in key[1] or "beta" in key[1]}
    unserved = {(g, v, k) for g, v, k in unserved if not k.endswith("List") and "Options" not in k and k not in ("WatchEvent", "Status")}
    assert not unserved


def test_the_more_exact_setting_counts() -> None:
    def served(switches: str) -> list[str]:
        return ResourceTable("1.37", switches).versions("resource.k8s.io")

    assert served("") == ["v1"]
    assert served("api/beta=true") == ["v1", "v1beta2", "v1beta1"]
    assert served("api/all=true,resource.k8s.io/v1beta1=false") == ["v1", "v1beta2", "v1alpha3"]
    table = ResourceTable("1.37", "resource.k8s.io/v1beta1/resourceslices=true")
    assert [i.resource for i in table.resources("resource.k8s.io", "v1beta1")] == ["resourceslices"]
    assert ResourceTable("1.37", "batch/v1=false").lookup("batch", "v1", "jobs") is None
    assert ResourceTable("1.37", "api/v1/bindings=false").lookup("", "v1", "bindings") is None


def test_objects_are_stored_in_the_newest_version_that_is_served() -> None:
    for minor, version, stored in ((31, "v1alpha3", "v1alpha3"), (32, "v1alpha3", "v1beta1"), (37, "v1beta1", "v1")):
        info = ResourceTable(f"1.{minor}", "api/all=true").lookup("resource.k8s.io", version, "resourceclaims")
        assert info is not None and info.storage_version == stored


def test_a_version_on_its_way_out_warns() -> None:
    table = ResourceTable("1.36", "networking.k8s.io/v1beta1")
    texts = warnings_of(table, 36)
    assert texts["networking.k8s.io", "v1beta1", "servicecidrs"] == (
        "networking.k8s.io/v1beta1 ServiceCIDR is deprecated in v1.34+, unavailable in v1.37+"
    )
    assert ("networking.k8s.io", "v1", "servicecidrs") not in texts


@pytest.mark.parametrize(
    ("switches", "why"),
    (
        ("batch/v1=maybe", "which is neither true nor false"),
        ("batch=true", "is not of the form"),
        ("api/gamma=true", "unknown api groups gamma"),
    ),
)
def test_wrong_settings_are_told(switches: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        ResourceTable("1.37", switches)
