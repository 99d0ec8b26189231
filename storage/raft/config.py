"""Settings of a member, and the few names that all roles share."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from storage.raft.messages import NO_MEMBER

CAMPAIGN_TRANSFER: Final = b"CampaignTransfer"
"""Context of a vote request that the leader itself asked for: it is heard although a leader is known (thesis §4.2.3)."""


class Role(enum.Enum):
    FOLLOWER = "follower"
    PRE_CANDIDATE = "pre-candidate"
    CANDIDATE = "candidate"
    LEADER = "leader"


class ProposalDroppedError(Exception):
    """The proposal was not taken (no leader known, leadership under transfer, or the log's end is full): nothing of it will ever be
    applied."""


class ReadIndexDroppedError(Exception):
    """The read was not taken (no leader known, or too many are waiting): no ReadState will name it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Ticks are those of ``RawNode.tick``, sizes are bytes of entry data.

    ``election_ticks`` is the lower bound of the election timeout, which is drawn from [election_ticks, 2·election_ticks).
    """

    id: int
    election_ticks: int = 10
    heartbeat_ticks: int = 1
    message_bytes_max: int = 1024 * 1024
    """Entry data of one append message. Larger single entries travel alone."""
    committed_bytes_max: int = 4 * 1024 * 1024
    """Entry data of the committed entries of one Ready, so that applying never holds up the loop for long."""
    uncommitted_bytes_max: int = 1 << 30
    """Entry data of a leader's uncommitted end of the log; beyond it proposals are dropped."""
    in_flight_max: int = 512
    """Append messages on their way to one follower."""
    in_flight_bytes_max: int = 0
    """Entry data on its way to one follower, 0 for no bound; at least ``message_bytes_max``. The message that passes it is let in."""
    pending_reads_max: int = 1 << 16
    """ReadIndex requests that wait for a round of heartbeats; beyond it they are dropped."""
    forward_proposals: bool = True
    """Whether a follower hands proposals on to the leader; else it drops them, as one that knows no leader does."""
    pre_vote: bool = True
    """Ask whether an election could be won before beginning a term (thesis §9.6)."""
    check_quorum: bool = True
    """A leader that hears no quorum for an election timeout steps down, and votes are not given while a leader is heard (thesis §6.2)."""
    applied: int = 0
    """The last index that the state machine holds already (restart)."""

    def validate(self) -> None:
        if self.id == NO_MEMBER:
            raise ValueError("id must not be 0")
        if not 0 < self.heartbeat_ticks < self.election_ticks:
            raise ValueError("0 < heartbeat_ticks < election_ticks must hold")
        for name in ("message_bytes_max", "committed_bytes_max", "uncommitted_bytes_max", "in_flight_max", "pending_reads_max"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive")
        if self.in_flight_bytes_max and self.in_flight_bytes_max < self.message_bytes_max:
            raise ValueError("in_flight_bytes_max must be 0 or at least message_bytes_max")
        if self.applied < 0:
            raise ValueError("applied must not be negative")
