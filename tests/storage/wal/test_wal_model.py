"""The log against a list: whatever is saved, overwritten, marked, released, cut and reopened, what comes back is what was saved."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from storage.raft.messages import ConfState, Entry, HardState, SnapshotMetadata
from storage.wal.segment import list_segments
from storage.wal.wal import Wal

SEGMENT_BYTES = 700
sizes = st.lists(st.integers(0, 300), min_size=1, max_size=4)


class WalMachine(RuleBasedStateMachine):
    """``entries`` maps index → entry; ``before`` is the state as of the save before the last one."""

    @initialize()
    def create(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="wal-model-"))
        self.snapshot = SnapshotMetadata(ConfState((1,)))
        self.hard_state = HardState()
        self.entries: dict[int, Entry] = {}
        self.before: tuple[dict[int, Entry], HardState] | None = None
        self.wal = Wal.create(self.directory, metadata=b"m", snapshot=self.snapshot, segment_bytes=SEGMENT_BYTES, sync=False)

    def last_index(self) -> int:
        return max(self.entries, default=self.snapshot.index)

    def save(self, hard_state: HardState, entries: list[Entry]) -> None:
        self.before = (dict(self.entries), self.hard_state)
        self.wal.save(hard_state, entries)
        self.hard_state = hard_state
        if entries:
            self.entries = {index: entry for index, entry in self.entries.items() if index < entries[0].index}
            self.entries.update((entry.index, entry) for entry in entries)

    @rule(lengths=sizes)
    def append(self, lengths: list[int]) -> None:
        first = self.last_index() + 1
        term = max(self.hard_state.term, 1)
        entries = [Entry(term, first + offset, bytes([offset]) * length) for offset, length in enumerate(lengths)]
        self.save(HardState(term, 1, self.hard_state.commit), entries)

    @rule()
    def commit_all(self) -> None:
        self.save(HardState(self.hard_state.term, 1, self.last_index()), [])

    @precondition(lambda self: self.hard_state.commit < self.last_index())
    @rule(data=st.data(), lengths=sizes)
    def overwrite(self, data: st.DataObject, lengths: list[int]) -> None:
        first = data.draw(st.integers(max(self.hard_state.commit, self.snapshot.index) + 1, self.last_index()))
        term = self.hard_state.term + 1
        entries = [Entry(term, first + offset, b"new" * length) for offset, length in enumerate(lengths)]
        self.save(HardState(term, 2, self.hard_state.commit), entries)

    @precondition(lambda self: self.hard_state.commit > self.snapshot.index)
    @rule(data=st.data(), release=st.booleans())
    def mark(self, data: st.DataObject, release: bool) -> None:
        index = data.draw(st.integers(self.snapshot.index + 1, self.hard_state.commit))
        self.snapshot = SnapshotMetadata(ConfState((1, index)), index, self.entries[index].term)
        self.wal.save_snapshot(self.snapshot)
        self.before = None
        if release:
            self.wal.release()
            assert list_segments(self.directory)[0].first_index <= index + 1

    @rule(data=st.data(), beyond=st.integers(0, 5))
    def restart(self, data: st.DataObject, beyond: int) -> None:
        """A snapshot from a newer leader replaces the log, whatever stands in it after the snapshot's index."""
        known = max(self.hard_state.commit, self.snapshot.index)
        index = data.draw(st.integers(known + 1, max(self.last_index(), known + 1))) + beyond
        term = self.hard_state.term + 1
        self.snapshot = SnapshotMetadata(ConfState((1, 2)), index, term)
        self.wal.restart_at(self.snapshot)
        self.entries = {}
        self.save(HardState(term, 0, index), [])
        self.before = None

    @rule(clean=st.booleans())
    def reopen(self, clean: bool) -> None:
        if clean:
            self.wal.close()
        else:
            self.wal.abandon()
        self.load()

    @precondition(lambda self: self.before is not None)
    @rule(data=st.data(), fill=st.sampled_from((0, 512, 4096)))
    def lose_the_last_save(self, data: st.DataObject, fill: int) -> None:
        """The machine died while the last frame was on its way to the disk."""
        assert self.before is not None
        self.wal.close()
        path = self.directory / list_segments(self.directory)[-1].file_name()
        content = path.read_bytes()
        offsets = [at for at in range(0, len(content), 32) if content[at : at + 4] == b"SWAL"]
        if len(offsets) > 1:  # else the last frame opened a new segment after the save
            end = len(content.rstrip(b"\0"))
            cut = data.draw(st.integers(offsets[-1], end - 1))
            path.write_bytes(content[:cut] + (bytes(-cut % fill) if fill else b""))
            self.entries, self.hard_state = self.before
        self.before = None
        self.load()

    def load(self) -> None:
        self.wal, replay = Wal.open(self.directory, segment_bytes=SEGMENT_BYTES, sync=False)
        assert replay.snapshot == self.snapshot
        assert replay.entries == [self.entries[index] for index in sorted(self.entries) if index > self.snapshot.index]
        expected = HardState(self.hard_state.term, self.hard_state.vote, max(self.hard_state.commit, self.snapshot.index))
        assert replay.hard_state == expected
        assert replay.metadata == b"m"

    def teardown(self) -> None:
        if hasattr(self, "wal"):
            self.load_at_end()
            shutil.rmtree(self.directory)

    def load_at_end(self) -> None:
        self.wal.close()
        self.load()
        self.wal.close()


TestWal = WalMachine.TestCase
TestWal.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
