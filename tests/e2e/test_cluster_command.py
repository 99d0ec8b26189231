"""``sampan cluster``: three members with their controllers from one command; and the example for three machines."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster_process import eventually

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 90.0
STOP_SECONDS = 30.0


def free_base_port() -> int:
    """The first of thirty ports in a row that nobody has."""
    for base in range(26_000 + os.getpid() % 1000, 32_000, 30):
        sockets = [socket.socket() for _ in range(30)]
        try:
            for offset, probe in enumerate(sockets):
                probe.bind(("127.0.0.1", base + offset))
            return base
        except OSError:
            continue
        finally:
            for probe in sockets:
                probe.close()
    raise AssertionError("no thirty ports in a row are free")


class Command:
    def __init__(self, log: Path, *arguments: str) -> None:
        self._log = log
        environment = dict(os.environ, PYTHONPATH=str(ROOT), PYTHONUNBUFFERED="1")
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "apiserver.cli.main", *arguments],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment, start_new_session=True,
            )  # fmt: skip

    def output(self) -> str:
        return self._log.read_text()

    def wait_for(self, pattern: str) -> re.Match[str]:
        def look() -> re.Match[str] | None:
            assert self.process.poll() is None, self.output()
            return re.search(pattern, self.output())

        found: re.Match[str] = eventually(look, f"{pattern!r} is printed", START_SECONDS)
        return found

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(STOP_SECONDS)


@pytest.fixture
def command(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Command]:
    arguments = getattr(request, "param", ())
    data_dir, base_port = str(tmp_path / "data"), str(free_base_port())
    started = Command(tmp_path / "log.txt", "cluster", "--data-dir", data_dir, "--base-port", base_port, *arguments)
    yield started
    if started.process.poll() is None:
        started.stop(signal.SIGTERM)


def kubectl(kubeconfig: str, *arguments: str, check: bool = True) -> str:
    environment = dict(os.environ, KUBECONFIG=kubeconfig, HOME=str(Path(kubeconfig).parent))
    done = subprocess.run(["kubectl", *arguments], capture_output=True, text=True, timeout=60, env=environment)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout


def objects(kubeconfig: str, *arguments: str) -> Any:
    return json.loads(kubectl(kubeconfig, *arguments, "-o", "json") or "{}")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("flags", [(), ("--restart",)])
def test_a_member_that_cannot_start_ends_the_command(tmp_path: Path, flags: tuple[str, ...]) -> None:
    base_port = free_base_port()
    with socket.create_server(("127.0.0.1", base_port + 10)):
        command = Command(tmp_path / "log.txt", "cluster", "--data-dir", str(tmp_path / "data"), "--base-port", str(base_port), *flags)
        assert command.process.wait(START_SECONDS) == 1, command.output()
    assert f"m2: sampan: port {base_port + 10} on 127.0.0.1 is in use" in command.output()
    assert "sampan: m2 ended before it was ready, and the others with it" in command.output()


def test_three_members_with_one_set_of_controllers_at_work(command: Command, tmp_path: Path) -> None:
    kubeconfig = command.wait_for(r"export KUBECONFIG=(\S+)")[1]
    processes = {name: int(pid) for name, pid in re.findall(r"  (m\d)  .* process (\d+)\n", command.output())}
    assert sorted(processes) == ["m1", "m2", "m3"]
    assert "export ETCDCTL_ENDPOINTS=https://" in command.output()

    # Members that have just started on a busy machine may elect twice, and a write in between may have to be done again.
    web = kubectl(kubeconfig, "create", "deployment", "web", "--image=nginx", "--replicas=3", "--dry-run=client", "-o", "yaml")
    (tmp_path / "web.yaml").write_text(web)
    eventually(lambda: kubectl(kubeconfig, "--context", "m1", "apply", "-f", str(tmp_path / "web.yaml"), check=False), "it is applied")
    kubectl(kubeconfig, "--context", "m3", "rollout", "status", "deployment/web", "--timeout=60s")
    nodes = {node["metadata"]["name"] for node in objects(kubeconfig, "--context", "m2", "get", "nodes")["items"]}
    assert nodes == {"m1-node-1", "m2-node-1", "m3-node-1"}

    # Whose controllers work is written in the lease. That member is killed: the others' take over once the lease has run out.
    lease = ("get", "lease", "-n", "kube-system", "kube-controller-manager")
    holder = objects(kubeconfig, "--context", "m1", *lease)["spec"]["holderIdentity"]
    name = next(name for name in processes if name in holder)
    survivor = next(other for other in processes if other != name)
    os.kill(processes[name], signal.SIGKILL)
    command.wait_for(rf"{name} was killed by signal 9; the others go on")
    scale = ("--context", survivor, "scale", "deployment/web", "--replicas=5")
    eventually(lambda: kubectl(kubeconfig, *scale, check=False), "it is scaled")
    eventually(
        lambda: len(objects(kubeconfig, "--context", survivor, "get", "pods", "-l", "app=web").get("items", [])) == 5,
        "the controllers of another member go on", 60,
    )  # fmt: skip
    assert objects(kubeconfig, "--context", survivor, *lease)["spec"]["holderIdentity"] != holder

    assert command.stop() == 0, command.output()
    eventually(lambda: not any(map(is_alive, processes.values())), "no member is left")


@pytest.mark.parametrize("command", [("--members", "1", "--ephemeral", "--", "--no-controllers")], indirect=True)
def test_a_member_of_a_temporary_cluster_is_saved_by_its_directory(command: Command, tmp_path: Path) -> None:
    """Its client port is not the usual one: the directory, which is in use, says where it is."""
    kubeconfig = command.wait_for(r"export KUBECONFIG=(\S+)")[1]
    kubectl(kubeconfig, "create", "configmap", "kept")
    member = Path(kubeconfig).parent / "m1"
    assert member.is_dir(), command.output()
    file = tmp_path / "backup.db"
    saved = subprocess.run(
        [sys.executable, "-m", "apiserver.cli.main", "snapshot", "save", str(file), "--data-dir", str(member)],
        capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=str(ROOT)),
    )  # fmt: skip
    assert saved.returncode == 0, saved.stderr
    assert b"/registry/configmaps/default/kept" in file.read_bytes()
    assert command.stop() == 0, command.output()
    assert not member.exists(), "nothing is left of it"


@pytest.mark.parametrize("command", [("--members", "1", "--", "--no-controllers")], indirect=True)
def test_members_do_not_outlive_a_command_that_was_killed(command: Command) -> None:
    command.wait_for(r"export KUBECONFIG=(\S+)")
    processes = [int(pid) for pid in re.findall(r" process (\d+)\n", command.output())]
    command.process.kill()
    command.process.wait()
    eventually(lambda: not any(map(is_alive, processes)), "no member is left")


def test_the_example_for_three_machines_works_on_three_addresses(tmp_path: Path) -> None:
    environment = dict(
        os.environ, PYTHONPATH=str(ROOT), M1="127.0.0.1", M2="127.0.0.2", M3="127.0.0.3", PKI_DIR=str(tmp_path / "pki"),
        SAMPAN=str(tmp_path / "sampan"),
    )  # fmt: skip
    launcher = tmp_path / "sampan"
    launcher.write_text(f'#!/bin/sh\nexec {sys.executable} -m apiserver.cli.main "$@"\n')
    launcher.chmod(0o755)
    subprocess.run([launcher, "pki", str(tmp_path / "pki")], check=True, env=environment, capture_output=True)
    base = free_base_port()
    ports = dict(zip(("PEER_PORT", "CLIENT_PORT", "API_PORT"), map(str, range(base, base + 3)), strict=True))
    processes = []
    try:
        for name in ("m1", "m2"):
            with (tmp_path / f"{name}.log").open("wb") as log:
                processes.append(
                    subprocess.Popen(
                        [ROOT / "manifests" / "cluster" / "member.sh", name, "--no-controllers"],
                        stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                        env={**environment, **ports, "DATA_DIR": str(tmp_path / name)},
                    )
                )  # fmt: skip
            if name == "m1":
                eventually(lambda: "waiting for a leader" in (tmp_path / "m1.log").read_text(), "m1 says what it waits for", START_SECONDS)
        for name in ("m1", "m2"):
            log = tmp_path / f"{name}.log"
            eventually(lambda log=log: "Sampan serves" in log.read_text(), f"{name} is ready", START_SECONDS)
        kubectl(str(tmp_path / "m1" / "admin.kubeconfig"), "create", "namespace", "one")
        assert "namespace/one" in kubectl(str(tmp_path / "m2" / "admin.kubeconfig"), "get", "namespaces", "-o", "name")
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(STOP_SECONDS)
