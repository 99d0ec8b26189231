"""The store of versions against a dictionary of versions, over random operations, restarts and crashes."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from storage import api, errors
from storage.backend.backend import Backend
from storage.backend.lmdb_backend import LmdbBackend
from storage.backend.memory_backend import MemoryBackend
from storage.lease.lessor import Lessor
from storage.mvcc.kv_hash import hash_kv
from storage.verify import check_store
from storage.watch.watchable_store import WatchableStore
from tests.storage.version_model import VersionModel

keys = st.sampled_from([b"a", b"ab", b"b", b"b\0", b"c", b"d/1", b"d/2"])
ends = st.sampled_from([b"", b"\0", b"a", b"b", b"c", b"d0", b"zz"])
values = st.binary(max_size=4)


class StoreMachine(RuleBasedStateMachine):
    """``open_backend`` and ``reopen`` differ between the backends."""

    def open_backend(self) -> Backend:
        raise AssertionError

    def reopen(self, backend: Backend) -> Backend:
        raise AssertionError

    @initialize()
    def start(self) -> None:
        self.backend = self.open_backend()
        self.lessor = Lessor(self.backend)
        self.store = WatchableStore(self.backend, self.lessor)
        self.model = VersionModel()
        self.now = 0.0

    @rule(key=keys, value=values)
    def put(self, key: bytes, value: bytes) -> None:
        txn = self.store.write_txn()
        written = txn.put(key, value)
        txn.end()
        assert written == self.model.put(key, value)

    @rule(key=keys, end=ends)
    def delete_range(self, key: bytes, end: bytes) -> None:
        txn = self.store.write_txn()
        deleted = txn.delete_range(key, end)
        txn.end()
        assert deleted == self.model.delete_range(key, end)

    @rule(back=st.integers(-1, 6))
    def compact(self, back: int) -> None:
        at = self.model.revision - back
        outcomes: list[type[errors.StoreError] | None] = []
        for compact in (self.store.compact, self.model.compact):
            try:
                compact(at)
                outcomes.append(None)
            except (errors.CompactedError, errors.FutureRevisionError) as error:
                outcomes.append(type(error))
        assert outcomes[0] == outcomes[1]

    @rule()
    def compaction_step(self) -> None:
        self.store.compaction_step()

    @rule(key=keys, end=ends, back=st.integers(-1, 8), limit=st.integers(0, 3))
    def range(self, key: bytes, end: bytes, back: int, limit: int) -> None:
        at = self.model.revision - back
        try:
            expected = self.model.range(key, end, at)
        except errors.StoreError as error:
            with pytest.raises(type(error)):
                self.store.range(api.RangeRequest(key=key, range_end=end, revision=at))
            return
        found = self.store.range(api.RangeRequest(key=key, range_end=end, revision=at, limit=limit))
        assert list(found.kvs) == (expected[:limit] if limit else expected)
        assert found.count == len(expected)
        assert found.more == bool(limit and len(expected) > limit)
        counted = self.store.range(api.RangeRequest(key=key, range_end=end, revision=at, count_only=True))
        assert (counted.count, counted.kvs, counted.more) == (len(expected), (), False)

    @rule(
        low=st.integers(0, 30),
        high=st.integers(0, 30),
        created=st.integers(0, 30),
        sort_target=st.sampled_from(api.SortTarget),
        order=st.sampled_from(api.SortOrder),
        limit=st.integers(0, 3),
        keys_only=st.booleans(),
    )
    def filtered_range(
        self, low: int, high: int, created: int, sort_target: api.SortTarget, order: api.SortOrder, limit: int, keys_only: bool
    ) -> None:
        everything = self.model.range(b"\0", b"\0")
        expected = [
            kv for kv in everything if kv.mod_revision >= low and (not high or kv.mod_revision <= high) and kv.create_revision >= created
        ]
        total = len(expected)
        if limit and order == api.SortOrder.NONE and sort_target != api.SortTarget.KEY and not (low or high or created):
            # etcd's answer to a target without an order
            expected = expected[: limit + 1]
        sort_keys = {
            api.SortTarget.KEY: lambda kv: kv.key,
            api.SortTarget.VERSION: lambda kv: kv.version,
            api.SortTarget.CREATE: lambda kv: kv.create_revision,
            api.SortTarget.MOD: lambda kv: kv.mod_revision,
            api.SortTarget.VALUE: lambda kv: kv.value,
        }
        expected.sort(key=sort_keys[sort_target], reverse=order == api.SortOrder.DESCEND)
        request = api.RangeRequest(
            key=b"\0",
            range_end=b"\0",
            min_mod_revision=low,
            max_mod_revision=high,
            min_create_revision=created,
            sort_target=sort_target,
            sort_order=order,
            limit=limit,
            keys_only=keys_only,
        )
        found = self.store.range(request)
        shown = expected[:limit] if limit else expected
        assert [kv.key for kv in found.kvs] == [kv.key for kv in shown]
        assert [kv.value for kv in found.kvs] == [b"" if keys_only else kv.value for kv in shown]
        assert found.more == (total > len(shown))
        assert found.count == len(everything)

    @rule()
    def maybe_commit(self) -> None:
        self.now += 0.06
        self.backend.maybe_commit(self.now)

    @precondition(lambda self: self.model.revision % 3 == 0)
    @rule()
    def restart(self) -> None:
        before = hash_kv(self.store.store)
        self.store.close()
        self.backend.close()
        self.backend = self.reopen(self.backend)
        self.lessor = Lessor(self.backend)
        self.store = WatchableStore(self.backend, self.lessor)
        assert hash_kv(self.store.store) == before
        assert self.store.compact_revision == self.model.compact_revision

    @invariant()
    def revisions_agree(self) -> None:
        assert self.store.current_revision == self.model.revision

    @invariant()
    def nothing_contradicts_itself(self) -> None:
        check_store(self.store.store, self.lessor)

    @invariant()
    def counts_agree(self) -> None:
        for key, end in ((b"\0", b"\0"), (b"b", b"d")):
            counted = self.store.range(api.RangeRequest(key=key, range_end=end, count_only=True))
            assert counted.count == len(self.model.range(key, end))

    def teardown(self) -> None:
        if hasattr(self, "store"):
            events = self.model.events
            start = max(self.model.compact_revision, 1)
            watcher = self.store.watch(api.WatchRequest(key=b"\0", range_end=b"\0", start_revision=start))
            seen: list[api.Event] = []
            while (batch := watcher.take()) is not None:
                seen += batch.events
            assert seen == [event for event in events if event.kv.mod_revision >= start]
            self.store.close()
            self.backend.close()


class MemoryStoreMachine(StoreMachine):
    def open_backend(self) -> Backend:
        return MemoryBackend()

    def reopen(self, backend: Backend) -> Backend:
        assert isinstance(backend, MemoryBackend)
        return backend.crash()


class LmdbStoreMachine(StoreMachine):
    def open_backend(self) -> Backend:
        self.directory = tempfile.mkdtemp(prefix="sampan-test-")
        return self.reopen(MemoryBackend())

    def reopen(self, backend: Backend) -> Backend:
        return LmdbBackend(Path(self.directory) / "db", sync=False)

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.directory, ignore_errors=True)


TestMemoryStore = MemoryStoreMachine.TestCase
TestMemoryStore.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestLmdbStore = LmdbStoreMachine.TestCase
TestLmdbStore.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
