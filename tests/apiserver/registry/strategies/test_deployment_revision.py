"""The deployment controller writes the revision with the status, and no generation rises by that: observedGeneration would never be met."""

from __future__ import annotations

from apiserver.machinery.objects import Object
from apiserver.registry import status_metadata
from apiserver.resources.resource_info import ResourceInfo
from tests.apiserver.registry.strategies.kinds import context, rules


def test_the_status_endpoint_takes_annotations_but_neither_labels_nor_spec() -> None:
    old: Object = {"metadata": {"name": "d", "generation": 1, "labels": {"l": "1"}}, "spec": {"replicas": 1}, "status": {}}
    new: Object = {
        "metadata": {"name": "d", "annotations": {"deployment.kubernetes.io/revision": "1"}, "labels": {"l": "2"}},
        "spec": {"replicas": 5},
        "status": {"replicas": 1},
    }
    rules("Deployment", "apps").prepare_for_status_update(context(), new, old)
    status_metadata.keep(ResourceInfo(group="apps", version="v1", resource="deployments", kind="Deployment"), new, old)
    assert new["metadata"] == {"name": "d", "labels": {"l": "1"}, "annotations": {"deployment.kubernetes.io/revision": "1"}}
    assert new["spec"] == {"replicas": 1} and new["status"] == {"replicas": 1}
