"""The store's client port of a running server, by the real etcdctl with what the server says."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server_process import ServerProcess, free_port
from tests.storage.etcd_process import BINARIES

pytestmark = pytest.mark.e2e

ETCDCTL_SECONDS_MAX = 30.0


def environment(log: Path) -> dict[str, str]:
    """What the line to be pasted into a shell sets."""
    found = re.search(r"export (ETCDCTL_API=.*)", log.read_text())
    assert found is not None, log.read_text()
    return dict(part.split("=", 1) for part in found[1].split())


def etcdctl(log: Path, *arguments: str) -> Any:
    command = [str(BINARIES / "etcdctl"), *arguments, "-w", "json", "--command-timeout", "20s", "--dial-timeout", "10s"]
    done = subprocess.run(command, env=environment(log), capture_output=True, timeout=ETCDCTL_SECONDS_MAX)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_etcdctl_with_what_the_server_says(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, "--no-controllers", "--listen-client-urls", f"https://127.0.0.1:{free_port()}")
    server.start()
    try:
        server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "seen-by-etcdctl"}})
        found = etcdctl(server.log, "get", "/registry/namespaces/seen-by-etcdctl")
        assert found["count"] == 1
        [status] = etcdctl(server.log, "endpoint", "status")
        assert status["Status"]["leader"] == status["Status"]["header"]["member_id"]
    finally:
        assert server.stop() == 0
    assert "Traceback" not in server.log.read_text()
