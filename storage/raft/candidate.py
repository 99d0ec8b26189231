"""Elections (Raft §5.2), with the optional round of asking before (thesis §9.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.raft import follower, leader
from storage.raft.config import CAMPAIGN_TRANSFER, ProposalDroppedError, ReadIndexDroppedError, Role
from storage.raft.messages import LEADER_MESSAGES, NO_MEMBER, Message, MessageType
from storage.raft.quorum import VoteResult

if TYPE_CHECKING:
    from storage.raft.raft import Raft


def maybe_campaign(raft: Raft, *, transfer: bool = False) -> bool:
    """Stand for election, unless this member leads, may not be elected, or does not know yet who votes: a configuration change that
    is committed but not applied here could make it count the wrong majority. ``transfer``: the leader asked for it."""
    if raft.role is Role.LEADER or not raft.is_promotable() or raft.log.has_unapplied_conf_change():
        return False
    campaign(raft, pre_vote=raft.config.pre_vote and not transfer, context=CAMPAIGN_TRANSFER if transfer else b"")
    return True


def campaign(raft: Raft, *, pre_vote: bool, context: bytes = b"") -> None:
    """Ask for votes. The own vote counts once it is durable, as anyone's does; a single voter has won then."""
    if pre_vote and not raft.tracker.is_singleton(raft.id):
        raft.become_pre_candidate()
        request, response, term = MessageType.PRE_VOTE, MessageType.PRE_VOTE_RESPONSE, raft.term + 1
    else:
        raft.become_candidate()
        request, response, term = MessageType.VOTE, MessageType.VOTE_RESPONSE, raft.term
    index, log_term = raft.log.last_index(), raft.log.last_term()
    for voter in raft.tracker.voters:
        if voter == raft.id:
            raft.send(Message(type=response, to=raft.id, term=term))
        else:
            raft.send(Message(type=request, to=voter, term=term, index=index, log_term=log_term, context=context))


def step(raft: Raft, message: Message) -> None:
    kind = message.type
    awaited = MessageType.PRE_VOTE_RESPONSE if raft.role is Role.PRE_CANDIDATE else MessageType.VOTE_RESPONSE
    if kind is awaited:
        raft.tracker.record_vote(message.sender, not message.reject)
        result = raft.tracker.vote_result()
        if result is VoteResult.WON:
            if raft.role is Role.PRE_CANDIDATE:
                campaign(raft, pre_vote=False)
            else:
                raft.become_leader()
                leader.broadcast_append(raft)
        elif result is VoteResult.LOST:
            # Not a newer term, so keep ours; wait for a leader or the next timeout.
            raft.become_follower(raft.term, NO_MEMBER)
    elif kind in LEADER_MESSAGES:
        # A leader of this very term exists (Raft §5.2).
        raft.become_follower(message.term, message.sender)
        follower.step(raft, message)
    elif kind is MessageType.PROPOSE:
        raise ProposalDroppedError("an election is running")
    elif kind is MessageType.READ_INDEX:
        raise ReadIndexDroppedError("an election is running")
