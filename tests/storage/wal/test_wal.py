"""The log on disk: what was saved is read back, after a clean end, a cut, a rotation, a release."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from storage import failpoints
from storage.errors import CorruptError, DataDirError, DataDirLockedError
from storage.raft.messages import ConfState, Entry, HardState, SnapshotMetadata
from storage.wal import segment
from storage.wal.segment import list_segments
from storage.wal.wal import Replay, Wal

START = SnapshotMetadata(ConfState((7,)))


def entry(index: int, size: int = 20, term: int = 1) -> Entry:
    return Entry(term, index, f"{term}.{index}:".encode() + b"x" * size)


def make(directory: Path, count: int = 0, *, segment_bytes: int = 1 << 20, size: int = 20) -> Wal:
    wal = Wal.create(directory, metadata=b"me", snapshot=START, segment_bytes=segment_bytes, sync=False)
    for index in range(1, count + 1):
        wal.save(HardState(1, 7, index - 1), [entry(index, size)])
    return wal


def reopen(directory: Path) -> Replay:
    wal, replay = Wal.open(directory, sync=False)
    wal.close()
    return replay


def only_file(directory: Path) -> Path:
    (name,) = list_segments(directory)
    return directory / name.file_name()


def test_what_was_saved_is_replayed(tmp_path: Path) -> None:
    wal = make(tmp_path / "wal")
    wal.save(HardState(1, 7, 0), [entry(1), entry(2)])
    wal.save(HardState(2, 7, 2), [entry(3, term=2)])
    wal.save(None, [entry(4, term=2)])
    wal.close()
    replay = reopen(tmp_path / "wal")
    assert replay.metadata == b"me"
    assert replay.hard_state == HardState(2, 7, 2)
    assert replay.entries == [entry(1), entry(2), entry(3, term=2), entry(4, term=2)]
    assert replay.snapshot == START
    assert replay.repair is None


def test_an_entry_replaces_those_from_its_index_on(tmp_path: Path) -> None:
    wal = make(tmp_path, 3)
    wal.save(HardState(2, 7, 1), [entry(2, term=2)])
    wal.close()
    assert reopen(tmp_path).entries == [entry(1), entry(2, term=2)]


def test_writing_goes_on_after_reopening(tmp_path: Path) -> None:
    make(tmp_path, 2).close()
    wal, _ = Wal.open(tmp_path, sync=False)
    wal.save(None, [entry(3)])
    wal.close()
    assert [one.index for one in reopen(tmp_path).entries] == [1, 2, 3]


def test_synced_files_too(tmp_path: Path) -> None:
    wal = Wal.create(tmp_path / "a" / "wal", metadata=b"m", snapshot=START)
    wal.save(HardState(1, 7, 0), [entry(1)])
    wal.abandon()
    wal, replay = Wal.open(tmp_path / "a" / "wal")
    wal.close()
    assert replay.entries == [entry(1)]
    assert replay.repair is not None
    assert not replay.repair.torn  # the space that was set aside


def test_a_file_system_without_flags_for_a_write_gets_a_sync_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def unsupported(fd: int, buffers: object, offset: int, flags: int) -> int:
        calls.append("pwritev")
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "pwritev", unsupported)
    monkeypatch.setattr(segment, "_sync_data", lambda fd: calls.append("sync"))
    wal = Wal.create(tmp_path, metadata=b"m", snapshot=START)
    wal.save(None, [entry(1)])
    wal.save(None, [entry(2)])
    wal.close()
    assert calls == ["pwritev", "sync", "sync", "sync"]
    monkeypatch.undo()
    assert reopen(tmp_path).entries == [entry(1), entry(2)]


@pytest.mark.parametrize("fill", [0, 512, 4096])
def test_st_d1_a_torn_last_record_is_cut_and_writing_goes_on(tmp_path: Path, fill: int) -> None:
    make(tmp_path, 3, size=120).close()
    path = only_file(tmp_path)
    data = path.read_bytes()
    make_offsets = [at for at in range(0, len(data), 32) if data[at : at + 4] == b"SWAL"]
    for cut in range(make_offsets[-1], make_offsets[-1] + 32 + len(data.rstrip(b"\0")[make_offsets[-1] + 32 :])):
        path.write_bytes(data[:cut] + (bytes(-cut % fill) if fill else b""))
        wal, replay = Wal.open(tmp_path, sync=False)
        assert [one.index for one in replay.entries] == [1, 2], cut
        if cut > make_offsets[-1]:
            assert replay.repair is not None, cut
            assert replay.repair.torn, cut
            assert replay.repair.offset == make_offsets[-1]
            assert path.name in str(replay.repair)
        wal.save(None, [entry(3, term=2), entry(4, term=2)])
        wal.close()
        assert reopen(tmp_path).entries[2:] == [entry(3, term=2), entry(4, term=2)]


def test_st_d1_four_megabytes_of_zeros_are_cut(tmp_path: Path) -> None:
    make(tmp_path, 3).close()
    path = only_file(tmp_path)
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(bytes(4 << 20))
    wal, replay = Wal.open(tmp_path, sync=False)
    wal.close()
    assert [one.index for one in replay.entries] == [1, 2, 3]
    assert replay.repair is not None
    assert replay.repair.bytes_cut == 4 << 20
    assert path.stat().st_size == size


def test_st_d2_a_flipped_byte_in_an_older_record_is_refused(tmp_path: Path) -> None:
    make(tmp_path, 5, size=100).close()
    path = only_file(tmp_path)
    data = path.read_bytes()
    offsets = [at for at in range(0, len(data), 32) if data[at : at + 4] == b"SWAL"]
    for position in range(offsets[2], offsets[3] - 32, 7):
        hurt = bytearray(data)
        hurt[position] ^= 1
        path.write_bytes(hurt)
        with pytest.raises(CorruptError) as caught:
            Wal.open(tmp_path, sync=False)
        assert f"{path}: damaged at offset {offsets[2]}" in str(caught.value)


def test_st_d2_four_kilobytes_of_zeros_in_the_middle_are_refused(tmp_path: Path) -> None:
    make(tmp_path, 40, size=400).close()
    path = only_file(tmp_path)
    data = path.read_bytes()
    for at in range(0, len(data) - 8192, 1000):
        path.write_bytes(data[:at] + bytes(4096) + data[at + 4096 :])
        with pytest.raises(CorruptError, match="damaged at offset"):
            Wal.open(tmp_path, sync=False)


def test_segments_rotate_and_chain(tmp_path: Path) -> None:
    make(tmp_path, 50, segment_bytes=1000).close()
    names = list_segments(tmp_path)
    assert len(names) > 5
    assert [name.sequence for name in names] == list(range(len(names)))
    replay = reopen(tmp_path)
    assert replay.entries == [entry(index) for index in range(1, 51)]
    assert replay.hard_state == HardState(1, 7, 49)


def test_a_lost_segment_or_a_cut_older_one_is_refused(tmp_path: Path) -> None:
    make(tmp_path, 50, segment_bytes=1000).close()
    middle = tmp_path / list_segments(tmp_path)[3].file_name()
    data = middle.read_bytes()
    middle.write_bytes(data[:-200])
    with pytest.raises(CorruptError):
        Wal.open(tmp_path, sync=False)
    middle.unlink()
    with pytest.raises(CorruptError, match="is missing"):
        Wal.open(tmp_path, sync=False)


def test_a_new_segment_without_its_first_frame_is_dropped(tmp_path: Path) -> None:
    make(tmp_path, 50, segment_bytes=1000).close()
    last = tmp_path / list_segments(tmp_path)[-1].file_name()
    whole = [one.index for one in reopen(tmp_path).entries]
    first_index = list_segments(tmp_path)[-1].first_index
    last.write_bytes(last.read_bytes()[:20])
    wal, replay = Wal.open(tmp_path, sync=False)
    assert [one.index for one in replay.entries] == [index for index in whole if index < first_index]
    assert replay.repair is not None
    assert not last.exists()
    wal.save(None, [entry(first_index)])
    wal.close()
    assert reopen(tmp_path).entries[-1] == entry(first_index)


def test_a_snapshot_marker_releases_older_segments(tmp_path: Path) -> None:
    wal = make(tmp_path, 50, segment_bytes=1000)
    before = wal.segment_count
    wal.save_snapshot(SnapshotMetadata(ConfState((7,)), 30, 1))
    assert 0 < wal.release() < before
    wal.save(HardState(1, 7, 50), [entry(51)])
    wal.close()
    replay = reopen(tmp_path)
    assert replay.snapshot == SnapshotMetadata(ConfState((7,)), 30, 1)
    assert [one.index for one in replay.entries] == list(range(31, 52))
    assert list_segments(tmp_path)[0].first_index <= 31


def test_a_marker_closes_a_long_segment_so_that_the_next_one_releases_it(tmp_path: Path) -> None:
    wal = Wal.create(tmp_path, metadata=b"", snapshot=START)
    wal.save(HardState(1, 7, 5), [entry(index, size=1 << 20) for index in range(1, 6)])
    wal.save_snapshot(SnapshotMetadata(ConfState((7,)), 3, 1))
    assert wal.release() == 0, "entries 4 and 5 are needed"
    wal.save(None, [entry(6)])
    wal.save_snapshot(SnapshotMetadata(ConfState((7,)), 5, 1))
    assert wal.release() == 1
    wal.close()
    assert sum(path.stat().st_size for path in tmp_path.glob("*.wal")) < 1 << 20
    assert [one.index for one in reopen(tmp_path).entries] == [6]


def test_a_marker_survives_rotation_and_release(tmp_path: Path) -> None:
    wal = make(tmp_path, 10, segment_bytes=1000)
    wal.save_snapshot(SnapshotMetadata(ConfState((7,)), 10, 1))
    for index in range(11, 60):
        wal.save(None, [entry(index)])
    wal.release()
    wal.close()
    replay = reopen(tmp_path)
    assert replay.snapshot.index == 10
    assert [one.index for one in replay.entries] == list(range(11, 60))


def test_a_locked_directory_is_refused(tmp_path: Path) -> None:
    wal = make(tmp_path, 1)
    with pytest.raises(DataDirLockedError, match=str(tmp_path)):
        Wal.open(tmp_path)
    wal.close()
    Wal.open(tmp_path)[0].close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_directory_is_named(tmp_path: Path) -> None:
    make(tmp_path / "wal", 1).close()
    (tmp_path / "wal").chmod(0)
    with pytest.raises(DataDirError, match="Permission denied"):
        Wal.exists(tmp_path / "wal")


def test_a_file_in_place_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "wal").write_text("")
    with pytest.raises(DataDirError, match="wal"):
        Wal.create(tmp_path / "wal", metadata=b"", snapshot=START)


class Crash(BaseException):
    """The process ends here."""


def crash() -> None:
    raise Crash


OPENING = ("wal.before_create", "wal.after_create", "wal.before_cut", "wal.after_cut")
WAL_POINTS = sorted(name for name in failpoints.NAMES if name.startswith("wal.") and name not in OPENING)


@pytest.mark.parametrize("point", WAL_POINTS)
def test_a_crash_at_each_failpoint_loses_nothing_saved(tmp_path: Path, point: str) -> None:
    saved: list[int] = []
    wal = make(tmp_path, segment_bytes=600)
    try:
        for index in range(1, 40):
            if index == 25:
                failpoints.arm(point, crash)
            wal.save(HardState(1, 7, index - 1), [entry(index)])
            saved.append(index)
            if index % 10 == 0:
                wal.save_snapshot(SnapshotMetadata(ConfState((7,)), index - 5, 1))
                wal.release()
        wal.restart_at(SnapshotMetadata(ConfState((7,)), saved[-1] + 10, 2))
        raise AssertionError(f"{point} was not passed")
    except Crash:
        pass
    finally:
        failpoints.disarm(point)
    wal.abandon()
    replay = reopen(tmp_path)
    found = [one.index for one in replay.entries]
    if replay.snapshot.index > saved[-1]:
        assert found == []
        return
    assert found[0] == replay.snapshot.index + 1
    assert found == list(range(found[0], found[-1] + 1))
    assert found[-1] in (saved[-1], saved[-1] + 1)


def test_entries_overwritten_from_before_the_oldest_kept_segment_on_are_read(tmp_path: Path) -> None:
    """Entry 3 opens a segment; a new leader replaces 2 and 3 there; a marker at 2 lets the older segment, where entry 2 first stood, go.
    What is left begins with entry 3, which entry 2 then replaces."""
    wal = make(tmp_path, 2, segment_bytes=400, size=150)
    wal.save(HardState(1, 7, 1), [entry(3)])
    wal.save(HardState(2, 7, 1), [entry(2, term=2)])
    wal.save(HardState(2, 7, 2), [])
    wal.save_snapshot(SnapshotMetadata(ConfState((7,)), 2, 2))
    assert wal.release() > 0
    assert list_segments(tmp_path)[0].first_index == 3
    wal.close()
    replay = reopen(tmp_path)
    assert replay.snapshot.index == 2
    assert replay.entries == []
