"""Majorities against a plain count, for every small case."""

from __future__ import annotations

import itertools

from storage.raft.quorum import MajorityQuorum, VoteResult


def test_committed_index_is_the_highest_that_a_majority_holds() -> None:
    for size in range(1, 6):
        voters = tuple(range(1, size + 1))
        for held in itertools.product(range(4), repeat=size):
            match = dict(zip(voters, held, strict=True))
            expected = max(index for index in range(4) if sum(1 for one in held if one >= index) * 2 > size)
            assert MajorityQuorum(voters).committed_index(match) == expected


def test_an_absent_voter_holds_nothing() -> None:
    assert MajorityQuorum((1, 2, 3)).committed_index({1: 9}) == 0


def test_votes_are_won_lost_or_open() -> None:
    for size in range(1, 6):
        voters = tuple(range(1, size + 1))
        for cast in itertools.product((True, False, None), repeat=size):
            votes = {voter: vote for voter, vote in zip(voters, cast, strict=True) if vote is not None}
            result = MajorityQuorum(voters).vote_result(votes)
            if cast.count(True) * 2 > size:
                assert result is VoteResult.WON
            elif (cast.count(True) + cast.count(None)) * 2 > size:
                assert result is VoteResult.PENDING
            else:
                assert result is VoteResult.LOST


def test_no_voters_agree_to_everything() -> None:
    assert MajorityQuorum(()).vote_result({}) is VoteResult.WON
    assert MajorityQuorum(()).committed_index({}) is None
