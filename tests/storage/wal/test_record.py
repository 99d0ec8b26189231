"""Frames: what is written is read back; every cut is a torn tail, every flip in the middle is damage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.wal.record import (
    FRAME_ALIGNMENT,
    Record,
    RecordType,
    TailKind,
    encode_frame,
    encode_payload,
    encode_record,
    parse_records,
    scan,
)


def chain(payloads: list[bytes]) -> tuple[bytes, list[int]]:
    """A segment of frames, and the offset of each."""
    out, offsets, checksum = b"", [], 0
    for number, payload in enumerate(payloads):
        offsets.append(len(out))
        frame, checksum = encode_frame(payload, number=number, previous=checksum)
        out += frame
    return out, offsets


PAYLOADS = [encode_record(RecordType.ENTRY, bytes([65 + i]) * size) for i, size in enumerate((5, 700, 26, 1400))]


@given(st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=300)), min_size=1, max_size=5))
def test_records_come_back(records: list[tuple[int, bytes]]) -> None:
    payload = encode_payload([encode_record(kind, data) for kind, data in records])
    assert parse_records(payload) == [Record(kind, data) for kind, data in records]


@given(st.binary(max_size=60))
def test_any_bytes_are_parsed_or_refused(payload: bytes) -> None:
    try:
        records = parse_records(payload)
    except ValueError:
        return
    assert encode_payload([encode_record(record.type, record.data) for record in records]) == payload


def test_frames_are_aligned_and_chained() -> None:
    data, offsets = chain(PAYLOADS)
    frames, tail = scan(data, number=0, previous=0)
    assert [frame.payload for frame in frames] == PAYLOADS
    assert [frame.offset for frame in frames] == offsets
    assert all(offset % FRAME_ALIGNMENT == 0 for offset in offsets)
    assert tail.kind is TailKind.CLEAN
    assert [frame.previous for frame in frames[1:]] == [frame.checksum for frame in frames[:-1]]


def test_every_cut_of_the_last_frame_is_torn_with_or_without_zeros_behind() -> None:
    data, offsets = chain(PAYLOADS)
    whole = offsets[-1] + 32 + len(PAYLOADS[-1]) + 1
    for cut in range(offsets[-1] + 1, whole):
        for unit in (1, 512, 4096, 1 << 16):
            piece = data[:cut] + bytes(-cut % unit)
            frames, tail = scan(piece, number=0, previous=0)
            assert len(frames) == len(PAYLOADS) - 1, (cut, unit)
            assert tail.offset == offsets[-1]
            assert tail.kind is TailKind.TORN, (cut, unit, tail)


def test_zeros_at_the_end_are_clean() -> None:
    data, _ = chain(PAYLOADS)
    frames, tail = scan(data + bytes(1 << 20), number=0, previous=0)
    assert len(frames) == len(PAYLOADS)
    assert tail.kind is TailKind.CLEAN
    assert tail.offset == len(data)


def test_a_flip_in_an_older_frame_is_damage_at_its_offset() -> None:
    data, offsets = chain(PAYLOADS)
    for position in range(offsets[-1]):
        flipped = bytearray(data)
        flipped[position] ^= 0x10
        frames, tail = scan(bytes(flipped), number=0, previous=0)
        hit = max(index for index, offset in enumerate(offsets) if offset <= position)
        in_padding = position > offsets[hit] + 32 + len(PAYLOADS[hit])
        if in_padding:
            assert len(frames) == len(PAYLOADS)
        else:
            assert tail.kind is TailKind.DAMAGED, position
            assert tail.offset == offsets[hit]


def test_a_flip_in_the_last_frame_is_damage_since_its_end_is_there() -> None:
    data, offsets = chain(PAYLOADS)
    for position in range(offsets[-1], offsets[-1] + 32 + len(PAYLOADS[-1])):
        flipped = bytearray(data)
        flipped[position] ^= 0x10
        _, tail = scan(bytes(flipped), number=0, previous=0)
        assert tail.kind is TailKind.DAMAGED, position


def test_a_missing_sector_of_the_last_write_is_torn_of_an_older_one_damage() -> None:
    data, offsets = chain(PAYLOADS)
    for sector in range(0, len(data) - 512, 512):
        hurt = data[:sector] + bytes(512) + data[sector + 512 :]
        _, tail = scan(hurt, number=0, previous=0)
        if sector > offsets[-1]:
            assert tail.kind is TailKind.TORN, sector
        else:
            assert tail.kind is TailKind.DAMAGED, sector


@pytest.mark.parametrize(("number", "previous"), [(1, 0), (0, 7)])
def test_a_frame_out_of_its_chain_is_damage(number: int, previous: int) -> None:
    data, _ = chain(PAYLOADS)
    frames, tail = scan(data, number=number, previous=previous)
    assert frames == []
    assert tail.kind is TailKind.DAMAGED


@given(st.binary(max_size=400))
def test_scan_of_any_bytes_ends(data: bytes) -> None:
    frames, tail = scan(data, number=None, previous=None)
    assert tail.offset <= len(data)
    assert all(frame.payload for frame in frames)
