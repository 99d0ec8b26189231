"""The commands as processes: what they print, how they end, what they leave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import etcd_backed
from tests.e2e.server_process import ServerProcess

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

#: on a machine that is busy with other things
SECONDS_MAX = 60


def sampan(*arguments: str | Path, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "apiserver.cli.main", *(str(a) for a in arguments)]
    environment = dict(os.environ, PYTHONUNBUFFERED="1", **environment)
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def interrupt(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """End it as Ctrl-C does; the exit status and the rest of what it says."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=SECONDS_MAX)
    return process.returncode, out, err


def test_an_ephemeral_server_says_where_it_is_and_leaves_nothing(tmp_path: Path) -> None:
    process = sampan("up", "--ephemeral", "--secure-port", "0", "--nodes", "1", TMPDIR=str(tmp_path))
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(6)]
    assert "serves Kubernetes 1.37 on https://127.0.0.1:" in lines[0]
    kubeconfig = Path(lines[2].strip().removeprefix("export KUBECONFIG="))
    assert kubeconfig.is_relative_to(tmp_path) and kubeconfig.exists()
    assert "Ctrl-C" in lines[5]
    assert interrupt(process) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_a_second_start_resumes_and_a_damaged_log_is_refused(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, "--no-controllers")
    server.start()
    config_map = {"metadata": {"name": "kept"}, "data": {"a": "b"}}
    assert server.request("POST", "/api/v1/namespaces/default/configmaps", config_map)[0] == 201
    authority = (server.data_dir / "pki" / "ca.crt").read_bytes()
    assert server.stop() == 0
    server.start()
    assert server.request("GET", "/api/v1/namespaces/default/configmaps/kept")[1]["data"] == {"a": "b"}
    assert (server.data_dir / "pki" / "ca.crt").read_bytes() == authority
    assert server.stop() == 0

    if etcd_backed.ENABLED:
        return  # the log is etcd's
    segment = next((server.data_dir / "member" / "wal").glob("*.wal"))
    content = bytearray(segment.read_bytes())
    content[2000:2064] = bytes(64)
    segment.write_bytes(content)
    process = sampan("up", "--data-dir", server.data_dir, "--secure-port", "0", "--no-controllers", "--listen-client-urls", "")
    out, err = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 1 and out == ""
    assert len(err.splitlines()) == 1 and f"{segment}: damaged at offset" in err and "backup" in err


def test_a_further_node_tells_what_it_does_and_ends_with_0(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, "--nodes", "0", "--no-controllers")
    server.start()
    try:
        process = sampan("node", "extra", "--data-dir", server.data_dir)
        assert process.stdout is not None
        assert process.stdout.readline() == f"node extra connects to https://127.0.0.1:{server.port}\n"
        assert process.stdout.readline() == "node extra runs. Stop with Ctrl-C.\n"
        assert interrupt(process) == (0, "", "")
    finally:
        assert server.stop() == 0
