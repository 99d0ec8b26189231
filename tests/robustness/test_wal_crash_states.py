"""The log after every legal crash of the machine (ST-D1): it opens, holds all that was saved, at most one save more, and can go on."""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from storage.errors import CorruptError
from storage.raft.messages import ConfState, Entry, HardState, SnapshotMetadata
from storage.wal import segment
from storage.wal.segment import SegmentWriter
from storage.wal.wal import Wal
from tests.robustness.crash_states import Files, Mark, Trace, crash_states

SEGMENT_BYTES = 1200


@dataclass(frozen=True)
class Promised:
    """What the log had acknowledged; None before it was made."""

    hard_state: HardState
    last_index: int
    marker: int


class Run:
    """A program that saves, overwrites, marks, releases, rotates and reopens."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.directory = directory
        self.rng = random.Random(seed)
        self.trace = Trace(directory)
        self.entries: dict[int, set[bytes]] = {}
        """index → everything that was ever saved there"""
        self.term = 1
        self.last = 0
        self.commit = 0
        self.marker = 0

    def run(self) -> None:
        with self.trace.recording():
            wal = Wal.create(
                self.directory, metadata=b"who", snapshot=SnapshotMetadata(ConfState((1,))), segment_bytes=SEGMENT_BYTES, sync=True
            )
            self.promise(HardState())
            for step in range(24):
                wal = self.step(wal, step)
            wal.close()

    def step(self, wal: Wal, step: int) -> Wal:
        if step == 9:
            wal.abandon()
            wal, _ = Wal.open(self.directory, segment_bytes=SEGMENT_BYTES, sync=True)
        elif step == 6:
            self.term += 1  # a new leader replaces what was not committed
            self.save(wal, self.commit + 1, 2)
        else:
            self.save(wal, self.last + 1, self.rng.randrange(1, 4))
        if step % 8 == 7:
            self.marker = self.commit
            wal.save_snapshot(SnapshotMetadata(ConfState((1,)), self.marker, self.term))
            self.promise(self.hard_state)
            wal.release()
        return wal

    def save(self, wal: Wal, first: int, count: int) -> None:
        entries = [Entry(self.term, first + offset, self.rng.randbytes(self.rng.choice((3, 200, 900)))) for offset in range(count)]
        for entry in entries:
            self.entries.setdefault(entry.index, set()).add(entry.data)
        self.hard_state = HardState(self.term, 1, self.commit)
        wal.save(self.hard_state, entries)
        self.last = entries[-1].index
        self.promise(self.hard_state)
        self.commit = self.last - 1

    def promise(self, hard_state: HardState) -> None:
        self.trace.mark(Promised(hard_state, self.last, self.marker))


@pytest.fixture(autouse=True)
def little_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment, "PREALLOCATE_BYTES", 4096)


def lay_out(directory: Path, files: Files) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    for name, content in files.items():
        (directory / name).write_bytes(content)


def check(directory: Path, run: Run, promised: Promised | None) -> None:
    if promised is None and not Wal.exists(directory):
        return  # it was never made
    wal, replay = Wal.open(directory, segment_bytes=SEGMENT_BYTES, sync=False)
    indexes = [entry.index for entry in replay.entries]
    assert indexes == list(range(replay.snapshot.index + 1, replay.snapshot.index + 1 + len(indexes)))
    for entry in replay.entries:
        assert entry.data in run.entries[entry.index]
    assert replay.metadata == b"who"
    if promised is not None:
        last = indexes[-1] if indexes else replay.snapshot.index
        assert replay.hard_state.term >= promised.hard_state.term
        assert replay.hard_state.commit >= promised.hard_state.commit
        assert replay.snapshot.index >= promised.marker
        assert last >= promised.last_index or replay.hard_state.term > promised.hard_state.term, "a saved entry is lost"
    following = Entry(replay.hard_state.term, (indexes[-1] if indexes else replay.snapshot.index) + 1, b"next")
    wal.save(replay.hard_state, [following])
    wal.close()
    again, after = Wal.open(directory, segment_bytes=SEGMENT_BYTES, sync=False)
    again.close()
    assert [*replay.entries, following] == after.entries
    assert after.repair is None


def examine(tmp_path: Path, seed: int) -> int:
    """How many states were looked at."""
    run = Run(tmp_path / "wal", seed)
    run.run()
    count = 0
    for done, files in crash_states(run.trace, random.Random(seed)):
        marks = [step.value for step in run.trace.steps[:done] if isinstance(step, Mark)]
        crashed = tmp_path / "crashed"
        lay_out(crashed, files)
        check(crashed, run, marks[-1] if marks else None)
        count += 1
    return count


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_every_state_a_crash_may_leave_is_opened_and_holds_what_was_saved(tmp_path: Path, seed: int) -> None:
    assert examine(tmp_path, seed) > 150


@pytest.mark.slow
def test_it_would_find_a_log_that_does_not_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The explorer itself: a writer that leaves out the sync loses what it promised in some state."""
    monkeypatch.setattr(SegmentWriter, "_write", lambda self, data, at: _write_only(self, data, at))
    with pytest.raises((AssertionError, CorruptError)):
        examine(tmp_path, 0)


def _write_only(writer: SegmentWriter, data: bytes, at: int) -> int:
    return os.pwritev(writer._fd, (data,), at, 0)
