"""Bytes of the Raft values: the protobuf layout of etcd's ``raftpb`` (field numbers are facts of that file), written by hand.

Decoders accept any valid protobuf of these messages and skip unknown fields, so a newer member may add some. They raise
``CodecError`` and nothing else on bytes that are no such message.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TypeAlias, TypeVar

from storage.raft.messages import (
    ConfChange,
    ConfChangeSingle,
    ConfChangeTransition,
    ConfChangeType,
    ConfChangeV2,
    ConfState,
    Entry,
    EntryType,
    HardState,
    Message,
    MessageType,
    Snapshot,
    SnapshotMetadata,
)

Field: TypeAlias = "tuple[int, int | bytes]"
E = TypeVar("E")

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_VARINT_BYTES_MAX = 10  # a 64-bit number needs no more


class CodecError(ValueError):
    """The bytes are not such a message."""


def varint(value: int) -> bytes:
    """``value`` (0 … 2⁶⁴-1) as a protobuf varint."""
    if value < _KNOWN_VARINTS:
        return _VARINTS[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


# Most are lengths of keys and small values; made once, they cost a list access.
_KNOWN_VARINTS = 2048
_VARINTS = [bytes((i,)) for i in range(0x80)] + [bytes((i & 0x7F | 0x80, i >> 7)) for i in range(0x80, _KNOWN_VARINTS)]


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at ``at`` and the offset after it."""
    value = shift = 0
    try:
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFF_FFFF_FFFF_FFFF, at
            shift += 7
            if shift >= 7 * _VARINT_BYTES_MAX:
                raise CodecError(f"varint of more than {_VARINT_BYTES_MAX} bytes at offset {at}")
    except IndexError:
        raise CodecError(f"varint cut off at offset {at}") from None


def fields(data: bytes) -> Iterator[Field]:
    """The fields of a protobuf message in the order they stand."""
    at, end = 0, len(data)
    while at < end:
        tag, at = read_varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = read_varint(data, at)
            yield number, value
        elif wire == _BYTES:
            length, at = read_varint(data, at)
            if length > end - at:
                raise CodecError(f"field {number} cut off: {length} bytes announced, {end - at} left")
            yield number, data[at : at + length]
            at += length
        elif wire in (_FIXED64, _FIXED32):
            width = 8 if wire == _FIXED64 else 4
            if width > end - at:
                raise CodecError(f"field {number} cut off")
            yield number, data[at : at + width]
            at += width
        else:
            raise CodecError(f"unknown wire type {wire} at offset {at}")


def _number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def _optional(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value) if value else b""


def _chunk(field: int, value: bytes) -> bytes:
    return varint(field << 3 | _BYTES) + varint(len(value)) + value


def _int(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise CodecError("a number was expected")
    return value


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise CodecError("bytes were expected")
    return value


def _enumerated(kind: Callable[[int], E], value: int | bytes) -> E:
    try:
        return kind(_int(value))
    except ValueError as error:
        raise CodecError(str(error)) from None


# raftpb.Entry: Type 1, Term 2, Index 3, Data 4


@functools.lru_cache(maxsize=64)
def _entry_head(kind: EntryType, term: int) -> bytes:
    """What all entries of a term begin with, up to the tag of the index."""
    return b"\x08" + varint(kind) + b"\x10" + varint(term) + b"\x18"


def encode_entry(entry: Entry) -> bytes:
    data = entry.data
    return _entry_head(entry.type, entry.term) + varint(entry.index) + b"\x22" + varint(len(data)) + data


def decode_entry(data: bytes) -> Entry:
    """A restart decodes the whole log, so the form that ``encode_entry`` writes is read without the general loop."""
    try:
        if data[0] == 0x08 and data[1] <= _ENTRY_TYPE_MAX and data[2] == 0x10:
            term, at = read_varint(data, 3)
            if data[at] == 0x18:
                index, at = read_varint(data, at + 1)
                if data[at] == 0x22:
                    length, at = read_varint(data, at + 1)
                    if at + length == len(data):
                        return Entry(term, index, data[at:], _ENTRY_TYPES[data[1]])
    except IndexError:
        pass  # shorter than that form: any fields may be missing
    return _decode_any_entry(data)


_ENTRY_TYPES = tuple(EntryType)
_ENTRY_TYPE_MAX = max(_ENTRY_TYPES)


def _decode_any_entry(data: bytes) -> Entry:
    kind, term, index, content = EntryType.NORMAL, 0, 0, b""
    for number, value in fields(data):
        if number == 1:
            kind = _enumerated(EntryType, value)
        elif number == 2:
            term = _int(value)
        elif number == 3:
            index = _int(value)
        elif number == 4:
            content = _bytes(value)
    return Entry(term, index, content, kind)


# raftpb.HardState: term 1, vote 2, commit 3


def encode_hard_state(state: HardState) -> bytes:
    return _number(1, state.term) + _number(2, state.vote) + _number(3, state.commit)


def decode_hard_state(data: bytes) -> HardState:
    parts = {1: 0, 2: 0, 3: 0}
    for number, value in fields(data):
        if number in parts:
            parts[number] = _int(value)
    return HardState(parts[1], parts[2], parts[3])


# raftpb.ConfState: voters 1, learners 2, voters_outgoing 3, learners_next 4, auto_leave 5


def encode_conf_state(state: ConfState) -> bytes:
    out = [_number(1, member) for member in state.voters]
    out += [_number(2, member) for member in state.learners]
    out += [_number(3, member) for member in state.voters_outgoing]
    out += [_number(4, member) for member in state.learners_next]
    out.append(_optional(5, int(state.auto_leave)))
    return b"".join(out)


def decode_conf_state(data: bytes) -> ConfState:
    groups: dict[int, list[int]] = {1: [], 2: [], 3: [], 4: []}
    auto_leave = False
    for number, value in fields(data):
        if number == 5:
            auto_leave = bool(_int(value))
        elif number in groups:
            if isinstance(value, int):
                groups[number].append(value)
            else:  # the packed form of proto3
                at = 0
                while at < len(value):
                    member, at = read_varint(value, at)
                    groups[number].append(member)
    return ConfState(tuple(groups[1]), tuple(groups[2]), tuple(groups[3]), tuple(groups[4]), auto_leave)


# raftpb.ConfChange: id 1, type 2, node_id 3, context 4


def encode_conf_change(change: ConfChange) -> bytes:
    context = _chunk(4, change.context) if change.context else b""
    return _number(1, change.id) + _number(2, change.type) + _number(3, change.member) + context


def decode_conf_change(data: bytes) -> ConfChange:
    identity, kind, member, context = 0, ConfChangeType.ADD_NODE, 0, b""
    for number, value in fields(data):
        if number == 1:
            identity = _int(value)
        elif number == 2:
            kind = _enumerated(ConfChangeType, value)
        elif number == 3:
            member = _int(value)
        elif number == 4:
            context = _bytes(value)
    return ConfChange(kind, member, context, identity)


# raftpb.ConfChangeV2: transition 1, changes 2, context 3; raftpb.ConfChangeSingle: type 1, node_id 2


def encode_conf_change_v2(change: ConfChangeV2) -> bytes:
    """Empty for the change that leaves a joint configuration."""
    out = [_optional(1, change.transition)]
    out += [_chunk(2, _number(1, one.type) + _number(2, one.member)) for one in change.changes]
    if change.context:
        out.append(_chunk(3, change.context))
    return b"".join(out)


def decode_conf_change_v2(data: bytes) -> ConfChangeV2:
    transition, context = ConfChangeTransition.AUTO, b""
    changes: list[ConfChangeSingle] = []
    for number, value in fields(data):
        if number == 1:
            transition = _enumerated(ConfChangeTransition, value)
        elif number == 2:
            kind, member = ConfChangeType.ADD_NODE, 0
            for part, content in fields(_bytes(value)):
                if part == 1:
                    kind = _enumerated(ConfChangeType, content)
                elif part == 2:
                    member = _int(content)
            changes.append(ConfChangeSingle(kind, member))
        elif number == 3:
            context = _bytes(value)
    return ConfChangeV2(tuple(changes), transition, context)


def decode_conf_change_entry(entry: Entry) -> ConfChange | ConfChangeV2:
    """What an entry of type CONF_CHANGE or CONF_CHANGE_V2 changes."""
    assert entry.type is not EntryType.NORMAL, entry
    return decode_conf_change(entry.data) if entry.type is EntryType.CONF_CHANGE else decode_conf_change_v2(entry.data)


def conf_change_proposal(change: ConfChange | ConfChangeV2) -> tuple[bytes, EntryType]:
    """Data and type of the entry that carries ``change``."""
    if isinstance(change, ConfChange):
        return encode_conf_change(change), EntryType.CONF_CHANGE
    return encode_conf_change_v2(change), EntryType.CONF_CHANGE_V2


# raftpb.SnapshotMetadata: conf_state 1, index 2, term 3; raftpb.Snapshot: data 1, metadata 2


def encode_snapshot_metadata(metadata: SnapshotMetadata) -> bytes:
    return _chunk(1, encode_conf_state(metadata.conf_state)) + _number(2, metadata.index) + _number(3, metadata.term)


def decode_snapshot_metadata(data: bytes) -> SnapshotMetadata:
    conf_state, index, term = ConfState(), 0, 0
    for number, value in fields(data):
        if number == 1:
            conf_state = decode_conf_state(_bytes(value))
        elif number == 2:
            index = _int(value)
        elif number == 3:
            term = _int(value)
    return SnapshotMetadata(conf_state, index, term)


def encode_snapshot(snapshot: Snapshot) -> bytes:
    return (_chunk(1, snapshot.data) if snapshot.data else b"") + _chunk(2, encode_snapshot_metadata(snapshot.metadata))


def decode_snapshot(data: bytes) -> Snapshot:
    content, metadata = b"", SnapshotMetadata()
    for number, value in fields(data):
        if number == 1:
            content = _bytes(value)
        elif number == 2:
            metadata = decode_snapshot_metadata(_bytes(value))
    return Snapshot(content, metadata)


# raftpb.Message: type 1, to 2, from 3, term 4, logTerm 5, index 6, entries 7, commit 8, snapshot 9, reject 10, rejectHint 11,
# context 12, vote 13


def encode_message(message: Message) -> bytes:
    out = [_number(1, message.type), _number(2, message.to), _number(3, message.sender), _number(4, message.term)]
    out += [_number(5, message.log_term), _number(6, message.index)]
    out += [_chunk(7, encode_entry(entry)) for entry in message.entries]
    out.append(_number(8, message.commit))
    if message.snapshot is not None:
        out.append(_chunk(9, encode_snapshot(message.snapshot)))
    out += [_number(10, int(message.reject)), _number(11, message.reject_hint)]
    if message.context:
        out.append(_chunk(12, message.context))
    out.append(_optional(13, message.vote))
    return b"".join(out)


def decode_message(data: bytes) -> Message:
    numbers = {2: 0, 3: 0, 4: 0, 5: 0, 6: 0, 8: 0, 10: 0, 11: 0, 13: 0}
    kind = MessageType.HUP
    entries: list[Entry] = []
    snapshot: Snapshot | None = None
    context = b""
    for number, value in fields(data):
        if number == 1:
            kind = _enumerated(MessageType, value)
        elif number == 7:
            entries.append(decode_entry(_bytes(value)))
        elif number == 9:
            snapshot = decode_snapshot(_bytes(value))
        elif number == 12:
            context = _bytes(value)
        elif number in numbers:
            numbers[number] = _int(value)
    return Message(
        type=kind,
        to=numbers[2],
        sender=numbers[3],
        term=numbers[4],
        log_term=numbers[5],
        index=numbers[6],
        entries=tuple(entries),
        commit=numbers[8],
        snapshot=snapshot,
        reject=bool(numbers[10]),
        reject_hint=numbers[11],
        context=context,
        vote=numbers[13],
    )
