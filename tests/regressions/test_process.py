"""What ended a server that had no reason to end.

1. Started with its standard output closed, on a full disk, or into a pipe that nobody reads, it died on its own announcement: with a
   trace, or as ``sampan: Broken pipe``.
2. Clients that held as many connections as the process may have files ended it: what it had put off importing could not be read. The
   soft limit of 1024 files was left as it was, and a load that failed once failed for ever.
3. (Already right, kept here:) a store that is full refuses what adds data, takes deletes, and recovers by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from apiserver.lazy_app import LazyApp
from tests import etcd_backed
from tests.e2e.etcdctl import etcdctl
from tests.e2e.server_process import ServerProcess, free_port

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
COMMAND = [sys.executable, "-P", "-m", "apiserver.cli.main", "apiserver", "--ephemeral", "--secure-port"]
SECONDS_MAX = 60.0


def _environment() -> dict[str, str]:
    return dict(os.environ, PYTHONPATH=str(Path(__file__).parents[2]))


def _wait_until_ready(process: subprocess.Popen[bytes], port: int) -> None:
    context = ssl._create_unverified_context()  # it says nowhere where its CA is
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        assert process.poll() is None, f"it ended with {process.returncode}"
        with contextlib.suppress(OSError):  # HTTPError is one
            urllib.request.urlopen(f"https://127.0.0.1:{port}/readyz", context=context, timeout=5).close()
            return
        time.sleep(0.05)
    raise AssertionError("it did not become ready")


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.parametrize("output", ["closed", "full", "unread"])
def test_a_server_does_not_depend_on_its_output(output: str, tmp_path: Path) -> None:
    port = free_port()
    redirect = {"closed": "<&- >&- 2>&-", "full": "> /dev/full 2>&1", "unread": ""}[output]
    shell = ["/bin/sh", "-c", f'exec "$@" {redirect}', "sh", *COMMAND, str(port)]
    reader, writer = os.pipe()
    process = subprocess.Popen(shell, stdout=writer, stderr=subprocess.STDOUT, env=_environment())
    os.close(writer)
    os.close(reader)
    try:
        _wait_until_ready(process, port)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.e2e
@pytest.mark.slow
def test_a_server_outlives_clients_that_hold_all_its_files(tmp_path: Path) -> None:
    port = free_port()
    with (tmp_path / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            ["/bin/sh", "-c", 'ulimit -n 128; exec "$@"', "sh", *COMMAND, str(port)], stdout=log, stderr=log, env=_environment()
        )
    try:
        _wait_until_ready(process, port)
        with contextlib.ExitStack() as stack:
            for _ in range(200):
                stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
        _wait_until_ready(process, port)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0, (tmp_path / "log.txt").read_text()
    finally:
        process.kill()
        process.wait()


HOLDER = """
import os, sys
from pathlib import Path
from apiserver import pytest_plugin
log = Path(sys.argv[1])
process = pytest_plugin.start(["--ephemeral", "--secure-port", "0", "--listen-client-urls", ""], log)
pytest_plugin.wait_until_ready(process, log)
print(process.pid, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.e2e
@pytest.mark.slow
def test_the_server_of_the_plugin_does_not_outlive_a_killed_run(tmp_path: Path) -> None:
    holder = subprocess.run([sys.executable, "-c", HOLDER, str(tmp_path / "log.txt")], stdout=subprocess.PIPE, env=_environment())
    assert holder.returncode == -signal.SIGKILL
    server = int(holder.stdout)
    deadline = time.monotonic() + SECONDS_MAX
    while _runs(server):
        assert time.monotonic() < deadline, "it still runs"
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    """Whether a process that is no child of ours works still; one that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.e2e
@pytest.mark.slow
def test_stdin_that_cannot_be_waited_for_is_refused() -> None:
    command = [*COMMAND[:-3], "up", "--ephemeral", "--secure-port", "0", "--stop-with-stdin"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=_environment(), timeout=SECONDS_MAX)
    assert (done.returncode, done.stderr) == (1, "sampan: --stop-with-stdin needs a pipe or a terminal as standard input\n")


async def test_a_load_that_failed_is_tried_again() -> None:
    attempts: list[int] = []

    async def app(*_: object) -> None:
        attempts.append(0)

    def build() -> object:
        attempts.append(len(attempts) + 1)
        if len(attempts) == 1:
            raise OSError(24, "Too many open files")
        return app

    lazy = LazyApp(build)  # type: ignore[arg-type]
    with pytest.raises(OSError, match="Too many open files"):
        await lazy.load()
    await asyncio.gather(*(lazy({}, None, None) for _ in range(3)))  # type: ignore[arg-type]
    assert attempts == [1, 2, 0, 0, 0]


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.skipif(etcd_backed.ENABLED, reason="the quota is the embedded store's")
def test_a_full_store_takes_deletes_and_recovers(tmp_path: Path) -> None:
    port = f"https://127.0.0.1:{free_port()}"
    flags = ("--quota-backend-bytes", "12000000", "--etcd-compaction-interval", "500ms", "--listen-client-urls", port)
    server = ServerProcess(tmp_path, "--no-controllers", *flags)
    server.start()
    try:
        made = 0
        while True:
            body = {"metadata": {"name": f"c{made}"}, "data": {"a": "x" * 900_000}}
            code, answer = server.request("POST", CONFIGMAPS, body)
            if code != 201:
                break
            made += 1
            assert made < 100, "the quota does not hold"
        assert (code, answer["kind"]) == (500, "Status")
        assert "database space exceeded" in answer["message"]
        assert server.request("GET", f"{CONFIGMAPS}/c{made}")[0] == 404, "half an object"
        assert server.request("GET", f"{CONFIGMAPS}/c0")[0] == 200
        for number in range(made):
            assert server.request("DELETE", f"{CONFIGMAPS}/c{number}")[0] == 200
        deadline = time.monotonic() + SECONDS_MAX
        while server.request("POST", CONFIGMAPS, {"metadata": {"name": "again"}, "data": {"a": "x" * 900_000}})[0] != 201:
            assert time.monotonic() < deadline, "no space came back"
            etcdctl(server.log, "alarm", "disarm")  # raised again as long as there is no space
            time.sleep(0.2)
        assert server.stop() == 0
    finally:
        server.kill()
