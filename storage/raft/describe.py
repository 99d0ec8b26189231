"""Raft values in one line for people: logs, tests, debugging."""

from __future__ import annotations

from storage.raft import codec
from storage.raft.messages import (
    NO_MEMBER,
    VOTES,
    ConfChange,
    ConfChangeTransition,
    ConfChangeV2,
    ConfState,
    Entry,
    EntryType,
    HardState,
    Message,
    Snapshot,
    as_v2,
)
from storage.raft.progress import Progress, ProgressState
from storage.raft.rawnode import Ready, Status

_DATA_CHARACTERS_MAX = 40  # of an entry's data


def describe_entry(entry: Entry) -> str:
    if entry.type is not EntryType.NORMAL:
        try:
            return f"{entry.term}/{entry.index} {describe_conf_change(codec.decode_conf_change_entry(entry))}"
        except codec.CodecError as error:
            return f"{entry.term}/{entry.index} {entry.type.name} {error}"
    text = entry.data[:_DATA_CHARACTERS_MAX].decode("ascii", "backslashreplace")
    more = "…" if len(entry.data) > _DATA_CHARACTERS_MAX else ""
    return f"{entry.term}/{entry.index} {text!r}{more}"


def describe_conf_change(change: ConfChange | ConfChangeV2) -> str:
    """Example: ``change ADD_NODE 4, REMOVE_NODE 1 (JOINT_EXPLICIT)``."""
    v2 = as_v2(change)
    if v2.leaves_joint():
        return "leave joint"
    transition = "" if v2.transition is ConfChangeTransition.AUTO else f" ({v2.transition.name})"
    return "change " + ", ".join(f"{one.type.name} {one.member}" for one in v2.changes) + transition


def describe_conf_state(state: ConfState) -> str:
    """Example: ``(1 2 4) && (1 2 3) learners (5) next (3) auto-leave``."""

    def group(members: tuple[int, ...]) -> str:
        return "(" + " ".join(map(str, members)) + ")"

    parts = [group(state.voters)]
    if state.voters_outgoing:
        parts.append(f"&& {group(state.voters_outgoing)}")
    if state.learners:
        parts.append(f"learners {group(state.learners)}")
    if state.learners_next:
        parts.append(f"next {group(state.learners_next)}")
    if state.auto_leave:
        parts.append("auto-leave")
    return " ".join(parts)


def describe_snapshot(snapshot: Snapshot) -> str:
    metadata = snapshot.metadata
    return f"snapshot {metadata.term}/{metadata.index} {describe_conf_state(metadata.conf_state)}"


def describe_hard_state(state: HardState) -> str:
    return f"term {state.term} vote {state.vote} commit {state.commit}"


def describe_message(message: Message) -> str:
    parts = [f"{message.sender}->{message.to} {message.type.name} term {message.term}"]
    if message.log_term or message.index:
        parts.append(f"log {message.log_term}/{message.index}")
    if message.type in VOTES:
        if message.commit:
            parts.append(f"commit {message.reject_hint}/{message.commit}")
        if message.reject:
            parts.append("rejected")
    else:
        if message.commit:
            parts.append(f"commit {message.commit}")
        if message.reject:
            parts.append(f"rejected, hint {message.reject_hint}")
    if message.context:
        parts.append(f"context {_describe_context(message.context)}")
    if message.snapshot is not None:
        parts.append(describe_snapshot(message.snapshot))
    if message.entries:
        parts.append("entries [" + ", ".join(describe_entry(entry) for entry in message.entries) + "]")
    return " ".join(parts)


def _describe_context(context: bytes) -> str:
    """Text as it is, the round of a heartbeat as a number."""
    return repr(context.decode("ascii")) if context.isascii() and context[0] else f"{int.from_bytes(context, 'big')}"


def describe_ready(ready: Ready) -> str:
    lines = [f"Ready {ready.number}{' must sync' if ready.must_sync else ''}"]
    if ready.soft_state:
        lines.append(f"  {ready.soft_state.role.value}, leader {ready.soft_state.leader_id}")
    if ready.hard_state:
        lines.append(f"  hard state: {describe_hard_state(ready.hard_state)}")
    lines += [f"  read {state.context.decode('ascii', 'backslashreplace')!r} from {state.index} on" for state in ready.read_states]
    if ready.snapshot is not None:
        lines.append(f"  {describe_snapshot(ready.snapshot)}")
    for title, entries in (("entries", ready.entries), ("committed", ready.committed_entries)):
        if entries:
            lines.append(f"  {title}: " + ", ".join(describe_entry(entry) for entry in entries))
    for title, messages in (("send", ready.messages), ("send after append", ready.messages_after_append)):
        lines += [f"  {title}: {describe_message(message)}" for message in messages]
    return "\n".join(lines)


def describe_progress(member: int, progress: Progress) -> str:
    paused = " paused" if progress.is_paused() else ""
    window = f" in flight {len(progress.inflights)}" if progress.state is ProgressState.REPLICATE else ""
    pending = f" pending snapshot {progress.pending_snapshot}" if progress.pending_snapshot else ""
    learner = " learner" if progress.is_learner else ""
    inactive = "" if progress.recent_active else " inactive"
    return f"{member}: {progress.state.value} match {progress.match} next {progress.next}{window}{pending}{paused}{learner}{inactive}"


def describe_status(status: Status) -> str:
    transfer = "" if status.lead_transferee == NO_MEMBER else f" hands over to {status.lead_transferee}"
    return (
        f"{status.id}: {status.role.value} term {status.term} vote {status.vote} leader {status.leader_id} "
        f"commit {status.committed} applied {status.applied} last {status.last_index}{transfer}"
    )
