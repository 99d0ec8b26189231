"""Every command of kubectl that writes, reads or waits, on a custom resource with several versions, a status and a scale."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Kubectl

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

Eventually = Callable[..., Any]

VERSION = """
  - name: NAME
    served: true
    storage: STORAGE
    additionalPrinterColumns:
    - {name: Cargo, type: string, jsonPath: .spec.cargo}
    - {name: Crew, type: integer, jsonPath: .spec.crew}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.crew, statusReplicasPath: .status.crew, labelSelectorPath: .status.selector}
    schema:
      openAPIV3Schema:
        type: object
        description: Ship is what carries.
        properties:
          spec:
            type: object
            description: What is wanted of the ship.
            required: [cargo]
            x-kubernetes-validations:
            - {rule: "self.crew <= 50 || self.cargo != 'tea'", message: "tea needs no crowd"}
            properties:
              cargo: {type: string, description: Cargo is what it carries., default: tea}
              crew: {type: integer, minimum: 0, default: 1}
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, days: {type: integer, default: 2}}
          status:
            type: object
            properties:
              crew: {type: integer}
              selector: {type: string}
              phase: {type: string}
              conditions:
                type: array
                items: {type: object, required: [type, status], properties: {type: {type: string}, status: {type: string}}}
"""
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: ships, kind: Ship, shortNames: [sh], categories: [GROUPall]}
  versions:
"""


class Ships:
    def __init__(self, kubectl: Kubectl) -> None:
        self.group = f"{kubectl.namespace}.example.com"
        self.resource = f"ships.{self.group}"
        versions = (("v1", "true"), ("v1beta1", "false"))
        found = DEFINITION + "".join(VERSION.replace("NAME", name).replace("STORAGE", storage)[1:] for name, storage in versions)
        self.definition = found.replace("GROUPall", kubectl.namespace).replace("GROUP", self.group)

    def ship(self, name: str, version: str = "v1", **spec: Any) -> str:
        api_version = f"{self.group}/{version}"
        return json.dumps({"apiVersion": api_version, "kind": "Ship", "metadata": {"name": name}, "spec": {"cargo": "tea", **spec}})


@pytest.fixture
def ships(kubectl: Kubectl) -> Iterator[Ships]:
    """Of a definition that was applied by the server."""
    made = Ships(kubectl)
    applied = kubectl("apply", "--server-side", "-f", "-", stdin=made.definition)
    assert applied == f"customresourcedefinition.apiextensions.k8s.io/{made.resource} serverside-applied\n"
    kubectl("wait", "--for=condition=Established", f"crd/{made.resource}", "--timeout=30s")
    yield made
    kubectl("delete", "crd", made.resource, "--timeout=60s")


def script(path: Path, text: str) -> str:
    """An editor that writes with sed."""
    path.write_text(f'#!/bin/sh\nsed -i "{text}" "$1"\n')
    path.chmod(0o755)
    return str(path)


def test_writing(kubectl: Kubectl, ships: Ships, tmp_path: Path) -> None:
    one, says = f"{ships.resource}/one", f"ship.{ships.group}/one"
    assert kubectl("apply", "-f", "-", stdin=ships.ship("one", ports=[{"name": "goa", "days": 2}])) == f"{says} created\n"
    assert kubectl("apply", "-f", "-", stdin=ships.ship("one", ports=[{"name": "goa", "days": 2}])) == f"{says} unchanged\n"
    changed = ships.ship("one", cargo="rice", ports=[{"name": "goa", "days": 2}])
    different = kubectl.run("diff", "-f", "-", stdin=changed, check=False)
    assert different.returncode == 1 and "-  cargo: tea\n+  cargo: rice\n" in different.stdout
    assert kubectl("apply", "-f", "-", stdin=changed) == f"{says} configured\n"
    assert kubectl.run("diff", "-f", "-", stdin=changed, check=False).returncode == 0
    # what it has applied itself kubectl takes over to server-side apply; the fields of another manager are in the way
    kubectl("apply", "--server-side", "-f", "-", stdin=ships.ship("one", cargo="wool", ports=[{"name": "goa", "days": 2}]))
    by_other = ("apply", "--server-side", "--field-manager=other", "-f", "-")
    conflict = kubectl.run(*by_other, stdin=ships.ship("one", cargo="silk"), check=False)
    assert 'conflict with "kubectl"' in conflict.stderr and ".spec.cargo" in conflict.stderr
    kubectl(*by_other, "--force-conflicts", stdin=ships.ship("one", cargo="silk"))
    assert kubectl("get", one, "-o", "jsonpath={.spec.cargo} {.spec.ports[0].days}") == "silk 2"
    current = kubectl.json("get", one)
    current["spec"]["crew"] = 4
    assert kubectl("replace", "-f", "-", stdin=json.dumps(current)) == f"{says} replaced\n"
    stale = kubectl.run("replace", "-f", "-", stdin=json.dumps(current), check=False)
    assert "the object has been modified; please apply your changes to the latest version" in stale.stderr
    kubectl.run("edit", one, EDITOR=script(tmp_path / "editor", "s/cargo: silk/cargo: salt/"))
    status = script(tmp_path / "status", "s/^spec:/status: {phase: Sailing}\\nspec:/")
    kubectl.run("edit", one, "--subresource=status", EDITOR=status)
    assert kubectl("get", one, "-o", "jsonpath={.spec.cargo} {.status.phase}") == "salt Sailing"
    kubectl("patch", one, "--type=json", "-p", '[{"op":"add","path":"/spec/ports/-","value":{"name":"aden","days":5}}]')
    kubectl("patch", one, "--type=merge", "-p", '{"spec":{"crew":6}}')
    strategic = kubectl.run("patch", one, "--type=strategic", "-p", '{"spec":{"crew":7}}', check=False)
    assert "application/strategic-merge-patch+json is not supported by" in strategic.stderr
    refused = kubectl.run("patch", one, "--type=merge", "-p", '{"spec":{"crew":60,"cargo":"tea"}}', check=False)
    assert 'The Ship "one" is invalid: spec: Invalid value: ' in refused.stderr and ": tea needs no crowd" in refused.stderr
    assert kubectl("label", one, "line=east") == f"{says} labeled\n"
    assert kubectl("annotate", one, "note=a b") == f"{says} annotated\n"
    assert kubectl("label", one, "line-") == f"{says} unlabeled\n"
    found = kubectl.json("get", one)
    assert found["spec"]["crew"] == 6 and [p["name"] for p in found["spec"]["ports"]] == ["goa", "aden"]
    assert found["metadata"]["annotations"]["note"] == "a b" and "labels" not in found["metadata"]
    kubectl("replace", "--force", "-f", "-", stdin=ships.ship("one"))
    assert kubectl.json("get", one)["metadata"]["uid"] != found["metadata"]["uid"]


def test_scale_status_and_waiting(kubectl: Kubectl, ships: Ships) -> None:
    one = f"{ships.resource}/one"
    kubectl("create", "-f", "-", stdin=ships.ship("one"))
    assert kubectl("scale", one, "--replicas=3") == f"ship.{ships.group}/one scaled\n"
    wrong = kubectl.run("scale", one, "--current-replicas=9", "--replicas=4", check=False)
    assert "Expected replicas to be 9, was 3" in wrong.stderr
    waiting = kubectl.start("wait", "--for=jsonpath={.status.phase}=Moored", one, "--timeout=60s")
    kubectl("patch", one, "--subresource=scale", "--type=merge", "-p", '{"spec":{"replicas":5}}')
    report = {"crew": 5, "phase": "Moored", "selector": "ship=one", "conditions": [{"type": "Ready", "status": "True"}]}
    kubectl("patch", one, "--subresource=status", "--type=merge", "-p", json.dumps({"status": report}))
    assert waiting.wait(60) == 0
    assert kubectl("wait", "--for=condition=Ready", one, "--timeout=30s") == f"ship.{ships.group}/one condition met\n"
    scale = json.loads(kubectl("get", one, "--subresource=scale", "-o", "json"))
    assert scale["kind"] == "Scale" and scale["spec"] == {"replicas": 5} and scale["status"] == {"replicas": 5, "selector": "ship=one"}
    rollout = kubectl.run("rollout", "status", one, check=False)
    assert 'no kind "Ship" is registered' in rollout.stderr  # kubectl's own word for whatever it has not built in
    gone = kubectl.start("wait", "--for=delete", one, "--timeout=60s")
    kubectl("delete", one, "--wait=false")
    assert gone.wait(60) == 0
    assert "timed out waiting" in kubectl.run("wait", "--for=create", one, "--timeout=1s", check=False).stderr


def test_reading(kubectl: Kubectl, ships: Ships, eventually: Eventually) -> None:
    for name in ("one", "two"):
        kubectl("apply", "-f", "-", stdin=ships.ship(name, "v1beta1", crew=2))
    for version in ("v1", "v1beta1"):
        listed = kubectl("get", f"ships.{version}.{ships.group}").splitlines()
        assert [line.split()[:3] for line in listed] == [["NAME", "CARGO", "CREW"], ["one", "tea", "2"], ["two", "tea", "2"]]
        assert kubectl.json("get", f"ships.{version}.{ships.group}", "one")["apiVersion"] == f"{ships.group}/{version}"
    assert kubectl("get", kubectl.namespace, "-o", "name").split() == [f"ship.{ships.group}/one", f"ship.{ships.group}/two"]
    assert kubectl("get", ships.resource, "--sort-by=.metadata.name", "-o", "custom-columns=N:.metadata.name").split() == [
        "N",
        "one",
        "two",
    ]
    described = kubectl("describe", ships.resource, "one")
    assert "Cargo:  tea" in described and f"API Version:  {ships.group}/v1" in described
    watch = kubectl.start("get", ships.resource, "-w", "--output-watch-events", "-o", "jsonpath={.type} {.object.metadata.name}{'\\n'}")
    assert watch.stdout is not None
    try:
        assert {watch.stdout.readline() for _ in range(2)} == {"ADDED one\n", "ADDED two\n"}
        kubectl("label", ships.resource, "two", "a=b")
        assert watch.stdout.readline() == "MODIFIED two\n"
        kubectl("delete", ships.resource, "two")
        assert watch.stdout.readline() == "DELETED two\n"
    finally:
        watch.kill()
        watch.wait()
    explained = kubectl("explain", "ships.spec", "--api-version", f"{ships.group}/v1beta1")
    assert f"GROUP:      {ships.group}\nKIND:       Ship\nVERSION:    v1beta1\n" in explained
    assert "What is wanted of the ship." in explained and "cargo\t<string> -required-" in explained
    tree = kubectl("explain", "ships", "--api-version", f"{ships.group}/v1", "--recursive")
    assert [line.split("\t")[0].strip() for line in tree.splitlines() if "\t<" in line and line.startswith("    ")][:3]
    assert "ports\t<[]Object>" in tree and "days\t<integer>" in tree
    assert kubectl("api-resources", "--api-group", ships.group, "--no-headers").split()[:3] == ["ships", "sh", f"{ships.group}/v1"]
    assert {f"{ships.group}/v1", f"{ships.group}/v1beta1"} <= set(kubectl("api-versions").split())


def test_deleting_with_and_without_what_belongs_to_it(kubectl: Kubectl, ships: Ships, eventually: Eventually) -> None:
    def child(owner: str) -> None:
        uid = kubectl.json("get", ships.resource, owner)["metadata"]["uid"]
        reference = {"apiVersion": f"{ships.group}/v1", "kind": "Ship", "name": owner, "uid": uid, "blockOwnerDeletion": True}
        metadata = {"name": f"log-{owner}", "ownerReferences": [reference]}
        kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))

    for name, cascade in (("background", "background"), ("foreground", "foreground"), ("orphan", "orphan")):
        kubectl("create", "-f", "-", stdin=ships.ship(name))
        child(name)
        kubectl("delete", ships.resource, name, f"--cascade={cascade}", "--timeout=60s")
        if cascade == "foreground":
            assert "log-foreground" not in kubectl("get", "configmaps", "-o", "name"), "its owner has waited for it"
    eventually(lambda: "log-background" not in kubectl("get", "configmaps", "-o", "name"))
    orphan = kubectl.json("get", "configmap", "log-orphan")
    assert "ownerReferences" not in orphan["metadata"]
    kubectl("create", "-f", "-", stdin=ships.ship("last"))
    assert f'ship.{ships.group} "last" deleted' in kubectl("delete", ships.resource, "--all")
