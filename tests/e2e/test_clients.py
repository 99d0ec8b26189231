"""The client libraries that operators are written with, each doing its everyday work against the ``sampan`` fixture."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from apiserver.pytest_plugin import SampanServer

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def deployment(name: str, replicas: int = 2) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx:1.25"}]}},
        },
    }


def test_kubernetes_client(sampan: SampanServer, sampan_namespace: str) -> None:
    from kubernetes import client, config, watch

    api = config.new_client_from_config(str(sampan.kubeconfig))
    core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
    apps.create_namespaced_deployment(sampan_namespace, deployment("web"))
    running: set[str] = set()
    stream = watch.Watch().stream(core.list_namespaced_pod, sampan_namespace, timeout_seconds=60)
    for event in stream:
        if event["object"].status.phase == "Running":
            running.add(event["object"].metadata.name)
        if len(running) == 2:
            break
    assert len(running) == 2
    core.create_namespaced_config_map(sampan_namespace, {"metadata": {"name": "c"}, "data": {"a": "1"}})
    core.patch_namespaced_config_map("c", sampan_namespace, {"data": {"b": "2"}})
    assert core.read_namespaced_config_map("c", sampan_namespace).data == {"a": "1", "b": "2"}
    with pytest.raises(client.ApiException) as refused:
        core.read_namespaced_config_map("nothing", sampan_namespace)
    assert refused.value.status == 404
    core.delete_namespaced_config_map("c", sampan_namespace)
    assert "c" not in [c.metadata.name for c in core.list_namespaced_config_map(sampan_namespace).items]


async def test_kubernetes_asyncio_client(sampan: SampanServer, sampan_namespace: str) -> None:
    from kubernetes_asyncio import client, config, watch

    configuration = client.Configuration()
    await config.load_kube_config(str(sampan.kubeconfig), client_configuration=configuration)
    async with client.ApiClient(configuration) as api:
        core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
        await apps.create_namespaced_deployment(sampan_namespace, deployment("web", 1))
        async with watch.Watch().stream(core.list_namespaced_pod, sampan_namespace, timeout_seconds=60) as stream:
            async for event in stream:
                if event["object"].status.phase == "Running":
                    break
        pods = (await core.list_namespaced_pod(sampan_namespace)).items
        assert [p.status.phase for p in pods] == ["Running"]
        await apps.patch_namespaced_deployment_scale("web", sampan_namespace, {"spec": {"replicas": 3}})
        assert (await apps.read_namespaced_deployment_scale("web", sampan_namespace)).spec.replicas == 3


async def test_kr8s(sampan: SampanServer, sampan_namespace: str) -> None:
    import kr8s
    from kr8s.asyncio.objects import ConfigMap, Deployment

    api = await kr8s.asyncio.api(kubeconfig=str(sampan.kubeconfig), namespace=sampan_namespace)
    web = await Deployment(deployment("web"), namespace=sampan_namespace, api=api)
    await web.create()
    await asyncio.wait_for(web.wait("condition=Available"), 60)
    assert len(await web.pods()) == 2
    config = await ConfigMap({"metadata": {"name": "c"}, "data": {"a": "1"}}, namespace=sampan_namespace, api=api)
    await config.create()
    await config.patch({"data": {"a": "2"}})
    assert (await ConfigMap.get("c", namespace=sampan_namespace, api=api)).data.a == "2"
    await config.delete()
    await web.delete()


def test_lightkube(sampan: SampanServer, sampan_namespace: str) -> None:
    from lightkube import ApiError, Client, KubeConfig
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.apps_v1 import Deployment
    from lightkube.resources.core_v1 import ConfigMap, Pod
    from lightkube.types import PatchType

    client = Client(config=KubeConfig.from_file(str(sampan.kubeconfig)), namespace=sampan_namespace, field_manager="lightkube-test")
    client.create(Deployment.from_dict(deployment("web")))
    running: set[str] = set()
    for operation, pod in client.watch(Pod, namespace=sampan_namespace, server_timeout=60):
        if operation != "DELETED" and pod.status and pod.status.phase == "Running" and pod.metadata:
            running.add(str(pod.metadata.name))
        if len(running) == 2:
            break
    assert len(running) == 2
    applied = client.apply(ConfigMap(metadata=ObjectMeta(name="c", namespace=sampan_namespace), data={"a": "1"}))
    assert applied.data == {"a": "1"}
    client.patch(ConfigMap, "c", {"data": {"b": "2"}}, patch_type=PatchType.MERGE)
    assert client.get(ConfigMap, "c").data == {"a": "1", "b": "2"}
    client.delete(ConfigMap, "c")
    with pytest.raises(ApiError) as refused:
        client.get(ConfigMap, "c")
    assert refused.value.status.code == 404


OPERATOR = """
import kopf


@kopf.on.create("", "v1", "configmaps", labels={"watched": "yes"})
def created(name, namespace, body, patch, **_):
    patch.metadata.annotations["seen-by"] = "kopf"
    kopf.info(body, reason="Seen", message=f"{name} was seen")


@kopf.on.delete("", "v1", "configmaps", labels={"watched": "yes"})
def deleted(**_):
    pass
"""


def test_kopf_operator(sampan: SampanServer, sampan_namespace: str, tmp_path: Path, kubectl: Any, eventually: Any) -> None:
    import os

    script = tmp_path / "watching.py"  # a name that no module has: the working directory is first on its path
    script.write_text(OPERATOR)
    environment = dict(os.environ, KUBECONFIG=str(sampan.kubeconfig))
    with (tmp_path / "log.txt").open("wb") as log:
        operator = subprocess.Popen(
            [sys.executable, "-m", "kopf", "run", "--namespace", sampan_namespace, "--standalone", str(script)],
            env=environment, cwd=tmp_path, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        kubectl("create", "configmap", "c")
        kubectl("label", "configmap", "c", "watched=yes")

        def seen() -> bool:
            assert operator.poll() is None, (tmp_path / "log.txt").read_text()
            found = kubectl.json("get", "configmap", "c")["metadata"]
            return found.get("annotations", {}).get("seen-by") == "kopf" and bool(found.get("finalizers"))

        eventually(seen)
        eventually(lambda: "was seen" in kubectl("get", "events"))
        kubectl("delete", "configmap", "c", "--timeout=30s")
    finally:
        operator.terminate()
        operator.wait(30)
