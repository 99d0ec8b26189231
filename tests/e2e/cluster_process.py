"""Members of a cluster in processes of their own, on one machine, and the load that tests put on them."""

from __future__ import annotations

import http.client
import itertools
import json
import random
import secrets
import signal
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from apiserver.cli.cluster import ELECTION_FLAGS
from tests.e2e.server_process import ServerProcess

WAIT_SECONDS = 30.0
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def free_ports(count: int) -> list[int]:
    """Below the range from which the system gives ports to connections: one of those could take it before it is listened on."""
    found: list[int] = []
    while len(found) < count:
        port = random.SystemRandom().randrange(24_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    return found


def eventually(check: Callable[[], Any], what: str, seconds: float = WAIT_SECONDS) -> Any:
    """What ``check`` answers as soon as it is true; exceptions of a connection count as not yet."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            found = check()
            if found:
                return found
        except (OSError, http.client.HTTPException, ssl.SSLError):
            pass
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)


class ClusterMember(ServerProcess):
    def __init__(self, name: str, directory: Path, peer_url: str, client_url: str, *flags: str, token: str, pki: Path) -> None:
        settings = ("--name", name, "--pki-dir", str(pki), "--listen-client-urls", client_url, *flags)
        super().__init__(directory, *settings, token=token, ca=pki / "ca.crt")
        self.name = name
        self.peer_url = peer_url
        self.client_url = client_url

    def metrics(self) -> dict[str, float]:
        """Samples without labels, and those with labels by their whole name."""
        connection = self.connection(timeout=5)
        try:
            connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {self.token}"})
            text = connection.getresponse().read().decode()
        finally:
            connection.close()
        lines = (line for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    def leads(self) -> bool:
        return self.metrics()["etcd_server_is_leader"] == 1

    def is_ready(self) -> bool:
        return self.status("/readyz") == 200

    def status(self, path: str, timeout: float = 20) -> int:
        connection = self.connection(timeout)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
            answer = connection.getresponse()
            answer.read()
            return answer.status
        finally:
            connection.close()

    def create(self, name: str) -> int:
        """The status of creating a ConfigMap."""
        return self.request("POST", CONFIG_MAPS, {"metadata": {"name": name}, "data": {"by": self.name}})[0]

    def create_surely(self, name: str) -> None:
        """Again where an election came between: on a busy machine there may be one at any time."""
        eventually(lambda: self.create(name) in (201, 409), f"{name} is created")

    def names(self, prefix: str) -> list[str]:
        """The ConfigMaps there are, read linearizably."""
        status, answer = self.request("GET", CONFIG_MAPS)
        assert status == 200, answer
        return [name for item in answer["items"] if (name := item["metadata"]["name"]).startswith(prefix)]

    def pause(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """However it is."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class ClusterProcesses:
    """``count`` members that know each other, none started yet."""

    def __init__(self, directory: Path, count: int = 3, *flags: str, client_ports: bool = False) -> None:
        self._directory = directory
        self._flags = flags
        self._client_ports = client_ports
        self.pki = directory / "pki"
        self.token = secrets.token_hex(12)
        urls = {f"m{number + 1}": f"https://127.0.0.1:{port}" for number, port in enumerate(free_ports(count))}
        initial = ",".join(f"{name}={url}" for name, url in urls.items())
        self.members = [self.member(name, url, "--initial-cluster", initial) for name, url in urls.items()]

    def member(self, name: str, peer_url: str, *flags: str) -> ClusterMember:
        settings = ("--no-controllers", *ELECTION_FLAGS, *flags, *self._flags)
        client_url = f"https://127.0.0.1:{free_ports(1)[0]}" if self._client_ports else ""
        return ClusterMember(name, self._directory / name, peer_url, client_url, *settings, token=self.token, pki=self.pki)

    def start(self) -> None:
        for member in self.members:
            member.launch()
        for member in self.members:
            member.wait_ready()

    def heal(self) -> None:
        """All of them run and are ready."""
        for member in self.members:
            if member.process is None or member.process.poll() is not None:
                member.launch()
            else:
                member.resume()
        for member in self.members:
            eventually(member.is_ready, f"{member.name} is ready again\n{member.log.read_text()}")

    def end(self) -> None:
        for member in self.members:
            member.end()

    def leader(self) -> ClusterMember:
        found = eventually(lambda: [member for member in self.running() if member.leads()], "somebody leads")
        assert len(found) == 1, [member.name for member in found]
        leader: ClusterMember = found[0]
        return leader

    def running(self) -> list[ClusterMember]:
        return [member for member in self.members if member.process is not None and member.process.poll() is None]

    def others(self, member: ClusterMember) -> list[ClusterMember]:
        return [other for other in self.members if other is not member]


class Writers:
    """One for each member: creates ConfigMaps one after the other, and remembers what was acknowledged."""

    def __init__(self, members: Sequence[ClusterMember], prefix: str) -> None:
        self.acknowledged: list[tuple[float, str]] = []
        self.refused: list[int] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(member, prefix), daemon=True) for member in members]

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(WAIT_SECONDS)
            assert not thread.is_alive()

    def names(self) -> set[str]:
        return {name for _, name in list(self.acknowledged)}

    def wait_for(self, count: int) -> None:
        wanted = len(self.acknowledged) + count
        eventually(lambda: len(self.acknowledged) >= wanted, f"{count} more writes are acknowledged")

    def longest_pause(self, since: float) -> float:
        """Seconds without an acknowledgement, from any member."""
        times = [since, *(at for at, _ in sorted(self.acknowledged) if at > since)]
        return max((later - earlier for earlier, later in itertools.pairwise(times)), default=0.0)

    def _write(self, member: ClusterMember, prefix: str) -> None:
        number, connection = 0, member.connection(timeout=15)
        while not self._stop.is_set():
            number += 1
            name = f"{prefix}-{member.name}-{number}"
            try:
                status, _ = member.request("POST", CONFIG_MAPS, {"metadata": {"name": name}}, connection=connection)
            except (OSError, http.client.HTTPException, json.JSONDecodeError):
                connection.close()
                connection = member.connection(timeout=15)
                time.sleep(0.02)
                continue
            if status == 201:
                self.acknowledged.append((time.monotonic(), name))
            else:
                self.refused.append(status)
            time.sleep(0.01)
        connection.close()


class Watching:
    """A watch of the ConfigMaps through one member, on one connection, to its end."""

    def __init__(self, member: ClusterMember, prefix: str) -> None:
        self.events: list[tuple[str, str, int]] = []
        self.ended = threading.Event()
        self._prefix = prefix
        _, listed = member.request("GET", f"{CONFIG_MAPS}?limit=1")
        version = listed["metadata"]["resourceVersion"]
        self._stream: Iterator[dict[str, Any]] = member.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={version}")
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for event in self._stream:
            metadata = event["object"]["metadata"]
            if metadata.get("name", "").startswith(self._prefix):
                self.events.append((event["type"], metadata["name"], int(metadata["resourceVersion"])))
        self.ended.set()

    def names(self) -> list[str]:
        return [name for _, name, _ in list(self.events)]

    def check_no_gap(self, member: ClusterMember) -> None:
        """What came before the end is all that happened up to its last event: the client goes on from there."""
        last = self.events[-1][2] if self.events else 0
        _, listed = member.request("GET", CONFIG_MAPS)
        wanted = sorted(
            (int(item["metadata"]["resourceVersion"]), item["metadata"]["name"])
            for item in listed["items"]
            if item["metadata"]["name"].startswith(self._prefix) and int(item["metadata"]["resourceVersion"]) <= last
        )
        assert [(revision, name) for _, name, revision in self.events] == wanted

    def check(self, there: Sequence[str]) -> None:
        """Every object that is there came once, in the order of revisions, and nothing else. The stream never broke."""
        eventually(lambda: len(self.events) >= len(there), "the watch has everything")
        assert not self.ended.is_set(), "the watch was ended"
        assert sorted(self.names()) == sorted(there)
        revisions = [revision for _, _, revision in self.events]
        assert revisions == sorted(set(revisions))
