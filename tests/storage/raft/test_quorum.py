"""Majorities against dumb twins, over all small cases and random larger ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.raft.quorum import JointQuorum, MajorityQuorum, VoteResult


def wins(voters: Iterable[int], votes: dict[int, bool]) -> bool:
    voters = list(voters)
    return not voters or sum(votes[voter] for voter in voters) * 2 > len(voters)


def twin_committed_index(halves: list[tuple[int, ...]], match: dict[int, int]) -> int | None:
    """The highest index that more than half of every half holds, found by trying all."""
    halves = [half for half in halves if half]
    if not halves:
        return None
    indexes = sorted({0, *match.values()})
    return max(index for index in indexes if all(wins(half, {voter: match.get(voter, 0) >= index for voter in half}) for half in halves))


def twin_vote_result(halves: list[tuple[int, ...]], votes: dict[int, bool]) -> VoteResult:
    """Try all ways in which the missing votes may come out."""
    missing = sorted({voter for half in halves for voter in half if voter not in votes})
    outcomes = {
        all(wins(half, {**votes, **dict(zip(missing, rest, strict=True))}) for half in halves)
        for rest in itertools.product((False, True), repeat=len(missing))
    }
    if outcomes == {True}:
        return VoteResult.WON
    return VoteResult.PENDING if True in outcomes else VoteResult.LOST


def joint(incoming: tuple[int, ...], outgoing: tuple[int, ...]) -> JointQuorum:
    return JointQuorum(MajorityQuorum(incoming), MajorityQuorum(outgoing))


def subsets(members: range) -> list[tuple[int, ...]]:
    return [subset for size in range(len(members) + 1) for subset in itertools.combinations(members, size)]


@pytest.mark.parametrize("size", range(6))
def test_a_majority_agrees_with_its_twins_in_all_small_cases(size: int) -> None:
    voters = tuple(range(1, size + 1))
    quorum = MajorityQuorum(voters)
    for held in itertools.product((None, 0, 1, 2), repeat=size):
        match = {voter: index for voter, index in zip(voters, held, strict=True) if index is not None}
        assert quorum.committed_index(match) == twin_committed_index([voters], match), match
    for given_votes in itertools.product((None, False, True), repeat=size):
        votes = {voter: vote for voter, vote in zip(voters, given_votes, strict=True) if vote is not None}
        assert quorum.vote_result(votes) is twin_vote_result([voters], votes), votes


def test_a_joint_quorum_agrees_with_its_twins_in_all_small_cases() -> None:
    members = range(1, 5)
    for incoming, outgoing in itertools.product(subsets(members), repeat=2):
        quorum = joint(incoming, outgoing)
        voters = quorum.voters()
        assert voters == tuple(sorted({*incoming, *outgoing}))
        for held in itertools.product((0, 1, 2), repeat=len(voters)):
            match = dict(zip(voters, held, strict=True))
            assert quorum.committed_index(match) == twin_committed_index([incoming, outgoing], match), (incoming, outgoing, match)
        for given_votes in itertools.product((None, False, True), repeat=len(voters)):
            votes = {voter: vote for voter, vote in zip(voters, given_votes, strict=True) if vote is not None}
            assert quorum.vote_result(votes) is twin_vote_result([incoming, outgoing], votes), (incoming, outgoing, votes)


members = st.integers(1, 12)


@given(
    incoming=st.sets(members, max_size=9),
    outgoing=st.sets(members, max_size=9),
    match=st.dictionaries(members, st.integers(0, 20)),
    votes=st.dictionaries(members, st.booleans()),
)
def test_a_joint_quorum_agrees_with_its_twins(
    incoming: set[int], outgoing: set[int], match: dict[int, int], votes: dict[int, bool]
) -> None:
    halves = [tuple(sorted(incoming)), tuple(sorted(outgoing))]
    quorum = joint(halves[0], halves[1])
    assert quorum.committed_index(match) == twin_committed_index(halves, match)
    if len({*incoming, *outgoing} - {*votes}) <= 8:
        assert quorum.vote_result(votes) is twin_vote_result(halves, votes)


def test_two_majorities_always_share_a_voter() -> None:
    """Why Raft §5.4.3 holds: checked over all pairs of sets that win."""
    for size in range(1, 6):
        voters = tuple(range(size))
        winners = [
            subset for subset in subsets(range(size)) if MajorityQuorum(voters).vote_result(dict.fromkeys(subset, True)) is VoteResult.WON
        ]
        assert all({*one} & {*two} for one, two in itertools.product(winners, repeat=2))
