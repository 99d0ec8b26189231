"""The real kubectl, and the client libraries that operators are written with, on a custom resource."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.pytest_plugin import SampanServer
from tests.e2e.conftest import Kubectl

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

Eventually = Callable[..., Any]

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: GROUP_PLURAL
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: boats, kind: Boat, shortNames: [bt], categories: [fleet]}
  versions:
  - name: v1
    served: true
    storage: true
    selectableFields: [{jsonPath: .spec.color}]
    additionalPrinterColumns:
    - {name: Color, type: string, jsonPath: .spec.color}
    - {name: Crew, type: integer, jsonPath: .spec.replicas}
    - {name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status', priority: 1}
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    schema:
      openAPIV3Schema:
        type: object
        description: Boat is what sails.
        properties:
          spec:
            type: object
            required: [color]
            properties:
              color: {type: string, enum: [red, blue], description: Color is what one sees from afar.}
              replicas: {type: integer, minimum: 0, default: 1}
          status:
            type: object
            x-kubernetes-preserve-unknown-fields: true
            properties:
              replicas: {type: integer}
              conditions:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [type]
                items: {type: object, required: [type, status], properties: {type: {type: string}, status: {type: string}}}
"""
BOAT = """
apiVersion: GROUP/v1
kind: Boat
metadata: {name: NAME}
spec: {color: red}
"""


class Fleet:
    """The boats of a group of its own."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.resource = f"boats.{group}"

    def definition(self) -> str:
        return DEFINITION.replace("GROUP_PLURAL", self.resource).replace("GROUP", self.group)

    def boat(self, name: str) -> str:
        return BOAT.replace("GROUP", self.group).replace("NAME", name)


@pytest.fixture
def fleet(kubectl: Kubectl, sampan_namespace: str) -> Iterator[Fleet]:
    made = Fleet(f"{sampan_namespace}.example.com")
    kubectl("apply", "-f", "-", stdin=made.definition())
    kubectl("wait", "--for=condition=Established", f"crd/{made.resource}", "--timeout=30s")
    yield made
    kubectl("delete", "crd", made.resource, "--timeout=60s")


def test_kubectl_on_a_custom_resource(kubectl: Kubectl, fleet: Fleet, eventually: Eventually) -> None:
    assert f"boat.{fleet.group}/one created" in kubectl("apply", "-f", "-", stdin=fleet.boat("one"))
    assert "unchanged" in kubectl("apply", "-f", "-", stdin=fleet.boat("one"))
    header, row = kubectl("get", fleet.resource).splitlines()
    assert header.split() == ["NAME", "COLOR", "CREW"]
    assert row.split() == ["one", "red", "1"]
    assert fleet.resource in kubectl("api-resources", "--categories=fleet", "-o", "name").split()
    explained = kubectl("explain", "boats.spec", "--api-version", f"{fleet.group}/v1")
    assert "Color is what one sees from afar." in explained
    assert "-required-" in explained
    kubectl("scale", fleet.resource, "one", "--replicas=3")
    ready = json.dumps({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    kubectl("patch", fleet.resource, "one", "--subresource=status", "--type=merge", "-p", ready)
    kubectl("wait", "--for=condition=Ready", f"{fleet.resource}/one", "--timeout=30s")
    assert kubectl("get", fleet.resource, "-o", "wide", "--no-headers").split() == ["one", "red", "3", "True"]
    refused = kubectl.run("patch", fleet.resource, "one", "--type=merge", "-p", '{"spec":{"color":"green"}}', check=False)
    assert 'spec.color: Unsupported value: "green": supported values: "red", "blue"' in refused.stderr
    unknown = kubectl.run("apply", "-f", "-", stdin=fleet.boat("two") + "sails: 3\n", check=False)
    assert 'strict decoding error: unknown field "sails"' in unknown.stderr
    kubectl("apply", "--server-side", "-f", "-", stdin=fleet.boat("two"))
    assert kubectl("get", fleet.resource, "--field-selector=spec.color=red", "-o", "name").count("/") == 2
    assert "Events:" in kubectl("describe", fleet.resource, "one")
    kubectl("label", fleet.resource, "one", "berth=7")
    assert kubectl("get", fleet.resource, "-l", "berth=7", "-o", "name").strip().endswith("/one")
    kubectl("delete", fleet.resource, "one", "--timeout=30s")


def test_dependents_of_a_custom_object_go_with_it_and_it_goes_with_its_namespace(
    kubectl: Kubectl, fleet: Fleet, eventually: Eventually
) -> None:
    kubectl("apply", "-f", "-", stdin=fleet.boat("one"))
    uid = kubectl.json("get", fleet.resource, "one")["metadata"]["uid"]
    owner = {"apiVersion": f"{fleet.group}/v1", "kind": "Boat", "name": "one", "uid": uid}
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "log", "ownerReferences": [owner]}}
    kubectl("apply", "-f", "-", stdin=json.dumps(child))
    kubectl("delete", fleet.resource, "one")
    eventually(lambda: "log" not in kubectl("get", "configmaps", "-o", "name"))

    space = f"{kubectl.namespace}-x"
    kubectl("create", "namespace", space)
    kubectl("apply", "--namespace", space, "-f", "-", stdin=fleet.boat("there"))
    kubectl("delete", "namespace", space, "--timeout=60s")
    assert kubectl.json("get", fleet.resource, "-A")["items"] == []


def test_the_official_client_patches_by_content_type(sampan: SampanServer, sampan_namespace: str, fleet: Fleet) -> None:
    from kubernetes import client, config

    api = client.CustomObjectsApi(config.new_client_from_config(str(sampan.kubeconfig)))
    where = (fleet.group, "v1", sampan_namespace, "boats")
    body = {"apiVersion": f"{fleet.group}/v1", "kind": "Boat", "metadata": {"name": "one"}, "spec": {"color": "red"}}
    api.create_namespaced_custom_object(*where, body)
    merged = api.patch_namespaced_custom_object(*where, "one", {"spec": {"color": "blue"}}, _content_type="application/merge-patch+json")
    assert merged["spec"]["color"] == "blue"
    patch = [{"op": "replace", "path": "/spec/color", "value": "red"}]
    patched = api.patch_namespaced_custom_object(*where, "one", patch, _content_type="application/json-patch+json")
    assert patched["spec"]["color"] == "red"
    with pytest.raises(client.ApiException) as refused:
        api.patch_namespaced_custom_object(*where, "one", {"spec": {}}, _content_type="application/strategic-merge-patch+json")
    assert refused.value.status == 415
    definitions = client.ApiextensionsV1Api(api.api_client)
    found = definitions.read_custom_resource_definition(fleet.resource)
    assert found.status.stored_versions == ["v1"]


async def test_kr8s_watches_deletes_and_makes_again(sampan: SampanServer, sampan_namespace: str, fleet: Fleet) -> None:
    import kr8s
    from kr8s.asyncio.objects import new_class

    api = await kr8s.asyncio.api(kubeconfig=str(sampan.kubeconfig), namespace=sampan_namespace)
    boats = new_class(kind="Boat", version=f"{fleet.group}/v1", plural="boats", namespaced=True, asyncio=True)
    boat = await boats({"metadata": {"name": "one"}, "spec": {"color": "red"}}, namespace=sampan_namespace, api=api)
    await boat.create()
    first = boat.metadata.uid

    async def seen() -> str:
        async for event, _ in api.watch(fleet.resource, namespace=sampan_namespace):
            return str(event)
        return ""

    assert await asyncio.wait_for(seen(), 30) == "ADDED"
    await boat.delete()
    again = await boats({"metadata": {"name": "one"}, "spec": boat.raw["spec"].to_dict()}, namespace=sampan_namespace, api=api)
    await again.create()
    assert again.metadata.uid != first
    await again.delete()


OPERATOR = """
import kopf


@kopf.on.startup()
def configure(settings, **_):
    settings.persistence.finalizer = "example.com/kopf"


@kopf.on.create("GROUP", "v1", "boats")
def created(spec, name, body, **_):
    kopf.info(body, reason="Launched", message=f"{name} is {spec['color']}")
    return {"sails": True}


@kopf.on.update("GROUP", "v1", "boats")
def updated(new, patch, **_):
    patch.status["painted"] = new["spec"]["color"]


@kopf.timer("GROUP", "v1", "boats", interval=0.5, initial_delay=0.1)
def tick(status, patch, **_):
    patch.status["ticks"] = status.get("ticks", 0) + 1


@kopf.on.delete("GROUP", "v1", "boats")
def deleted(**_):
    pass
"""


def test_a_kopf_operator_keeps_its_state_in_the_status(
    sampan: SampanServer, sampan_namespace: str, fleet: Fleet, kubectl: Kubectl, eventually: Eventually, tmp_path: Path
) -> None:
    script, log_file = tmp_path / "harbour.py", tmp_path / "log.txt"
    script.write_text(OPERATOR.replace("GROUP", fleet.group))
    with log_file.open("wb") as log:
        operator = subprocess.Popen(
            [sys.executable, "-m", "kopf", "run", "--namespace", sampan_namespace, "--standalone", str(script)],
            env=dict(os.environ, KUBECONFIG=str(sampan.kubeconfig)), cwd=tmp_path, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        kubectl("apply", "-f", "-", stdin=fleet.boat("one"))

        def status() -> Any:
            assert operator.poll() is None, log_file.read_text()
            return kubectl.json("get", fleet.resource, "one").get("status") or {}

        eventually(lambda: status().get("created") == {"sails": True})
        kubectl("patch", fleet.resource, "one", "--type=merge", "-p", '{"spec":{"color":"blue"}}')
        eventually(lambda: status().get("painted") == "blue")
        eventually(lambda: status().get("ticks", 0) >= 2)
        eventually(lambda: "one is red" in kubectl("get", "events"))
        assert kubectl.json("get", fleet.resource, "one")["metadata"]["finalizers"] == ["example.com/kopf"]
        kubectl("delete", fleet.resource, "one", "--timeout=30s")
        assert "inconsistencies" not in log_file.read_text()
    finally:
        operator.terminate()
        operator.wait(30)
