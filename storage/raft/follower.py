"""The follower's rules (Raft §5.2, §5.3, §7) and what every role does with a leader's messages."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from storage.raft import candidate
from storage.raft.config import ProposalDroppedError, ReadIndexDroppedError
from storage.raft.messages import NO_MEMBER, Message, MessageType, Snapshot
from storage.raft.read_only import ReadState

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
    elif kind is MessageType.SNAPSHOT:
        _heard(raft, message)
        handle_snapshot(raft, message)
    elif kind is MessageType.PROPOSE:
        if raft.leader_id == NO_MEMBER:
            raise ProposalDroppedError("no leader is known")
        if not raft.config.forward_proposals:
            raise ProposalDroppedError(f"not the leader, which is {raft.leader_id}")
        raft.send(replace(message, to=raft.leader_id, sender=raft.id))
    elif kind is MessageType.READ_INDEX:
        if raft.leader_id == NO_MEMBER:
            raise ReadIndexDroppedError("no leader is known")
        raft.send(replace(message, to=raft.leader_id))
    elif kind is MessageType.READ_INDEX_RESPONSE:
        raft.read_states.extend(ReadState(message.index, entry.data) for entry in message.entries)
    elif kind is MessageType.TRANSFER_LEADER:
        if raft.leader_id != NO_MEMBER:
            raft.send(replace(message, to=raft.leader_id))
    elif kind is MessageType.TIMEOUT_NOW:
        # The leader asks for it, so there is no need to ask around, and no lease of it to respect (thesis §3.10).
        candidate.maybe_campaign(raft, transfer=True)


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


def handle_snapshot(raft: Raft, message: Message) -> None:
    """InstallSnapshot (Raft §7), in one message. The answer says up to where the logs match now, whether it was taken or not."""
    if message.snapshot is not None and _restore(raft, message.snapshot):
        matching = raft.log.last_index()
    else:
        matching = raft.log.committed
    raft.send(Message(type=MessageType.APPEND_RESPONSE, to=message.sender, index=matching))


def _restore(raft: Raft, snapshot: Snapshot) -> bool:
    """Take the snapshot in place of the log and the configuration. False when it is not needed or not for this member."""
    metadata = snapshot.metadata
    if metadata.index <= raft.log.committed:
        return False
    state = metadata.conf_state
    if raft.id not in (*state.voters, *state.learners, *state.voters_outgoing):
        return False  # it would leave a configuration without this member; a snapshot taken after it was added will come
    if raft.log.matches(metadata.index, metadata.term):
        # The log has got that far meanwhile: what the snapshot holds is committed here too.
        raft.log.commit_to(metadata.index)
        return False
    raft.log.restore(snapshot)
    raft.restore_configuration(state)
    return True
