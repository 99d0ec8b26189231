"""Majorities: what a set of voters has agreed to."""

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
