"""The leader's rules: replicate (Raft §5.3), commit (§5.4.2), be heard (§5.2), step down when not (thesis §6.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from storage.raft.config import ProposalDroppedError
from storage.raft.log_storage import LogCompactedError
from storage.raft.messages import NO_MEMBER, Entry, EntryType, Message, MessageType
from storage.raft.progress import ProgressState

if TYPE_CHECKING:
    from storage.raft.raft import Raft


def tick(raft: Raft) -> None:
    raft.heartbeat_elapsed += 1
    raft.election_elapsed += 1
    if raft.election_elapsed >= raft.config.election_ticks:
        raft.election_elapsed = 0
        if raft.config.check_quorum and not raft.tracker.quorum_is_active(raft.id):
            raft.become_follower(raft.term, NO_MEMBER)
            return
    if raft.heartbeat_elapsed >= raft.config.heartbeat_ticks:
        raft.heartbeat_elapsed = 0
        broadcast_heartbeat(raft)


def step(raft: Raft, message: Message) -> None:
    kind = message.type
    if kind is MessageType.APPEND_RESPONSE:
        _on_append_response(raft, message)
    elif kind is MessageType.PROPOSE:
        propose(raft, [(entry.data, entry.type) for entry in message.entries])
    elif kind is MessageType.HEARTBEAT_RESPONSE:
        _on_heartbeat_response(raft, message)
    elif kind is MessageType.UNREACHABLE:
        progress = raft.tracker.progress.get(message.sender)
        if progress is not None and progress.state is ProgressState.REPLICATE:
            progress.become_probe()  # what was under way is likely lost


def propose(raft: Raft, proposals: Sequence[tuple[bytes, EntryType]]) -> None:
    """Append proposals to the own log and send them on. Raises ProposalDroppedError (nothing of it was taken)."""
    if not append_entries(raft, proposals):
        raise ProposalDroppedError(f"over {raft.config.uncommitted_bytes_max} bytes of uncommitted entries")
    broadcast_append(raft)


def append_entries(raft: Raft, proposals: Sequence[tuple[bytes, EntryType]]) -> bool:
    """Append to the own log. False when that would be over the limit of uncommitted bytes."""
    if not raft.charge_uncommitted(sum([len(data) for data, _ in proposals])):
        return False
    log, term = raft.log, raft.term
    index = log.last_index()
    entries = [Entry(term, index + offset, data, kind) for offset, (data, kind) in enumerate(proposals, 1)]
    log.append(entries)
    return True


def own_entries_durable(raft: Raft, last: Entry) -> None:
    """The leader's own copy of its entries up to ``last`` counts from now on, as the answer of any follower would."""
    if last.term == raft.term and raft.tracker.progress[raft.id].maybe_update(last.index) and _maybe_commit(raft):
        broadcast_append(raft)


def broadcast_append(raft: Raft) -> None:
    for member in raft.tracker.progress:
        if member != raft.id:
            maybe_send_append(raft, member, even_if_empty=True)


def broadcast_heartbeat(raft: Raft) -> None:
    for member, progress in raft.tracker.progress.items():
        if member != raft.id:
            # Never a commit index beyond what the follower is known to hold: its log may differ there.
            commit = min(progress.match, raft.log.committed)
            raft.send(Message(type=MessageType.HEARTBEAT, to=member, commit=commit))


def maybe_send_append(raft: Raft, member: int, *, even_if_empty: bool) -> bool:
    """Send entries from ``next`` on, or only the commit index. False when paused or there is nothing to say."""
    progress = raft.tracker.progress[member]
    if progress.is_paused():
        return False
    previous = progress.next - 1
    try:
        log_term = raft.log.term(previous)
        entries = raft.log.entries(progress.next, raft.config.message_bytes_max)
    except LogCompactedError:
        # What the follower lacks is compacted. It stays in probe: snapshots to peers are not sent by this core.
        progress.sent(0)
        return False
    if not entries and not even_if_empty:
        return False
    raft.send(
        Message(
            type=MessageType.APPEND,
            to=member,
            index=previous,
            log_term=log_term,
            entries=tuple(entries),
            commit=raft.log.committed,
        )
    )
    progress.sent(len(entries))
    return True


def _on_append_response(raft: Raft, message: Message) -> None:
    progress = raft.tracker.progress.get(message.sender)
    if progress is None:
        return  # of a member that is none any more
    progress.recent_active = True
    if message.reject:
        _on_refused_append(raft, message)
        return
    was_paused = progress.is_paused()
    news = progress.maybe_update(message.index)
    if not news and not (progress.state is ProgressState.PROBE and progress.match == message.index):
        return
    if progress.state is ProgressState.PROBE:
        progress.become_replicate()
    if _maybe_commit(raft):
        broadcast_append(raft)
    elif was_paused:
        maybe_send_append(raft, message.sender, even_if_empty=True)
    # A window may have opened for several messages' worth of entries; the window and the log's end bound the loop.
    while maybe_send_append(raft, message.sender, even_if_empty=False):
        pass


def _on_refused_append(raft: Raft, message: Message) -> None:
    """Go back to where the logs may agree.

    The follower named its last entry (reject_hint, log_term) that could match ours. Where our entry there has a newer term, none of
    ours of such terms can match either, so skip them all in one step.
    """
    progress = raft.tracker.progress[message.sender]
    hint = message.reject_hint
    if message.log_term > 0:
        hint, _ = raft.log.find_conflict_by_term(hint, message.log_term)
    if progress.maybe_decrease(message.index, hint):
        if progress.state is ProgressState.REPLICATE:
            progress.become_probe()
        maybe_send_append(raft, message.sender, even_if_empty=True)


def _on_heartbeat_response(raft: Raft, message: Message) -> None:
    progress = raft.tracker.progress.get(message.sender)
    if progress is None:
        return
    progress.heard_heartbeat()
    if progress.match < raft.log.last_index() or progress.state is ProgressState.PROBE:
        maybe_send_append(raft, message.sender, even_if_empty=True)


def _maybe_commit(raft: Raft) -> bool:
    return raft.log.maybe_commit(raft.tracker.committed_index(), raft.term)
