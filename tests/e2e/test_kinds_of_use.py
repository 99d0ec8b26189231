"""Further kinds of use of the real client libraries: pages, generic and dynamic clients, subresources, what they do when a
watch ends. The usual ones are in test_clients.py, those of custom resources in test_clients_of_custom_resources.py."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from apiserver.pytest_plugin import SampanServer

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "kinds.test"


def config_maps(sampan: SampanServer, namespace: str, *names: str, **labels: str) -> None:
    for name in names:
        body = {"metadata": {"name": name, "labels": labels}, "data": {"k": "v"}}
        sampan.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", body)


def deployment(name: str, replicas: int = 0) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


@pytest.fixture
def boats(sampan: SampanServer, eventually: Callable[[Callable[[], Any]], Any]) -> Iterator[None]:
    """A custom resource with a status and a scale."""
    properties = {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    properties["status"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        "subresources": {"status": {}, "scale": scale},
    }
    names = {"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
    sampan.request("POST", CRDS, {"metadata": {"name": f"boats.{GROUP}"}, "spec": spec})
    while not any(c["type"] == "Established" and c["status"] == "True" for c in _conditions(sampan)):
        pass
    yield
    sampan.request("DELETE", f"{CRDS}/boats.{GROUP}")
    # its objects are removed behind the answer, and the next test makes it anew
    eventually(lambda: all(each["metadata"]["name"] != f"boats.{GROUP}" for each in sampan.request("GET", CRDS)["items"]))


def _conditions(sampan: SampanServer) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = sampan.request("GET", f"{CRDS}/boats.{GROUP}")["status"].get("conditions") or []
    return found


# -- lightkube -------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def lightkube_client(sampan: SampanServer, sampan_namespace: str) -> Any:
    from lightkube import Client, KubeConfig

    return Client(config=KubeConfig.from_file(str(sampan.kubeconfig)), namespace=sampan_namespace, field_manager="kinds")


def test_lightkube_lists_replaces_and_deletes_many(lightkube_client: Any, sampan: SampanServer, sampan_namespace: str) -> None:
    from lightkube import ApiError
    from lightkube.resources.core_v1 import ConfigMap

    client = lightkube_client
    config_maps(sampan, sampan_namespace, *(f"c{number}" for number in range(5)), tier="web")
    config_maps(sampan, sampan_namespace, "other")
    found = [one.metadata.name for one in client.list(ConfigMap, labels={"tier": "web"}, chunk_size=2)]
    assert found == [f"c{number}" for number in range(5)], "pages are followed"
    assert [one.metadata.name for one in client.list(ConfigMap, fields={"metadata.name": "other"})] == ["other"]
    read = client.get(ConfigMap, "other")
    changed = ConfigMap.from_dict({**read.to_dict(), "data": {"k": "new"}})
    assert client.replace(changed).data == {"k": "new"}
    with pytest.raises(ApiError) as refused:
        client.replace(changed)
    assert (refused.value.status.code, refused.value.status.reason) == (409, "Conflict")
    client.deletecollection(ConfigMap)
    assert {one.metadata.name for one in client.list(ConfigMap)} <= {"kube-root-ca.crt"}


def test_lightkube_scales_and_waits(lightkube_client: Any) -> None:
    from lightkube.models.autoscaling_v1 import ScaleSpec
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.apps_v1 import Deployment
    from lightkube.resources.core_v1 import Pod

    client = lightkube_client
    client.create(Deployment.from_dict(deployment("web", 1)))
    ready = client.wait(Deployment, "web", for_conditions=["Available"])
    assert ready.metadata.name == "web"
    scale = Deployment.Scale(metadata=ObjectMeta(name="web"), spec=ScaleSpec(replicas=0))
    assert not client.replace(scale, "web").spec.replicas
    client.wait(Deployment, "web", for_conditions=["Available"])
    for _, pod in client.watch(Pod, server_timeout=30):
        if not list(client.list(Pod)):
            break
        assert pod.metadata.labels["app"] == "web"
    status = client.get(Deployment.Status, "web")
    assert status.metadata.name == "web"
    client.delete(Deployment, "web", grace_period=0)


def test_lightkube_handles_custom_resources(boats: None, lightkube_client: Any) -> None:
    from lightkube.generic_resource import create_namespaced_resource
    from lightkube.types import PatchType

    client = lightkube_client
    boat = create_namespaced_resource(GROUP, "v1", "Boat", "boats")
    made = client.create(boat(metadata={"name": "one"}, spec={"color": "red"}))
    assert made.spec == {"color": "red"}
    client.patch(boat, "one", {"spec": {"color": "blue", "replicas": 2}}, patch_type=PatchType.MERGE)
    assert client.get(boat.Scale, "one").spec.replicas == 2
    told = client.patch(boat.Status, "one", {"status": {"phase": "afloat"}}, patch_type=PatchType.MERGE)
    assert told.status == {"phase": "afloat"}
    applied = client.apply(boat(metadata={"name": "two"}, spec={"color": "green"}), field_manager="other")
    assert applied.spec == {"color": "green"}
    assert sorted(one.metadata.name for one in client.list(boat)) == ["one", "two"]
    client.delete(boat, "one")


def test_py_x3_lightkube_begins_anew_where_its_version_is_gone(boats: None, lightkube_client: Any) -> None:
    """The Status in an ERROR event names no resource version, which the client must not look for; a handler of errors lets it go on."""
    from lightkube.core.exceptions import ApiError
    from lightkube.generic_resource import create_namespaced_resource
    from lightkube.types import OnErrorAction, OnErrorResult

    boat = create_namespaced_resource(GROUP, "v1", "Boat", "boats")
    lightkube_client.create(boat(metadata={"name": "one"}))
    told: list[Any] = []

    def begin_anew(error: ApiError, count: int) -> OnErrorResult:
        told.append(error.status)
        return OnErrorResult(OnErrorAction.RETRY)

    for _, found in lightkube_client.watch(boat, resource_version="1", server_timeout=30, on_error=begin_anew):
        assert found.metadata.name == "one"
        break
    assert [(status.code, status.reason) for status in told] == [(410, "Expired")]
    assert getattr(told[0].metadata, "resourceVersion", None) is None


# -- the official client -----------------------------------------------------------------------------------------------------------


def test_official_client_pages_and_creates_from_dicts(sampan: SampanServer, sampan_namespace: str) -> None:
    from kubernetes import client, config, utils

    api = config.new_client_from_config(str(sampan.kubeconfig))
    core = client.CoreV1Api(api)
    config_maps(sampan, sampan_namespace, *(f"c{number}" for number in range(5)), tier="web")
    names: list[str] = []
    token = ""
    while True:
        page = core.list_namespaced_config_map(sampan_namespace, label_selector="tier=web", limit=2, _continue=token)
        names += [one.metadata.name for one in page.items]
        token = page.metadata._continue
        if not token:
            break
        config_maps(sampan, sampan_namespace, f"later{len(names)}", tier="web")
    assert names == [f"c{number}" for number in range(5)], "what came later is not in the list that was begun"
    several = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [deployment("web"), {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}],
    }
    utils.create_from_dict(api, several, namespace=sampan_namespace)
    assert core.read_namespaced_secret("s", sampan_namespace).type == "Opaque"
    with pytest.raises(utils.FailToCreateError) as refused:
        utils.create_from_dict(api, several, namespace=sampan_namespace)
    assert {one.status for one in refused.value.api_exceptions} == {409}


def test_dynamic_client_applies_and_watches(boats: None, sampan: SampanServer, sampan_namespace: str) -> None:
    from kubernetes import config, dynamic

    client = dynamic.DynamicClient(config.new_client_from_config(str(sampan.kubeconfig)))
    boat = client.resources.get(api_version=f"{GROUP}/v1", kind="Boat")
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Boat", "metadata": {"name": "one"}, "spec": {"color": "red"}}
    applied = client.server_side_apply(boat, body=body, name="one", namespace=sampan_namespace, field_manager="kinds")
    assert applied.spec.color == "red"
    assert [entry.operation for entry in applied.metadata.managedFields] == ["Apply"]
    for event in boat.watch(namespace=sampan_namespace, timeout=30):
        assert (event["type"], event["object"].metadata.name) == ("ADDED", "one")
        break
    boat.patch(name="one", namespace=sampan_namespace, body={"spec": {"color": None}}, content_type="application/merge-patch+json")
    assert boat.get(name="one", namespace=sampan_namespace).spec.color is None
    boat.delete(name="one", namespace=sampan_namespace)
    assert boat.get(namespace=sampan_namespace).items == []


# -- kubernetes_asyncio and kr8s ---------------------------------------------------------------------------------------------------


async def test_asyncio_watch_goes_on_where_it_was(sampan: SampanServer, sampan_namespace: str) -> None:
    """PY-A2: the server ends the stream to the second, and the client goes on from the last version, without an event twice."""
    from kubernetes_asyncio import client, config, watch

    configuration = client.Configuration()
    await config.load_kube_config(str(sampan.kubeconfig), client_configuration=configuration)
    async with client.ApiClient(configuration) as api:
        core = client.CoreV1Api(api)
        listed = await core.list_namespaced_config_map(sampan_namespace)
        config_maps(sampan, sampan_namespace, "a")
        loop = asyncio.get_running_loop()
        began = loop.time()
        names: list[str] = []
        version = listed.metadata.resource_version
        async with watch.Watch() as first:
            async for event in first.stream(
                core.list_namespaced_config_map, sampan_namespace, resource_version=version, timeout_seconds=2, _request_timeout=60
            ):
                names.append(event["object"].metadata.name)
                version = event["object"].metadata.resource_version
        assert loop.time() - began >= 1.9
        config_maps(sampan, sampan_namespace, "b")
        async with watch.Watch() as second:
            async for event in second.stream(
                core.list_namespaced_config_map, sampan_namespace, resource_version=version, timeout_seconds=20, _request_timeout=60
            ):
                names.append(event["object"].metadata.name)
                break
        assert [name for name in names if name != "kube-root-ca.crt"] == ["a", "b"]


async def test_kr8s_labels_scales_and_selects(sampan: SampanServer, sampan_namespace: str) -> None:
    import kr8s
    from kr8s.asyncio.objects import ConfigMap, Deployment

    api = await kr8s.asyncio.api(kubeconfig=str(sampan.kubeconfig), namespace=sampan_namespace)
    config_maps(sampan, sampan_namespace, "one", "two", tier="web")
    one = await ConfigMap.get("one", namespace=sampan_namespace, api=api)
    await one.label(stage="test")
    await one.annotate(note="x")
    assert one.labels == {"tier": "web", "stage": "test"} and one.annotations == {"note": "x"}
    found = [each.name async for each in api.get("configmaps", label_selector={"stage": "test"}, namespace=sampan_namespace)]
    assert found == ["one"]
    found = [each.name async for each in api.get("configmaps", field_selector={"metadata.name": "two"}, namespace=sampan_namespace)]
    assert found == ["two"]
    web = await Deployment(deployment("web"), namespace=sampan_namespace, api=api)
    await web.create()
    await asyncio.wait_for(web.scale(2), 60)
    assert web.replicas == 2 and await web.exists()
    await web.delete(propagation_policy="Foreground")


async def test_py_x2_kr8s_makes_an_object_anew_from_what_it_read(sampan: SampanServer, sampan_namespace: str) -> None:
    """With the version that was read it is refused in the words that clients look for; without it there is a new object."""
    import kr8s
    from kr8s.asyncio.objects import ConfigMap

    api = await kr8s.asyncio.api(kubeconfig=str(sampan.kubeconfig), namespace=sampan_namespace)
    config_maps(sampan, sampan_namespace, "c")
    read = await ConfigMap.get("c", namespace=sampan_namespace, api=api)
    first = read.metadata.uid
    await read.delete()
    try:
        await read.create()
    except kr8s.ServerError as error:
        assert "resourceVersion should not be set on objects to be created" in str(error)
        del read.raw["metadata"]["resourceVersion"]
        await read.create()
    assert read.metadata.uid != first
