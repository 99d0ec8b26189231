"""Elections (Raft §5.2), with the optional round of asking before (thesis §9.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.raft import follower, leader
from storage.raft.config import ProposalDroppedError, Role
from storage.raft.messages import NO_MEMBER, Message, MessageType
from storage.raft.quorum import VoteResult

if TYPE_CHECKING:
    from storage.raft.raft import Raft


def campaign(raft: Raft, *, pre_vote: bool) -> None:
    """Stand for election. The own vote counts once it is durable, as anyone's does; a single voter has won then."""
    if pre_vote and not raft.tracker.is_singleton(raft.id):
        raft.become_pre_candidate()
        request, response, term = MessageType.PRE_VOTE, MessageType.PRE_VOTE_RESPONSE, raft.term + 1
    else:
        raft.become_candidate()
        request, response, term = MessageType.VOTE, MessageType.VOTE_RESPONSE, raft.term
    for voter in raft.tracker.quorum.voters:
        if voter == raft.id:
            raft.send(Message(type=response, to=raft.id, term=term))
        else:
            raft.send(Message(type=request, to=voter, term=term, index=raft.log.last_index(), log_term=raft.log.last_term()))


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
    elif kind in (MessageType.APPEND, MessageType.HEARTBEAT):
        # A leader of this very term exists (Raft §5.2).
        raft.become_follower(message.term, message.sender)
        follower.step(raft, message)
    elif kind is MessageType.PROPOSE:
        raise ProposalDroppedError("an election is running")
