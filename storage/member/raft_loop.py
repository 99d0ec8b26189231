"""Drives the Raft node on an event loop: proposals in, entries to the disk thread, committed entries to the state machine.

Everything here runs on the loop's thread, but for the disk. Flow of one write:

    propose ─ gathered until the loop's next pass ─> RawNode ─ Ready ─> DiskWorker (thread: write, one sync)
            committed_entries ─> apply  <─ RawNode <─ advance_persisted <─┘ call_soon_threadsafe
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from storage.errors import StoppedError, StoreError
from storage.member.disk_worker import DiskWorker, Log, MarkerJob, SaveJob
from storage.raft.log_storage import MemoryLogStorage
from storage.raft.messages import Entry, HardState, SnapshotMetadata
from storage.raft.rawnode import ProposalDroppedError, RawNode, Ready, SoftState

APPLY_ROUNDS_MAX: Final = 4
"""Readys with committed entries handled in one pass of the loop; each holds a bounded number of bytes. Then others get their turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """``apply`` must carry out all entries; what it raises stops the member. ``dropped`` names proposals that nobody will see."""

    apply: Callable[[list[Entry]], None]
    dropped: Callable[[list[bytes]], None]
    soft_state: Callable[[SoftState], None]
    saved: Callable[[float], None]
    failed: Callable[[BaseException], None]


class RaftLoop:
    def __init__(
        self, node: RawNode, log_storage: MemoryLogStorage, log: Log, *, callbacks: Callbacks, tick_seconds: float, name: str
    ) -> None:
        self.node = node
        self._log_storage = log_storage
        self._callbacks = callbacks
        self._tick_seconds = tick_seconds
        self._loop = asyncio.get_running_loop()
        self._disk = DiskWorker(log, on_saved=self._saved_in_thread, on_failed=self._failed_in_thread, name=f"wal {name}")
        self._proposals: list[bytes] = []
        self._pass_is_due = False
        self._accepting = True
        self._failed = False
        self._unadvanced: deque[Ready] = deque()
        self._saved_number = 0
        self._unsaved_state: HardState | None = None
        self._tick_handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._disk.start()
        self._tick_handle = self._loop.call_later(self._tick_seconds, self._tick)

    def campaign(self) -> None:
        self.node.campaign()
        self._schedule_pass()

    def propose(self, data: bytes) -> None:
        """Propose an entry with the loop's next pass, together with all others of this one. Raises StoppedError."""
        if not self._accepting:
            raise StoppedError()
        self._proposals.append(data)
        if not self._pass_is_due:
            self._pass_is_due = True
            self._loop.call_soon(self._pass)

    def mark_snapshot(self, snapshot: SnapshotMetadata) -> None:
        """Note in the log that the backend holds all up to ``snapshot.index`` durably, and release what is before."""
        if not self._failed:
            self._disk.submit(MarkerJob(snapshot))

    async def stop(self) -> None:
        """Finish what has been proposed, then close the log. Idempotent."""
        if self._tick_handle is not None:
            self._tick_handle.cancel()
            self._tick_handle = None
        if self._accepting:
            self._accepting = False
            self._pass()
            self._disk.stop(self._unsaved_state)
        # A write that is at the disk now is applied when its callback comes, which is before this coroutine goes on.
        await self._loop.run_in_executor(None, self._disk.join)
        await asyncio.sleep(0)

    # -- on the loop

    def _schedule_pass(self) -> None:
        if not self._pass_is_due:
            self._pass_is_due = True
            self._loop.call_soon(self._pass)

    def _tick(self) -> None:
        self._tick_handle = self._loop.call_later(self._tick_seconds, self._tick)
        self.node.tick()
        if self.node.has_ready():
            self._schedule_pass()

    def _pass(self) -> None:
        self._pass_is_due = False
        if self._failed:
            return
        if self._proposals:
            proposals, self._proposals = self._proposals, []
            try:
                self.node.propose_many(proposals)
            except ProposalDroppedError:
                self._callbacks.dropped(proposals)
        try:
            self._work()
        except StoreError as error:
            self._fail(error)
        except BaseException as error:
            # The outermost edge of applying: a state machine that failed half way must not go on.
            self._fail(error)
            raise

    def _work(self) -> None:
        node = self.node
        apply_rounds = 0
        while node.has_ready():
            ready = node.ready()
            # A single voter has nobody to talk to; the transport between members joins here.
            assert not ready.messages, ready.messages
            if ready.soft_state is not None:
                self._callbacks.soft_state(ready.soft_state)
            if ready.hard_state is not None:
                # A new commit index alone is not worth a write: it goes along with the next entries.
                self._unsaved_state = ready.hard_state
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

    def _advance(self) -> None:
        unadvanced = self._unadvanced
        while unadvanced and (not unadvanced[0].must_sync or unadvanced[0].number <= self._saved_number):
            ready = unadvanced.popleft()
            assert not ready.messages_after_append, ready.messages_after_append
            self._log_storage.append(ready.entries)
            self.node.advance_persisted(ready)

    def _saved(self, readys: list[Ready], seconds: float) -> None:
        if self._failed:
            return
        self._callbacks.saved(seconds)
        self._saved_number = readys[-1].number
        self._advance()
        self._pass()

    def _fail(self, error: BaseException) -> None:
        if not self._failed:
            self._failed = True
            self._accepting = False
            if self._tick_handle is not None:
                self._tick_handle.cancel()
            self._disk.stop(None)
            self._callbacks.failed(error)

    # -- on the disk's thread

    def _saved_in_thread(self, readys: list[Ready], seconds: float) -> None:
        self._loop.call_soon_threadsafe(self._saved, readys, seconds)

    def _failed_in_thread(self, error: BaseException) -> None:
        self._loop.call_soon_threadsafe(self._fail, error)
