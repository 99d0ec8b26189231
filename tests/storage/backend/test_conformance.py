"""What every backend promises, asked of each implementation."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.backend.backend import BATCH_INTERVAL_SECONDS, BATCH_OPERATIONS_MAX, Backend, Bucket
from storage.backend.lmdb_backend import LmdbBackend
from storage.backend.memory_backend import MemoryBackend
from storage.errors import UnavailableError

Open = Callable[[], Backend]


@pytest.fixture(params=["lmdb", "memory"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    opened: Backend = LmdbBackend(tmp_path / "db") if request.param == "lmdb" else MemoryBackend()
    request.addfinalizer(opened.close)
    return opened


def test_a_write_is_read_back_at_once_and_after_a_commit(backend: Backend) -> None:
    backend.put(Bucket.META, b"name", b"value")
    assert backend.get(Bucket.META, b"name") == b"value"
    assert backend.get(Bucket.LEASE, b"name") is None
    backend.commit()
    assert backend.get(Bucket.META, b"name") == b"value"


def test_a_deleted_key_is_gone_whether_or_not_it_was_on_disk(backend: Backend) -> None:
    backend.put(Bucket.META, b"a", b"1")
    backend.commit()
    backend.put(Bucket.META, b"b", b"2")
    for key in (b"a", b"b", b"never there"):
        backend.delete(Bucket.META, key)
        assert backend.get(Bucket.META, key) is None
    assert backend.range(Bucket.META, b"", None) == []
    backend.commit()
    assert backend.range(Bucket.META, b"", None) == []


def test_an_empty_value_is_a_value(backend: Backend) -> None:
    backend.put(Bucket.ALARM, b"alarm", b"")
    assert backend.get(Bucket.ALARM, b"alarm") == b""
    backend.commit()
    assert backend.range(Bucket.ALARM, b"", None) == [(b"alarm", b"")]


def test_a_range_mixes_what_is_on_disk_with_what_is_not(backend: Backend) -> None:
    for key in (b"a", b"c", b"e", b"g"):
        backend.put(Bucket.KEY, key, b"old")
    backend.commit()
    backend.put(Bucket.KEY, b"d", b"new")
    backend.put(Bucket.KEY, b"b", b"new")
    backend.put(Bucket.KEY, b"e", b"newer")
    backend.delete(Bucket.KEY, b"c")
    assert backend.range(Bucket.KEY, b"b", b"g") == [(b"b", b"new"), (b"d", b"new"), (b"e", b"newer")]
    assert backend.range(Bucket.KEY, b"", None, 2) == [(b"a", b"old"), (b"b", b"new")]
    assert backend.keys(Bucket.KEY, b"c", None) == [b"d", b"e", b"g"]
    assert backend.keys(Bucket.KEY, b"g", b"a") == []


def test_durable_get_sees_only_what_a_commit_covered(backend: Backend) -> None:
    backend.put(Bucket.META, b"index", b"1")
    assert backend.durable_get(Bucket.META, b"index") is None
    backend.commit()
    backend.put(Bucket.META, b"index", b"2")
    assert backend.durable_get(Bucket.META, b"index") == b"1"
    backend.commit()
    assert backend.durable_get(Bucket.META, b"index") == b"2"


def test_a_batch_is_committed_when_it_is_old_enough(backend: Backend) -> None:
    assert not backend.maybe_commit(0.0)
    backend.put(Bucket.META, b"a", b"1")
    assert not backend.maybe_commit(0.0), "the first write of a backend starts the clock"
    assert not backend.maybe_commit(BATCH_INTERVAL_SECONDS / 2)
    assert backend.maybe_commit(BATCH_INTERVAL_SECONDS)
    assert not backend.maybe_commit(2 * BATCH_INTERVAL_SECONDS), "nothing was written since"


def test_a_batch_is_committed_when_it_is_large_enough(backend: Backend) -> None:
    backend.put(Bucket.META, b"a", b"1")
    backend.maybe_commit(0.0)
    for number in range(BATCH_OPERATIONS_MAX):
        backend.put(Bucket.META, b"%d" % number, b"")
    assert backend.maybe_commit(0.0)


def test_the_pre_commit_hook_writes_into_the_batch_it_precedes(backend: Backend) -> None:
    backend.set_pre_commit(lambda: backend.put(Bucket.META, b"index", b"7"))
    backend.put(Bucket.KEY, b"a", b"1")
    backend.commit()
    assert backend.durable_get(Bucket.META, b"index") == b"7"


def test_closing_twice_is_allowed(backend: Backend) -> None:
    backend.close()
    backend.close()


@pytest.mark.parametrize("seed", range(8))
def test_lmdb_and_memory_agree_on_random_operations(tmp_path: Path, seed: int) -> None:
    """Commits are started and left running, so that reads meet every mixture of buffer, batch in flight and file."""
    rng = random.Random(seed)
    lmdb, memory = LmdbBackend(tmp_path / "db", sync=False), MemoryBackend()
    now = 0.0
    for step in range(300):
        key = b"%02d" % rng.randrange(25)
        now += 0.03
        match rng.choices(("put", "delete", "maybe", "commit", "reopen", "read"), (40, 20, 12, 2, 1, 25))[0]:
            case "put":
                for backend in (lmdb, memory):
                    backend.put(Bucket.KEY, key, b"%d" % step)
            case "delete":
                for backend in (lmdb, memory):
                    backend.delete(Bucket.KEY, key)
            case "maybe":
                lmdb.maybe_commit(now)
            case "commit":
                lmdb.commit()
            case "reopen":
                lmdb.close()
                lmdb = LmdbBackend(tmp_path / "db", sync=False)
            case "read":
                end = rng.choice([None, b"%02d" % rng.randrange(25)])
                limit = rng.randrange(5)
                assert lmdb.range(Bucket.KEY, key, end, limit) == memory.range(Bucket.KEY, key, end, limit)
                assert lmdb.keys(Bucket.KEY, key, end, limit) == memory.keys(Bucket.KEY, key, end, limit)
                assert lmdb.get(Bucket.KEY, key) == memory.get(Bucket.KEY, key)
    assert lmdb.range(Bucket.KEY, b"", None) == memory.range(Bucket.KEY, b"", None)
    lmdb.close()


def test_a_crash_of_the_memory_backend_undoes_what_was_not_committed() -> None:
    backend = MemoryBackend()
    backend.put(Bucket.KEY, b"kept", b"1")
    backend.put(Bucket.KEY, b"deleted later", b"1")
    backend.commit()
    backend.put(Bucket.KEY, b"kept", b"2")
    backend.put(Bucket.KEY, b"new", b"1")
    backend.delete(Bucket.KEY, b"deleted later")
    assert backend.crash().range(Bucket.KEY, b"", None) == [(b"deleted later", b"1"), (b"kept", b"1")]


def test_a_view_stays_as_it_was(backend: Backend) -> None:
    """Whether what it shows was on disk, on its way there or only written."""
    backend.put(Bucket.KEY, b"a", b"on disk")
    backend.put(Bucket.KEY, b"b", b"on disk")
    backend.put(Bucket.KEY, b"d", b"on disk")
    backend.commit()
    backend.put(Bucket.KEY, b"b", b"committed later")
    backend.maybe_commit(0.0)
    backend.maybe_commit(BATCH_INTERVAL_SECONDS)
    backend.put(Bucket.KEY, b"c", b"only written")
    backend.delete(Bucket.KEY, b"d")
    backend.set_pre_commit(lambda: backend.put(Bucket.META, b"index", b"7"))
    expected = [(b"a", b"on disk"), (b"b", b"committed later"), (b"c", b"only written")]
    view = backend.view()
    backend.set_pre_commit(None)
    for _ in range(2):
        assert view.range(Bucket.KEY, b"", None) == expected
        assert view.range(Bucket.KEY, b"b", b"c") == expected[1:2]
        assert view.range(Bucket.KEY, b"", None, 2) == expected[:2]
        assert view.keys(Bucket.KEY, b"b", None) == [b"b", b"c"]
        assert view.sizes(Bucket.KEY, b"", None, 2) == [(b"a", 7), (b"b", 15)]
        assert view.chunk(Bucket.KEY, b"a\0", 1) == expected[1:2]
        assert view.chunk(Bucket.KEY, b"", 17) == expected[:2]
        assert view.chunk(Bucket.KEY, b"", 10_000) == expected
        assert view.chunk(Bucket.KEY, b"x", 10_000) == []
        assert view.range(Bucket.META, b"", None) == [(b"index", b"7")], "the consistent index is of the same moment"
        backend.delete(Bucket.KEY, b"a")
        backend.put(Bucket.KEY, b"e", b"new")
        backend.put(Bucket.META, b"index", b"8")
        backend.commit()
    view.close()
    view.close()
    with pytest.raises(UnavailableError):
        view.chunk(Bucket.KEY, b"", 1)


def test_defragmentation_loses_no_write_made_meanwhile(backend: Backend) -> None:
    for number in range(500):
        backend.put(Bucket.KEY, b"%04d" % number, b"v" * 1000)
    backend.commit()
    for number in range(0, 500, 2):
        backend.delete(Bucket.KEY, b"%04d" % number)
    backend.commit()
    view = backend.view()
    now = 0.0
    backend.maybe_commit(now)

    def write(key: bytes) -> None:
        nonlocal now
        backend.put(Bucket.KEY, key, key)
        backend.delete(Bucket.KEY, b"0001")
        now += BATCH_INTERVAL_SECONDS
        backend.maybe_commit(now)

    write(b"a")
    defragmentation = backend.begin_defragmentation()
    write(b"b")
    defragmentation.catch_up()
    write(b"c")
    rounds = 0
    while not defragmentation.maybe_finish():
        write(b"d%d" % rounds)
        defragmentation.catch_up()
        rounds += 1
        assert rounds < 5
    write(b"e")
    written = [b"a", b"b", b"c", *(b"d%d" % number for number in range(rounds)), b"e"]
    expected = [b"%04d" % number for number in range(3, 500, 2)] + written
    assert backend.keys(Bucket.KEY, b"", None) == expected
    backend.commit()
    assert backend.keys(Bucket.KEY, b"", None) == expected
    assert backend.durable_get(Bucket.KEY, b"e") == b"e"
    assert len(view.keys(Bucket.KEY, b"", None)) == 250, "a view from before goes on"
    defragmentation.abandon()
    assert backend.keys(Bucket.KEY, b"", None) == expected
    view.close()


def test_an_abandoned_defragmentation_changes_nothing(backend: Backend) -> None:
    backend.put(Bucket.KEY, b"a", b"1")
    defragmentation = backend.begin_defragmentation()
    defragmentation.catch_up()
    defragmentation.abandon()
    backend.put(Bucket.KEY, b"b", b"2")
    backend.commit()
    assert backend.keys(Bucket.KEY, b"", None) == [b"a", b"b"]
    again = backend.begin_defragmentation()
    again.abandon()
    again.abandon()
