"""The leader's rules: replicate (Raft §5.3), commit (§5.4.2), be heard (§5.2), step down when not (thesis §6.2), hand over (thesis
§3.10), send snapshots (§7), confirm reads (thesis §6.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from storage.raft import codec, confchange
from storage.raft.config import ProposalDroppedError, ReadIndexDroppedError
from storage.raft.log_storage import LogCompactedError, SnapshotUnavailableError
from storage.raft.messages import NO_MEMBER, Entry, EntryType, Message, MessageType, as_v2
from storage.raft.progress import Progress, ProgressState
from storage.raft.read_only import ReadRequest, ReadState

if TYPE_CHECKING:
    from storage.raft.raft import Raft

Proposal = tuple[bytes, EntryType]


def tick(raft: Raft) -> None:
    raft.heartbeat_elapsed += 1
    raft.election_elapsed += 1
    if raft.election_elapsed >= raft.config.election_ticks:
        raft.election_elapsed = 0
        if raft.config.check_quorum and not raft.tracker.quorum_is_active(raft.id):
            raft.become_follower(raft.term, NO_MEMBER)
            return
        raft.lead_transferee = NO_MEMBER  # it had an election timeout to take over
    if raft.heartbeat_elapsed >= raft.config.heartbeat_ticks:
        raft.heartbeat_elapsed = 0
        broadcast_heartbeat(raft)


def step(raft: Raft, message: Message) -> None:
    kind = message.type
    if kind is MessageType.PROPOSE:
        propose_conf_changes(raft, [(entry.data, entry.type) for entry in message.entries])
        return
    if kind is MessageType.READ_INDEX:
        for entry in message.entries:
            read_index(raft, ReadRequest(message.sender, entry.data))
        return
    progress = raft.tracker.progress.get(message.sender)
    if progress is None:
        return  # of a member that is none any more
    if kind is MessageType.APPEND_RESPONSE:
        _on_append_response(raft, message, progress)
    elif kind is MessageType.HEARTBEAT_RESPONSE:
        _on_heartbeat_response(raft, message, progress)
    elif kind is MessageType.UNREACHABLE:
        if progress.state is ProgressState.REPLICATE:
            progress.become_probe()  # what was under way is likely lost
    elif kind is MessageType.SNAPSHOT_STATUS:
        _on_snapshot_status(message, progress)
    elif kind is MessageType.TRANSFER_LEADER:
        _on_transfer_leader(raft, message.sender, progress)


# -- the own log


def propose(raft: Raft, proposals: Sequence[Proposal]) -> None:
    """Append proposals to the own log and send them on. Raises ProposalDroppedError (nothing of it was taken)."""
    if raft.lead_transferee != NO_MEMBER:
        raise ProposalDroppedError(f"leadership is under transfer to {raft.lead_transferee}")
    if not append_entries(raft, proposals):
        raise ProposalDroppedError(f"over {raft.config.uncommitted_bytes_max} bytes of uncommitted entries")
    broadcast_append(raft)


def append_entries(raft: Raft, proposals: Sequence[Proposal]) -> bool:
    """Append to the own log. False when that would be over the limit of uncommitted bytes."""
    if not raft.charge_uncommitted(sum([len(data) for data, _ in proposals])):
        return False
    log, term = raft.log, raft.term
    index = log.last_index()
    log.append([Entry(term, index + offset, data, kind) for offset, (data, kind) in enumerate(proposals, 1)])
    return True


def propose_conf_changes(raft: Raft, proposals: Sequence[Proposal]) -> None:
    """``propose``, where some may be configuration changes. One that must not enter the log is replaced by an empty entry.

    Only one change may be pending (thesis §4.1): the next one is decided on by majorities of a configuration that must be in force.
    What could not be applied is refused here, on the configuration to which it would be applied, so that applying never fails.
    """
    before = raft.pending_conf_index
    admitted: list[Proposal] = []
    for index, (data, kind) in enumerate(proposals, raft.log.last_index() + 1):
        if kind is EntryType.NORMAL:
            admitted.append((data, kind))
        elif raft.pending_conf_index <= raft.log.applied and _can_be_made(raft, Entry(raft.term, index, data, kind)):
            raft.pending_conf_index = index
            admitted.append((data, kind))
        else:
            admitted.append((b"", EntryType.NORMAL))
    try:
        propose(raft, admitted)
    except ProposalDroppedError:
        raft.pending_conf_index = before
        raise


def _can_be_made(raft: Raft, entry: Entry) -> bool:
    try:
        confchange.changed(raft.tracker.config, as_v2(codec.decode_conf_change_entry(entry)))
    except (confchange.ConfChangeError, codec.CodecError):
        return False
    return True


def maybe_leave_joint(raft: Raft) -> bool:
    """Propose the end of a joint configuration that shall be left automatically, once it is applied. An entry without data is never
    refused for its size; when leadership is under transfer the next entry that is applied tries again, here or at the new leader."""
    if not raft.tracker.config.auto_leave or raft.log.applied < raft.pending_conf_index or raft.lead_transferee != NO_MEMBER:
        return False
    propose_conf_changes(raft, [(b"", EntryType.CONF_CHANGE_V2)])
    return True


def own_entries_durable(raft: Raft, last: Entry) -> None:
    """The leader's own copy of its entries up to ``last`` counts from now on, as the answer of any follower would."""
    if last.term == raft.term:
        progress = raft.tracker.progress.get(raft.id)
        if progress is not None and progress.maybe_update(last.index) and maybe_commit(raft):
            broadcast_append(raft)


def maybe_commit(raft: Raft) -> bool:
    """Commit what a quorum holds. The first time in a term, reads that had to wait for it go on."""
    if not raft.log.maybe_commit(raft.tracker.committed_index(), raft.term):
        return False
    if not raft.committed_in_term:
        raft.committed_in_term = True
        postponed, raft.read_only.postponed = raft.read_only.postponed, []
        for request in postponed:
            read_index(raft, request)
    return True


# -- sending


def broadcast_append(raft: Raft) -> None:
    for member in raft.tracker.progress:
        if member != raft.id:
            maybe_send_append(raft, member, even_if_empty=True)


def broadcast_heartbeat(raft: Raft) -> None:
    context = raft.read_only.heartbeat_context()
    for member, progress in raft.tracker.progress.items():
        if member != raft.id:
            # Never a commit index beyond what the member is known to hold: its log may differ there.
            commit = min(progress.match, raft.log.committed)
            raft.send(Message(type=MessageType.HEARTBEAT, to=member, commit=commit, context=context))
            progress.sent_commit = max(progress.sent_commit, commit)
    release_reads(raft)  # of a quorum that is this member alone


def maybe_send_append(raft: Raft, member: int, *, even_if_empty: bool) -> bool:
    """Send entries from ``next`` on, or only the commit index, or a snapshot where the entries are compacted. False when paused or
    there is nothing to say."""
    progress = raft.tracker.progress[member]
    if progress.is_paused():
        return False
    previous = progress.next - 1
    entries: list[Entry] = []
    try:
        log_term = raft.log.term(previous)
        if progress.takes_entries():
            entries = raft.log.entries(progress.next, raft.config.message_bytes_max)
    except LogCompactedError:
        return _maybe_send_snapshot(raft, member, progress)
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
    progress.sent(len(entries), sum([len(entry.data) for entry in entries]))
    progress.sent_commit = raft.log.committed
    return True


def _maybe_send_snapshot(raft: Raft, member: int, progress: Progress) -> bool:
    """False when the member was not heard of lately (a snapshot is too costly to send into the void), or there is none for it: a
    snapshot from before it was added would be refused, and sent again at once, and so on. The next heartbeat's answer asks again."""
    if not progress.recent_active:
        return False
    try:
        snapshot = raft.log.snapshot()
    except SnapshotUnavailableError:
        return False
    state = snapshot.metadata.conf_state
    if member not in (*state.voters, *state.learners, *state.voters_outgoing):
        return False
    progress.become_snapshot(snapshot.metadata.index)
    raft.send(Message(type=MessageType.SNAPSHOT, to=member, snapshot=snapshot))
    return True


# -- answers


def _on_append_response(raft: Raft, message: Message, progress: Progress) -> None:
    progress.recent_active = True
    if message.reject:
        _on_refused_append(raft, message, progress)
        return
    news = progress.maybe_update(message.index)
    if not news and not (progress.state is ProgressState.PROBE and progress.match == message.index):
        return
    if progress.state is ProgressState.PROBE:
        progress.become_replicate()
    elif progress.state is ProgressState.SNAPSHOT and progress.match + 1 >= raft.log.first_index():
        # Whatever snapshot it took, the log can serve it from here on.
        progress.become_replicate()
    if maybe_commit(raft):
        broadcast_append(raft)
    elif progress.can_bump_commit(raft.log.committed):
        maybe_send_append(raft, message.sender, even_if_empty=True)
    # A window may have opened for several messages' worth of entries; the window and the log's end bound the loop.
    while maybe_send_append(raft, message.sender, even_if_empty=False):
        pass
    if message.sender == raft.lead_transferee and progress.match == raft.log.last_index():
        _send_timeout_now(raft, message.sender)


def _on_refused_append(raft: Raft, message: Message, progress: Progress) -> None:
    """Go back to where the logs may agree.

    The follower named its last entry (reject_hint, log_term) that could match ours. Where our entry there has a newer term, none of
    ours of such terms can match either, so skip them all in one step.
    """
    hint = message.reject_hint
    if message.log_term > 0:
        hint, _ = raft.log.find_conflict_by_term(hint, message.log_term)
    if progress.maybe_decrease(message.index, hint):
        if progress.state is ProgressState.REPLICATE:
            progress.become_probe()
        maybe_send_append(raft, message.sender, even_if_empty=True)


def _on_heartbeat_response(raft: Raft, message: Message, progress: Progress) -> None:
    progress.heard_heartbeat()
    if progress.match < raft.log.last_index() or progress.state is ProgressState.PROBE:
        maybe_send_append(raft, message.sender, even_if_empty=True)
    if message.context:
        raft.read_only.acknowledge(message.sender, message.context)
        release_reads(raft)


def _on_snapshot_status(message: Message, progress: Progress) -> None:
    """How sending a snapshot ended. Either way the next append waits: for the member's own answer, or a heartbeat's."""
    if progress.state is not ProgressState.SNAPSHOT:
        return
    if message.reject:
        progress.pending_snapshot = 0  # it was not taken, so do not go on behind it
    progress.become_probe()
    progress.paused = True


# -- handing over (thesis §3.10)


def _on_transfer_leader(raft: Raft, transferee: int, progress: Progress) -> None:
    """Stop taking proposals, bring the transferee's log up to date, ask it to stand. Given up after an election timeout."""
    if progress.is_learner or transferee in (raft.id, raft.lead_transferee):
        return
    raft.election_elapsed = 0
    raft.lead_transferee = transferee
    if progress.match == raft.log.last_index():
        _send_timeout_now(raft, transferee)
    else:
        maybe_send_append(raft, transferee, even_if_empty=True)


def _send_timeout_now(raft: Raft, transferee: int) -> None:
    raft.send(Message(type=MessageType.TIMEOUT_NOW, to=transferee))


# -- reads (thesis §6.4)


def read_index(raft: Raft, request: ReadRequest) -> None:
    """Answer once it is sure that this member still led when the read came. Raises ReadIndexDroppedError."""
    if len(raft.read_only) >= raft.config.pending_reads_max:
        raise ReadIndexDroppedError(f"{raft.config.pending_reads_max} reads are waiting")
    if not raft.committed_in_term:
        raft.read_only.postponed.append(request)
    elif raft.tracker.is_singleton(raft.id):
        _answer_read(raft, request, raft.log.committed)
    else:
        raft.read_only.add(request, raft.log.committed)


def release_reads(raft: Raft) -> None:
    for request, index in raft.read_only.release(raft.tracker.quorum):
        _answer_read(raft, request, index)


def _answer_read(raft: Raft, request: ReadRequest, index: int) -> None:
    if request.member in (raft.id, NO_MEMBER):
        raft.read_states.append(ReadState(index, request.context))
    else:
        raft.send(Message(type=MessageType.READ_INDEX_RESPONSE, to=request.member, index=index, entries=(Entry(0, 0, request.context),)))


# -- configuration changes


def configuration_changed(raft: Raft) -> None:
    """The quorum may be smaller now, members may be new."""
    if maybe_commit(raft):
        broadcast_append(raft)
    else:
        for member in raft.tracker.progress:
            if member != raft.id:
                maybe_send_append(raft, member, even_if_empty=False)
    release_reads(raft)
    if raft.lead_transferee != NO_MEMBER and not raft.tracker.is_voter(raft.lead_transferee):
        raft.lead_transferee = NO_MEMBER
