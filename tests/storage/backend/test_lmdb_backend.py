"""What only the backend on disk has: files, crashes, a map that fills up, a disk that fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import lmdb
import pytest

from storage.backend import lmdb_backend, schema
from storage.backend.backend import BATCH_INTERVAL_SECONDS, BUCKET_NAMES, Backend, Bucket
from storage.backend.lmdb_backend import LmdbBackend
from storage.errors import CorruptError, UnavailableError


def test_what_was_written_is_there_after_reopening(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "db")
    backend.put(Bucket.KEY, b"a", b"1")
    backend.close()
    backend = LmdbBackend(tmp_path / "db")
    assert backend.get(Bucket.KEY, b"a") == b"1"
    backend.close()


def test_a_file_that_was_written_before_there_were_checksums_gets_them(tmp_path: Path) -> None:
    with lmdb.open(str(tmp_path / "db"), subdir=False, max_dbs=len(Bucket)) as env:
        databases = [env.open_db(name) for name in BUCKET_NAMES]
        with env.begin(write=True) as txn:
            txn.put(schema.CONSISTENT_INDEX, (7).to_bytes(8, "big"), db=databases[Bucket.META])
            for number in range(300):
                txn.put(b"%04d" % number, b"v" * number, db=databases[Bucket.KEY])
    for _ in range(2):
        backend = LmdbBackend(tmp_path / "db")
        assert backend.range(Bucket.KEY, b"", None) == [(b"%04d" % number, b"v" * number) for number in range(300)]
        assert schema.read_uint64(backend, Bucket.META, schema.CONSISTENT_INDEX) == 7
        backend.close()


def test_the_map_grows_when_it_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lmdb_backend, "MAP_BYTES_MIN", 256 * 1024)
    backend = LmdbBackend(tmp_path / "db", quota_bytes=1, sync=False)
    value = b"x" * 10_000
    for number in range(200):
        backend.put(Bucket.KEY, b"%04d" % number, value)
        if number % 50 == 0:
            backend.commit()
    backend.commit()
    assert backend.size() > 4 * 256 * 1024
    assert len(backend.keys(Bucket.KEY, b"", None)) == 200
    assert backend.get(Bucket.KEY, b"0123") == value
    backend.close()


def test_space_of_deleted_data_is_told_and_used_again(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "db", sync=False)
    for number in range(100):
        backend.put(Bucket.KEY, b"%04d" % number, b"x" * 10_000)
    backend.commit()
    full, full_in_use = backend.size(), backend.size_in_use()
    assert full >= full_in_use > 1_000_000
    for number in range(100):
        backend.delete(Bucket.KEY, b"%04d" % number)
    backend.commit()
    assert backend.size_in_use() < 100_000
    for number in range(60):
        backend.put(Bucket.KEY, b"%04d" % number, b"x" * 10_000)
        backend.commit()
    assert backend.size() <= full + 100_000
    backend.close()


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "db").write_bytes(b"not a database" * 1000)
    with pytest.raises(CorruptError, match="db"):
        LmdbBackend(tmp_path / "db")


def test_a_file_cut_short_is_refused_instead_of_crashing_later(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "db")
    for number in range(100):
        backend.put(Bucket.KEY, b"%04d" % number, b"x" * 10_000)
    backend.close()
    os.truncate(tmp_path / "db", 200_000)
    with pytest.raises(CorruptError, match="cut short"):
        LmdbBackend(tmp_path / "db")


def test_a_missing_directory_is_an_operating_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        LmdbBackend(tmp_path / "nowhere" / "db")


def test_after_a_failed_commit_reads_go_on_and_writes_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = LmdbBackend(tmp_path / "db")
    backend.put(Bucket.KEY, b"a", b"1")

    def fail(batch: object) -> None:
        raise lmdb.DiskError("no space left on device")

    monkeypatch.setattr(backend._file, "commit", fail)
    with pytest.raises(OSError, match="no space left"):
        backend.commit()
    assert backend.get(Bucket.KEY, b"a") == b"1"
    assert backend.range(Bucket.KEY, b"", None) == [(b"a", b"1")]
    assert backend.durable_get(Bucket.KEY, b"a") is None
    with pytest.raises(OSError, match="no space left"):
        backend.maybe_commit(1.0)
    backend.close()


WRITER = """
import sys
from pathlib import Path
from storage.backend.backend import Bucket
from storage.backend.lmdb_backend import LmdbBackend
from storage.backend.schema import uint64_to_bytes

backend = LmdbBackend(Path(sys.argv[1]), sync=False)
start = int.from_bytes(backend.get(Bucket.META, b"consistent_index") or b"", "big")
print("ready", flush=True)
now = 0.0
for index in range(start + 1, start + 1_000_000):
    for part in range(3):
        backend.put(Bucket.KEY, uint64_to_bytes(index) + bytes([part]), b"x" * 200)
    backend.put(Bucket.META, b"consistent_index", uint64_to_bytes(index))
    now += 0.01
    backend.maybe_commit(now)
"""


@pytest.mark.slow
def test_after_sigkill_every_batch_is_whole_or_absent(tmp_path: Path) -> None:
    """Each entry writes three records and the index; whatever is found, the records are exactly those up to the index."""
    found_before = 0
    for _ in range(4):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "db")], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        backend_age = 0.2
        try:
            process.wait(backend_age)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        backend: Backend = LmdbBackend(tmp_path / "db", sync=False)
        index = int.from_bytes(backend.get(Bucket.META, b"consistent_index") or b"", "big")
        records = backend.keys(Bucket.KEY, b"", None)
        assert len(records) == 3 * index
        assert index == 0 or records[-1] == index.to_bytes(8, "big") + b"\x02"
        assert index >= found_before
        found_before = index
        backend.close()
    assert found_before > 0, BATCH_INTERVAL_SECONDS


def fill_and_empty(backend: LmdbBackend) -> None:
    for number in range(3000):
        backend.put(Bucket.KEY, b"%05d" % number, b"v" * 1000)
    backend.commit()
    for number in range(2990):
        backend.delete(Bucket.KEY, b"%05d" % number)
    backend.commit()


def defragment(backend: LmdbBackend) -> None:
    defragmentation = backend.begin_defragmentation()
    defragmentation.catch_up()
    while not defragmentation.maybe_finish():
        defragmentation.catch_up()


def test_defragmentation_gives_the_space_back(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "db")
    fill_and_empty(backend)
    before = (tmp_path / "db").stat().st_size
    for _ in range(2):
        defragment(backend)
    assert before > 3_000_000
    assert (tmp_path / "db").stat().st_size < 200_000
    assert backend.size() < 200_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["db", "db-lock"]
    backend.put(Bucket.KEY, b"more", b"1")
    backend.close()
    again = LmdbBackend(tmp_path / "db")
    assert len(again.keys(Bucket.KEY, b"", None)) == 11
    again.close()


def test_what_is_written_before_the_end_of_a_defragmentation_is_measured_after_it(tmp_path: Path) -> None:
    """Deletes that were still in memory count: else an operator who made room would be told that there is none."""
    backend = LmdbBackend(tmp_path / "db")
    for number in range(3000):
        backend.put(Bucket.KEY, b"%05d" % number, b"v" * 1000)
    backend.commit()
    for number in range(3000):
        backend.delete(Bucket.KEY, b"%05d" % number)
    defragment(backend)
    assert backend.size_in_use() < 100_000
    backend.close()


def test_what_a_crash_leaves_of_a_defragmentation_is_removed(tmp_path: Path) -> None:
    (tmp_path / "db.defragmentation-1").write_bytes(b"half a copy")
    (tmp_path / "db.defragmentation-1-lock").write_bytes(b"")
    LmdbBackend(tmp_path / "db").close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["db", "db-lock"]


def test_a_defragmentation_that_writes_outrun_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.backend.lmdb_defragmentation.BUFFERED_OPERATIONS_MAX", 10)
    backend = LmdbBackend(tmp_path / "db")
    defragmentation = backend.begin_defragmentation()
    for number in range(20):
        backend.put(Bucket.KEY, b"%d" % number, b"")
    backend.commit()
    with pytest.raises(UnavailableError, match="given up"):
        defragmentation.catch_up()
    defragmentation.abandon()
    assert len(backend.keys(Bucket.KEY, b"", None)) == 20
    backend.close()


def test_a_defragmentation_ends_with_its_backend(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "db")
    defragmentation = backend.begin_defragmentation()
    with pytest.raises(UnavailableError, match="under way"):
        backend.begin_defragmentation()
    defragmentation.catch_up()
    backend.close()
    for step in (defragmentation.catch_up, defragmentation.maybe_finish):
        with pytest.raises(UnavailableError, match="given up"):
            step()
    defragmentation.abandon()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["db", "db-lock"]


def test_a_file_that_grows_takes_back_its_views(tmp_path: Path) -> None:
    """The map moves: a read through an old transaction would be a fault of memory, not an exception."""
    backend = LmdbBackend(tmp_path / "db", quota_bytes=1)
    backend.put(Bucket.KEY, b"a", b"1")
    backend.commit()
    view = backend.view()
    defragmentation = backend.begin_defragmentation()
    for number in range(80):
        backend.put(Bucket.KEY, b"%d" % number, b"v" * 1_000_000)
    backend.commit()
    with pytest.raises(UnavailableError, match="had to grow"):
        view.keys(Bucket.KEY, b"", None)
    with pytest.raises(UnavailableError, match="had to grow"):
        defragmentation.catch_up()
    defragmentation.abandon()
    view.close()
    assert len(backend.keys(Bucket.KEY, b"", None)) == 81
    fresh = backend.view()
    assert len(fresh.keys(Bucket.KEY, b"", None)) == 81
    backend.close()
    with pytest.raises(UnavailableError):
        fresh.keys(Bucket.KEY, b"", None)
    LmdbBackend(tmp_path / "db").close()


def test_views_of_a_replaced_file_end_with_the_backend(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "db")
    fill_and_empty(backend)
    view = backend.view()
    defragment(backend)
    assert len(view.keys(Bucket.KEY, b"", None)) == 10
    backend.close()
    LmdbBackend(tmp_path / "db").close()
    with pytest.raises(UnavailableError):
        view.keys(Bucket.KEY, b"", None)
