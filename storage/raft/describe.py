"""Raft values in one line for people: logs, tests, debugging."""

from __future__ import annotations

from storage.raft.messages import Entry, EntryType, HardState, Message
from storage.raft.progress import Progress, ProgressState
from storage.raft.rawnode import Ready, Status

_DATA_CHARACTERS_MAX = 40  # of an entry's data


def describe_entry(entry: Entry) -> str:
    kind = "" if entry.type is EntryType.NORMAL else f" {entry.type.name}"
    text = entry.data[:_DATA_CHARACTERS_MAX].decode("ascii", "backslashreplace")
    more = "…" if len(entry.data) > _DATA_CHARACTERS_MAX else ""
    return f"{entry.term}/{entry.index}{kind} {text!r}{more}"


def describe_hard_state(state: HardState) -> str:
    return f"term {state.term} vote {state.vote} commit {state.commit}"


def describe_message(message: Message) -> str:
    parts = [f"{message.sender}->{message.to} {message.type.name} term {message.term}"]
    if message.log_term or message.index:
        parts.append(f"log {message.log_term}/{message.index}")
    if message.commit:
        parts.append(f"commit {message.commit}")
    if message.reject:
        parts.append(f"rejected, hint {message.reject_hint}")
    if message.entries:
        parts.append("entries [" + ", ".join(describe_entry(entry) for entry in message.entries) + "]")
    return " ".join(parts)


def describe_ready(ready: Ready) -> str:
    lines = [f"Ready {ready.number}{' must sync' if ready.must_sync else ''}"]
    if ready.soft_state:
        lines.append(f"  {ready.soft_state.role.value}, leader {ready.soft_state.leader_id}")
    if ready.hard_state:
        lines.append(f"  hard state: {describe_hard_state(ready.hard_state)}")
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
    return f"{member}: {progress.state.value} match {progress.match} next {progress.next}{window}{pending}{paused}{learner}"


def describe_status(status: Status) -> str:
    return (
        f"{status.id}: {status.role.value} term {status.term} vote {status.vote} leader {status.leader_id} "
        f"commit {status.committed} applied {status.applied} last {status.last_index}"
    )
