"""Members over real sockets and mutual TLS: what the transport in memory shows of them holds on the real one."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage import errors, tls
from storage.member import cluster_service
from storage.member.environment import Environment
from storage.member.member import Member
from storage.member.peer_transport import PeerTransport
from tests.storage.member.cluster import Cluster, put, until, value_of
from tests.storage.member.peers import free_port, tls_files


class TlsCluster(Cluster):
    """Each member has a certificate of its own; ``files`` are by name."""

    def __init__(self, directory: Path, size: int = 3) -> None:
        self._urls: dict[int, str] = {}
        # These tests share their machine with others: an election in 150 ms would be one of many.
        times = {"heartbeat_interval_ms": 50, "election_timeout_ms": 500}
        super().__init__(directory, size, snapshot_count=50, snapshot_catchup_entries=10, **times)

    def url(self, number: int) -> str:  # type: ignore[override]
        return self._urls.setdefault(number, f"https://127.0.0.1:{free_port()}")

    def files(self, name: str) -> tls.TlsFiles:
        return tls_files(self.directory / f"{name}-pki", self.directory / "shared")

    def make(self, name: str, **settings: object) -> Member:
        config = self.config(name, **settings)
        transport = PeerTransport(
            listen_urls=config.peer_urls(),
            advertise_urls=config.peer_urls(),
            contexts=tls.mutual(self.files(name), purpose=name),
            rng=random.Random(int(name[1:])),
        )
        return Member(config, rng=random.Random(int(name[1:])), environment=Environment(transport=transport))

    async def join(self, name: str, *, is_learner: bool = False) -> Member:
        added = await self.leader().member_add((self.url(int(name[1:])),), is_learner=is_learner)
        known = {member.name or name: member.peer_urls for member in added.members}
        return await self.start(name, initial_cluster=known, initial_cluster_state="existing")


@pytest.fixture(autouse=True)
def healthy_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer counts as healthy after five seconds; here after none."""
    monkeypatch.setattr(cluster_service, "HEALTH_SECONDS", 0.0)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[TlsCluster]:
    cluster = TlsCluster(tmp_path)
    try:
        await cluster.start_all()
        await cluster.published()
        yield cluster
    finally:
        await cluster.stop_all()


async def test_every_member_writes_and_every_member_reads_what_was_written(cluster: TlsCluster) -> None:
    for writer in cluster.members.values():
        name = writer.config.name.encode()
        await put(writer, name, b"x" * 100_000)
        for reader in cluster.members.values():
            assert await value_of(reader, name) == b"x" * 100_000


async def test_many_writers_at_all_members_agree_on_one_order(cluster: TlsCluster) -> None:
    revisions = await asyncio.gather(*(put(member, b"k%d" % n) for n in range(200) for member in cluster.members.values()))
    assert sorted(revisions) == list(range(2, 602))
    await cluster.converged()
    hashes = {(await member.hash_kv(601)).hash for member in cluster.members.values()}
    assert len(hashes) == 1


async def test_a_dead_member_is_replaced_by_another_which_gets_everything(cluster: TlsCluster) -> None:
    await put(cluster.leader(), b"before")
    dead = cluster.followers()[0]
    await cluster.stop(dead.config.name)
    await cluster.leader().member_remove(dead.member_id)
    new = await cluster.join("m4")
    await cluster.ready()
    assert await value_of(new, b"before") == b"v"
    await put(new, b"after")
    with pytest.raises(errors.MemberRemovedError):  # the one that was removed comes back
        back = cluster.make(dead.config.name)
        async with contextlib.AsyncExitStack() as stack:
            await back.start()
            stack.push_async_callback(back.stop)
            raise await asyncio.wait_for(back.wait_failed(), 10)


async def test_a_learner_gets_everything_and_is_promoted(cluster: TlsCluster) -> None:
    await put(cluster.leader(), b"before")
    learner = await cluster.join("m4", is_learner=True)
    await cluster.converged()
    assert await value_of(learner, b"before", serializable=True) == b"v"
    with pytest.raises(errors.NotSupportedForLearnerError):
        await put(learner, b"k")
    await learner_promoted(cluster, learner)
    await put(learner, b"k")


async def learner_promoted(cluster: TlsCluster, learner: Member) -> None:
    """Asked of a follower, who asks the leader; until the leader finds it in step."""
    while True:
        try:
            await cluster.followers()[0].member_promote(learner.member_id)
            break
        except errors.LearnerNotReadyError:
            await asyncio.sleep(0.05)
    await cluster.converged()


async def test_a_member_that_lags_too_far_gets_the_database(cluster: TlsCluster) -> None:
    """The entries that it misses are gone from the others' logs."""
    name = cluster.followers()[0].config.name
    await cluster.stop(name)
    leader = cluster.leader()
    for number in range(300):
        await put(leader, b"k%d" % number, b"x" * 10_000)
    member = await cluster.start(name)
    await cluster.converged()
    assert await value_of(member, b"k299") == b"x" * 10_000
    assert (await member.hash_kv(301)).hash == (await leader.hash_kv(301)).hash
    peers = leader.collect_peer_metrics()
    assert peers is not None and peers.snapshot_send_success[member.member_id] >= 1
    await put(member, b"and it goes on")


async def test_an_empty_disk_is_refused(cluster: TlsCluster) -> None:
    lost = cluster.followers()[0]
    await put(cluster.leader(), b"k")
    await cluster.stop(lost.config.name)
    shutil.rmtree(cluster.directory / lost.config.name)
    with pytest.raises(errors.MembershipError, match="has run before"):
        await cluster.start(lost.config.name)


async def test_a_member_of_another_authority_is_not_let_in(cluster: TlsCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = cluster.followers()[0].config.name
    await cluster.stop(stopped)
    monkeypatch.setattr(cluster, "files", lambda name: tls_files(tmp_path / "stranger"))
    stranger = await cluster.start(stopped)
    await put(cluster.leader(), b"k")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(stranger.wait_ready(), 1)
    assert stranger.problem == "etcdserver: no leader"
    assert await value_of(stranger, b"k", serializable=True) is None


async def test_certificates_are_replaced_under_the_members(cluster: TlsCluster, tmp_path: Path) -> None:
    """Those of one are replaced, then all connections are made anew by a restart of the others."""
    name = cluster.followers()[0].config.name
    old, new = cluster.files(name), tls_files(tmp_path / "new-pki", tmp_path / "shared")
    shutil.copy(new.certificate, old.certificate)
    shutil.copy(new.key, old.key)
    for other in sorted(cluster.members):
        if other != name:
            await cluster.stop(other)
            await cluster.start(other)
            await cluster.ready()
            await until(lambda: cluster.members[name].metrics.has_leader, "a leader")
    await put(cluster.members[name], b"k")
