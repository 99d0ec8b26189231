"""pytest fixtures for people who test against Kubernetes: a server for the session, a clean namespace for each test.

``sampan`` (session) starts ``sampan up --ephemeral`` on a free port; ``sampan_namespace`` (function) is the name of a namespace
made for the test and deleted after it. ``--sampan-kubernetes-version 1.NN`` picks the version, the ini option ``sampan_args`` adds
flags of ``sampan up``. Nothing heavy is imported and nothing is started until a fixture is used.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 15.0
REQUEST_SECONDS_MAX = 30.0
_READY = re.compile(r"on (https://\S+) \(ready.*?export KUBECONFIG=(\S+)\n", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampanServer:
    """A running server. ``token`` is of a user in ``system:masters``; ``kubeconfig`` and ``ca_file`` are paths."""

    url: str
    ca_file: Path
    token: str
    kubeconfig: Path

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """One request as the administrator; answers the decoded JSON. Raises ``urllib.error.HTTPError`` on a refusal."""
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": content_type, "Accept": "application/json"},
        )
        context = ssl.create_default_context(cafile=str(self.ca_file))
        with urllib.request.urlopen(request, context=context, timeout=REQUEST_SECONDS_MAX) as answer:
            return json.loads(answer.read())


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("sampan", "a Kubernetes API server for tests")
    group.addoption("--sampan-kubernetes-version", default=None, metavar="1.NN", help="which Kubernetes the sampan fixture serves")
    parser.addini("sampan_args", "further flags of 'sampan up' for the sampan fixture", type="args", default=[])


@pytest.fixture(scope="session")
def sampan(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SampanServer]:
    """A server with controllers, scheduler and two hollow nodes, for the whole session."""
    directory = tmp_path_factory.mktemp("sampan")
    token = secrets.token_urlsafe(24)
    tokens = directory / "tokens.csv"
    tokens.touch(mode=0o600)
    tokens.write_text(f'{token},pytest,pytest,"system:masters"\n')
    flags = ["--ephemeral", "--secure-port", "0", "--token-auth-file", str(tokens)]
    version = request.config.getoption("--sampan-kubernetes-version")
    if version:
        flags += ["--kubernetes-version", version]
    process = start(flags + list(request.config.getini("sampan_args")), directory / "log.txt")
    try:
        url, kubeconfig = wait_until_ready(process, directory / "log.txt")
        yield SampanServer(url=url, ca_file=kubeconfig.parent / "pki" / "ca.crt", token=token, kubeconfig=kubeconfig)
    finally:
        stop(process)


@pytest.fixture
def sampan_namespace(sampan: SampanServer) -> Iterator[str]:
    """The name of an empty namespace that is this test's own."""
    name = f"test-{secrets.token_hex(4)}"
    sampan.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    try:
        sampan.request("DELETE", f"/api/v1/namespaces/{name}")
    except urllib.error.HTTPError as error:
        if error.code != 404:  # the test may have deleted it
            raise


def start(flags: list[str], log: Path) -> subprocess.Popen[bytes]:
    """Start ``sampan up`` with its output in ``log``; the code that runs is the code this plugin belongs to. It stops when this process
    is gone, however that ended."""
    root = str(Path(__file__).resolve().parent.parent)
    environment = dict(os.environ, PYTHONPATH=root, PYTHONUNBUFFERED="1")
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "apiserver.cli.main", "up", "--stop-with-stdin", *flags],
            stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, env=environment, start_new_session=True,
        )  # fmt: skip


def wait_until_ready(process: subprocess.Popen[bytes], log: Path) -> tuple[str, Path]:
    """The URL and the administrator's kubeconfig that the server says it is ready with. Raises RuntimeError with the server's
    output where it ends or says nothing in time."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        found = _READY.search(log.read_text())
        if found:
            return found[1], Path(found[2])
        if process.poll() is not None:
            break
        time.sleep(0.02)
    raise RuntimeError(f"sampan did not become ready:\n{log.read_text()}")


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the server as Ctrl-C does; kill it where that takes too long."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    assert process.stdin is not None
    process.stdin.close()
