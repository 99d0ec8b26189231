"""Drives the Raft node on an event loop: proposals and messages in, entries to the disk, messages to peers, committed entries to the
state machine.

Everything here runs on the loop's thread, but for the disk. Flow of one write:

    propose ─ gathered until the loop's next pass ─> RawNode ─ Ready ─> LogWriter (away from the loop: write, one sync)
            committed_entries ─> apply  <─ RawNode <─ advance_persisted <─┘ call_soon_threadsafe

What a Ready asks to be sent goes out before its entries are on disk: a leader's entries are written by all members at the same time
(thesis §10.2.1). What promises something about this member's disk (``messages_after_append``) waits for it. So does everything that is
sent in a term whose beginning is not on disk yet: else a member that crashes could forget that it stood, or led, in a term and do so
again with another log.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from storage.errors import CorruptError, StoppedError, StoreError
from storage.member.disk_worker import Log, MarkerJob, SaveJob
from storage.member.environment import LogWriterFactory
from storage.raft.log_storage import MemoryLogStorage
from storage.raft.messages import ConfChange, Entry, HardState, Message, MessageType, SnapshotMetadata
from storage.raft.rawnode import ProposalDroppedError, RawNode, ReadIndexDroppedError, ReadState, Ready, Role, SoftState

APPLY_ROUNDS_MAX: Final = 4
"""Readys with committed entries handled in one pass of the loop; each holds a bounded number of bytes. Then others get their turn."""

DEFERRED_TICKS_MAX: Final = 10
"""For so many ticks a proposal is offered again that nobody takes because leadership is being handed over; then it is dropped."""

FORWARDED_BYTES_MAX: Final = 1024 * 1024
"""Of proposals that travel to the leader in one message; a larger one travels alone. What no transport carries would be lost."""

RECEIVED_MAX: Final = 4096
"""Messages taken in between two passes; beyond it they are dropped, as a network would. Raft sends them again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """``apply`` must carry out all entries, ``install`` put a received snapshot in the place of the state; what they raise stops the
    member. ``dropped`` names proposals that nobody will see.
    ``is_awaited`` tells whether anyone still waits for a proposal. ``soft_state`` is told the term too, whichever of the two changed."""

    apply: Callable[[list[Entry]], None]
    install: Callable[[SnapshotMetadata], None]
    dropped: Callable[[list[bytes]], None]
    is_awaited: Callable[[bytes], bool]
    soft_state: Callable[[SoftState, int], None]
    read_states: Callable[[tuple[ReadState, ...]], None]
    send: Callable[[list[Message]], None]
    saved: Callable[[float], None]
    failed: Callable[[BaseException], None]


class RaftLoop:
    def __init__(
        self,
        node: RawNode,
        log_storage: MemoryLogStorage,
        log: Log,
        *,
        callbacks: Callbacks,
        log_writer: LogWriterFactory,
        tick_seconds: float,
        name: str,
    ) -> None:
        self.node = node
        self._log_storage = log_storage
        self._callbacks = callbacks
        self._tick_seconds = tick_seconds
        self._loop = asyncio.get_running_loop()
        self._disk = log_writer(log, on_saved=self._saved_in_thread, on_failed=self._failed_in_thread, name=f"wal {name}")
        self._received: list[Message] = []
        self._proposals: list[bytes] = []
        self._leader_proposals: list[bytes] = []
        self._proposals_are_held = False
        self._deferred: list[tuple[Message, int]] = []
        self._tick_count = 0
        self._pass_is_due = False
        self._accepting = True
        self._failed = False
        self._unadvanced: deque[Ready] = deque()
        self._saved_number = 0
        self._unsaved_state: HardState | None = None
        status = node.status()
        self._term_and_vote = (status.term, status.vote)
        self._term_number = 0  # the Ready in which they changed last
        self._held_messages: deque[tuple[int, list[Message]]] = deque()  # with the Ready that must be on disk before
        self._tick_handle: asyncio.TimerHandle | None = None
        self._tick_due = 0.0

    def start(self) -> None:
        self._disk.start()
        self._tick_due = self._loop.time() + self._tick_seconds
        self._tick_handle = self._loop.call_at(self._tick_due, self._tick)
        if self.node.has_ready():
            self._schedule_pass()

    def campaign(self) -> None:
        self.node.campaign()
        self._schedule_pass()

    def propose(self, data: bytes) -> None:
        """Propose an entry with the loop's next pass, together with all others of this one. While no leader is known it waits for one,
        for as long as someone waits for its outcome. Raises StoppedError."""
        if not self._accepting:
            raise StoppedError()
        self._proposals.append(data)
        if not self._pass_is_due:
            self._pass_is_due = True
            self._loop.call_soon(self._pass)

    def propose_as_leader(self, data: bytes) -> None:
        """Propose an entry only if this member leads then: it is never forwarded. A leader that was paused and does not know yet that
        another leads must not have it decide with what it knew (etcd-io/etcd#15247)."""
        if self._accepting:
            self._leader_proposals.append(data)
            self._schedule_pass()

    def receive(self, message: Message) -> None:
        """Take a message of a peer with the loop's next pass."""
        if self._accepting and len(self._received) < RECEIVED_MAX:
            self._received.append(message)
            self._schedule_pass()

    def propose_conf_change(self, change: ConfChange) -> None:
        """Raises StoppedError, ProposalDroppedError."""
        if not self._accepting:
            raise StoppedError()
        self.node.propose_conf_change(change)
        self._schedule_pass()

    def maybe_read_index(self, context: bytes) -> bool:
        """Ask Raft from where on a read may be served; ``Callbacks.read_states`` tells. False when no answer will come."""
        if not self._accepting or not self.node.has_leader():
            return False
        try:
            self.node.read_index(context)
        except ReadIndexDroppedError:
            return False
        self._schedule_pass()
        return True

    def transfer_leader(self, target_id: int) -> None:
        if self._accepting:
            self.node.transfer_leader(target_id)
            self._schedule_pass()

    def step_snapshot(self, message: Message) -> bool:
        """Take a SNAPSHOT message whose database is at hand. True if it will be installed: ``Callbacks.install`` follows."""
        if not self._accepting:
            return False
        self._guard(lambda: self._step_received((message,)))
        self._schedule_pass()
        waiting = self.node.raft.log.unstable.snapshot
        assert message.snapshot is not None, message
        return not self._failed and waiting is not None and waiting.metadata == message.snapshot.metadata

    def report_snapshot(self, member_id: int, *, ok: bool) -> None:
        if self._accepting:
            self.node.report_snapshot(member_id, ok)
            self._schedule_pass()

    def report_unreachable(self, member_id: int) -> None:
        if self._accepting:
            self.node.report_unreachable(member_id)
            self._schedule_pass()

    def mark_snapshot(self, snapshot: SnapshotMetadata) -> None:
        """Note in the log that the backend holds all up to ``snapshot.index`` durably, and release what is before."""
        if not self._failed:
            self._disk.submit(MarkerJob(snapshot))

    def halt(self) -> None:
        """Take part in nothing any more, after a failure. ``stop`` is still owed. Idempotent."""
        if not self._failed:
            self._failed = True
            self._accepting = False
            if self._tick_handle is not None:
                self._tick_handle.cancel()
            self._disk.stop(None)

    async def stop(self) -> None:
        """Finish what has been proposed, as far as this member can by itself, then close the log. Idempotent."""
        if self._tick_handle is not None:
            self._tick_handle.cancel()
            self._tick_handle = None
        if self._accepting:
            self._pass()
            self._accepting = False
            self._disk.stop(self._unsaved_state)
        # A write that is at the disk now is applied when its callback comes, which is before this coroutine goes on.
        await self._disk.join()
        await asyncio.sleep(0)

    # -- on the loop

    def _schedule_pass(self) -> None:
        if not self._pass_is_due:
            self._pass_is_due = True
            self._loop.call_soon(self._pass)

    def _tick(self) -> None:
        """One tick, on time on average. After a pause (a stalled loop, a stopped process) the ticks that were missed are dropped: what
        peers sent meanwhile is looked at before this member concludes that it heard nothing."""
        now = self._loop.time()
        self._tick_due += self._tick_seconds
        if self._tick_due <= now:
            self._tick_due = now + self._tick_seconds
        self._tick_handle = self._loop.call_at(self._tick_due, self._tick)
        self._tick_count += 1
        self.node.tick()
        if self._deferred:
            self._offer_deferred()
        if self._proposals_are_held or self.node.has_ready():
            self._schedule_pass()

    def _pass(self) -> None:
        self._pass_is_due = False
        if self._failed:
            return
        self._guard(self._do_pass)

    def _guard(self, work: Callable[[], None]) -> None:
        """The outermost edge of Raft and of applying: a state machine that failed half way must not go on."""
        try:
            work()
        except StoreError as error:
            self._fail(error)
        except BaseException as error:
            self._fail(error)
            raise

    def _do_pass(self) -> None:
        if self._received:
            received, self._received = self._received, []
            self._step_received(received)
        if self._proposals or self._leader_proposals:
            self._propose()
        self._work()

    def _step_received(self, received: Sequence[Message]) -> None:
        node = self.node
        for message in received:
            if message.type is MessageType.HEARTBEAT:
                self._check_log_is_whole(message)
            try:
                node.step(message)
            except ProposalDroppedError:
                self._maybe_defer(message)
            except ReadIndexDroppedError:
                pass  # who asked asks again

    def _maybe_defer(self, proposal: Message) -> bool:
        """Keep a peer's proposal that came while leadership is handed over, to give it to the new leader. What is dropped here its
        sender is not told of: the caller there learns that the outcome is unknown."""
        if not self.node.raft.lead_transferee or len(self._deferred) >= RECEIVED_MAX:
            return False
        self._deferred.append((proposal, self._tick_count + DEFERRED_TICKS_MAX))
        return True

    def _offer_deferred(self) -> None:
        deferred, self._deferred = self._deferred, []
        for proposal, last_tick in deferred:
            try:
                self.node.step(proposal)
            except ProposalDroppedError:
                if self._tick_count < last_tick:
                    self._deferred.append((proposal, last_tick))

    def _check_log_is_whole(self, heartbeat: Message) -> None:
        """A leader's heartbeat names a commit index that it knows this member's log to hold (Raft §5.3); such entries are never
        overwritten. So a log that ends before it has lost what was acknowledged."""
        last_index = self._log_storage.last_index()
        if heartbeat.commit > max(last_index, self.node.raft.log.last_index()):
            raise CorruptError(
                f"the log ends at entry {last_index}, but the leader {heartbeat.sender:016x} has had this member acknowledge entry "
                f"{heartbeat.commit}: the data directory is older than what it promised; remove the member and add it again"
            )

    def _propose(self) -> None:
        node, callbacks = self.node, self._callbacks
        if self._leader_proposals:
            proposals, self._leader_proposals = self._leader_proposals, []
            if node.raft.role is Role.LEADER:
                try:
                    node.propose_many(proposals)
                except ProposalDroppedError:
                    callbacks.dropped(proposals)
        if not self._proposals:
            return
        if not node.has_leader():
            self._proposals_are_held = True
            return
        proposals, self._proposals = self._proposals, []
        if self._proposals_are_held:
            self._proposals_are_held = False
            proposals = [data for data in proposals if callbacks.is_awaited(data)]
        batches = [proposals] if node.raft.role is Role.LEADER else list(_batches(proposals))
        for position, batch in enumerate(batches):
            try:
                node.propose_many(batch)
            except ProposalDroppedError:
                rest = [data for later in batches[position:] for data in later]
                if node.raft.lead_transferee:
                    self._proposals, self._proposals_are_held = rest, True  # for the new leader
                else:
                    callbacks.dropped(rest)
                return

    def _work(self) -> None:
        node = self.node
        apply_rounds = 0
        while node.has_ready():
            ready = node.ready()
            hard_state, soft_state = ready.hard_state, ready.soft_state
            if hard_state is not None:
                if (hard_state.term, hard_state.vote) != self._term_and_vote:
                    self._term_and_vote = (hard_state.term, hard_state.vote)
                    self._term_number = ready.number
                    assert ready.must_sync, ready
                    if soft_state is None:
                        soft_state = SoftState(node.leader_id(), node.raft.role)
                # A new commit index alone is not worth a write: it goes along with the next entries.
                self._unsaved_state = hard_state
            if soft_state is not None:
                self._callbacks.soft_state(soft_state, self._term_and_vote[0])
                if self._proposals and soft_state.leader_id:
                    self._schedule_pass()
            if ready.read_states:
                self._callbacks.read_states(ready.read_states)
            if ready.messages:
                self._send(ready.messages)
            self._unadvanced.append(ready)
            if ready.must_sync:
                self._disk.submit(SaveJob(ready, self._unsaved_state))
                self._unsaved_state = None
            else:
                self._advance()
            committed = ready.committed_entries
            if committed:
                self._callbacks.apply(committed)
                node.advance_applied(committed[-1].index)
                apply_rounds += 1
                if apply_rounds >= APPLY_ROUNDS_MAX:
                    self._schedule_pass()
                    return

    def _send(self, messages: list[Message]) -> None:
        """Send them once term and vote are on disk; always in their order."""
        if self._term_number > self._saved_number or self._held_messages:
            self._held_messages.append((self._term_number, messages))
        else:
            self._callbacks.send(messages)

    def _advance(self) -> None:
        unadvanced = self._unadvanced
        held = self._held_messages
        while held and held[0][0] <= self._saved_number:
            self._callbacks.send(held.popleft()[1])
        while unadvanced and (not unadvanced[0].must_sync or unadvanced[0].number <= self._saved_number):
            ready = unadvanced.popleft()
            if ready.snapshot is not None:
                self._callbacks.install(ready.snapshot.metadata)
                self._log_storage.apply_snapshot(ready.snapshot.metadata)
            self._log_storage.append(ready.entries)
            self.node.advance_persisted(ready)
            if ready.messages_after_append:
                self._callbacks.send(ready.messages_after_append)

    def _saved(self, readys: list[Ready], seconds: float) -> None:
        if self._failed:
            return
        self._callbacks.saved(seconds)
        self._saved_number = readys[-1].number
        self._guard(self._advance)
        self._pass()

    def _fail(self, error: BaseException) -> None:
        if not self._failed:
            self.halt()
            self._callbacks.failed(error)

    # -- on the disk's thread

    def _saved_in_thread(self, readys: list[Ready], seconds: float) -> None:
        self._loop.call_soon_threadsafe(self._saved, readys, seconds)

    def _failed_in_thread(self, error: BaseException) -> None:
        self._loop.call_soon_threadsafe(self._fail, error)


def _batches(proposals: list[bytes]) -> Iterator[list[bytes]]:
    """All of them, in order, in lists of up to ``FORWARDED_BYTES_MAX``."""
    batch: list[bytes] = []
    size = 0
    for data in proposals:
        if batch and size + len(data) > FORWARDED_BYTES_MAX:
            yield batch
            batch, size = [], 0
        batch.append(data)
        size += len(data)
    if batch:
        yield batch
