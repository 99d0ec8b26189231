"""500 clients ask for as much as they can get, and the cluster lives on: nodes renew their leases, an administrator is answered."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.server_process import ServerProcess

CLIENTS = 500
FLOOD_SECONDS = 12.0
OBJECTS = 600


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    users = {"loud": ("readers",)}
    server = ServerProcess(tmp_path, "--unsafe-no-fsync", "--nodes", "2", users=users)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def leases(server: ServerProcess) -> dict[str, str]:
    code, found = server.request("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases")
    assert code == 200, found
    return {lease["metadata"]["name"]: lease["spec"]["renewTime"] for lease in found["items"]}


def test_leases_are_renewed_while_500_clients_list_all_they_can(server: ServerProcess) -> None:
    connection = server.connection()
    for number in range(OBJECTS):
        body = {"metadata": {"name": f"c{number}"}, "data": {"text": "x" * 500}}
        assert server.request("POST", "/api/v1/namespaces/default/configmaps", body, connection=connection)[0] == 201
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]
    server.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "readers"}, "rules": rules})
    binding = {
        "metadata": {"name": "readers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "readers"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "readers"}],
    }
    assert server.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)[0] == 201
    before = leases(server)
    assert len(before) == 2
    arguments = [str(server.port), server.tokens["loud"], "/api/v1/configmaps", str(CLIENTS), str(FLOOD_SECONDS)]
    flood = subprocess.Popen([sys.executable, "-m", "tests.robustness.flood", *arguments], stdout=subprocess.PIPE, text=True)
    waits = []
    try:
        time.sleep(3)
        while flood.poll() is None:
            began = time.monotonic()
            assert server.request("GET", "/api/v1/namespaces/default")[0] == 200
            waits.append(time.monotonic() - began)
            time.sleep(0.2)
    finally:
        flood.kill()
    assert flood.stdout is not None
    statuses = json.loads(flood.stdout.read())
    after = leases(server)
    assert all(after[node] > before[node] for node in before), (before, after)
    assert statuses.get("200", 0) > 0 and set(statuses) <= {"200", "429", "cut"}, statuses
    assert statuses.get("429", 0) > 0, "queues of one flow are bounded"
    # the median, since the two processes share the processors with whatever else runs
    assert sorted(waits)[len(waits) // 2] < 2.0, waits
    code, found = server.request("GET", "/api/v1/nodes")
    conditions = {c["type"]: c["status"] for node in found["items"] for c in node["status"]["conditions"]}
    assert code == 200 and conditions["Ready"] == "True"
    print(statuses, sorted(waits))
