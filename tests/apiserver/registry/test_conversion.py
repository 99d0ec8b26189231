"""One stored object, several views: events and autoscalers."""

from __future__ import annotations

from typing import Any

from apiserver.registry import device_conversion
from tests.apiserver.api import Api

CORE = "/api/v1/namespaces/ns-a/events"
NEW = "/apis/events.k8s.io/v1/namespaces/ns-a/events"
V1 = "/apis/autoscaling/v1/namespaces/ns-a/horizontalpodautoscalers"
V2 = "/apis/autoscaling/v2/namespaces/ns-a/horizontalpodautoscalers"
TARGET = {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}


async def test_an_event_of_one_group_is_the_same_event_in_the_other(api: Api) -> None:
    reference = {"kind": "Pod", "name": "p", "namespace": "ns-a"}
    core = await api.created(CORE, {"metadata": {"name": "e"}, "involvedObject": reference, "message": "why", "count": 3})
    new = (await api.get(f"{NEW}/e")).json
    assert (new["apiVersion"], new["regarding"], new["note"], new["deprecatedCount"]) == ("events.k8s.io/v1", reference, "why", 3)
    assert new["metadata"]["uid"] == core["metadata"]["uid"]
    assert (await api.get(NEW)).json["items"][0]["note"] == "why"
    async with api.watch(NEW, resourceVersion="0") as watch:
        assert (await watch.next())["object"]["note"] == "why"
    await api.delete(f"{NEW}/e")
    assert (await api.get(f"{CORE}/e")).status == 404


async def test_selectors_on_either_view_of_events(api: Api) -> None:
    """Field case PY-O4: describe asks across namespaces."""
    reference = {"kind": "Node", "name": "n1"}
    await api.created("/api/v1/namespaces/default/events", {"metadata": {"name": "e"}, "involvedObject": reference, "reason": "Why"})
    selector = "involvedObject.kind=Node,involvedObject.name=n1,reason=Why"
    assert len((await api.get("/api/v1/events", query={"fieldSelector": selector})).json["items"]) == 1
    other = "involvedObject.kind=Node,involvedObject.name=n2"
    assert (await api.get("/api/v1/events", query={"fieldSelector": other})).json["items"] == []


async def test_an_autoscaler_survives_the_older_version(api: Api) -> None:
    memory: dict[str, Any] = {
        "type": "Resource",
        "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 70}},
    }
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    spec = {"scaleTargetRef": TARGET, "maxReplicas": 5, "metrics": [memory, cpu]}  # the CPU comes last, as kube-apiserver has it
    created = await api.created(V2, {"metadata": {"name": "a"}, "spec": spec})
    old = (await api.get(f"{V1}/a")).json
    assert old["spec"]["targetCPUUtilizationPercentage"] == 50
    assert "metrics" not in old["spec"]
    old["spec"]["maxReplicas"] = 6
    assert (await api.put(f"{V1}/a", old)).status == 200
    again = (await api.get(f"{V2}/a")).json
    assert again["spec"] == {**created["spec"], "maxReplicas": 6}
    assert "annotations" not in again["metadata"]


async def test_an_autoscaler_made_in_the_older_version(api: Api) -> None:
    spec = {"scaleTargetRef": TARGET, "maxReplicas": 5, "targetCPUUtilizationPercentage": 60}
    created = await api.created(V1, {"metadata": {"name": "b"}, "spec": spec})
    assert created["spec"]["targetCPUUtilizationPercentage"] == 60
    metrics = (await api.get(f"{V2}/b")).json["spec"]["metrics"]
    assert metrics == [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}}]


def test_claims_and_slices_have_two_shapes() -> None:
    request = {"name": "a", "deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}
    alternatives = {"name": "b", "firstAvailable": [{"name": "x", "deviceClassName": "c"}]}
    old = {"apiVersion": "resource.k8s.io/v1beta1", "spec": {"devices": {"requests": [request, alternatives]}}}
    new = device_conversion.structured(old)
    assert new["spec"]["devices"]["requests"] == [
        {"name": "a", "exactly": {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}},
        alternatives,
    ]
    assert device_conversion.flat(new) == old
    template = {"spec": {"spec": old["spec"]}}
    assert device_conversion.flat(device_conversion.structured(template)) == template
    devices = {"spec": {"devices": [{"name": "d", "basic": {"attributes": {"a": {"bool": True}}}}]}}
    assert device_conversion.structured(devices)["spec"]["devices"] == [{"name": "d", "attributes": {"a": {"bool": True}}}]
    assert device_conversion.flat(device_conversion.structured(devices)) == devices
