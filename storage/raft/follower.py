"""The follower's rules (Raft §5.2, §5.3) and what every role does with a leader's messages."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from storage.raft.config import ProposalDroppedError
from storage.raft.messages import NO_MEMBER, Message, MessageType

if TYPE_CHECKING:
    from storage.raft.raft import Raft


def step(raft: Raft, message: Message) -> None:
    kind = message.type
    if kind is MessageType.APPEND:
        _heard(raft, message)
        handle_append(raft, message)
    elif kind is MessageType.HEARTBEAT:
        _heard(raft, message)
        handle_heartbeat(raft, message)
    elif kind is MessageType.PROPOSE:
        if raft.leader_id == NO_MEMBER:
            raise ProposalDroppedError("no leader is known")
        raft.send(replace(message, to=raft.leader_id))


def _heard(raft: Raft, message: Message) -> None:
    raft.election_elapsed = 0
    raft.leader_id = message.sender


def handle_append(raft: Raft, message: Message) -> None:
    """AppendEntries (Raft figure 2). A refusal names the last entry that could match, so that the leader need not try each one."""
    log = raft.log
    if message.index < log.committed:
        # An old message: all it brings is committed here.
        raft.send(Message(type=MessageType.APPEND_RESPONSE, to=message.sender, index=log.committed))
        return
    last = log.maybe_append(message.index, message.log_term, message.commit, message.entries)
    if last is not None:
        raft.send(Message(type=MessageType.APPEND_RESPONSE, to=message.sender, index=last))
        return
    hint, hint_term = log.find_conflict_by_term(message.index, message.log_term)
    raft.send(
        Message(
            type=MessageType.APPEND_RESPONSE,
            to=message.sender,
            index=message.index,
            reject=True,
            reject_hint=hint,
            log_term=hint_term,
        )
    )


def handle_heartbeat(raft: Raft, message: Message) -> None:
    raft.log.commit_to(message.commit)
    raft.send(Message(type=MessageType.HEARTBEAT_RESPONSE, to=message.sender, context=message.context))
