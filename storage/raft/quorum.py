"""Majorities: what a set of voters has agreed to, in one configuration or in two at a time (Raft §6, joint consensus)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass


class VoteResult(enum.Enum):
    PENDING = "pending"
    LOST = "lost"
    WON = "won"


@dataclass(frozen=True, slots=True)
class MajorityQuorum:
    """More than half of ``voters``. An empty set agrees to everything, so that it can be one half of a joint configuration."""

    voters: tuple[int, ...]

    def size(self) -> int:
        return len(self.voters) // 2 + 1

    def committed_index(self, match: Mapping[int, int]) -> int | None:
        """The highest index that a majority holds, None for no voters. An absent voter holds nothing.

        Example: match 1→7, 2→5, 3→2: sorted 2 5 7; two of three hold 5.
        """
        if not self.voters:
            return None
        held = sorted(match.get(voter, 0) for voter in self.voters)
        return held[len(held) - self.size()]

    def vote_result(self, votes: Mapping[int, bool]) -> VoteResult:
        """LOST as soon as a majority for it is out of reach."""
        if not self.voters:
            return VoteResult.WON
        granted = sum(1 for voter in self.voters if votes.get(voter) is True)
        missing = sum(1 for voter in self.voters if voter not in votes)
        if granted >= self.size():
            return VoteResult.WON
        return VoteResult.PENDING if granted + missing >= self.size() else VoteResult.LOST


@dataclass(frozen=True, slots=True)
class JointQuorum:
    """A majority of ``incoming`` and a majority of ``outgoing`` (Raft §6). Outside of a change ``outgoing`` is empty."""

    incoming: MajorityQuorum
    outgoing: MajorityQuorum = MajorityQuorum(())

    def voters(self) -> tuple[int, ...]:
        """All voters of both halves, ascending."""
        if not self.outgoing.voters:
            return self.incoming.voters
        return tuple(sorted({*self.incoming.voters, *self.outgoing.voters}))

    def committed_index(self, match: Mapping[int, int]) -> int | None:
        """The highest index that both halves hold, None for no voters at all."""
        incoming = self.incoming.committed_index(match)
        outgoing = self.outgoing.committed_index(match)
        if incoming is None or outgoing is None:
            return outgoing if incoming is None else incoming
        return min(incoming, outgoing)

    def vote_result(self, votes: Mapping[int, bool]) -> VoteResult:
        """Both halves must be won; one that is lost decides."""
        results = (self.incoming.vote_result(votes), self.outgoing.vote_result(votes))
        if VoteResult.LOST in results:
            return VoteResult.LOST
        return VoteResult.PENDING if VoteResult.PENDING in results else VoteResult.WON
