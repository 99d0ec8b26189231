"""Files that are written are read back equal, bbolt's own check finds nothing wrong with them, and damaged ones are refused."""

from __future__ import annotations

import random
import struct
import subprocess
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.bbolt import layout, writer
from storage.bbolt.layout import PAGE_BYTES, Meta, encode_meta_page, fnv1a_64
from storage.bbolt.reader import BboltReader
from storage.errors import CorruptError
from storage.mvcc import kv_codec
from storage.mvcc.revision import revision_key
from tests.storage.etcd_process import BINARIES

Buckets = dict[bytes, list[tuple[bytes, bytes]]]


class DictSource:
    def __init__(self, buckets: Buckets) -> None:
        self._buckets = buckets

    def buckets(self) -> Sequence[bytes]:
        return sorted(self._buckets)

    def sizes(self, bucket: bytes) -> Iterator[tuple[bytes, int]]:
        return ((key, len(value)) for key, value in self._buckets[bucket])

    def items(self, bucket: bytes) -> Iterator[tuple[bytes, bytes]]:
        return iter(self._buckets[bucket])


def write(buckets: Buckets, path: Path) -> bytes:
    source = DictSource(buckets)
    planned = writer.plan(source)
    data = b"".join(writer.write(source, planned))
    assert len(data) == planned.file_bytes
    path.write_bytes(data)
    return data


def read(path: Path) -> Buckets:
    with BboltReader(path) as reader:
        reader.check_pages()
        return {name: list(reader.items(name)) for name in reader.buckets()}


#: most values are small, some need pages of their own
values = st.one_of(st.binary(max_size=40), st.integers(0, 3 * PAGE_BYTES).map(lambda size: b"v" * size))
keys = st.one_of(st.binary(min_size=1, max_size=30), st.integers(1, PAGE_BYTES + 100).map(lambda size: b"k" * size))
bucket_contents = st.dictionaries(keys, values, max_size=60).map(lambda pairs: sorted(pairs.items()))


@given(st.dictionaries(st.binary(min_size=1, max_size=12), bucket_contents, max_size=5))
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, buckets: Buckets) -> None:
    path = tmp_path_factory.getbasetemp() / "model.db"
    write(buckets, path)
    assert read(path) == {name: buckets[name] for name in sorted(buckets)}


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 2, 123, 124, 125, 126, 248, 249, 250, 124 * 124, 124 * 124 + 1])
def test_every_branch_has_two_children_at_least(tmp_path: Path, count: int) -> None:
    """bbolt panics when a delete empties a page whose parent has no other child. The values fill a page each, so ``count`` is the
    number of leaves; a branch holds 124 keys of 17 bytes."""
    content = [(revision_key(number), b"") for number in range(1, count + 1)]
    value = b"v" * (PAGE_BYTES - 2 * layout.HEAD_BYTES - 17)
    data = write({b"key": [(key, value) for key, _ in content]}, tmp_path / "db")
    branches = 0
    for position in range(0, len(data), PAGE_BYTES):
        _, flags, children, _ = layout.PAGE_HEAD.unpack_from(data, position)
        if flags == layout.FLAG_BRANCH:
            branches += 1
            assert children >= 2
    assert bool(branches) == (count > 1)
    assert [key for key, _ in read(tmp_path / "db")[b"key"]] == [key for key, _ in content]


def test_the_stream_is_handed_out_in_bounded_chunks() -> None:
    source = DictSource({b"key": [(revision_key(number), b"v" * 1000) for number in range(1, 5000)]})
    planned = writer.plan(source)
    chunks = list(writer.write(source, planned, chunk_bytes=65536))
    assert sum(map(len, chunks)) == planned.file_bytes
    assert max(map(len, chunks)) <= 65536 + 4 * PAGE_BYTES


def test_writing_takes_pairs_only_as_they_are_needed() -> None:
    """Memory does not grow with the source: at the first chunk only its pairs have been asked for."""
    asked = 0

    class Endless(DictSource):
        def items(self, bucket: bytes) -> Iterator[tuple[bytes, bytes]]:
            nonlocal asked
            for number in range(1, 100_000):
                asked += 1
                yield revision_key(number), b"v" * 1000

        def sizes(self, bucket: bytes) -> Iterator[tuple[bytes, int]]:
            return ((revision_key(number), 1000) for number in range(1, 100_000))

    source = Endless({b"key": []})
    list(islice(writer.write(source, writer.plan(source)), 2))
    assert asked < 1000


@pytest.mark.parametrize("content", [[(b"b", b""), (b"a", b"")], [(b"a", b""), (b"a", b"")], [(b"", b"")], [(b"k" * 40_000, b"")]])
def test_what_no_database_can_hold_is_refused(content: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(ValueError, match=r"does not come after|too long"):
        writer.plan(DictSource({b"key": content}))


def test_a_source_that_changed_since_it_was_planned_is_refused() -> None:
    before = DictSource({b"key": [(b"a", b"v" * 10_000)]})
    after = DictSource({b"key": [(b"a", b"v" * 20_000)]})
    with pytest.raises(ValueError, match="planned"):
        list(writer.write(after, writer.plan(before)))


def records(sizes: list[int], rng: random.Random) -> list[tuple[bytes, bytes]]:
    return [
        (revision_key(main), kv_codec.encode_fields(b"/registry/%d" % main, main, main, 1, rng.randbytes(size), 0))
        for main, size in enumerate(sizes, 2)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "sizes", [[], [10], [100] * 2000, [20] * 30_000, [5000] * 50 + [1_500_000] * 2 + [3] * 100], ids=["0", "1", "2000", "30000", "large"]
)
def test_bbolts_own_check_finds_nothing_wrong(tmp_path: Path, sizes: list[int]) -> None:
    """``etcdutl snapshot status`` runs it, and reads every pair."""
    content: Buckets = {b"key": records(sizes, random.Random(7)), b"meta": [(b"consistent_index", bytes(8))], b"alarm": []}
    write(content, tmp_path / "db")
    done = subprocess.run(
        [BINARIES / "etcdutl", "snapshot", "status", tmp_path / "db", "-w", "simple"], capture_output=True, text=True, timeout=30
    )
    assert not done.stderr
    assert done.returncode == 0
    _hash, revision, _keys, _size = done.stdout.split(", ")
    assert int(revision) == (len(sizes) + 1 if sizes else 0)


def test_fnv1a_has_the_published_check_values() -> None:
    """From the authors' list of test vectors."""
    assert fnv1a_64(b"") == 0xCBF2_9CE4_8422_2325
    assert fnv1a_64(b"foobar") == 0x8594_4171_F739_67E8


# -- damage

SMALL: Buckets = {
    b"alarm": [],
    b"key": [(revision_key(number), b"value %d" % number * 20) for number in range(1, 200)],
    b"meta": [(b"consistent_index", bytes(8)), (b"term", bytes(8))],
}


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "db"
    data = write(SMALL, path)
    for end in [*range(0, len(data), 500), len(data) - 1]:
        path.write_bytes(data[:end])
        with pytest.raises(CorruptError, match=str(path)):
            read(path)


@given(st.integers(min_value=0), st.integers(1, 255))
def test_an_altered_byte_gives_the_pairs_or_a_refusal(tmp_path_factory: pytest.TempPathFactory, position: int, change: int) -> None:
    """Never another exception, never a hang. A changed value is not noticed here: the snapshot's SHA-256 is for that."""
    path = tmp_path_factory.getbasetemp() / "altered.db"
    data = bytearray(write(SMALL, path))
    data[position % len(data)] ^= change
    path.write_bytes(data)
    try:
        found = read(path)
    except CorruptError as error:
        assert str(path) in str(error)
    else:
        assert sum(map(len, found.values())) == sum(map(len, SMALL.values())) or position % len(data) < 4 * PAGE_BYTES


def test_one_whole_meta_page_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "db"
    data = write(SMALL, path)
    for broken in (0, PAGE_BYTES):
        path.write_bytes(data[: broken + 20] + b"\xff" + data[broken + 21 :])
        assert read(path) == SMALL
    path.write_bytes(bytes(2 * PAGE_BYTES) + data[2 * PAGE_BYTES :])
    with pytest.raises(CorruptError, match="neither of its two meta pages"):
        read(path)


def branch(page: int, children: list[tuple[bytes, int]]) -> bytes:
    position = 16 * len(children)
    head, body = layout.PAGE_HEAD.pack(page, layout.FLAG_BRANCH, len(children), 0), b""
    for number, (key, child) in enumerate(children):
        head += layout.BRANCH_ELEMENT.pack(position - 16 * number + len(body), len(key), child)
        body += key
    return (head + body).ljust(PAGE_BYTES, b"\0")


@pytest.mark.parametrize(
    ("children", "what"),
    [
        ([(b"a", 4), (b"a\0", 4)], "used twice|the branch above"),
        ([(b"a", 4), (b"b", 6)], "used twice"),
        ([(b"b", 5), (b"a", 6)], "not in order"),
        ([(b"a", 99)], "page 99"),
        ([(b"a", 0)], "page 0"),
        ([(b"a", 2)], "flags 0x10"),
        ([], "of 0 children"),
    ],
)
def test_branches_that_lead_astray_are_refused(tmp_path: Path, children: list[tuple[bytes, int]], what: str) -> None:
    """A cycle or a shared page must end the walk, not multiply it."""
    path = tmp_path / "db"
    data = write({b"key": [(b"a", b"v" * 3000), (b"b", b"v" * 3000)]}, path)
    (root,) = struct.unpack_from("<Q", data, 3 * PAGE_BYTES + 32 + 3)
    assert root == 6, "two leaves at 4 and 5, their branch behind"
    path.write_bytes(data[: 6 * PAGE_BYTES] + branch(6, children))
    with pytest.raises(CorruptError, match=what):
        read(path)


def test_a_page_with_more_overflow_than_the_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "db"
    data = bytearray(write({b"key": [(b"a", b"1")]}, path))
    struct.pack_into("<I", data, 4 * PAGE_BYTES + 12, 0xFFFF_FFFF)
    path.write_bytes(data)
    with pytest.raises(CorruptError, match="goes on for"):
        read(path)


def test_pages_in_use_beyond_the_end_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "db"
    data = write({b"key": [(b"a", b"1")]}, path)
    metas = [
        encode_meta_page(each, Meta(page_bytes=PAGE_BYTES, root_page=3, freelist_page=2, page_count=1 << 40, transaction_id=each))
        for each in range(2)
    ]
    path.write_bytes(b"".join(metas) + data[2 * PAGE_BYTES :])
    with pytest.raises(CorruptError, match="cut short"):
        read(path)
