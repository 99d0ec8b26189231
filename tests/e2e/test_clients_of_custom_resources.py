"""Client libraries at work on custom resources: kopf's whole round, and the field cases PY-*."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.pytest_plugin import SampanServer
from tests.e2e import custom_resources
from tests.e2e.conftest import Kubectl

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

Eventually = Callable[[Callable[[], Any]], Any]
GROUP = "clients.test"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = "application/merge-patch+json"


def define(sampan: SampanServer, *definitions: dict[str, Any]) -> None:
    """Make definitions and wait until they are established."""
    for body in definitions:
        sampan.request("POST", DEFINITIONS, body)
    for body in definitions:
        deadline = time.monotonic() + 30
        while True:
            found = sampan.request("GET", f"{DEFINITIONS}/{body['metadata']['name']}")
            conditions = (found.get("status") or {}).get("conditions") or []
            if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
                break
            assert time.monotonic() < deadline, found
            time.sleep(0.05)


@pytest.fixture(scope="module")
def gadgets(sampan: SampanServer) -> Iterator[None]:
    define(sampan, custom_resources.gadgets(GROUP))
    yield
    sampan.request("DELETE", f"{DEFINITIONS}/gadgets.{GROUP}")


def gadget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": {"name": name}, "spec": spec}


def path(namespace: str, name: str = "") -> str:
    return f"/apis/{GROUP}/v1/namespaces/{namespace}/gadgets" + (f"/{name}" if name else "")


OPERATOR = """
import kopf


@kopf.on.startup()
def configure(settings, **_):
    settings.peering.standalone = False
    settings.watching.server_timeout = 60


@kopf.on.create("clients.test", "v1", "gadgets")
def created(spec, patch, **_):
    patch.status["made"] = spec["color"]
    return {"handled": "create"}


@kopf.on.update("clients.test", "v1", "gadgets", field="spec.color")
def recolored(old, new, patch, **_):
    patch.status["recolored"] = f"{old}>{new}"


@kopf.on.resume("clients.test", "v1", "gadgets")
def resumed(patch, **_):
    patch.status["resumed"] = True


@kopf.on.delete("clients.test", "v1", "gadgets")
def deleted(name, namespace, **_):
    print(f"gone {name}", flush=True)


@kopf.timer("clients.test", "v1", "gadgets", interval=0.3)
def ticks(status, patch, **_):
    patch.status["ticks"] = min(status.get("ticks", 0) + 1, 3)


@kopf.daemon("clients.test", "v1", "gadgets")
async def stays(stopped, name, **_):
    print(f"daemon of {name} runs", flush=True)
    await stopped.wait()
    print(f"daemon of {name} stopped", flush=True)
"""


def test_kopf_handles_times_and_keeps_daemons_with_peering(
    gadgets: None, sampan: SampanServer, sampan_namespace: str, tmp_path: Path, eventually: Eventually
) -> None:
    define(sampan, *custom_resources.kopf_peerings())
    peering = f"/apis/kopf.dev/v1/namespaces/{sampan_namespace}/kopfpeerings"
    sampan.request("POST", peering, {"apiVersion": "kopf.dev/v1", "kind": "KopfPeering", "metadata": {"name": "default"}})
    script = tmp_path / "gadget_operator.py"
    script.write_text(OPERATOR)
    sampan.request("POST", path(sampan_namespace), gadget("older", color="grey"))
    log = tmp_path / "log.txt"
    with log.open("wb") as out:
        operator = subprocess.Popen(
            [sys.executable, "-m", "kopf", "run", "--namespace", sampan_namespace, "--peering=default", "--priority=7", str(script)],
            env=dict(os.environ, KUBECONFIG=str(sampan.kubeconfig)), cwd=tmp_path, stdout=out, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def status_of(name: str) -> dict[str, Any]:
        assert operator.poll() is None, log.read_text()
        return dict(sampan.request("GET", path(sampan_namespace, name)).get("status") or {})

    try:
        eventually(lambda: status_of("older").get("resumed") or status_of("older").get("made"))
        sampan.request("POST", path(sampan_namespace), gadget("g1", color="red"))
        eventually(lambda: status_of("g1").get("made") == "red" and "daemon of g1 runs" in log.read_text())
        sampan.request("PATCH", path(sampan_namespace, "g1"), {"spec": {"color": "blue"}}, MERGE)
        eventually(lambda: status_of("g1").get("recolored") == "red>blue")
        eventually(lambda: status_of("g1").get("ticks", 0) >= 3)
        peers = sampan.request("GET", f"{peering}/default")["status"]
        assert [peer["priority"] for peer in peers.values()] == [7]
        assert sampan.request("GET", path(sampan_namespace, "g1"))["metadata"]["finalizers"]
        sampan.request("DELETE", path(sampan_namespace, "g1"))
        eventually(lambda: [g["metadata"]["name"] for g in sampan.request("GET", path(sampan_namespace))["items"]] == ["older"])
        told = log.read_text()
        assert "gone g1" in told and "daemon of g1 stopped" in told
        assert "inconsistencies" not in told and "Traceback" not in told, told
    finally:
        operator.terminate()
        operator.wait(30)
        for name in ("older", "g1"):
            # whoever ends before its handlers leaves its finalizers
            _unfinalize(sampan, path(sampan_namespace, name))
        for plural in ("clusterkopfpeerings", "kopfpeerings"):
            sampan.request("DELETE", f"{DEFINITIONS}/{plural}.kopf.dev")


def _unfinalize(sampan: SampanServer, target: str) -> None:
    import urllib.error

    try:
        sampan.request("PATCH", target, {"metadata": {"finalizers": None}}, MERGE)
    except urllib.error.HTTPError as error:
        assert error.code == 404


@pytest.mark.parametrize(
    ("has_subresource", "keeps", "kept_by_main", "kept_by_status"),
    [(True, True, False, True), (False, True, True, None), (False, False, False, None)],
    ids=["subresource", "known", "pruned"],
)
def test_py_o3_what_a_patch_answers_is_what_is_stored(
    sampan: SampanServer, sampan_namespace: str, has_subresource: bool, keeps: bool, kept_by_main: bool, kept_by_status: bool | None
) -> None:
    """kopf looks for what it patched in the answer, and complains of "inconsistencies" where it is not there."""
    group = f"o3-{has_subresource}-{keeps}.test".lower()
    define(sampan, custom_resources.gadgets(group, status=has_subresource, keeps_status=keeps))
    try:
        collection = f"/apis/{group}/v1/namespaces/{sampan_namespace}/gadgets"
        sampan.request("POST", collection, {**gadget("g"), "apiVersion": f"{group}/v1"})
        sent = {"status": {"kopf": {"progress": {"a": 1}}}, "metadata": {"annotations": {"a": "b"}}}
        answer = sampan.request("PATCH", f"{collection}/g", sent, MERGE)
        assert answer == sampan.request("GET", f"{collection}/g")
        assert answer["metadata"]["annotations"] == {"a": "b"}
        assert ("status" in answer) == kept_by_main
        if kept_by_status is not None:
            answer = sampan.request("PATCH", f"{collection}/g/status", sent, MERGE)
            assert answer == sampan.request("GET", f"{collection}/g")
            assert answer["status"] == sent["status"]
    finally:
        sampan.request("DELETE", f"{DEFINITIONS}/gadgets.{group}")


def test_py_k4_patches_of_the_official_client(gadgets: None, sampan: SampanServer, sampan_namespace: str) -> None:
    """What is sent counts by its content type alone; strategic merge is refused for custom resources."""
    from kubernetes import client, config

    api = config.new_client_from_config(str(sampan.kubeconfig))
    custom = client.CustomObjectsApi(api)
    where = (GROUP, "v1", sampan_namespace, "gadgets")
    custom.create_namespaced_custom_object(*where, gadget("g", color="red", size=9223372036854775807))
    operations = [{"op": "replace", "path": "/spec/color", "value": "blue"}]
    patched = custom.patch_namespaced_custom_object(*where, "g", operations, _content_type="application/json-patch+json")
    assert patched["spec"] == {"color": "blue", "size": 9223372036854775807}
    merged = sampan.request("PATCH", path(sampan_namespace, "g"), {"spec": {"color": None}}, MERGE)
    assert merged["spec"] == {"size": 9223372036854775807}
    with pytest.raises(client.ApiException) as refused:
        custom.patch_namespaced_custom_object(*where, "g", {}, _content_type="application/strategic-merge-patch+json")
    assert refused.value.status == 415


def test_py_k2_bookmarks_of_the_official_client(sampan: SampanServer, sampan_namespace: str) -> None:
    from kubernetes import client, config, watch

    core = client.CoreV1Api(config.new_client_from_config(str(sampan.kubeconfig)))
    stream = watch.Watch()
    seen = [
        event["raw_object"]
        for event in stream.stream(core.list_namespaced_config_map, sampan_namespace, allow_watch_bookmarks=True, timeout_seconds=3)
        if event["type"] == "BOOKMARK"
    ]
    assert seen, "one is sent shortly before the end"
    for bookmark in seen:
        assert (bookmark["kind"], bookmark["apiVersion"]) == ("ConfigMap", "v1")
        assert bookmark["metadata"]["resourceVersion"] and not bookmark["metadata"].get("name")
    assert stream.resource_version == seen[-1]["metadata"]["resourceVersion"]


async def test_py_a1_quiet_watches_stay_open(sampan: SampanServer, sampan_namespace: str) -> None:
    from kubernetes_asyncio import client, config, watch

    configuration = client.Configuration()
    await config.load_kube_config(str(sampan.kubeconfig), client_configuration=configuration)
    async with client.ApiClient(configuration) as api:
        core = client.CoreV1Api(api)
        listed = await core.list_namespaced_config_map(sampan_namespace)
        version = listed.metadata.resource_version
        began = time.monotonic()
        async with watch.Watch().stream(
            core.list_namespaced_config_map, sampan_namespace, resource_version=version, timeout_seconds=3
        ) as stream:
            assert [event async for event in stream] == []
        assert 2.5 < time.monotonic() - began < 30


async def test_py_x1_kr8s_watches_custom_resources(gadgets: None, sampan: SampanServer, sampan_namespace: str) -> None:
    import kr8s
    from kr8s.asyncio.objects import new_class

    api = await kr8s.asyncio.api(kubeconfig=str(sampan.kubeconfig), namespace=sampan_namespace)
    kind = new_class("Gadget", version=f"{GROUP}/v1", namespaced=True, plural="gadgets")
    one = await kind(gadget("one", color="red"), namespace=sampan_namespace, api=api)
    await one.create()
    seen: list[tuple[str, str]] = []

    async def follow() -> None:
        async for event, found in api.watch(f"gadgets.{GROUP}", namespace=sampan_namespace):
            seen.append((event, found.name))
            if event == "DELETED":
                return

    following = asyncio.create_task(follow())
    while not seen:
        assert not following.done(), following
        await asyncio.sleep(0.05)
    await one.patch({"spec": {"color": "blue"}})
    await one.delete()
    await asyncio.wait_for(following, 30)
    assert seen[0] == ("ADDED", "one") and ("MODIFIED", "one") in seen and seen[-1] == ("DELETED", "one")


def test_a_pykube_client_finds_what_it_made(gadgets: None, sampan: SampanServer, sampan_namespace: str) -> None:
    import pykube

    api = pykube.HTTPClient(pykube.KubeConfig.from_file(str(sampan.kubeconfig)))
    kind = pykube.object_factory(api, f"{GROUP}/v1", "Gadget")
    made = kind(api, {**gadget("pykube", color="red"), "metadata": {"name": "pykube", "namespace": sampan_namespace}})
    made.create()
    made.patch({"spec": {"color": "green"}})
    found = kind.objects(api).filter(namespace=sampan_namespace).get(name="pykube")
    assert found.obj["spec"]["color"] == "green"
    found.delete()
    assert not kind.objects(api).filter(namespace=sampan_namespace)


def test_kubectl_shows_and_explains_custom_resources(gadgets: None, kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=json.dumps(gadget("g", color="red")))
    assert kubectl("get", "gadgets").split()[:2] == ["NAME", "AGE"]
    assert "color" in kubectl("explain", "gadgets.spec", "--api-version", f"{GROUP}/v1")
    misspelt = kubectl.run("create", "-f", "-", stdin=json.dumps(gadget("h", colour="red")), check=False)
    assert 'unknown field "spec.colour"' in misspelt.stderr
