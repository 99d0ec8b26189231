"""Who belongs to the cluster: ids, adding, removing, learners, leaders, and disks that lost what they promised (ST-M3)."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from storage import api, errors
from storage.backend.backend import Bucket
from storage.maintenance import ClusterMember
from storage.member import bootstrap, cluster_service
from storage.member import request as log_request
from storage.member.membership import new_cluster_id, new_member_id
from storage.member.opening import Identity
from storage.member.peer_calls import RemoteCluster
from storage.raft.messages import ConfState, Entry, HardState, Message, MessageType, SnapshotMetadata
from storage.wal.wal import Wal
from tests.storage.member.cluster import Cluster, put, running_cluster, until, value_of


@pytest.fixture(autouse=True)
def healthy_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer counts as healthy after five seconds; here after none."""
    monkeypatch.setattr(cluster_service, "HEALTH_SECONDS", 0.0)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with running_cluster(tmp_path) as cluster:
        await cluster.published()
        yield cluster


async def join(cluster: Cluster, name: str, *, is_learner: bool = False) -> ClusterMember:
    """Add a member and start it."""
    number = int(name[1:])
    added = await cluster.leader().member_add((cluster.url(number),), is_learner=is_learner)
    assert added.changed is not None
    known = {member.id: (member.name or name, member.peer_urls) for member in added.members}
    await cluster.start(name, initial_cluster=dict(known.values()), initial_cluster_state="existing")
    return added.changed


# -- ids and the list


def test_ids_are_etcds() -> None:
    """Those that a real etcd computes for its defaults."""
    member_id = new_member_id(("http://localhost:2380",), "etcd-cluster")
    assert f"{member_id:x}" == "8e9e05c52164694d"
    assert f"{new_cluster_id((member_id,)):x}" == "cdf818194e3a8c32"
    assert new_member_id(("http://b:1", "http://a:1"), "t") == new_member_id(("http://a:1", "http://b:1"), "t")
    assert new_member_id(("http://a:1",), "", added_at=1) != new_member_id(("http://a:1",), "", added_at=2)


async def test_every_member_has_the_same_list_with_names_and_addresses(cluster: Cluster) -> None:
    for member in cluster.members.values():
        response = await member.members()
        assert [one.id for one in response.members] == sorted(one.member_id for one in cluster.members.values())
        assert {one.name: one.peer_urls for one in response.members} == cluster.initial
        assert {one.name: one.client_urls for one in response.members} == {
            name: (f"https://127.0.0.1:{22000 + int(name[1:])}",) for name in cluster.initial
        }
        assert not any(one.is_learner for one in response.members)


async def test_the_list_is_kept_as_etcd_keeps_it(cluster: Cluster) -> None:
    leader = cluster.leader()
    stored = dict(leader._machine.backend.range(Bucket.MEMBERS, b"", None))
    found = json.loads(stored[b"%x" % leader.member_id])
    name = leader.config.name
    assert found == {
        "id": leader.member_id,
        "peerURLs": list(cluster.initial[name]),
        "name": name,
        "clientURLs": list(leader.config.advertise_client_urls),
    }
    conf_state = json.loads(leader._machine.backend.get(Bucket.META, b"confState") or b"")
    assert conf_state["voters"] == sorted(one.member_id for one in cluster.members.values())


async def test_the_list_survives_a_lost_backend(cluster: Cluster) -> None:
    """All of it is in the log."""
    name = cluster.followers()[0].config.name
    await cluster.stop(name)
    shutil.rmtree(cluster.directory / name / "member" / "snap")
    member = await cluster.start(name)
    await cluster.ready()
    assert {one.name for one in (await member.members()).members} == {"m1", "m2", "m3"}


# -- changes


async def test_a_member_is_added_and_replicates(cluster: Cluster) -> None:
    await put(cluster.leader(), b"before")
    added = await join(cluster, "m4")
    member = cluster.members["m4"]
    await cluster.ready()
    assert member.member_id == added.id
    assert await value_of(member, b"before") == b"v"
    assert await put(member, b"after") == 3
    await cluster.published()
    assert len((await member.members()).members) == 4
    assert {one.cluster_id for one in cluster.members.values()} == {member.cluster_id}
    await cluster.stop("m4")
    member = await cluster.start("m4", initial_cluster={"m4": (cluster.url(4),)})  # the rest of it does not matter any more
    await cluster.ready()
    assert (member.member_id, await value_of(member, b"after")) == (added.id, b"v")


async def test_a_dead_member_is_replaced(cluster: Cluster) -> None:
    dead = cluster.followers()[0]
    await cluster.stop(dead.config.name)
    removed = await cluster.leader().member_remove(dead.member_id)
    assert len(removed.members) == 2
    await join(cluster, "m4")
    await put(cluster.members["m4"], b"k")
    await cluster.converged()
    assert len((await cluster.leader().members()).members) == 3


async def test_a_removed_member_stops_for_good(cluster: Cluster) -> None:
    removed = cluster.followers()[0]
    name = removed.config.name
    await cluster.leader().member_remove(removed.member_id)
    async with asyncio.timeout(10):
        assert isinstance(await removed.wait_failed(), errors.MemberRemovedError)
    with pytest.raises(errors.MemberRemovedError):
        await value_of(removed, b"k", serializable=True)
    with pytest.raises(errors.MemberRemovedError):
        await put(removed, b"k")
    await cluster.stop(name)
    restarted = cluster.make(name)
    try:
        await restarted.start()
        async with asyncio.timeout(10):
            assert isinstance(await restarted.wait_failed(), errors.MemberRemovedError)
    except errors.MemberRemovedError:
        pass  # it had learned it from the log
    finally:
        await restarted.stop()
    await put(cluster.leader(), b"the others go on")


async def test_the_outcome_of_a_write_under_way_on_a_member_that_is_removed_is_unknown(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It may be in the leader's log: "the member was removed" would say that it never was.
    removed = cluster.followers()[0]
    transport = cluster.network.listening()[removed.member_id]
    send = transport.send

    def without_proposals(messages: Sequence[Message]) -> None:
        send([message for message in messages if message.type is not MessageType.PROPOSE])

    monkeypatch.setattr(transport, "send", without_proposals)
    writing = asyncio.create_task(put(removed, b"k"))
    await asyncio.sleep(0)
    await cluster.leader().member_remove(removed.member_id)
    with pytest.raises(errors.UnavailableError):
        await writing
    assert isinstance(removed.failure, errors.MemberRemovedError)


async def test_a_leader_that_removes_itself_leaves_a_working_cluster(cluster: Cluster) -> None:
    old = cluster.leader()
    await old.member_remove(old.member_id)
    async with asyncio.timeout(10):
        assert isinstance(await old.wait_failed(), errors.MemberRemovedError)
    await cluster.stop(old.config.name)
    new = await cluster.has_leader()
    await put(new, b"k")
    assert len((await new.members()).members) == 2
    with pytest.raises(errors.MemberRemovedError):
        await cluster.start(old.config.name)


async def test_changes_that_make_no_sense_are_refused_and_change_nothing(cluster: Cluster) -> None:
    leader = cluster.leader()
    before = (await leader.members()).members
    with pytest.raises(errors.PeerUrlExistsError):
        await leader.member_add((cluster.url(1),))
    with pytest.raises(errors.MemberNotFoundError):
        await leader.member_remove(12345)
    with pytest.raises(errors.MemberNotFoundError):
        await leader.member_update(12345, ("https://127.0.0.1:1",))
    with pytest.raises(errors.PeerUrlExistsError):
        await leader.member_update(cluster.members["m1"].member_id, (cluster.url(2),))
    with pytest.raises(errors.MemberNotFoundError):
        await leader.member_promote(12345)
    with pytest.raises(errors.NotLearnerError):
        await leader.member_promote(leader.member_id)
    for url in ("127.0.0.1:1", "ftp://127.0.0.1:1", "https://127.0.0.1:1/path", "https://127.0.0.1"):
        with pytest.raises(errors.InvalidUrlsError):
            await leader.member_add((url,))
    assert (await leader.members()).members == before
    await put(leader, b"k")


async def test_a_member_moves_to_another_address(cluster: Cluster) -> None:
    name = cluster.followers()[0].config.name
    await cluster.stop(name)
    await cluster.leader().member_update(cluster.id_of(name), (cluster.url(9),))
    cluster.initial[name] = (cluster.url(9),)
    member = await cluster.start(name)
    await cluster.ready()
    await put(member, b"k")
    await cluster.converged()


async def test_what_would_endanger_the_quorum_is_refused(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    leader = cluster.leader()
    down, other = cluster.followers()
    await cluster.stop(down.config.name)
    await until(lambda: cluster.network.transports.get(down.config.peer_urls()[0]) is None)
    with pytest.raises(errors.UnhealthyClusterError):
        await leader.member_add((cluster.url(4),))
    with pytest.raises(errors.UnhealthyClusterError):
        await leader.member_remove(other.member_id)
    assert len((await leader.member_remove(down.member_id)).members) == 2
    added = await leader.member_add((cluster.url(4),))
    assert len(added.members) == 3
    with pytest.raises(errors.NotEnoughStartedMembersError):
        await leader.member_add((cluster.url(5),))
    with pytest.raises(errors.NotEnoughStartedMembersError):
        await leader.member_remove(other.member_id)


async def test_the_only_member_stays(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1) as cluster:
        member = cluster.members["m1"]
        with pytest.raises(errors.NotEnoughStartedMembersError):
            await member.member_remove(member.member_id)
        await put(member, b"k")


async def test_a_directory_from_before_there_were_lists_opens_and_can_grow(tmp_path: Path) -> None:
    """Its log begins with one voter of a random id and names nobody."""
    cluster = Cluster(tmp_path, 1)
    identity = Identity(member_id=77, cluster_id=88)
    log = Wal.create(tmp_path / "m1" / "member" / "wal", metadata=identity.encode(), snapshot=SnapshotMetadata(ConfState((77,))))
    put_entry = log_request.encode(5, api.PutRequest(key=b"old", value=b"1"))
    log.save(HardState(1, 77, 1), [Entry(1, 1), Entry(1, 2, put_entry)])
    log.close()
    try:
        member = await cluster.start("m1")
        assert (member.member_id, member.cluster_id) == (77, 88)
        assert await value_of(member, b"old") == b"1"
        assert [(one.id, one.name) for one in (await member.members()).members] == [(77, "m1")]
        await join(cluster, "m2")
        await cluster.ready()
        assert await value_of(cluster.members["m2"], b"old") == b"1"
        assert cluster.members["m2"]._raft.node.conf_state().voters == tuple(sorted((77, cluster.members["m2"].member_id)))
    finally:
        await cluster.stop_all()


async def test_a_cluster_of_one_grows_to_three(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running_cluster(tmp_path, 1) as cluster:
        await put(cluster.members["m1"], b"k")
        assert cluster.members["m1"].local_revision() == 2
        with caplog.at_level(logging.WARNING):
            await join(cluster, "m2")
            await cluster.published()
            assert any("2 members vote" in record.message for record in caplog.records)
        await join(cluster, "m3")
        for member in cluster.members.values():
            assert await value_of(member, b"k") == b"v"
            assert member.local_revision() is None


async def test_a_cluster_that_waits_for_the_voter_just_added_lets_it_join(tmp_path: Path) -> None:
    """Found by the simulation: one member, a second voter is added and started later than an election timeout. The first then leads no
    more, since two votes are needed, and told one that asked how to join to wait for a leader, which there could not be without it."""
    async with running_cluster(tmp_path, size=1) as cluster:
        await cluster.published()
        first = cluster.members["m1"]
        await first.member_add((cluster.url(2),))
        await until(lambda: not first.has_leader(), "the end of the leadership")
        await cluster.start("m2", initial_cluster={"m1": (cluster.url(1),), "m2": (cluster.url(2),)}, initial_cluster_state="existing")
        await cluster.ready()
        await put(cluster.members["m2"], b"k", b"v")


def test_only_a_leader_or_the_other_of_two_voters_vouches_for_one_that_joins() -> None:
    """Found by the simulation: a follower that lagged did not know yet that the member which had lost its disk had run before."""
    mine, others = ("http://a:1",), [ClusterMember(id=number, peer_urls=(f"http://b:{number}",)) for number in (2, 3)]
    members = (ClusterMember(id=1, peer_urls=mine), *others)

    def answer(members: tuple[ClusterMember, ...], acknowledged: dict[int, int]) -> RemoteCluster:
        return RemoteCluster(cluster_id=1, members=members, acknowledged=acknowledged, has_leader=True, applied_index=5)

    assert bootstrap._may_speak(answer(members, {1: 0, 2: 7, 3: 7}), frozenset(mine))
    assert not bootstrap._may_speak(answer(members, {}), frozenset(mine))
    assert bootstrap._may_speak(answer(members[:2], {}), frozenset(mine))
    assert not bootstrap._may_speak(answer(members[1:], {}), frozenset(mine))


# -- learners


async def test_a_learner_receives_everything_votes_nothing_and_is_promoted_when_it_is_in_step(cluster: Cluster) -> None:
    for number in range(30):
        await put(cluster.leader(), b"k%d" % number)
    response = await cluster.leader().member_add((cluster.url(4),), is_learner=True)
    assert response.changed is not None
    learner_id = response.changed.id
    with pytest.raises(errors.LearnerNotReadyError):
        await cluster.leader().member_promote(learner_id)
    with pytest.raises(errors.TooManyLearnersError):
        await cluster.leader().member_add((cluster.url(5),), is_learner=True)
    learner = await cluster.start("m4", initial_cluster={**cluster.initial, "m4": (cluster.url(4),)}, initial_cluster_state="existing")
    await cluster.converged()
    assert (await learner.status()).is_learner
    assert await value_of(learner, b"k29", serializable=True) == b"v"
    for refused in (value_of(learner, b"k29"), put(learner, b"k"), learner.read_revision(), learner.leases(), learner.lease_grant(60)):
        with pytest.raises(errors.NotSupportedForLearnerError):
            await refused
    promoted = await cluster.followers()[0].member_promote(learner_id)  # a follower asks the leader
    assert not any(member.is_learner for member in promoted.members)
    await until(lambda: learner_id in cluster.leader()._raft.node.conf_state().voters)
    await cluster.converged()
    assert not (await learner.status()).is_learner
    await put(learner, b"k")


# -- leaders


async def test_leadership_moves_on_request(cluster: Cluster) -> None:
    old = cluster.leader()
    target = cluster.followers()[0]
    writes = [asyncio.ensure_future(put(member, b"k")) for member in cluster.members.values() for _ in range(10)]
    await old.move_leader(target.member_id)
    assert target.metrics.is_leader
    async with asyncio.timeout(3):
        revisions = await asyncio.gather(*writes)  # none waits until it times out
    assert sorted(revisions) == list(range(2, 32))
    with pytest.raises(errors.NotLeaderError):
        await old.move_leader(old.member_id)
    with pytest.raises(errors.BadLeaderTransfereeError):
        await target.move_leader(12345)


async def test_a_leader_that_stops_hands_over(cluster: Cluster) -> None:
    old = cluster.leader()
    others = cluster.followers()
    await cluster.stop(old.config.name)
    assert any(member.metrics.is_leader for member in others), "nobody had to wait for an election"
    await put(others[0], b"k")


# -- lost and old disks


async def test_an_empty_disk_is_refused_until_the_member_is_added_again(cluster: Cluster) -> None:
    lost = cluster.followers()[0]
    name, number = lost.config.name, int(lost.config.name[1:])
    await put(cluster.leader(), b"k")
    await cluster.stop(name)
    shutil.rmtree(cluster.directory / name)
    for state in ("new", "existing"):
        with pytest.raises(errors.MembershipError, match="has run before"):
            await cluster.start(name, initial_cluster_state=state)
    await cluster.leader().member_remove(lost.member_id)
    added = await cluster.leader().member_add((cluster.url(number),))
    assert added.changed is not None
    assert added.changed.id != lost.member_id
    member = await cluster.start(name, initial_cluster_state="existing")
    assert await value_of(member, b"k") == b"v"


async def test_an_older_disk_is_refused(cluster: Cluster) -> None:
    """A copy from before is put back: what the member acknowledged since is gone."""
    follower = cluster.followers()[0]
    name = follower.config.name
    await put(cluster.leader(), b"k")
    await cluster.converged()
    await cluster.stop(name)
    shutil.copytree(cluster.directory / name, cluster.directory / "copy")
    member = await cluster.start(name)
    await cluster.ready()
    for number in range(10):
        await put(cluster.leader(), b"k", b"%d" % number)
    await cluster.converged()
    await cluster.stop(name)
    shutil.rmtree(cluster.directory / name)
    (cluster.directory / "copy").rename(cluster.directory / name)
    member = await cluster.start(name)
    async with asyncio.timeout(10):
        failure = await member.wait_failed()
    assert isinstance(failure, errors.CorruptError)
    assert "older than what it promised" in str(failure)


async def test_joining_needs_to_be_added_and_the_right_members(cluster: Cluster) -> None:
    settings = {"initial_cluster": {**cluster.initial, "m4": (cluster.url(4),)}, "initial_cluster_state": "existing"}
    with pytest.raises(errors.MembershipError, match="member add"):
        await cluster.start("m4", **settings)
    await cluster.leader().member_add((cluster.url(4),))
    with pytest.raises(errors.MembershipError, match="does not match"):
        await cluster.start("m4", initial_cluster={"m1": cluster.initial["m1"], "m4": (cluster.url(4),)}, initial_cluster_state="existing")
    with pytest.raises(errors.UnavailableError, match="none of its members answers"):
        await cluster.start("m4", initial_cluster={"m9": (cluster.url(9),), "m4": (cluster.url(4),)}, initial_cluster_state="existing")
    await cluster.start("m4", **settings)
    await cluster.ready()
