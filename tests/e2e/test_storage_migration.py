"""A version of a custom resource is retired: by kubectl, a StorageVersionMigration and the controller that does what it asks."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytestmark = pytest.mark.e2e


def definition(group: str, storage: str, *versions: str) -> str:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    said = [{"name": v, "served": True, "storage": v == storage, "schema": {"openAPIV3Schema": schema}} for v in versions]
    spec = {"group": group, "scope": "Namespaced", "names": {"plural": "cogs", "kind": "Cog"}, "versions": said}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return json.dumps({**kind, "metadata": {"name": f"cogs.{group}"}, "spec": spec})


def migration(name: str, group: str, plural: str) -> str:
    spec = {"resource": {"group": group, "resource": plural}}
    kind = {"apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration"}
    return json.dumps({**kind, "metadata": {"name": name}, "spec": spec})


def test_a_version_is_retired_once_its_objects_have_migrated(kubectl: Any, eventually: Any) -> None:
    group = f"{kubectl.namespace}.migration.test"
    name = f"crd/cogs.{group}"

    def conditions(of: str) -> dict[str, str]:
        found = kubectl.json("get", "storageversionmigration", of).get("status", {}).get("conditions") or ()
        return {c["type"]: c["status"] for c in found}

    kubectl("apply", "-f", "-", stdin=definition(group, "v1", "v1", "v2"))
    try:
        kubectl("wait", "--for=condition=Established", name, "--timeout=30s")
        for number in range(3):
            cog = {"apiVersion": f"{group}/v1", "kind": "Cog", "metadata": {"name": f"c{number}"}, "spec": {"size": number}}
            kubectl("create", "-f", "-", stdin=json.dumps(cog))
        before = {c["metadata"]["name"]: c["metadata"]["resourceVersion"] for c in kubectl.json("get", f"cogs.{group}")["items"]}
        kubectl("apply", "-f", "-", stdin=definition(group, "v2", "v1", "v2"))
        eventually(lambda: kubectl.json("get", name)["status"]["storedVersions"] == ["v1", "v2"])
        kubectl("apply", "-f", "-", stdin=migration(group, group, "cogs"))
        eventually(lambda: conditions(group).get("Succeeded") == "True")
        assert conditions(group)["Running"] == "False"
        after = {c["metadata"]["name"]: c["metadata"]["resourceVersion"] for c in kubectl.json("get", f"cogs.{group}")["items"]}
        assert all(after[cog] != version for cog, version in before.items()), "each was written anew"
        assert kubectl.json("get", name)["status"]["storedVersions"] == ["v2"]
        kubectl("apply", "-f", "-", stdin=definition(group, "v2", "v2"))
        assert [c["spec"]["size"] for c in kubectl.json("get", f"cogs.{group}")["items"]] == [0, 1, 2]
    finally:
        kubectl("delete", name, "--wait=false")
        kubectl("delete", "storageversionmigration", group, "--ignore-not-found")
