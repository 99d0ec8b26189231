"""One key's revisions: the worked example of the module, and a dumb twin that remembers every change."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from storage.mvcc.key_index import KeyIndex
from storage.mvcc.revision import main_of, revision_key


def example() -> KeyIndex:
    """put at 1, put at 2, tombstone at 3, put at 4, tombstone at 5."""
    index = KeyIndex(b"foo")
    index.put(revision_key(1), 1)
    index.put(revision_key(2), 2)
    index.tombstone(revision_key(3))
    index.put(revision_key(4), 4)
    index.tombstone(revision_key(5))
    return index


def shape(index: KeyIndex) -> list[list[int]]:
    return [[main_of(revision) for revision in generation.revisions] for generation in index.generations]


def get(index: KeyIndex, at: int) -> int | None:
    found = index.get(revision_key(at + 1))
    return None if found is None else main_of(found)


def test_reads_of_the_worked_example() -> None:
    index = example()
    assert shape(index) == [[1, 2, 3], [4, 5], []]
    assert [get(index, at) for at in range(1, 10)] == [1, 2, None, 4, None, None, None, None, None]
    assert not index.is_live


def test_compactions_of_the_worked_example() -> None:
    expected = {
        2: [[2, 3], [4, 5], []],
        3: [[3], [4, 5], []],
        4: [[4, 5], []],
        5: [[5], []],
        6: [[]],
    }
    for at, left in expected.items():
        index = example()
        kept = index.compact(at)
        assert shape(index) == left, at
        assert (None if kept is None else main_of(kept)) == (min(at, 5) if at < 6 else None)
        assert index.is_empty == (at == 6)


def test_versions_count_on_over_a_compaction() -> None:
    index = KeyIndex(b"foo")
    for main in range(10, 20):
        index.put(revision_key(main), main)
    index.compact(15)
    found = index.find(revision_key(18 + 1))
    assert found is not None
    assert (main_of(found.revision), found.created, found.version) == (18, 10, 9)


changes = st.lists(st.tuples(st.sampled_from(["put", "delete"]), st.integers(1, 3), st.integers(0, 2)), max_size=15)


@given(changes, st.lists(st.integers(1, 50), max_size=4))
def test_reads_at_any_revision_are_those_of_a_log_of_changes(steps: list[tuple[str, int, int]], compactions: list[int]) -> None:
    index = KeyIndex(b"foo")
    log: list[tuple[int, int | None, int, int]] = []
    main = created = version = 0
    for change, step, sub in steps:
        main += step
        if change == "put":
            created, version = (created, version + 1) if version else (main, 1)
            index.put(revision_key(main, sub), main)
            log.append((main, main, created, version))
        elif version:
            index.tombstone(revision_key(main, sub))
            created = version = 0
            log.append((main, None, 0, 0))
    floor = 0
    for at in [0, *sorted(compactions)]:
        if at:
            index.compact(at)
            floor = at
        for read_at in range(max(floor, 1), main + 3):
            past = [entry for entry in log if entry[0] <= read_at]
            found = index.find(revision_key(read_at + 1))
            if not past or past[-1][1] is None:
                assert found is None
            else:
                assert found is not None
                assert (main_of(found.revision), found.created, found.version) == past[-1][1:]
