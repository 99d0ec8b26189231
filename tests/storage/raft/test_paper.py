"""What the Raft paper demands, section by section. Names: paper_<section>_<what>."""

from __future__ import annotations

import random

import pytest

from storage.raft.log_storage import MemoryLogStorage
from storage.raft.messages import ConfState, Entry, HardState, Message, MessageType, SnapshotMetadata
from storage.raft.rawnode import Config, ProposalDroppedError, RawNode, Role
from tests.storage.raft.cluster import Cluster


def follower(entries: list[Entry], *, term: int, commit: int = 0) -> RawNode:
    """Member 1 of three with a log."""
    storage = MemoryLogStorage(SnapshotMetadata(ConfState((1, 2, 3))), HardState(term, 0, commit))
    storage.append(entries)
    return RawNode(Config(id=1, pre_vote=False, check_quorum=False), storage, random.Random(1))


def log_terms(node: RawNode) -> list[int]:
    return [node.raft.log.term(index) for index in range(1, node.raft.log.last_index() + 1)]


def test_paper_5_1_a_newer_term_makes_followers_of_all() -> None:
    for role in Role:
        cluster = Cluster(3)
        node = cluster.node(1)
        if role is Role.LEADER:
            cluster.elect(1)
        elif role is not Role.FOLLOWER:
            node.campaign()
        node.step(Message(type=MessageType.APPEND, sender=2, to=1, term=9))
        assert node.status().role is Role.FOLLOWER
        assert node.status().term == 9


def test_paper_5_1_messages_of_an_older_term_change_nothing() -> None:
    node = follower([Entry(1, 1)], term=5)
    node.step(Message(type=MessageType.APPEND, sender=2, to=1, term=4, index=1, log_term=1, entries=(Entry(4, 2),)))
    assert node.raft.log.last_index() == 1
    assert node.raft.leader_id == 0


def test_paper_5_2_a_follower_that_hears_nothing_campaigns_within_the_timeout() -> None:
    cluster = Cluster(3)
    node = cluster.node(1)
    for _ in range(node.raft.election_timeout - 1):
        node.tick()
    assert node.status().role is Role.FOLLOWER
    node.tick()
    assert node.status().role is Role.CANDIDATE
    assert node.status().term == 1
    votes = [message for message in node.ready().messages_after_append if message.type is MessageType.VOTE]
    assert sorted(message.to for message in votes) == [2, 3]


def test_paper_5_2_timeouts_are_random_within_bounds() -> None:
    cluster = Cluster(1)
    raft = cluster.node(1).raft
    drawn = set()
    for _ in range(500):
        raft.draw_election_timeout()
        drawn.add(raft.election_timeout)
    assert drawn == set(range(10, 20))


def test_paper_5_2_the_same_seed_gives_the_same_timeouts() -> None:
    one, two = (Cluster(3) for _ in range(2))
    for cluster in (one, two):
        for _ in range(300):
            for member in cluster.members:
                cluster.node(member).tick()
            cluster.stabilize()
    assert [one.node(member).status() for member in one.members] == [two.node(member).status() for member in two.members]


@pytest.mark.parametrize("size", [1, 3, 5, 7])
def test_paper_5_2_a_majority_elects(size: int) -> None:
    cluster = Cluster(size)
    minority = (size - 1) // 2
    for member in range(size - minority + 1, size + 1):
        cluster.isolate(member)
    cluster.elect(1)
    assert cluster.leaders() == {1: [1]}


def test_paper_5_2_without_a_majority_nobody_leads() -> None:
    cluster = Cluster(5)
    for member in (3, 4, 5):
        cluster.isolate(member)
    cluster.node(1).campaign()
    cluster.stabilize()
    assert cluster.node(1).status().role is Role.CANDIDATE


def test_paper_5_2_one_vote_a_term_first_come_first_served() -> None:
    node = follower([], term=1)
    for sender in (2, 3, 2):
        node.step(Message(type=MessageType.VOTE, sender=sender, to=1, term=2))
    answers = node.ready().messages_after_append
    assert [(message.to, message.reject) for message in answers] == [(2, False), (3, True), (2, False)]


def test_paper_5_2_a_vote_survives_a_crash() -> None:
    cluster = Cluster(3)
    cluster.node(1).step(Message(type=MessageType.VOTE, sender=2, to=1, term=1))
    cluster.work(1)
    cluster.members[1].crash()
    cluster.node(1).step(Message(type=MessageType.VOTE, sender=3, to=1, term=1))
    answer = cluster.node(1).ready().messages_after_append[0]
    assert answer.reject


def test_paper_5_2_a_candidate_yields_to_the_leader_of_its_term() -> None:
    cluster = Cluster(3)
    node = cluster.node(1)
    node.campaign()
    node.step(Message(type=MessageType.APPEND, sender=2, to=1, term=1))
    assert node.status().role is Role.FOLLOWER
    assert node.status().leader_id == 2


def test_paper_5_2_a_leader_sends_heartbeats() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.node(1).tick()
    beats = [message for message in cluster.node(1).ready().messages if message.type is MessageType.HEARTBEAT]
    assert sorted(message.to for message in beats) == [2, 3]


def test_paper_5_3_a_leader_commits_what_a_majority_holds_and_tells() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.isolate(3)
    cluster.node(1).propose(b"a")
    cluster.stabilize()
    assert cluster.applied_data(1) == cluster.applied_data(2) == [b"a"]
    assert cluster.applied_data(3) == []
    cluster.heal()
    cluster.node(1).tick()
    cluster.stabilize()
    assert cluster.applied_data(3) == [b"a"]


def test_paper_5_3_a_minority_commits_nothing() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.isolate(1)
    cluster.node(1).propose(b"lost")
    cluster.stabilize()
    assert cluster.applied_data(1) == []
    cluster.elect(2)
    cluster.node(2).propose(b"kept")
    cluster.stabilize()
    cluster.heal()
    cluster.node(2).tick()
    cluster.stabilize()
    assert [cluster.applied_data(member) for member in (1, 2, 3)] == [[b"kept"]] * 3


FIGURE_7 = {
    "a": [1, 1, 1, 4, 4, 5, 5, 6, 6],
    "b": [1, 1, 1, 4],
    "c": [1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 6],
    "d": [1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 7, 7],
    "e": [1, 1, 1, 4, 4, 4, 4],
    "f": [1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3],
}


@pytest.mark.parametrize("case", sorted(FIGURE_7))
def test_paper_5_3_figure_7_a_leader_makes_every_log_its_own(case: str) -> None:
    leading = [1, 1, 1, 4, 4, 5, 5, 6, 6, 6]
    cluster = Cluster(3)
    for member, terms in ((1, leading), (2, FIGURE_7[case])):
        cluster.members[member].storage.append([Entry(term, index) for index, term in enumerate(terms, 1)])
        cluster.members[member].storage.hard_state = HardState(max(*terms, 7), 0, 0)
        cluster.members[member].crash()
    # member 3 (empty) votes; member 2 may have a log that is more up to date
    cluster.isolate(2)
    cluster.elect(1)
    cluster.heal()
    cluster.node(1).tick()
    cluster.stabilize()
    cluster.node(1).propose(b"x")
    cluster.stabilize()
    assert [log_terms(cluster.node(member)) for member in (1, 2, 3)] == [[*leading, 8, 8]] * 3


def test_paper_5_3_a_follower_refuses_what_does_not_follow_its_log() -> None:
    node = follower([Entry(1, 1), Entry(2, 2)], term=2)
    node.step(Message(type=MessageType.APPEND, sender=2, to=1, term=2, index=2, log_term=1))
    node.step(Message(type=MessageType.APPEND, sender=2, to=1, term=2, index=5, log_term=2))
    node.step(Message(type=MessageType.APPEND, sender=2, to=1, term=2, index=2, log_term=2))
    answers = node.ready().messages_after_append
    assert [(message.index, message.reject, message.reject_hint) for message in answers] == [(2, True, 1), (5, True, 2), (2, False, 0)]


@pytest.mark.parametrize(
    ("index", "log_term", "entries", "expected"),
    [
        (2, 2, (Entry(3, 3),), [1, 2, 3]),
        (1, 1, (Entry(3, 2), Entry(4, 3)), [1, 3, 4]),
        (0, 0, (Entry(1, 1),), [1, 2]),
        (0, 0, (Entry(3, 1),), [3]),
    ],
)
def test_paper_5_3_only_entries_that_conflict_are_replaced(
    index: int, log_term: int, entries: tuple[Entry, ...], expected: list[int]
) -> None:
    node = follower([Entry(1, 1), Entry(2, 2)], term=2)
    node.step(Message(type=MessageType.APPEND, sender=2, to=1, term=4, index=index, log_term=log_term, entries=entries))
    assert log_terms(node) == expected


def test_paper_5_3_what_is_promised_leaves_after_it_is_written() -> None:
    node = follower([], term=1)
    node.step(Message(type=MessageType.APPEND, sender=2, to=1, term=1, entries=(Entry(1, 1),)))
    ready = node.ready()
    assert ready.must_sync
    assert ready.messages == []
    assert [message.type for message in ready.messages_after_append] == [MessageType.APPEND_RESPONSE]


@pytest.mark.parametrize(
    ("last_index", "last_term", "granted"), [(1, 1, False), (2, 2, True), (3, 2, True), (1, 3, True), (9, 1, False), (1, 2, False)]
)
def test_paper_5_4_1_a_vote_needs_a_log_as_up_to_date(last_index: int, last_term: int, granted: bool) -> None:
    node = follower([Entry(1, 1), Entry(2, 2)], term=2)
    node.step(Message(type=MessageType.VOTE, sender=2, to=1, term=3, index=last_index, log_term=last_term))
    assert node.ready().messages_after_append[0].reject is not granted


def test_paper_5_4_2_figure_8_copies_of_an_older_term_are_not_counted() -> None:
    cluster = Cluster(3)
    for member in (1, 2):
        cluster.members[member].storage.append([Entry(1, 1), Entry(2, 2)])
        cluster.members[member].storage.hard_state = HardState(2, 0, 0)
        cluster.members[member].crash()
    node = cluster.node(1)
    node.campaign()
    cluster.work(1)
    cluster.deliver()
    cluster.work(2)
    cluster.deliver()
    assert node.status().role is Role.LEADER
    cluster.work(1)  # its own copy counts, up to the entry of its term
    # Both of two members hold the entry of term 2; it is committed only along with one of term 3.
    node.step(Message(type=MessageType.APPEND_RESPONSE, sender=2, to=1, term=3, index=2))
    assert node.status().committed == 0
    node.step(Message(type=MessageType.APPEND_RESPONSE, sender=2, to=1, term=3, index=3))
    assert node.status().committed == 3


def test_paper_6_a_member_that_was_cut_off_does_not_unseat_a_leader() -> None:
    cluster = Cluster(3, pre_vote=True, check_quorum=True)
    cluster.elect(1)
    cluster.isolate(3)
    for _ in range(60):
        for member in cluster.members:
            cluster.node(member).tick()
        cluster.stabilize()
    cluster.heal()
    for _ in range(60):
        for member in cluster.members:
            cluster.node(member).tick()
        cluster.stabilize()
    assert cluster.leaders() == {1: [1]}


def test_thesis_6_2_a_leader_that_can_send_and_not_receive_makes_way() -> None:
    cluster = Cluster(3, pre_vote=True, check_quorum=True)
    cluster.elect(1)
    cluster.blocked = {(2, 1), (3, 1)}
    for _ in range(80):
        for member in cluster.members:
            cluster.node(member).tick()
        cluster.stabilize()
    led_by_others = [member for member in (2, 3) if cluster.node(member).status().role is Role.LEADER]
    assert len(led_by_others) == 1
    cluster.node(led_by_others[0]).propose(b"x")
    cluster.stabilize()
    assert cluster.applied_data(led_by_others[0]) == [b"x"]


def test_paper_8_a_new_leader_appends_an_entry_without_data() -> None:
    cluster = Cluster(3)
    cluster.elect(2)
    assert [(entry.term, entry.index, entry.data) for entry in cluster.members[1].applied] == [(1, 1, b"")]


def test_thesis_6_2_a_leader_that_hears_no_quorum_steps_down() -> None:
    cluster = Cluster(3, check_quorum=True)
    cluster.elect(1)
    cluster.isolate(1)
    for _ in range(2 * 10):
        cluster.node(1).tick()
        cluster.stabilize()
    assert cluster.node(1).status().role is Role.FOLLOWER


def test_thesis_9_6_a_pre_vote_begins_no_term() -> None:
    cluster = Cluster(3, pre_vote=True)
    cluster.isolate(1)
    cluster.node(1).campaign()
    cluster.stabilize()
    assert cluster.node(1).status().term == 0
    assert cluster.node(1).status().role is Role.PRE_CANDIDATE


def test_a_proposal_without_a_leader_is_dropped() -> None:
    cluster = Cluster(3)
    with pytest.raises(ProposalDroppedError):
        cluster.node(1).propose(b"x")


def test_a_follower_sends_a_proposal_on_to_the_leader() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.node(2).propose(b"x")
    cluster.stabilize()
    assert cluster.applied_data(3) == [b"x"]
