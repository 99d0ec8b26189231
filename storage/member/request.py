"""What an entry of the log says: a request, as bytes.

    entry data = request id u64 (big endian) | kind u8 | body

Bodies are protobuf messages with the field numbers of etcd's ``rpc.proto`` (``PutRequest``, ``DeleteRangeRequest``, ``TxnRequest``,
``LeaseGrantRequest``, …), written by hand. So fields can be added: an older member skips those that it does not know. A kind that it
does not know it must not skip, since its state would drift from the others': ``UnknownRequestError`` stops the member.
"""

from __future__ import annotations

import enum
import functools
import struct
from dataclasses import dataclass
from typing import Final, TypeAlias

from storage import api
from storage.maintenance import AlarmType
from storage.raft.codec import CodecError, fields, varint

_HEAD: Final = struct.Struct(">QB")
HEAD_BYTES: Final = _HEAD.size


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRequest:
    revision: int
    physical: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseGrantRequest:
    id: int
    ttl_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRevokeRequest:
    id: int


class AlarmAction(enum.IntEnum):
    ACTIVATE = 1
    DEACTIVATE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmRequest:
    """Deactivating: member 0 is every member, ``NONE`` every type."""

    action: AlarmAction
    member_id: int
    alarm: AlarmType


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseCheckpointRequest:
    """Lease id → seconds that are left of it, 0 for its whole TTL, as the leader's clock has it."""

    remaining_ttl_seconds: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberAttributesRequest:
    """What a member tells of itself when it starts."""

    member_id: int
    name: str
    client_urls: tuple[str, ...]


InternalRequest: TypeAlias = (
    api.PutRequest
    | api.DeleteRangeRequest
    | api.TxnRequest
    | CompactionRequest
    | LeaseGrantRequest
    | LeaseRevokeRequest
    | AlarmRequest
    | LeaseCheckpointRequest
    | MemberAttributesRequest
)


class Kind(enum.IntEnum):
    """Numbers of etcd's ``InternalRaftRequest`` fields where they fit into a byte."""

    PUT = 4
    DELETE_RANGE = 5
    TXN = 6
    COMPACTION = 7
    LEASE_GRANT = 8
    LEASE_REVOKE = 9
    ALARM = 10
    LEASE_CHECKPOINT = 11
    MEMBER_ATTRIBUTES = 130


class UnknownRequestError(CodecError):
    """An entry of a newer version that this one cannot apply."""


def encode(request_id: int, request: InternalRequest) -> bytes:
    kind = type(request)
    if kind is api.TxnRequest:
        return _HEAD.pack(request_id, Kind.TXN) + _encode_txn(request)  # type: ignore[arg-type]
    if kind is api.PutRequest:
        return _HEAD.pack(request_id, Kind.PUT) + _encode_put(request)  # type: ignore[arg-type]
    match request:
        case api.DeleteRangeRequest():
            return _HEAD.pack(request_id, Kind.DELETE_RANGE) + _encode_delete_range(request)
        case CompactionRequest():
            return _HEAD.pack(request_id, Kind.COMPACTION) + _number(1, request.revision) + _number(2, int(request.physical))
        case LeaseGrantRequest():
            return _HEAD.pack(request_id, Kind.LEASE_GRANT) + _number(1, request.ttl_seconds) + _number(2, request.id)
        case LeaseRevokeRequest():
            return _HEAD.pack(request_id, Kind.LEASE_REVOKE) + _number(1, request.id)
        case AlarmRequest():
            body = _number(1, request.action) + _number(2, request.member_id) + _number(3, request.alarm)
            return _HEAD.pack(request_id, Kind.ALARM) + body
        case LeaseCheckpointRequest():
            checkpoints = [_chunk(1, _number(1, id) + _number(2, remaining)) for id, remaining in request.remaining_ttl_seconds]
            return _HEAD.pack(request_id, Kind.LEASE_CHECKPOINT) + b"".join(checkpoints)
        case MemberAttributesRequest():
            return _HEAD.pack(request_id, Kind.MEMBER_ATTRIBUTES) + _encode_member_attributes(request)
    raise TypeError(f"not a request of the log: {type(request).__name__}")


def request_id_of(data: bytes) -> int:
    return int.from_bytes(data[:8], "big")


def decode(data: bytes) -> tuple[int, InternalRequest]:
    """The request id and the request. Raises CodecError, of it UnknownRequestError."""
    if len(data) < HEAD_BYTES:
        raise CodecError(f"an entry of {len(data)} bytes is too short for a request")
    request_id, kind = _HEAD.unpack_from(data)
    body = data[HEAD_BYTES:]
    match kind:
        case Kind.PUT:
            return request_id, _decode_put(body)
        case Kind.DELETE_RANGE:
            return request_id, _decode_delete_range(body)
        case Kind.TXN:
            return request_id, _decode_txn(body)
        case Kind.COMPACTION:
            numbers = _numbers(body)
            return request_id, CompactionRequest(revision=numbers.get(1, 0), physical=bool(numbers.get(2, 0)))
        case Kind.LEASE_GRANT:
            numbers = _numbers(body)
            return request_id, LeaseGrantRequest(ttl_seconds=numbers.get(1, 0), id=numbers.get(2, 0))
        case Kind.LEASE_REVOKE:
            return request_id, LeaseRevokeRequest(id=_numbers(body).get(1, 0))
        case Kind.ALARM:
            return request_id, _decode_alarm(body)
        case Kind.LEASE_CHECKPOINT:
            checkpoints = [_numbers(_bytes(content)) for number, content in fields(body) if number == 1]
            remaining = tuple((numbers.get(1, 0), numbers.get(2, 0)) for numbers in checkpoints)
            return request_id, LeaseCheckpointRequest(remaining_ttl_seconds=remaining)
        case Kind.MEMBER_ATTRIBUTES:
            return request_id, _decode_member_attributes(body)
    raise UnknownRequestError(f"an entry holds a request of kind {kind}: it was written by a newer version")


def _number(field: int, value: int) -> bytes:
    """An int64 field; negative numbers are in two's complement, as protobuf has them. Zero is left out."""
    return varint(field << 3) + varint(value & 0xFFFF_FFFF_FFFF_FFFF) if value else b""


def _chunk(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def _optional(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value if value else b""


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _int(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise CodecError("a number was expected")
    return value - (1 << 64) if value >> 63 else value


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise CodecError("bytes were expected")
    return value


def _numbers(body: bytes) -> dict[int, int]:
    return {number: _int(value) for number, value in fields(body) if isinstance(value, int)}


def _decode_alarm(body: bytes) -> AlarmRequest:
    """AlarmRequest: action 1, memberID 2, alarm 3."""
    numbers = _numbers(body)
    try:
        return AlarmRequest(
            action=AlarmAction(numbers.get(1, 0)),
            member_id=numbers.get(2, 0) & 0xFFFF_FFFF_FFFF_FFFF,
            alarm=AlarmType(numbers.get(3, 0)),
        )
    except ValueError as error:
        raise UnknownRequestError(f"an entry holds an alarm of a newer version: {error}") from None


# ClusterMemberAttrSetRequest: member_ID 1, member_attributes 2; Attributes: name 1, client_urls 2


def _encode_member_attributes(request: MemberAttributesRequest) -> bytes:
    attributes = _optional(1, request.name.encode()) + b"".join(_chunk(2, url.encode()) for url in request.client_urls)
    return _number(1, request.member_id) + _chunk(2, attributes)


def _decode_member_attributes(body: bytes) -> MemberAttributesRequest:
    member_id, name = 0, b""
    urls: list[bytes] = []
    for number, content in fields(body):
        if number == 1:
            member_id = _int(content) & 0xFFFF_FFFF_FFFF_FFFF
        elif number == 2:
            for part, value in fields(_bytes(content)):
                if part == 1:
                    name = _bytes(value)
                elif part == 2:
                    urls.append(_bytes(value))
    try:
        return MemberAttributesRequest(member_id=member_id, name=name.decode(), client_urls=tuple(url.decode() for url in urls))
    except UnicodeDecodeError as error:
        raise CodecError(str(error)) from None


# PutRequest: key 1, value 2, lease 3, prev_kv 4, ignore_value 5, ignore_lease 6


def _encode_put(request: api.PutRequest) -> bytes:
    key, value = request.key, request.value
    body = b"\x0a" + varint(len(key)) + key + b"\x12" + varint(len(value)) + value
    if request.lease:
        body += _number(3, request.lease)
    if request.prev_kv:
        body += b"\x20\x01"
    if request.ignore_value:
        body += b"\x28\x01"
    if request.ignore_lease:
        body += b"\x30\x01"
    return body


def _decode_put(body: bytes) -> api.PutRequest:
    key = value = b""
    lease = 0
    flags = [False] * 7
    for number, content in fields(body):
        if number == 1:
            key = _bytes(content)
        elif number == 2:
            value = _bytes(content)
        elif number == 3:
            lease = _int(content)
        elif 4 <= number <= 6:
            flags[number] = bool(_int(content))
    return api.PutRequest(key=key, value=value, lease=lease, prev_kv=flags[4], ignore_value=flags[5], ignore_lease=flags[6])


# DeleteRangeRequest: key 1, range_end 2, prev_kv 3


def _encode_delete_range(request: api.DeleteRangeRequest) -> bytes:
    return _chunk(1, request.key) + _optional(2, request.range_end) + (b"\x18\x01" if request.prev_kv else b"")


def _decode_delete_range(body: bytes) -> api.DeleteRangeRequest:
    key = range_end = b""
    prev_kv = False
    for number, content in fields(body):
        if number == 1:
            key = _bytes(content)
        elif number == 2:
            range_end = _bytes(content)
        elif number == 3:
            prev_kv = bool(_int(content))
    return api.DeleteRangeRequest(key=key, range_end=range_end, prev_kv=prev_kv)


# RangeRequest: key 1, range_end 2, limit 3, revision 4, sort_order 5, sort_target 6, serializable 7, keys_only 8, count_only 9,
# min_mod_revision 10, max_mod_revision 11, min_create_revision 12, max_create_revision 13


def _encode_range(request: api.RangeRequest) -> bytes:
    key = request.key
    body = b"\x0a" + varint(len(key)) + key
    if request.range_end:
        body += _chunk(2, request.range_end)
    numbers = (
        request.limit,
        request.revision,
        request.sort_order,
        request.sort_target,
        request.serializable,
        request.keys_only,
        request.count_only,
        request.min_mod_revision,
        request.max_mod_revision,
        request.min_create_revision,
        request.max_create_revision,
    )
    if any(numbers):
        body += b"".join([_number(field, int(value)) for field, value in enumerate(numbers, 3)])
    return body


def _decode_range(body: bytes) -> api.RangeRequest:
    key = range_end = b""
    numbers = [0] * 14
    for number, content in fields(body):
        if number == 1:
            key = _bytes(content)
        elif number == 2:
            range_end = _bytes(content)
        elif 3 <= number <= 13:
            numbers[number] = _int(content)
    try:
        return api.RangeRequest(
            key=key,
            range_end=range_end,
            limit=numbers[3],
            revision=numbers[4],
            sort_order=api.SortOrder(numbers[5]),
            sort_target=api.SortTarget(numbers[6]),
            serializable=bool(numbers[7]),
            keys_only=bool(numbers[8]),
            count_only=bool(numbers[9]),
            min_mod_revision=numbers[10],
            max_mod_revision=numbers[11],
            min_create_revision=numbers[12],
            max_create_revision=numbers[13],
        )
    except ValueError as error:
        raise CodecError(str(error)) from None


# Compare: result 1, target 2, key 3, version 4, create_revision 5, mod_revision 6, value 7, lease 8, range_end 64

_OPERAND_FIELDS: Final = {
    api.CompareTarget.VERSION: 4,
    api.CompareTarget.CREATE: 5,
    api.CompareTarget.MOD: 6,
    api.CompareTarget.VALUE: 7,
    api.CompareTarget.LEASE: 8,
}


@functools.cache
def _compare_head(result: api.CompareResult, target: api.CompareTarget) -> bytes:
    """A comparison up to the tag of its key."""
    return b"\x08" + varint(result) + b"\x10" + varint(target) + b"\x1a"


def _encode_compare(compare: api.Compare) -> bytes:
    key, operand, target = compare.key, compare.operand, compare.target
    body = _compare_head(compare.result, target) + varint(len(key)) + key
    if isinstance(operand, bytes):
        body += _chunk(_OPERAND_FIELDS[target], operand)
    else:
        body += varint(_OPERAND_FIELDS[target] << 3) + varint(operand & 0xFFFF_FFFF_FFFF_FFFF)
    return body + _chunk(64, compare.range_end) if compare.range_end else body


def _decode_compare(body: bytes) -> api.Compare:
    result = target = 0
    key = range_end = b""
    operands: dict[int, int | bytes] = {}
    for number, content in fields(body):
        if number == 1:
            result = _int(content)
        elif number == 2:
            target = _int(content)
        elif number == 3:
            key = _bytes(content)
        elif 4 <= number <= 8:
            operands[number] = content if isinstance(content, bytes) else _signed(content)
        elif number == 64:
            range_end = _bytes(content)
    try:
        kind = api.CompareTarget(target)
        outcome = api.CompareResult(result)
    except ValueError as error:
        raise CodecError(str(error)) from None
    operand = operands.get(_OPERAND_FIELDS[kind], b"" if kind is api.CompareTarget.VALUE else 0)
    if isinstance(operand, bytes) is not (kind is api.CompareTarget.VALUE):
        raise CodecError(f"operand of the wrong type for {kind.name}")
    return api.Compare(key=key, target=kind, result=outcome, operand=operand, range_end=range_end)


# TxnRequest: compare 1, success 2, failure 3; RequestOp: request_range 1, request_put 2, request_delete_range 3, request_txn 4


def _encode_txn(request: api.TxnRequest) -> bytes:
    parts = []
    for compare in request.compare:
        body = _encode_compare(compare)
        parts.append(b"\x0a" + varint(len(body)) + body)
    for operation in request.success:
        body = _encode_op(operation)
        parts.append(b"\x12" + varint(len(body)) + body)
    for operation in request.failure:
        body = _encode_op(operation)
        parts.append(b"\x1a" + varint(len(body)) + body)
    return b"".join(parts)


def _encode_op(operation: api.Op) -> bytes:
    match operation:
        case api.PutRequest():
            body = _encode_put(operation)
            return b"\x12" + varint(len(body)) + body
        case api.RangeRequest():
            body = _encode_range(operation)
            return b"\x0a" + varint(len(body)) + body
        case api.DeleteRangeRequest():
            return _chunk(3, _encode_delete_range(operation))
        case api.TxnRequest():
            return _chunk(4, _encode_txn(operation))


def _decode_txn(body: bytes) -> api.TxnRequest:
    compare: list[api.Compare] = []
    branches: dict[int, list[api.Op]] = {2: [], 3: []}
    for number, content in fields(body):
        if number == 1:
            compare.append(_decode_compare(_bytes(content)))
        elif number in branches:
            branches[number].append(_decode_op(_bytes(content)))
    return api.TxnRequest(compare=tuple(compare), success=tuple(branches[2]), failure=tuple(branches[3]))


def _decode_op(body: bytes) -> api.Op:
    for number, content in fields(body):
        match number:
            case 1:
                return _decode_range(_bytes(content))
            case 2:
                return _decode_put(_bytes(content))
            case 3:
                return _decode_delete_range(_bytes(content))
            case 4:
                return _decode_txn(_bytes(content))
    raise UnknownRequestError("a transaction holds an operation of a kind that this version does not know")
