"""By which fields kinds are selected: as kube-apiserver answers each."""

from __future__ import annotations

import pytest

from apiserver.machinery import fields
from apiserver.resources import field_labels
from apiserver.resources.resource_info import ResourceInfo
from apiserver.resources.table import ResourceTable

TABLE = ResourceTable("1.37")


def info_of(group: str, version: str, resource: str) -> ResourceInfo:
    found = TABLE.lookup(group, version, resource)
    assert found is not None
    return found


def convert(info: ResourceInfo, text: str, *own: str) -> str:
    return str(field_labels.of(info, own).convert(fields.parse(text)))


@pytest.mark.parametrize(
    ("group", "version", "resource", "text"),
    [
        ("", "v1", "pods", "metadata.namespace=a,spec.nodeName=n,status.phase!=Failed"),
        ("", "v1", "pods", "spec.hostNetwork=true"),
        ("", "v1", "nodes", "spec.unschedulable=true"),
        ("", "v1", "namespaces", "status.phase=Active"),
        ("", "v1", "secrets", "type=Opaque"),
        ("", "v1", "services", "spec.clusterIP=None,spec.type=NodePort"),
        ("", "v1", "replicationcontrollers", "status.replicas=0"),
        ("", "v1", "persistentvolumes", "metadata.namespace=,metadata.name=a"),
        ("batch", "v1", "jobs", "status.successful=1"),
        ("resource.k8s.io", "v1", "resourceslices", "spec.driver=d,spec.nodeName=n"),
    ],
)
def test_fields_that_kinds_are_selected_by(group: str, version: str, resource: str, text: str) -> None:
    assert convert(info_of(group, version, resource), text) == ",".join(sorted(text.split(",")))


def test_the_same_event_is_asked_for_in_the_words_of_each_version() -> None:
    old, new = info_of("", "v1", "events"), info_of("events.k8s.io", "v1", "events")
    assert convert(new, "regarding.kind=Pod,reportingController=kubelet") == "involvedObject.kind=Pod,reportingComponent=kubelet"
    assert convert(old, "involvedObject.kind=Pod,source=kubelet") == "involvedObject.kind=Pod,source=kubelet"
    for info, text in ((old, "regarding.kind=Pod"), (new, "involvedObject.kind=Pod"), (new, "source=x")):
        with pytest.raises(fields.SelectorError, match=f"^field label not supported: {text.partition('=')[0]}$"):
            convert(info, text)


def test_the_name_of_a_pods_node_before_v1_is_still_understood() -> None:
    assert convert(info_of("", "v1", "pods"), "spec.host=n1") == "spec.nodeName=n1"


@pytest.mark.parametrize(
    ("group", "version", "resource", "label", "message"),
    [
        ("", "v1", "pods", "spec.bogus", "field label not supported: spec.bogus"),
        ("", "v1", "nodes", "metadata.namespace", "field label not supported: metadata.namespace"),
        ("", "v1", "configmaps", "data.k", '"data.k" is not a known field selector: only "metadata.name", "metadata.namespace"'),
        ("", "v1", "persistentvolumeclaims", "name", '"name" is not a known field selector: only "metadata.name", "metadata.namespace"'),
        ("apps", "v1", "replicasets", "status.replicas",
         '"status.replicas" is not a known field selector: only "metadata.name", "metadata.namespace"'),
        ("batch", "v1", "jobs", "spec.bogus", 'field label "spec.bogus" not supported for batchv1.Job'),
        ("resource.k8s.io", "v1", "resourceslices", "spec.pool.name",
         "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.pool.name"),
    ],
)  # fmt: skip
def test_fields_that_they_are_not_selected_by(group: str, version: str, resource: str, label: str, message: str) -> None:
    with pytest.raises(fields.SelectorError) as refused:
        convert(info_of(group, version, resource), f"{label}=x")
    assert str(refused.value) == message


def test_custom_resources_are_selected_by_what_their_definition_says() -> None:
    gadget = ResourceInfo(group="demo.test", version="v1", resource="gadgets", kind="Gadget", namespaced=False, builtin=False)
    assert convert(gadget, "spec.color=red,metadata.name=a", "spec.color") == "metadata.name=a,spec.color=red"
    for label in ("spec.color", "metadata.namespace"):
        with pytest.raises(fields.SelectorError, match=f"^field label not supported: {label}$"):
            convert(gadget, f"{label}=red")


def test_fields_are_read_where_they_stand() -> None:
    slices = field_labels.of(info_of("resource.k8s.io", "v1", "resourceslices"), ())
    found = slices.values({"metadata": {"name": "s"}, "spec": {"driver": "d", "pool": {"name": "p"}}})
    assert found["spec.driver"] == "d" and found["spec.nodeName"] == ""
