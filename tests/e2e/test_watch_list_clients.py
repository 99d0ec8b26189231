"""Real clients that list and watch in the new way and in the old: client-go's informers in kubectl, on built-in and custom resources."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server_process import ServerProcess

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SECONDS_MAX = 60
GADGETS = "/apis/demo.test/v1/namespaces/default/gadgets"
DEFINITION: dict[str, Any] = {
    "metadata": {"name": "gadgets.demo.test"},
    "spec": {
        "group": "demo.test",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                "subresources": {"status": {}},
            }
        ],
    },
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    directory = tmp_path_factory.mktemp("watch-list")
    made = ServerProcess(directory, "--nodes", "1", "--audit-log-path", str(directory / "audit.log"))
    made.start()
    yield made
    made.stop()


def kubectl(server: ServerProcess, *arguments: str, streaming: bool = False) -> str:
    """``streaming``: with client-go's streaming lists, which clients of 1.35 and later use by default."""
    env = {**os.environ, "KUBECONFIG": str(server.kubeconfig), "KUBE_FEATURE_WatchListClient": "true" if streaming else "false"}
    done = subprocess.run(["kubectl", *arguments], capture_output=True, text=True, env=env, timeout=SECONDS_MAX)
    assert done.returncode == 0, done.stderr
    return done.stdout


def watches_of(server: ServerProcess, name: str) -> list[str]:
    """What kubectl watched of the object, from the audit log, which is written a little behind the answers."""
    log = Path(server.log.parent / "audit.log")
    found = [json.loads(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]
    uris = [entry["requestURI"] for entry in found if entry.get("userAgent", "").startswith("kubectl")]
    return [uri for uri in uris if "watch=true" in uri and f"metadata.name%3D{name}&" in uri]


@pytest.mark.parametrize("streaming", [False, True])
def test_a_rollout_is_followed_by_an_informer(
    server: ServerProcess, streaming: bool, eventually: Callable[[Callable[[], Any]], Any]
) -> None:
    name = f"web-{streaming}".lower()
    kubectl(server, "create", "deployment", name, "--image=nginx:1.25", "--replicas=2")
    said = kubectl(server, "rollout", "status", f"deployment/{name}", f"--timeout={SECONDS_MAX}s", streaming=streaming)
    assert "successfully rolled out" in said
    first, *_ = eventually(lambda: watches_of(server, name))
    assert ("sendInitialEvents=true" in first) == streaming, first


def test_custom_resources_are_waited_for_and_watched(server: ServerProcess) -> None:
    assert server.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)[0] == 201
    kubectl(server, "wait", "--for=condition=Established", "crd/gadgets.demo.test", f"--timeout={SECONDS_MAX}s")
    body = {"apiVersion": "demo.test/v1", "kind": "Gadget", "metadata": {"name": "g1", "labels": {"tier": "web"}}, "spec": {"color": "red"}}
    assert server.request("POST", GADGETS, body)[0] == 201
    env = {**os.environ, "KUBECONFIG": str(server.kubeconfig)}
    command = ["kubectl", "get", "gadgets", "-l", "tier=web", "-w", "--output-watch-events", f"--request-timeout={SECONDS_MAX}s"]
    watch = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    assert watch.stdout is not None
    try:
        assert watch.stdout.readline().split() == ["EVENT", "NAME", "AGE"]
        assert watch.stdout.readline().split()[:2] == ["ADDED", "g1"]
        waiting = subprocess.Popen(
            ["kubectl", "wait", "--for=jsonpath={.status.phase}=Ready", "gadget/g1", f"--timeout={SECONDS_MAX}s"],
            stdout=subprocess.PIPE, text=True, env=env,
        )  # fmt: skip
        kubectl(server, "patch", "gadget", "g1", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Ready"}}')
        assert waiting.communicate(timeout=SECONDS_MAX)[0].strip() == "gadget.demo.test/g1 condition met"
        assert watch.stdout.readline().split()[:2] == ["MODIFIED", "g1"]
        # out of the selection, then in again
        kubectl(server, "label", "gadget", "g1", "tier=db", "--overwrite")
        assert watch.stdout.readline().split()[:2] == ["DELETED", "g1"]
        kubectl(server, "label", "gadget", "g1", "tier=web", "--overwrite")
        assert watch.stdout.readline().split()[:2] == ["ADDED", "g1"]
        kubectl(server, "delete", "gadget", "g1")
        assert watch.stdout.readline().split()[:2] == ["DELETED", "g1"]
    finally:
        watch.kill()
        watch.wait()
    kubectl(server, "wait", "--for=delete", "gadget/g1", f"--timeout={SECONDS_MAX}s")
