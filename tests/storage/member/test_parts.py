"""The small parts of a member, each alone."""

from __future__ import annotations

import threading

import pytest

from storage import api, errors
from storage.backend import schema
from storage.backend.memory_backend import MemoryBackend
from storage.config import MemberConfig
from storage.member import consistent_index
from storage.member import snapshotter as snapshotter_module
from storage.member.disk_worker import DiskWorker, MarkerJob, SaveJob
from storage.member.metrics import Histogram
from storage.member.quota import Quota
from storage.member.request import CompactionRequest
from storage.member.snapshotter import Snapshotter
from storage.member.wait import RequestIds, Wait
from storage.raft.log_storage import MemoryLogStorage
from storage.raft.messages import ConfState, Entry, HardState, SnapshotMetadata
from storage.raft.rawnode import Ready
from storage.wal.wal import Replay


def test_wait_hands_each_waiter_out_once() -> None:
    wait: Wait[str] = Wait()
    wait.register(1, "a", 0.0)
    wait.register(2, "b", 1.0)
    wait.register(3, "c", 2.0)
    assert wait.take(2) == "b"
    assert wait.take(2) is None
    assert list(wait.overdue(1.5)) == ["a"]
    assert wait.take_all() == ["c"]
    assert len(wait) == 0


def test_request_ids_of_a_later_run_are_others() -> None:
    first, second = RequestIds(0xABCD, 1000), RequestIds(0xABCD, 1001)
    assert {first.next() for _ in range(200)}.isdisjoint({second.next() for _ in range(200)})
    assert RequestIds(0xFFFF, (1 << 40) - 1).next() < 1 << 64


def test_quota_lets_in_what_fits_and_what_frees() -> None:
    quota = Quota(10_000)
    quota.observe(9_000)
    small = api.PutRequest(key=b"k", value=bytes(100))
    assert quota.maybe_charge(small, 110)
    assert quota.maybe_charge(small, 110)
    assert not quota.maybe_charge(small, 110), "three times 357 bytes do not fit into 1000"
    assert quota.maybe_charge(api.DeleteRangeRequest(key=b"k"), 10)
    assert quota.maybe_charge(CompactionRequest(revision=1), 10)
    assert not quota.maybe_charge(api.TxnRequest(failure=(small,)), 110)
    quota.observe(5_000)
    assert quota.maybe_charge(small, 110)
    assert Quota(0).maybe_charge(small, 110)


def test_quota_counts_what_comes_between_two_measurements() -> None:
    quota = Quota(100_000)
    put = api.PutRequest(key=b"k", value=bytes(1000))
    let_in = 0
    while quota.maybe_charge(put, 1010):
        let_in += 1
    assert 100_000 - 2000 < let_in * (1000 + 256 + 1) < 101_500


def test_histogram_counts_by_bound() -> None:
    histogram = Histogram((0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 7.0):
        histogram.observe(value)
    assert histogram.cumulative() == [(0.1, 2), (1.0, 3), (float("inf"), 4)]
    assert histogram.sum == pytest.approx(7.65)


def test_bad_configurations_are_told(tmp_path: object) -> None:
    from pathlib import Path

    good = MemberConfig(data_dir=Path("d"))
    good.validate()
    with pytest.raises(ValueError, match="--election-timeout"):
        MemberConfig(data_dir=Path("d"), heartbeat_interval_ms=100).validate()
    with pytest.raises(ValueError, match="--snapshot-count"):
        MemberConfig(data_dir=Path("d"), snapshot_count=0).validate()


def test_a_backend_that_does_not_fit_its_log_is_refused() -> None:
    snapshot = SnapshotMetadata(ConfState((1,)), 5, 1)
    replay = Replay(metadata=b"", hard_state=HardState(1, 1, 5), snapshot=snapshot, entries=[Entry(1, 6)], repair=None)
    for good in (5, 6):
        consistent_index.check(good, replay, backend_file="db", log_dir="wal")
    for bad in (4, 7):
        with pytest.raises(errors.CorruptError, match=f"db .* entry {bad}"):
            consistent_index.check(bad, replay, backend_file="db", log_dir="wal")


class FakeLog:
    """Remembers what it was told; ``gate`` holds the first save until the test opens it."""

    def __init__(self) -> None:
        self.saved: list[tuple[HardState | None, list[int]]] = []
        self.other: list[str] = []
        self.gate = threading.Event()
        self.entered = threading.Event()
        self.fail = False

    def save(self, hard_state: HardState | None, entries: list[Entry]) -> None:
        self.entered.set()
        self.gate.wait(5)
        if self.fail:
            raise OSError(28, "No space left on device")
        self.saved.append((hard_state, [entry.index for entry in entries]))

    def save_snapshot(self, snapshot: SnapshotMetadata) -> None:
        self.other.append(f"marker {snapshot.index}")

    def release(self) -> int:
        self.other.append("release")
        return 0

    def close(self) -> None:
        self.other.append("close")

    def abandon(self) -> None:
        self.other.append("abandon")


def ready(number: int, *indexes: int) -> Ready:
    entries = [Entry(1, index) for index in indexes]
    return Ready(
        number=number, soft_state=None, hard_state=None, entries=entries, committed_entries=[], messages=[], messages_after_append=[],
        must_sync=True,
    )  # fmt: skip


def worker(log: FakeLog) -> tuple[DiskWorker, list[list[int]], list[BaseException]]:
    saved: list[list[int]] = []
    failures: list[BaseException] = []
    disk = DiskWorker(log, on_saved=lambda readys, _: saved.append([one.number for one in readys]), on_failed=failures.append, name="test")
    disk.start()
    return disk, saved, failures


async def test_what_comes_while_a_sync_runs_shares_the_next() -> None:
    log = FakeLog()
    disk, saved, failures = worker(log)
    disk.submit(SaveJob(ready(1, 1), None))
    assert log.entered.wait(5)
    disk.submit(SaveJob(ready(2, 2, 3), HardState(1, 1, 1)))
    disk.submit(MarkerJob(SnapshotMetadata(ConfState((1,)), 1, 1)))
    disk.submit(SaveJob(ready(3, 4), None))
    log.gate.set()
    disk.stop(HardState(1, 1, 4))
    await disk.join()
    assert log.saved == [(None, [1]), (HardState(1, 1, 1), [2, 3, 4]), (HardState(1, 1, 4), [])]
    assert saved == [[1], [2, 3]]
    assert log.other == ["marker 1", "release", "close"]
    assert failures == []


async def test_after_a_failure_nothing_is_written() -> None:
    log = FakeLog()
    log.fail = True
    log.gate.set()
    disk, saved, failures = worker(log)
    disk.submit(SaveJob(ready(1, 1), None))
    disk.submit(SaveJob(ready(2, 2), None))
    await disk.join()
    assert log.saved == []
    assert saved == []
    assert log.other == ["abandon"]
    assert isinstance(failures[0], OSError)


def test_markers_are_written_by_count_or_when_the_log_is_long_and_only_for_what_is_durable() -> None:
    backend = MemoryBackend()
    log = MemoryLogStorage(SnapshotMetadata(ConfState((1,))))
    marks: list[SnapshotMetadata] = []
    snapshotter = Snapshotter(backend, log, snapshot_count=100, catch_up_entries=0, marked_index=0, mark=marks.append)
    voters = ConfState((1,))
    assert not snapshotter.maybe_mark(99, voters, segment_count=1)
    assert not snapshotter.maybe_mark(100, voters, segment_count=1), "nothing is durable yet"
    schema.put_consistent_index(backend, 90, 3)
    assert not snapshotter.maybe_mark(100, voters, segment_count=1), "written, not durable"
    backend.commit()
    assert snapshotter.maybe_mark(100, voters, segment_count=1)
    assert marks == [SnapshotMetadata(voters, 90, 3)]
    schema.put_consistent_index(backend, 95, 3)
    backend.commit()
    assert not snapshotter.maybe_mark(95, voters, segment_count=4)
    assert snapshotter.maybe_mark(95, voters, segment_count=5)
    assert not snapshotter.maybe_mark(95, voters, segment_count=5), "the same again"
    assert [mark.index for mark in marks] == [90, 95]


def test_applied_entries_are_forgotten_in_memory() -> None:
    log = MemoryLogStorage(SnapshotMetadata(ConfState((1,))))
    log.append([Entry(1, index) for index in range(1, 11)])
    snapshotter = Snapshotter(MemoryBackend(), log, snapshot_count=9, catch_up_entries=2, marked_index=0, mark=lambda mark: None)
    assert snapshotter.maybe_compact_memory(8)
    assert (log.first_index(), log.last_index()) == (7, 10)


def test_large_entries_are_forgotten_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshotter_module, "CATCH_UP_BYTES_MAX", 1000)
    log = MemoryLogStorage(SnapshotMetadata(ConfState((1,))))
    log.append([Entry(1, index, bytes(300)) for index in range(1, 11)])
    snapshotter = Snapshotter(MemoryBackend(), log, snapshot_count=9, catch_up_entries=5000, marked_index=0, mark=lambda mark: None)
    for _ in range(3 * snapshotter_module.WEIGH_EVERY):
        snapshotter.maybe_compact_memory(10)
    assert 0 < log.entry_count() * 300 <= 1000
