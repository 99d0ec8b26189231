"""The store's client port of a running server, by the real etcdctl with what the server says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.etcdctl import etcdctl
from tests.e2e.server_process import ServerProcess, free_port

pytestmark = pytest.mark.e2e


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
