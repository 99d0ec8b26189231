"""What survives a fault: a killed server, a silent node, a second process without its first."""

from __future__ import annotations

import http.client
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server_process import ServerProcess

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

#: more by the environment for a long run
KILL_ROUNDS = int(os.environ.get("SAMPAN_KILL_ROUNDS", "2"))
WRITERS = 4
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    made = ServerProcess(tmp_path, "--no-controllers")
    yield made
    if made.process is not None and made.process.poll() is None:
        made.kill()


def test_a_killed_server_loses_nothing_it_acknowledged_and_watches_resume(server: ServerProcess) -> None:
    """Writers create objects until the server is killed; after the restart each acknowledged one is there at its revision, and
    a watch resumed from the last revision seen delivers the rest: every object once, in order, none missing."""
    server.start()
    acknowledged: dict[str, str] = {}
    seen: list[tuple[int, str]] = []
    status, listed = server.request("GET", CONFIGMAPS)
    assert status == 200
    resume = listed["metadata"]["resourceVersion"]
    known = {item["metadata"]["name"] for item in listed["items"]}
    for number in range(KILL_ROUNDS):
        stop = threading.Event()
        threads = [threading.Thread(target=_create, args=(server, f"r{number}-w{i}", acknowledged, stop)) for i in range(WRITERS)]
        threads.append(threading.Thread(target=_follow, args=(server, resume, seen)))
        for thread in threads:
            thread.start()
        enough = (number + 1) * 40
        _until(lambda: len(acknowledged) > enough)  # noqa: B023 - called here and now
        server.kill()
        stop.set()
        for thread in threads:
            thread.join()
        server.start()
        resume = str(seen[-1][0]) if seen else resume
        _, listed = server.request("GET", CONFIGMAPS)
        found = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in listed["items"]}
        lost = {name: rv for name, rv in acknowledged.items() if found.get(name) != rv}
        assert not lost, f"round {number}: acknowledged but not there at its revision: {lost}"
    end = threading.Thread(target=_follow, args=(server, resume, seen, int(listed["metadata"]["resourceVersion"])))
    end.start()
    end.join(30)
    assert [revision for revision, _ in seen] == sorted({revision for revision, _ in seen}), "a repeat or a step back"
    created = {name for name in found if name not in known}
    assert {name for _, name in seen} == created, "the watch missed objects or made some up"
    assert server.stop() == 0


def _create(server: ServerProcess, prefix: str, acknowledged: dict[str, str], stop: threading.Event) -> None:
    connection = server.connection()
    for number in range(10_000):
        name = f"{prefix}-{number}"
        try:
            status, answer = server.request("POST", CONFIGMAPS, {"metadata": {"name": name}}, connection=connection)
        except (OSError, http.client.HTTPException, ValueError):
            return
        assert status == 201, answer
        acknowledged[name] = answer["metadata"]["resourceVersion"]
        if stop.is_set():
            return


def _follow(server: ServerProcess, resume: str, seen: list[tuple[int, str]], until: int | None = None) -> None:
    for event in server.watch(f"{CONFIGMAPS}?watch=1&resourceVersion={resume}&timeoutSeconds=60"):
        metadata = event["object"]["metadata"]
        assert event["type"] == "ADDED", event
        seen.append((int(metadata["resourceVersion"]), metadata["name"]))
        if until is not None and seen[-1][0] >= until:
            return


def _until(check: Callable[[], Any], seconds: float = 60.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)
    return found


def test_the_second_process_never_outlives_the_first(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    server.start()
    assert server.process is not None
    children = _until(lambda: _children(server.process.pid if server.process else 0))
    server.kill()
    _until(lambda: not any(_alive(pid) for pid in children), 15)


def test_ctrl_c_ends_watches_and_both_processes_with_status_0(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    server.start()
    assert server.process is not None
    children = _children(server.process.pid)
    ended = threading.Event()

    def follow() -> None:
        for _ in server.watch("/api/v1/pods?watch=1"):
            pass
        ended.set()

    thread = threading.Thread(target=follow)
    thread.start()
    time.sleep(0.2)  # so that the watch is most likely under way; the outcome asserted is the same if it is not
    assert server.stop() == 0
    thread.join(10)
    assert ended.is_set()
    assert not any(_alive(pid) for pid in children)


def test_a_silent_node_becomes_unknown_and_its_pods_are_replaced(tmp_path: Path) -> None:
    """One of two hollow nodes stops; within the grace period it is NotReady, and its pods run again on the other one."""
    import subprocess
    import sys

    server = ServerProcess(tmp_path, "--nodes", "1", "--node-monitor-grace-period", "5s", "--node-monitor-period", "1s")
    server.start()
    node = subprocess.Popen(
        [sys.executable, "-m", "apiserver.cli.main", "node", "frail", "--data-dir", str(server.data_dir)], stdin=subprocess.DEVNULL
    )
    try:
        _until(lambda: _ready(server, "frail") == "True" and _ready(server, "node-1") == "True")
        toleration = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
        pod = {
            "tolerations": [{"key": f"node.kubernetes.io/{key}", **toleration} for key in ("not-ready", "unreachable")],
            "containers": [{"name": "c", "image": "i"}],
        }
        template = {"metadata": {"labels": {"app": "web"}}, "spec": pod}
        spec = {"replicas": 4, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        status, _ = server.request("POST", "/apis/apps/v1/namespaces/default/deployments", {"metadata": {"name": "web"}, "spec": spec})
        assert status == 201
        _until(lambda: {n for n, phase in _placed(server) if phase == "Running"} == {"frail", "node-1"})
        node.kill()
        node.wait()
        _until(lambda: _ready(server, "frail") == "Unknown", 30)
        # the taint follows the condition, in a write of its own
        _until(lambda: ("node.kubernetes.io/unreachable", "NoExecute") in _taints(server, "frail"), 30)
        _until(lambda: sorted(_placed(server)).count(("node-1", "Running")) == 4, 60)
    finally:
        if node.poll() is None:
            node.kill()
            node.wait()
        server.kill()


def _ready(server: ServerProcess, node: str) -> str:
    status, found = server.request("GET", f"/api/v1/nodes/{node}")
    if status != 200:
        return ""
    return str(next((c["status"] for c in found.get("status", {}).get("conditions", []) if c["type"] == "Ready"), ""))


def _taints(server: ServerProcess, node: str) -> set[tuple[str, str]]:
    spec = server.request("GET", f"/api/v1/nodes/{node}")[1]["spec"]
    return {(taint["key"], taint["effect"]) for taint in spec.get("taints", [])}


def _placed(server: ServerProcess) -> list[tuple[str, str]]:
    _, pods = server.request("GET", "/api/v1/namespaces/default/pods")
    alive = [p for p in pods["items"] if "deletionTimestamp" not in p["metadata"]]
    return [(p["spec"].get("nodeName", ""), p["status"].get("phase", "")) for p in alive]


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found]


def _alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
