"""What operators ask of one member without the log: hashes, snapshots, defragmentation. Nothing here holds up the event loop.

Everything reads a view of the backend, taken between two entries, in a thread; so the answer is of one revision whatever is written
meanwhile.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from storage.backend.backend import BackendView
from storage.member.environment import RunBlocking, run_in_thread, run_to_end
from storage.mvcc.kv_hash import KvHash, KvHasher
from storage.snapshot.database import Snapshot, ViewSource, database_hash, ignores_own
from storage.watch.watchable_store import WatchableStore


class Upkeep:
    """``store`` is asked for its backend at each call, since a snapshot from the leader replaces it."""

    def __init__(self, store: WatchableStore, run_blocking: RunBlocking = run_in_thread) -> None:
        self._store = store
        self._run = run_blocking

    async def hash_kv(self, revision: int = 0) -> KvHash:
        """Raises CompactedError, FutureRevisionError, UnavailableError."""
        hasher = KvHasher(self._store.store, revision)
        try:
            return await self._run(hasher.run)
        finally:
            hasher.close()

    async def hash(self) -> int:
        """Of all buckets, without how far this backend is. Raises UnavailableError."""
        view = self._store.store.backend.view()
        try:
            return await self._run(lambda: database_hash(ViewSource(view), ignores_own))
        finally:
            view.close()

    async def snapshot(self) -> tuple[int, SnapshotChunks]:
        """The size of the file in bytes, and the file. Raises UnavailableError; reading the chunks does too."""
        view = self._store.store.backend.view()
        try:
            snapshot = await self._run(lambda: Snapshot(view))
        except BaseException:
            view.close()
            raise
        return snapshot.file_bytes, SnapshotChunks(snapshot.chunks(), view, self._run)

    async def defragment(self) -> None:
        """Rewrite the backend's file without its holes. Raises OSError (no space), UnavailableError."""
        defragmentation = self._store.store.backend.begin_defragmentation()
        try:
            # A thread that writes the copy cannot be stopped: a cancellation takes effect between two steps.
            await run_to_end(self._run, defragmentation.catch_up)
            while not defragmentation.maybe_finish():
                await run_to_end(self._run, defragmentation.catch_up)
        finally:
            defragmentation.abandon()


class SnapshotChunks(AsyncIterator[bytes]):
    """The chunks of a snapshot; each is made when it is asked for. At the end, or with ``aclose``, the view is given back."""

    def __init__(self, chunks: Iterator[bytes], view: BackendView, run_blocking: RunBlocking) -> None:
        self._chunks = chunks
        self._view = view
        self._run = run_blocking

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._run(lambda: next(self._chunks, None))
        except BaseException:
            self._view.close()
            raise
        if chunk is None:
            self._view.close()
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        """Idempotent."""
        self._view.close()
