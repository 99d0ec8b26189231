"""Members come and go while the group works (thesis §4, Raft §6)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from storage.raft import codec
from storage.raft.confchange import ConfChangeError
from storage.raft.log_storage import MemoryLogStorage
from storage.raft.messages import (
    NO_MEMBER,
    ConfChange,
    ConfChangeSingle,
    ConfChangeTransition,
    ConfChangeType,
    ConfChangeV2,
    ConfState,
    Entry,
    EntryType,
    HardState,
    Message,
    MessageType,
    SnapshotMetadata,
)
from storage.raft.progress import ProgressState
from storage.raft.rawnode import Config, ProposalDroppedError, RawNode, Role
from tests.storage.raft.cluster import Cluster

ADD, REMOVE, LEARN = ConfChangeType.ADD_NODE, ConfChangeType.REMOVE_NODE, ConfChangeType.ADD_LEARNER_NODE


def change(*changes: tuple[ConfChangeType, int], transition: ConfChangeTransition = ConfChangeTransition.AUTO) -> ConfChangeV2:
    return ConfChangeV2(tuple(ConfChangeSingle(kind, member) for kind, member in changes), transition)


def configurations(cluster: Cluster) -> list[ConfState]:
    return [one.node.conf_state() for one in cluster.members.values()]


def led(size: int, **settings: Any) -> Cluster:
    cluster = Cluster(size, **settings)
    cluster.elect(1)
    return cluster


def conf_entries(cluster: Cluster, member: int) -> list[Entry]:
    return [entry for entry in cluster.members[member].applied if entry.type is not EntryType.NORMAL]


def test_thesis_4_1_a_member_is_added_and_counts() -> None:
    cluster = led(1)
    cluster.add_member(2)
    cluster.node(1).propose_conf_change(ConfChange(ADD, 2, b"who it is", 7))
    cluster.stabilize()
    assert configurations(cluster) == [ConfState((1, 2))] * 2
    assert codec.decode_conf_change_entry(conf_entries(cluster, 2)[0]) == ConfChange(ADD, 2, b"who it is", 7)
    cluster.isolate(2)
    cluster.node(1).propose(b"needs both")
    cluster.stabilize()
    assert cluster.applied_data(1) == []
    cluster.heal()
    cluster.node(1).tick()
    cluster.stabilize()
    assert cluster.applied_data(2) == [b"needs both"]


def test_thesis_4_1_only_one_change_is_pending_the_next_one_becomes_an_empty_entry() -> None:
    cluster = led(3)
    cluster.node(1).propose_conf_change(ConfChange(REMOVE, 3))
    cluster.node(1).propose_conf_change(ConfChange(REMOVE, 2))
    cluster.stabilize()
    assert cluster.node(1).conf_state() == ConfState((1, 2))
    assert [(entry.type, entry.data) for entry in cluster.members[1].applied[2:]] == [(EntryType.NORMAL, b"")]
    cluster.node(1).propose_conf_change(ConfChange(REMOVE, 2))
    cluster.stabilize()
    assert cluster.node(1).conf_state() == ConfState((1,))


def test_thesis_4_1_a_new_leader_lets_no_change_in_before_it_applied_what_it_found() -> None:
    cluster = led(3)
    cluster.node(1).propose_conf_change(ConfChange(REMOVE, 3))
    cluster.work_until(lambda: cluster.node(2).status().last_index == 2)
    cluster.isolate(1)
    cluster.node(2).campaign()
    cluster.work_until(lambda: cluster.node(2).status().role is Role.LEADER)
    assert cluster.node(2).status().applied < 2
    cluster.node(2).propose_conf_change(ConfChange(ADD, 4))
    cluster.heal()
    cluster.stabilize()
    cluster.node(2).tick()
    cluster.stabilize()
    assert cluster.node(2).status().applied == 4
    assert cluster.node(2).conf_state() == ConfState((1, 2))


def test_what_cannot_be_applied_does_not_enter_the_log() -> None:
    for refused in (
        change((REMOVE, 1)),
        change((ADD, 2), (REMOVE, 1), (REMOVE, 2), transition=ConfChangeTransition.JOINT_EXPLICIT),
        ConfChangeV2(),
    ):
        cluster = led(1)
        cluster.node(1).propose_conf_change(refused)
        cluster.stabilize()
        assert cluster.node(1).conf_state() == ConfState((1,))
        assert conf_entries(cluster, 1) == []
        assert len(cluster.members[1].applied) == 2


def test_a_change_that_is_no_change_of_a_follower_is_refused_by_the_leader() -> None:
    cluster = led(2)
    garbage = Entry(0, 0, b"\xff\xff", EntryType.CONF_CHANGE)
    cluster.node(1).step(Message(type=MessageType.PROPOSE, sender=2, to=1, entries=(garbage,)))
    cluster.stabilize()
    assert [entry.data for entry in cluster.members[2].applied] == [b"", b""]


def test_a_change_proposed_at_a_follower_is_forwarded() -> None:
    cluster = led(3)
    cluster.node(2).propose_conf_change(ConfChange(REMOVE, 3))
    cluster.stabilize()
    assert cluster.node(2).conf_state() == ConfState((1, 2))


def test_a_dropped_change_is_not_pending() -> None:
    cluster = led(3, uncommitted_bytes_max=10)
    cluster.node(1).propose(bytes(10))
    with pytest.raises(ProposalDroppedError):
        cluster.node(1).propose_conf_change(ConfChange(REMOVE, 3))
    cluster.stabilize()
    cluster.node(1).propose_conf_change(ConfChange(REMOVE, 3))
    cluster.stabilize()
    assert cluster.node(1).conf_state() == ConfState((1, 2))


def test_a_change_that_is_declined_when_applied_changes_nothing() -> None:
    cluster = led(2)
    assert cluster.node(1).apply_conf_change(ConfChange(REMOVE, NO_MEMBER)) == ConfState((1, 2))


def test_a_change_that_cannot_be_made_is_an_error_when_applied() -> None:
    cluster = led(1)
    with pytest.raises(ConfChangeError):
        cluster.node(1).apply_conf_change(ConfChange(REMOVE, 1))
    assert cluster.node(1).conf_state() == ConfState((1,))


def test_thesis_4_2_1_a_learner_gets_the_log_but_has_no_say() -> None:
    cluster = led(2)
    cluster.add_member(3)
    cluster.node(1).propose(b"before")
    cluster.stabilize()
    cluster.node(1).propose_conf_change(ConfChange(LEARN, 3))
    cluster.stabilize()
    assert configurations(cluster) == [ConfState((1, 2), (3,))] * 3
    assert cluster.applied_data(3) == [b"before"]
    cluster.isolate(2)
    cluster.node(1).propose(b"two voters are needed")
    cluster.stabilize()
    assert cluster.node(1).status().committed == 3
    for _ in range(50):
        cluster.node(3).tick()
    assert cluster.node(3).status().role is Role.FOLLOWER
    assert cluster.node(3).status().term == 1


def test_thesis_4_2_1_a_learner_that_caught_up_is_promoted() -> None:
    cluster = led(2)
    cluster.add_member(3)
    cluster.node(1).propose_conf_change(ConfChange(LEARN, 3))
    cluster.stabilize()
    progress = {one.member: one for one in cluster.node(1).status().progress}
    assert progress[3].is_learner
    assert progress[3].match == progress[1].match
    cluster.node(1).propose_conf_change(ConfChange(ADD, 3))
    cluster.stabilize()
    assert configurations(cluster) == [ConfState((1, 2, 3))] * 3
    assert not any(one.is_learner for one in cluster.node(1).status().progress)
    cluster.isolate(2)
    cluster.node(1).propose(b"two of three")
    cluster.stabilize()
    assert cluster.applied_data(3) == [b"two of three"]


def test_a_new_member_far_behind_comes_by_a_snapshot_with_the_configuration() -> None:
    cluster = led(3)
    for number in range(5):
        cluster.node(1).propose(b"%d" % number)
    cluster.node(1).propose_conf_change(ConfChange(REMOVE, 2))
    cluster.stabilize()
    cluster.members[1].snapshot()
    cluster.add_member(4)
    cluster.node(1).propose_conf_change(ConfChange(ADD, 4))
    cluster.stabilize()
    cluster.node(1).tick()
    cluster.stabilize()
    cluster.node(1).tick()
    cluster.stabilize()
    # The snapshot was taken before member 4 was in the configuration, so it is of no use to it and not sent over and over.
    assert cluster.applied_data(4) == []
    cluster.members[1].snapshot()
    for _ in range(2):
        cluster.node(1).tick()
        cluster.stabilize()
    assert cluster.node(4).conf_state() == ConfState((1, 3, 4))
    assert cluster.applied_data(4) == cluster.applied_data(1)


def test_thesis_4_2_2_a_leader_that_removes_itself_leads_up_to_the_commit_and_steps_down() -> None:
    cluster = led(3)
    cluster.node(1).propose_conf_change(ConfChange(REMOVE, 1))
    cluster.node(1).propose(b"still taken")
    cluster.stabilize()
    assert cluster.node(1).status().role is Role.FOLLOWER
    assert configurations(cluster)[1:] == [ConfState((2, 3))] * 2
    cluster.node(1).campaign()
    assert cluster.node(1).status().role is Role.FOLLOWER
    cluster.elect(2)
    cluster.node(2).propose(b"without 1")
    cluster.stabilize()
    assert cluster.applied_data(3) == [b"still taken", b"without 1"]


def test_a_leader_that_is_demoted_steps_down() -> None:
    cluster = led(3)
    cluster.node(1).propose_conf_change(ConfChange(LEARN, 1))
    cluster.stabilize()
    assert cluster.node(1).status().role is Role.FOLLOWER
    assert configurations(cluster)[1:] == [ConfState((2, 3), (1,))] * 2


def test_thesis_4_2_3_a_removed_member_does_not_disturb() -> None:
    cluster = led(3, pre_vote=True, check_quorum=True)
    cluster.isolate(3)
    cluster.node(1).propose_conf_change(ConfChange(REMOVE, 3))
    cluster.stabilize()
    cluster.heal()
    for _ in range(60):
        cluster.node(3).tick()
        cluster.node(1).tick()
        cluster.stabilize()
    assert cluster.leaders() == {1: [1]}


def test_a_removed_follower_may_make_what_waits_for_it_commit() -> None:
    cluster = led(2)
    cluster.node(1).propose_conf_change(ConfChange(REMOVE, 2))
    cluster.node(1).propose(b"committed by the change")
    cluster.work(1)
    cluster.network.clear()
    cluster.isolate(2)
    cluster.node(1).step(Message(type=MessageType.APPEND_RESPONSE, sender=2, to=1, term=1, index=2))
    cluster.stabilize()
    assert cluster.node(1).conf_state() == ConfState((1,))
    assert cluster.applied_data(1) == [b"committed by the change"]


def test_reads_that_wait_for_a_removed_member_go_on() -> None:
    cluster = led(2)
    cluster.node(1).propose_conf_change(ConfChange(REMOVE, 2))
    cluster.work_until(lambda: cluster.node(2).status().last_index >= 2)
    cluster.blocked.add((1, 2))
    cluster.node(1).read_index(b"x")
    cluster.stabilize()
    assert cluster.node(1).conf_state() == ConfState((1,))
    assert [state.context for state in cluster.members[1].read_states] == [b"x"]


# -- joint consensus (Raft §6)


def test_paper_6_several_changes_at_a_time_go_through_a_joint_configuration_and_leave_it() -> None:
    cluster = led(3)
    cluster.add_member(4)
    cluster.add_member(5)
    cluster.node(1).propose_conf_change(change((ADD, 4), (ADD, 5), (REMOVE, 2), (LEARN, 3)))
    seen: list[ConfState] = []
    for _ in range(40):
        for member in cluster.members:
            cluster.work(member)
        if not seen or seen[-1] != cluster.node(1).conf_state():
            seen.append(cluster.node(1).conf_state())
        cluster.deliver()
    assert seen == [
        ConfState((1, 2, 3)),
        ConfState((1, 4, 5), (), (1, 2, 3), (3,), auto_leave=True),
        ConfState((1, 4, 5), (3,)),
    ]
    assert [cluster.node(member).conf_state() for member in (1, 3, 4, 5)] == [ConfState((1, 4, 5), (3,))] * 4


def test_paper_6_in_a_joint_configuration_both_majorities_decide() -> None:
    cluster = led(3)
    cluster.add_member(4)
    cluster.add_member(5)
    joint = change((ADD, 4), (ADD, 5), (REMOVE, 2), (REMOVE, 3), transition=ConfChangeTransition.JOINT_EXPLICIT)
    cluster.node(1).propose_conf_change(joint)
    cluster.stabilize()
    assert cluster.node(1).conf_state() == ConfState((1, 4, 5), (), (1, 2, 3), ())
    committed = cluster.node(1).status().committed
    for cut_off in ((2, 3), (4, 5)):
        for member in cut_off:
            cluster.isolate(member)
        cluster.node(1).propose(b"x")
        cluster.stabilize()
        assert cluster.node(1).status().committed == committed
        cluster.heal()
        cluster.node(1).tick()
        cluster.stabilize()
        committed = cluster.node(1).status().committed
        assert committed == cluster.node(1).status().last_index
    cluster.isolate(2)
    cluster.isolate(4)
    cluster.node(1).propose(b"a majority of each")
    cluster.stabilize()
    assert cluster.applied_data(5)[-1] == b"a majority of each"
    # An election needs both, too.
    cluster.heal()
    cluster.stabilize()
    cluster.isolate(1)
    cluster.isolate(2)
    cluster.node(5).campaign()
    cluster.stabilize()
    assert cluster.node(5).status().role is not Role.LEADER


def test_an_explicit_joint_configuration_stays_until_it_is_told_to_end() -> None:
    cluster = led(2)
    joint = change((ADD, 3), transition=ConfChangeTransition.JOINT_EXPLICIT)
    cluster.add_member(3)
    cluster.node(1).propose_conf_change(joint)
    cluster.stabilize()
    cluster.node(1).propose_conf_change(ConfChange(REMOVE, 2))
    for _ in range(3):
        cluster.node(1).tick()
        cluster.stabilize()
    assert cluster.node(1).conf_state() == ConfState((1, 2, 3), (), (1, 2))
    cluster.node(1).propose_conf_change(ConfChangeV2(context=b"end"))
    cluster.stabilize()
    assert configurations(cluster) == [ConfState((1, 2, 3))] * 3


def test_a_new_leader_leaves_a_joint_configuration_that_it_finds() -> None:
    cluster = led(4)
    cluster.node(1).propose_conf_change(change((REMOVE, 4), transition=ConfChangeTransition.JOINT_IMPLICIT))
    cluster.work_until(lambda: bool(cluster.node(2).conf_state().voters_outgoing))
    cluster.isolate(1)
    cluster.elect(2)
    assert cluster.node(2).conf_state() == ConfState((1, 2, 3))
    assert cluster.node(1).conf_state() == ConfState((1, 2, 3), (), (1, 2, 3, 4), (), auto_leave=True)
    cluster.heal()
    cluster.node(2).tick()
    cluster.stabilize()
    assert cluster.node(1).conf_state() == ConfState((1, 2, 3))


def test_a_leader_outside_of_the_new_half_steps_down_when_the_joint_configuration_ends() -> None:
    cluster = led(3)
    cluster.node(1).propose_conf_change(change((REMOVE, 1), transition=ConfChangeTransition.JOINT_EXPLICIT))
    cluster.stabilize()
    assert cluster.node(1).status().role is Role.LEADER
    cluster.node(1).propose_conf_change(ConfChangeV2())
    cluster.stabilize()
    assert cluster.node(1).status().role is Role.FOLLOWER
    assert cluster.node(2).conf_state() == ConfState((2, 3))


# -- elections and restarts


def test_a_member_with_an_unapplied_change_does_not_stand_for_election() -> None:
    """It could count majorities of a configuration that is not in force any more."""
    data, kind = codec.conf_change_proposal(ConfChange(ADD, 4))
    storage = MemoryLogStorage(SnapshotMetadata(ConfState((1, 2, 3))), HardState(1, 0, 2))
    storage.append([Entry(1, 1), Entry(1, 2, data, kind)])
    node = RawNode(Config(id=1, pre_vote=False), storage, random.Random(0))
    node.campaign()
    assert node.status().role is Role.FOLLOWER
    ready = node.ready()
    assert node.apply_conf_change(codec.decode_conf_change_entry(ready.committed_entries[1])) == ConfState((1, 2, 3, 4))
    node.advance_applied(2)
    node.advance_persisted(ready)
    node.campaign()
    assert node.status().role is Role.CANDIDATE


def test_a_restart_keeps_the_configuration() -> None:
    cluster = led(3)
    cluster.node(1).propose_conf_change(ConfChange(REMOVE, 3))
    cluster.stabilize()
    cluster.members[1].snapshot()
    cluster.node(1).propose_conf_change(ConfChange(LEARN, 3))
    cluster.stabilize()
    for member in (1, 2):
        cluster.members[member].crash()
    assert cluster.node(1).conf_state() == ConfState((1, 2))
    assert cluster.node(2).conf_state() == ConfState((1, 2, 3))
    cluster.stabilize()
    cluster.elect(1)
    assert configurations(cluster)[:2] == [ConfState((1, 2), (3,))] * 2


def test_a_new_member_does_not_unseat_the_leader_before_it_had_a_chance_to_answer() -> None:
    cluster = led(1, check_quorum=True)
    for _ in range(9):
        cluster.node(1).tick()
    cluster.node(1).propose_conf_change(ConfChange(ADD, 2))
    cluster.stabilize()
    cluster.node(1).tick()
    assert cluster.node(1).status().role is Role.LEADER
    for _ in range(10):
        cluster.node(1).tick()
    assert cluster.node(1).status().role is Role.FOLLOWER


def test_members_that_leave_are_forgotten_and_come_back_new() -> None:
    cluster = led(3)
    cluster.node(1).propose_conf_change(ConfChange(REMOVE, 3))
    cluster.stabilize()
    assert [one.member for one in cluster.node(1).status().progress] == [1, 2]
    before = cluster.node(1).status()
    cluster.node(1).step(Message(type=MessageType.APPEND_RESPONSE, sender=3, to=1, term=1, index=3))
    assert cluster.node(1).status() == before
    cluster.node(1).propose_conf_change(ConfChange(ADD, 3))
    cluster.stabilize()
    assert cluster.node(1).raft.tracker.progress[3].state is ProgressState.REPLICATE


def test_a_member_that_lags_learns_from_votes_that_a_joint_configuration_is_over() -> None:
    """1. Members 2 and 3 know that 1 is gone, 2 has the longer log, but only 3 knows that it is committed. 2. Without being told, 2
    would ask 1, which is switched off, and 3 would ask 2, which refuses."""
    cluster = led(1)
    cluster.add_member(2)
    cluster.add_member(3)
    cluster.node(1).propose_conf_change(change((ADD, 2), (ADD, 3), (REMOVE, 1), transition=ConfChangeTransition.JOINT_EXPLICIT))
    cluster.stabilize()
    cluster.node(1).propose_conf_change(ConfChangeV2())
    cluster.work_until(lambda: len(cluster.on_the_way(MessageType.APPEND)) == 2)
    cluster.deliver()
    cluster.work(2)
    cluster.work(3)
    cluster.node(1).propose(b"more")
    cluster.work(1)
    for message in list(cluster.network):
        if message.type is MessageType.APPEND and message.to == 2:
            cluster.deliver_one(message)
    cluster.network.clear()
    cluster.work(2)
    cluster.network.clear()
    cluster.node(3).step(Message(type=MessageType.HEARTBEAT, sender=1, to=3, term=1, commit=3))
    cluster.work(3)
    cluster.network.clear()
    cluster.isolate(1)
    assert cluster.node(2).status().last_index > cluster.node(3).status().last_index
    assert cluster.node(2).conf_state() == ConfState((2, 3), (), (1,))
    assert cluster.node(3).conf_state() == ConfState((2, 3))
    cluster.node(2).campaign()
    cluster.stabilize()
    assert cluster.node(2).conf_state() == ConfState((2, 3))
    cluster.elect(2)
    cluster.stabilize()
    assert cluster.applied_data(3) == [b"more"]
