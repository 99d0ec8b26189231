"""The leader hands over (thesis §3.10)."""

from __future__ import annotations

import pytest

from storage.raft.messages import NO_MEMBER, ConfChange, ConfChangeType, Message, MessageType
from storage.raft.rawnode import ProposalDroppedError, Role
from tests.storage.raft.cluster import Cluster


def led(size: int = 3, *, learners: tuple[int, ...] = ()) -> Cluster:
    cluster = Cluster(size, learners=learners, pre_vote=True, check_quorum=True)
    cluster.elect(1)
    return cluster


@pytest.mark.parametrize("asked", [1, 2, 3])
def test_thesis_3_10_the_leader_hands_over_to_a_member_that_is_up_to_date(asked: int) -> None:
    """Also while the leader is heard by all: its own wish overrules its lease (thesis §4.2.3)."""
    cluster = led()
    cluster.node(asked).transfer_leader(2)
    cluster.stabilize()
    assert cluster.leaders() == {2: [2]}
    assert cluster.node(1).status().lead_transferee == NO_MEMBER


def test_thesis_3_10_a_member_that_lags_is_brought_up_to_date_first() -> None:
    cluster = led()
    cluster.isolate(3)
    cluster.node(1).propose(b"x")
    cluster.stabilize()
    cluster.heal()
    cluster.node(1).tick()
    cluster.node(1).transfer_leader(3)
    cluster.stabilize()
    assert cluster.leaders() == {2: [3]}
    assert cluster.applied_data(3) == [b"x"]


def test_thesis_3_10_a_member_that_needs_a_snapshot_gets_it_first() -> None:
    cluster = led()
    cluster.isolate(3)
    cluster.node(1).propose(b"x")
    cluster.stabilize()
    cluster.members[1].snapshot()
    cluster.heal()
    cluster.node(1).transfer_leader(3)
    cluster.node(1).tick()
    cluster.stabilize()
    assert cluster.leaders() == {2: [3]}


def test_thesis_3_10_no_proposal_is_taken_meanwhile_and_it_ends_after_an_election_timeout() -> None:
    cluster = led()
    cluster.isolate(3)
    cluster.node(1).transfer_leader(3)
    assert cluster.node(1).status().lead_transferee == 3
    for _ in range(9):
        with pytest.raises(ProposalDroppedError, match="under transfer to 3"):
            cluster.node(1).propose(b"x")
        cluster.node(1).tick()
        cluster.stabilize()
    cluster.node(1).tick()
    assert cluster.node(1).status().lead_transferee == NO_MEMBER
    cluster.node(1).propose(b"x")
    cluster.stabilize()
    assert cluster.leaders() == {1: [1]}
    assert cluster.applied_data(2) == [b"x"]


def test_the_same_wish_twice_does_not_prolong_it_and_another_takes_its_place() -> None:
    cluster = led()
    cluster.isolate(3)
    for _ in range(9):
        cluster.node(1).transfer_leader(3)
        cluster.node(1).tick()
        cluster.stabilize()
    cluster.node(1).tick()
    assert cluster.node(1).status().lead_transferee == NO_MEMBER
    cluster.node(1).transfer_leader(3)
    cluster.node(1).transfer_leader(2)
    cluster.stabilize()
    assert cluster.leaders() == {2: [2]}


@pytest.mark.parametrize("transferee", [1, 4, 9])
def test_nothing_happens_for_the_leader_itself_a_learner_or_a_stranger(transferee: int) -> None:
    cluster = led(4, learners=(4,))
    cluster.node(1).transfer_leader(transferee)
    cluster.node(1).propose(b"x")
    cluster.stabilize()
    assert cluster.leaders() == {1: [1]}
    assert cluster.applied_data(2) == [b"x"]


def test_nothing_happens_without_a_leader() -> None:
    cluster = Cluster(3)
    cluster.node(1).transfer_leader(2)
    cluster.stabilize()
    assert cluster.leaders() == {}


def test_a_transferee_that_is_removed_ends_it() -> None:
    cluster = led()
    cluster.isolate(3)
    cluster.node(1).propose_conf_change(ConfChange(ConfChangeType.REMOVE_NODE, 3))
    cluster.work(1)
    cluster.node(1).transfer_leader(3)
    cluster.stabilize()
    assert cluster.node(1).status().lead_transferee == NO_MEMBER
    cluster.node(1).propose(b"x")


def test_a_learner_does_not_heed_the_wish() -> None:
    cluster = led(4, learners=(4,))
    cluster.node(4).step(Message(type=MessageType.TIMEOUT_NOW, sender=1, to=4, term=1))
    assert cluster.node(4).status().role is Role.FOLLOWER


def test_a_wish_of_an_old_leader_is_not_heeded() -> None:
    cluster = led()
    cluster.isolate(1)
    cluster.node(2).tick()
    for _ in range(30):
        cluster.node(2).tick()
        cluster.node(3).tick()
        cluster.stabilize()
    (leader,) = {one for found in cluster.leaders().values() for one in found} - {1}
    follower = 5 - leader
    cluster.node(follower).step(Message(type=MessageType.TIMEOUT_NOW, sender=1, to=follower, term=1))
    assert cluster.node(follower).status().role is Role.FOLLOWER
