"""Objects as older servers stored them, in the version in which they are stored today."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.machinery.objects import deep_copy
from apiserver.objectstore import stored_values
from apiserver.objectstore.interface import Unreadable
from apiserver.objectstore.stored_values import UnreadableValueError
from apiserver.registry import conversion, stored_versions
from apiserver.resources.resource_info import ResourceInfo
from apiserver.resources.table import ResourceTable

TABLE = ResourceTable("1.37")
#: names of fields that conversions look at
_PARTS = (
    "spec", "status", "template", "metadata", "labels", "backend", "rules", "http", "paths", "serviceName", "servicePort", "selector",
    "endpoints", "topology", "subjects", "kind", "versions", "version", "validation", "conversion", "additionalPrinterColumns", "limited",
)  # fmt: skip


def upgraded(api_version: str, kind: str, *, to: str = "", **parts: Any) -> dict[str, Any]:
    """The object without what every object has; ``to``: resource.group, where it is not the plural of the kind in the same group."""
    group = api_version.rpartition("/")[0]
    resource, _, to_group = to.partition(".") if to else (f"{kind.lower()}s", "", group)
    info = TABLE.preferred(to_group, resource)
    assert info is not None, (to_group, resource)
    info = TABLE.storage_info(info) or info
    served = [other.api_version for other in TABLE if other.storage_prefix == info.storage_prefix]
    found = stored_versions.upgrade(info, served, {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **parts})
    assert (found.pop("apiVersion"), found.pop("kind"), found.pop("metadata")) == (info.api_version, info.kind, {"name": "a"})
    return found


def test_a_version_that_looks_the_same_is_renamed() -> None:
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": {}}}
    assert upgraded("batch/v1beta1", "CronJob", spec=spec) == {"spec": spec}
    assert upgraded("storage.k8s.io/v1beta1", "StorageClass", to="storageclasses.storage.k8s.io", provisioner="p") == {"provisioner": "p"}


def test_every_renamed_version_is_of_a_kind_that_is_served() -> None:
    kinds = {info.kind for info in TABLE}
    known = {kind for _, kind in stored_versions._RENAMED} | {kind for _, kind in stored_versions._UPGRADES}
    assert known - kinds == set()


@pytest.mark.parametrize("api_version", ["extensions/v1beta1", "networking.k8s.io/v1beta1"])
def test_backends_of_ingresses(api_version: str) -> None:
    spec = {
        "backend": {"serviceName": "d", "servicePort": "http"},
        "rules": [
            {"host": "h", "http": {"paths": [{"path": "/", "backend": {"serviceName": "s", "servicePort": 80}}]}},
            {"host": "none"},
        ],
    }
    assert upgraded(api_version, "Ingress", to="ingresses.networking.k8s.io", spec=spec)["spec"] == {
        "defaultBackend": {"service": {"name": "d", "port": {"name": "http"}}},
        "rules": [
            {
                "host": "h",
                "http": {
                    "paths": [
                        {"path": "/", "pathType": "ImplementationSpecific", "backend": {"service": {"name": "s", "port": {"number": 80}}}}
                    ]
                },
            },
            {"host": "none"},
        ],
    }


def test_an_empty_selector_of_a_disruption_budget_goes_on_selecting_nothing() -> None:
    nothing = {"matchExpressions": [{"key": "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match", "operator": "Exists"}]}
    assert upgraded("policy/v1beta1", "PodDisruptionBudget", spec={"selector": {}})["spec"] == {"selector": nothing}
    some = {"matchLabels": {"a": "b"}}
    assert upgraded("policy/v1beta1", "PodDisruptionBudget", spec={"selector": some})["spec"] == {"selector": some}
    assert upgraded("policy/v1beta1", "PodDisruptionBudget", spec={})["spec"] == {}


def test_topology_of_endpoints() -> None:
    zone, host = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
    endpoints = [
        {"addresses": ["1.1.1.1"], "topology": {zone: "z", host: "n", "rack": "r"}},
        {"addresses": ["1.1.1.2"], "topology": {host: "other"}, "nodeName": "n"},
        {"addresses": ["1.1.1.3"], "topology": {host: "n"}, "nodeName": "n"},
        {"addresses": ["1.1.1.4"]},
    ]
    assert upgraded("discovery.k8s.io/v1beta1", "EndpointSlice", endpoints=endpoints)["endpoints"] == [
        {"addresses": ["1.1.1.1"], "zone": "z", "nodeName": "n", "deprecatedTopology": {"rack": "r"}},
        {"addresses": ["1.1.1.2"], "nodeName": "n", "deprecatedTopology": {host: "other"}},
        {"addresses": ["1.1.1.3"], "nodeName": "n"},
        {"addresses": ["1.1.1.4"]},
    ]


def test_workloads_get_the_selector_that_was_understood() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {}}
    old = {"template": template, "rollbackTo": {"revision": 1}, "templateGeneration": 2}
    for api_version in ("extensions/v1beta1", "apps/v1beta1"):
        found = upgraded(api_version, "Deployment", to="deployments.apps", spec=deep_copy(old))
        assert found["spec"] == {"template": template, "selector": {"matchLabels": {"a": "b"}}}


def test_bindings_of_the_first_version() -> None:
    subjects = [
        {"kind": "User", "apiVersion": "rbac.authorization.k8s.io/v1alpha1", "name": "u"},
        {"kind": "User", "apiVersion": "rbac.authorization.k8s.io/v1alpha1", "name": "*"},
        {"kind": "ServiceAccount", "apiVersion": "v1", "name": "s", "namespace": "n"},
    ]
    group = "rbac.authorization.k8s.io"
    found = upgraded(f"{group}/v1alpha1", "RoleBinding", subjects=subjects)
    assert found["subjects"] == [
        {"kind": "User", "name": "u", "apiGroup": group},
        {"kind": "Group", "name": "system:authenticated", "apiGroup": group},
        {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
    ]


def test_a_runtime_class_of_the_first_version() -> None:
    found = upgraded("node.k8s.io/v1alpha1", "RuntimeClass", to="runtimeclasses.node.k8s.io", spec={"runtimeHandler": "h", "overhead": {}})
    assert found == {"handler": "h", "overhead": {}}


def test_device_claims() -> None:
    requests = [{"name": "r", "deviceClassName": "c", "count": 2}, {"name": "f", "firstAvailable": [{"name": "s", "deviceClassName": "c"}]}]
    assert upgraded("resource.k8s.io/v1beta1", "ResourceClaim", spec={"devices": {"requests": requests}})["spec"]["devices"] == {
        "requests": [
            {"name": "r", "exactly": {"deviceClassName": "c", "count": 2}},
            {"name": "f", "firstAvailable": [{"name": "s", "deviceClassName": "c"}]},
        ]
    }
    slices = upgraded(
        "resource.k8s.io/v1beta1", "ResourceSlice", spec={"devices": [{"name": "d", "basic": {"capacity": {"m": {"value": "1"}}}}]}
    )
    assert slices["spec"]["devices"] == [{"name": "d", "capacity": {"m": {"value": "1"}}}]


def test_definitions_say_of_each_version_what_was_said_once() -> None:
    schema = {"type": "object"}
    columns = [{"name": "C", "type": "string", "JSONPath": ".spec.c"}]
    spec = {
        "group": "g",
        "version": "v1",
        "validation": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
        "conversion": {"strategy": "Webhook", "webhookClientConfig": {"url": "u"}, "conversionReviewVersions": ["v1beta1"]},
        "versions": [{"name": "v1", "served": True, "storage": True}, {"name": "v2", "served": True, "storage": False, "schema": {}}],
    }
    found = upgraded("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", spec=spec)["spec"]
    shared = {"subresources": {"status": {}}, "additionalPrinterColumns": [{"name": "C", "type": "string", "jsonPath": ".spec.c"}]}
    assert found == {
        "group": "g",
        "preserveUnknownFields": True,
        "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "u"}, "conversionReviewVersions": ["v1beta1"]}},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **shared},
            {"name": "v2", "served": True, "storage": False, "schema": {}, **shared},
        ],
    }
    alone = upgraded("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", spec={"version": "v1", "preserveUnknownFields": False})
    assert alone["spec"] == {"versions": [{"name": "v1", "served": True, "storage": True}]}


def test_metrics_of_an_autoscaler_in_its_first_version() -> None:
    """As kube-apiserver keeps them there: in annotations, in autoscaling/v1's own form, the behavior with Go's names."""
    annotations = {
        "autoscaling.alpha.kubernetes.io/metrics": (
            '[{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":60}},'
            '{"type":"Pods","pods":{"metricName":"p","targetAverageValue":"1k"}},'
            '{"type":"Object","object":{"target":{"kind":"Service","name":"s"},"metricName":"o","targetValue":"2"}},'
            '{"type":"External","external":{"metricName":"e","metricSelector":{"matchLabels":{"q":"x"}},"targetAverageValue":"3"}}]'
        ),
        "autoscaling.alpha.kubernetes.io/behavior": '{"ScaleUp":{"StabilizationWindowSeconds":0,"Policies":[{"Type":"Pods","Value":4}]}}',
    }
    old = {
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a", "annotations": annotations},
        "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50},
    }
    v2 = TABLE.lookup("autoscaling", "v2", "horizontalpodautoscalers")
    v1 = TABLE.lookup("autoscaling", "v1", "horizontalpodautoscalers")
    assert isinstance(v1, ResourceInfo) and isinstance(v2, ResourceInfo)
    new = conversion.convert(deep_copy(old), v2)
    assert new["metadata"] == {"name": "a"}
    assert new["spec"] == {
        "maxReplicas": 3,
        "metrics": [
            {"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 60}}},
            {"type": "Pods", "pods": {"metric": {"name": "p"}, "target": {"type": "AverageValue", "averageValue": "1k"}}},
            {
                "type": "Object",
                "object": {
                    "describedObject": {"kind": "Service", "name": "s"},
                    "metric": {"name": "o"},
                    "target": {"type": "Value", "value": "2"},
                },
            },
            {
                "type": "External",
                "external": {
                    "metric": {"name": "e", "selector": {"matchLabels": {"q": "x"}}},
                    "target": {"type": "AverageValue", "averageValue": "3"},
                },
            },
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
        ],
        "behavior": {"scaleUp": {"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 4}]}},
    }
    assert conversion.convert(deep_copy(conversion.convert(deep_copy(new), v1)), v2) == new
    assert conversion.convert(new, v1)["spec"] == old["spec"]


@pytest.mark.parametrize(("api_version", "kind"), [("v1", "Secret"), ("v3", "ConfigMap"), ("example.com/v1", "ConfigMap")])
def test_what_is_not_known_is_not_guessed_at(api_version: str, kind: str) -> None:
    with pytest.raises(UnreadableValueError) as refusal:
        upgraded(api_version, kind, to="configmaps.")
    assert refusal.value.reason is Unreadable.UNKNOWN_TYPE


_ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "backend", "*"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(_PARTS), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(sorted(stored_versions._UPGRADES)), st.dictionaries(st.sampled_from(_PARTS), _ODD, max_size=4))
@settings(max_examples=300, deadline=None)
def test_whatever_an_old_object_holds_it_is_read_or_damaged(which: tuple[str, str], parts: dict[str, Any]) -> None:
    api_version, kind = which
    [info] = {info.storage_prefix: info for info in TABLE if info.kind == kind and info.storage_group is None}.values()
    value = orjson.dumps({"kind": kind, "apiVersion": api_version, "metadata": {"name": "a"}, **parts})
    with contextlib.suppress(UnreadableValueError):
        stored_values.stored_form(value, functools.partial(stored_versions.upgrade, info, ()))
