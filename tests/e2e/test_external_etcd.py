"""``sampan apiserver --etcd-servers``: stateless API servers on a real etcd, over mutual TLS, which comes late, goes away and returns."""

from __future__ import annotations

import datetime
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver import pytest_plugin
from apiserver.cli.pki import Pki, Subject
from tests.e2e.server_process import ServerProcess
from tests.storage.etcd_process import EtcdProcess, TlsFiles

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
WAIT_SECONDS = 30.0


def ready_status(server: ServerProcess) -> int:
    connection = server.connection()
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path / "etcd-pki", datetime.datetime.now(datetime.UTC))


@pytest.fixture
def etcd(tmp_path: Path, pki: Pki) -> Iterator[EtcdProcess]:
    serving = pki.serving("etcd", "127.0.0.1", "10.96.0.1")
    files = TlsFiles(ca=pki.ca.certificate, certificate=serving.certificate, key=serving.key)
    with EtcdProcess(tmp_path / "etcd", tls=files) as process:
        yield process


@pytest.fixture
def server_of(tmp_path: Path, pki: Pki, etcd: EtcdProcess) -> Iterator[Callable[..., ServerProcess]]:
    """Makes servers that have not started. All have the first one's keys, as servers of one cluster must."""
    made: list[ServerProcess] = []
    client = pki.client("client", Subject("apiserver"))

    def make(*flags: str) -> ServerProcess:
        files = ("--etcd-cafile", str(pki.ca.certificate), "--etcd-certfile", str(client.certificate), "--etcd-keyfile", str(client.key))
        name = f"server-{len(made)}"
        server = ServerProcess(
            tmp_path / name, "--no-controllers", "--name", name, "--etcd-servers", f"https://{etcd.tls_target}", *files, *flags
        )
        if made and (made[0].data_dir / "pki").exists():
            shutil.copytree(made[0].data_dir / "pki", server.data_dir / "pki")
        made.append(server)
        return server

    yield make
    for server in made:
        if server.process is not None and server.process.poll() is None:
            server.kill()


def until(check: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + WAIT_SECONDS
    while not (found := check()):
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.05)
    return found


def test_two_servers_on_one_etcd(server_of: Callable[..., ServerProcess], etcd: EtcdProcess) -> None:
    """What one was told the other knows; one killed costs nothing; what is in etcd outlives both."""
    first = server_of()
    first.start()
    second = server_of()
    second.start()
    assert "Objects are in etcd at https://127.0.0.1:" in first.log.read_text()
    assert first.request("POST", CONFIGMAPS, {"metadata": {"name": "c"}, "data": {"a": "b"}})[0] == 201
    assert second.request("GET", f"{CONFIGMAPS}/c")[1]["data"] == {"a": "b"}

    def addresses(server: ServerProcess) -> set[int]:
        subsets = server.request("GET", "/api/v1/namespaces/default/endpoints/kubernetes")[1]["subsets"]
        return {subset["ports"][0]["port"] for subset in subsets}

    assert until(lambda: addresses(first) == {first.port, second.port})
    watch = second.watch(f"{CONFIGMAPS}?watch=1&timeoutSeconds=20")
    assert next(watch)["type"] == "ADDED"
    first.kill()
    assert second.request("PATCH", f"{CONFIGMAPS}/c", None)[0] == 415  # it answers
    assert second.request("DELETE", f"{CONFIGMAPS}/c")[0] == 200
    assert next(watch)["type"] == "DELETED"
    assert second.stop() == 0
    first.start()
    assert first.request("GET", f"{CONFIGMAPS}/c")[0] == 404
    assert first.request("GET", "/api/v1/namespaces/default")[0] == 200
    keys = etcd.call("/v3/kv/range", {"key": "AA==", "range_end": "AA==", "count_only": True})
    assert int(keys["count"]) > 100


def test_an_etcd_that_goes_away_and_returns(server_of: Callable[..., ServerProcess], etcd: EtcdProcess) -> None:
    """Requests fail clearly and the server is not ready meanwhile; afterwards all is well, and a watch that was open goes on."""
    server = server_of()
    server.start()
    assert server.request("POST", CONFIGMAPS, {"metadata": {"name": "before"}})[0] == 201
    watch = server.watch(f"{CONFIGMAPS}?watch=1&timeoutSeconds=60")
    assert next(watch)["object"]["metadata"]["name"] == "before"
    etcd.kill()
    code, answer = server.request("POST", CONFIGMAPS, {"metadata": {"name": "meanwhile"}})
    assert code in (503, 504), answer
    assert "etcd" in answer["message"]
    assert ready_status(server) != 200
    etcd.start()
    etcd.wait_until_ready()
    assert until(lambda: ready_status(server) == 200)
    assert until(lambda: server.request("POST", CONFIGMAPS, {"metadata": {"name": "after"}})[0] == 201)
    assert next(event for event in watch if event["object"]["metadata"]["name"] == "after")["type"] == "ADDED"
    assert server.stop() == 0


def test_an_etcd_that_is_silent_for_a_while(server_of: Callable[..., ServerProcess], etcd: EtcdProcess) -> None:
    """Its process is stopped, so that nothing is refused or broken: the server says soon that it is not ready, and what kubectl watches
    goes on as soon as etcd does."""
    server = server_of()
    server.start()
    assert server.request("POST", CONFIGMAPS, {"metadata": {"name": "before"}})[0] == 201
    env = {**os.environ, "KUBECONFIG": str(server.kubeconfig)}
    command = ["kubectl", "get", "configmaps", "-w", "--output-watch-events", f"--request-timeout={WAIT_SECONDS:.0f}s"]
    watch = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    assert watch.stdout is not None
    try:
        assert watch.stdout.readline().split() == ["EVENT", "NAME", "DATA", "AGE"]
        assert "before" in watch.stdout.readline()
        os.kill(etcd.pid, signal.SIGSTOP)
        stopped = time.monotonic()
        until(lambda: ready_status(server) != 200)
        assert time.monotonic() - stopped < 6
        os.kill(etcd.pid, signal.SIGCONT)
        until(lambda: ready_status(server) == 200)
        until(lambda: server.request("POST", CONFIGMAPS, {"metadata": {"name": "after"}})[0] in (201, 409))
        assert "after" in watch.stdout.readline()
    finally:
        os.kill(etcd.pid, signal.SIGCONT)
        watch.kill()
        watch.wait()
    assert server.stop() == 0


def test_a_server_waits_for_an_etcd_that_starts_later(server_of: Callable[..., ServerProcess], etcd: EtcdProcess) -> None:
    etcd.kill()
    server = server_of()
    flags = ["--data-dir", str(server.data_dir), "--secure-port", str(server.port), *server._flags]
    server.process = pytest_plugin.start(flags, server.log)
    assert until(lambda: "etcd does not answer yet, trying again every second" in server.log.read_text())
    assert server.process.poll() is None
    etcd.start()
    pytest_plugin.wait_until_ready(server.process, server.log)


def test_the_wait_for_etcd_ends_with_ctrl_c(server_of: Callable[..., ServerProcess], etcd: EtcdProcess) -> None:
    etcd.kill()
    server = server_of()
    server.process = pytest_plugin.start(["--data-dir", str(server.data_dir), "--secure-port", "0", *server._flags], server.log)
    assert until(lambda: "etcd does not answer yet" in server.log.read_text())
    assert server.stop() == 0


def test_two_clusters_share_an_etcd_under_two_prefixes(server_of: Callable[..., ServerProcess]) -> None:
    first, second = server_of(), server_of("--etcd-prefix", "/clusters/b/")
    first.start()
    second.start()
    assert first.request("POST", CONFIGMAPS, {"metadata": {"name": "c"}})[0] == 201
    assert second.request("GET", f"{CONFIGMAPS}/c")[0] == 404
    assert second.request("POST", CONFIGMAPS, {"metadata": {"name": "c"}})[0] == 201
