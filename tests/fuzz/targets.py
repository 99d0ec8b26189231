"""What is fuzzed. A target takes any bytes; it raises AssertionError where its promise is broken, and anything else is broken too:

decoded, or refused with the one error that the docstring names; what was decoded can be encoded, and decodes to itself; a stream means
the same however it is cut into pieces.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from storage import api, errors
from storage.backend.backend import Bucket
from storage.backend.memory_backend import MemoryBackend
from storage.bbolt import reader, writer
from storage.etcdpb import etcdserverpb as pb
from storage.etcdserver import convert, rpctypes
from storage.etcdserver.http2 import Connection, Stream
from storage.etcdserver.http2_frames import Http2Error
from storage.lease import lease
from storage.member import database_stream, peer_codec, request
from storage.mvcc import kv_codec
from storage.raft import codec
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
from storage.wal import record
from tests.fuzz import api_targets, selection_targets, write_targets


@dataclass(frozen=True)
class Target:
    name: str
    run: Callable[[bytes], None]
    seeds: tuple[bytes, ...]


# -- the log


def wal_segment(data: bytes) -> None:
    """``scan`` never raises; what it calls good is good: it encodes to the very bytes, and its records fill it."""
    frames, tail = record.scan(data, number=None, previous=None)
    end = 0
    for frame in frames:
        assert frame.offset == end
        again, checksum = record.encode_frame(frame.payload, number=frame.number, previous=frame.previous)
        assert checksum == frame.checksum
        unpadded = record.FRAME_ALIGNMENT + len(frame.payload) + 1
        assert again[:unpadded] == data[frame.offset : frame.offset + unpadded]
        end = frame.end
        try:
            records = record.parse_records(frame.payload)
        except ValueError:
            continue
        assert record.encode_payload(record.encode_record(each.type, each.data) for each in records) == frame.payload
    assert 0 <= tail.offset <= len(data)


def _wal_seeds() -> tuple[bytes, ...]:
    payloads = [
        record.encode_record(record.RecordType.METADATA, b"\x08\x01\x10\x02") + record.encode_record(record.RecordType.STATE, b"\x08\x01"),
        *(record.encode_record(record.RecordType.ENTRY, codec.encode_entry(Entry(1, index, b"x" * 20 * index))) for index in range(1, 4)),
    ]
    segment, previous = b"", 0
    for number, payload in enumerate(payloads):
        frame, previous = record.encode_frame(payload, number=number, previous=previous)
        segment += frame
    return segment, segment + bytes(100), segment[: len(segment) // 2]


# -- codecs: decode or one error; decode(encode(x)) = x


def _codec(name: str, decode: Callable[[bytes], Any], encode: Callable[[Any], bytes], error: type[Exception], *values: Any) -> Target:
    def run(data: bytes) -> None:
        try:
            value = decode(data)
        except error:
            return
        assert decode(encode(value)) == value, value

    return Target(name, run, tuple(encode(value) for value in values))


_ENTRY = Entry(3, 7, b"some data")
_CONF_STATE = ConfState((1, 2, 3), (4,), (1, 2), (5,), True)
_SNAPSHOT = Snapshot(metadata=SnapshotMetadata(_CONF_STATE, 9, 2))
_CHANGE = ConfChange(type=ConfChangeType.ADD_NODE, member=4, context=b"urls", id=1)
_CHANGE_V2 = ConfChangeV2((ConfChangeSingle(ConfChangeType.REMOVE_NODE, 2),), ConfChangeTransition.AUTO, b"c")

_REQUESTS: tuple[request.InternalRequest, ...] = (
    api.PutRequest(key=b"k", value=b"v" * 30, lease=5, prev_kv=True),
    api.DeleteRangeRequest(key=b"a", range_end=b"b", prev_kv=True),
    api.TxnRequest(
        compare=(
            api.Compare(key=b"k", target=api.CompareTarget.MOD, operand=3),
            api.Compare(key=b"k", target=api.CompareTarget.VALUE, operand=b"x"),
        ),
        success=(api.PutRequest(key=b"k", value=b"v"), api.TxnRequest(success=(api.RangeRequest(key=b"k", limit=3),))),
        failure=(api.RangeRequest(key=b"a", range_end=b"b", sort_order=api.SortOrder.DESCEND),),
    ),
    request.CompactionRequest(revision=5, physical=True),
    request.LeaseGrantRequest(id=7, ttl_seconds=60),
    request.LeaseRevokeRequest(id=7),
    request.LeaseCheckpointRequest(remaining_ttl_seconds=((7, 30),)),
)


def _codecs() -> tuple[Target, ...]:
    return (
        _codec("raft_entry", codec.decode_entry, codec.encode_entry, codec.CodecError, _ENTRY, Entry(1, 1, b"", EntryType.CONF_CHANGE)),
        _codec("raft_hard_state", codec.decode_hard_state, codec.encode_hard_state, codec.CodecError, HardState(1, 2, 3)),
        _codec("raft_conf_state", codec.decode_conf_state, codec.encode_conf_state, codec.CodecError, _CONF_STATE),
        _codec("raft_conf_change", codec.decode_conf_change, codec.encode_conf_change, codec.CodecError, _CHANGE),
        _codec("raft_conf_change_v2", codec.decode_conf_change_v2, codec.encode_conf_change_v2, codec.CodecError, _CHANGE_V2),
        _codec(
            "raft_snapshot_metadata",
            codec.decode_snapshot_metadata,
            codec.encode_snapshot_metadata,
            codec.CodecError,
            _SNAPSHOT.metadata,
        ),
        _codec(
            "raft_message",
            codec.decode_message,
            codec.encode_message,
            codec.CodecError,
            Message(type=MessageType.APPEND, to=1, sender=2, term=3, index=4, log_term=2, entries=(_ENTRY, _ENTRY), commit=4),
            Message(type=MessageType.SNAPSHOT, to=1, sender=2, term=3, snapshot=_SNAPSHOT),
            Message(type=MessageType.HEARTBEAT, to=1, sender=2, term=3, commit=9, context=b"12345678"),
            Message(type=MessageType.APPEND_RESPONSE, to=1, sender=2, term=3, index=4, reject=True, reject_hint=2),
        ),
        _codec("request", request.decode, lambda pair: request.encode(*pair), codec.CodecError, *((9, one) for one in _REQUESTS)),
        _codec("key_value", kv_codec.decode, kv_codec.encode, errors.CorruptError, api.KeyValue(b"k", 2, 3, 2, b"v" * 20, 5)),
        _codec("lease", lambda data: lease.decode(data).encode(), bytes, errors.CorruptError, lease.Lease(7, 60).encode()),
    )


# -- between members


def peer_frames(data: bytes) -> None:
    """Cut into bytes or whole: the same frames, or FrameError; each decodes, or FrameError."""

    def frames(pieces: list[bytes]) -> list[tuple[peer_codec.FrameType, bytes]] | None:
        reader_ = peer_codec.FrameReader(4096)
        found: list[tuple[peer_codec.FrameType, bytes]] = []
        try:
            for piece in pieces:
                found += reader_.feed(piece)
        except peer_codec.FrameError:
            return None
        return found

    whole = frames([data])
    single = frames([data[at : at + 1] for at in range(len(data))])
    if whole is not None:
        assert whole == single
    for kind, payload in whole or ():
        decode = _DECODERS.get(kind)
        if decode is not None:
            with contextlib.suppress(peer_codec.FrameError, codec.CodecError):
                decode(payload)


_DECODERS: Final[dict[peer_codec.FrameType, Callable[[bytes], Any]]] = {
    peer_codec.FrameType.HELLO: peer_codec.decode_hello,
    peer_codec.FrameType.WELCOME: peer_codec.decode_welcome,
    peer_codec.FrameType.REFUSED: peer_codec.decode_refused,
    peer_codec.FrameType.PING: peer_codec.decode_number,
    peer_codec.FrameType.MESSAGE: codec.decode_message,
    peer_codec.FrameType.CALL: peer_codec.decode_call,
    peer_codec.FrameType.ANSWER: peer_codec.decode_answer,
    peer_codec.FrameType.FAILURE: peer_codec.decode_failure,
    peer_codec.FrameType.SNAPSHOT: peer_codec.decode_snapshot_head,
}


def _peer_seeds() -> tuple[bytes, ...]:
    message = codec.encode_message(Message(type=MessageType.APPEND, to=1, sender=2, term=3, entries=(_ENTRY,)))
    hello = peer_codec.Hello(channel=peer_codec.Channel.MESSAGES, cluster_id=5, sender=2, target=1, urls=("https://127.0.0.1:2380",))
    frames = (
        peer_codec.encode_hello(hello),
        peer_codec.encode_welcome(peer_codec.Welcome(cluster_id=5, member_id=1)),
        peer_codec.encode_refused(peer_codec.Refused(peer_codec.Refusal.REMOVED, "gone")),
        peer_codec.frame(peer_codec.FrameType.MESSAGE, message),
        peer_codec.encode_call(peer_codec.Call(1, "hash_kv", b"body")),
        peer_codec.encode_answer(1, b"body"),
        peer_codec.encode_failure(peer_codec.Failure(1, errors.CompactedError(5))),
        peer_codec.number_frame(peer_codec.FrameType.PING, 7),
    )
    return (*frames, b"".join(frames))


def database_from_a_peer(data: bytes) -> None:
    """Cut anywhere: the same records; damage is SnapshotFileError. (A damaged stream may give records before that shows.)"""

    def read(pieces: list[bytes]) -> list[database_stream.Record] | None:
        reader_ = database_stream.Reader()
        found: list[database_stream.Record] = []
        try:
            for piece in pieces:
                found += reader_.feed(piece)
            reader_.finish()
        except errors.SnapshotFileError:
            return None
        return found

    assert read([data]) == read([data[at : at + 7] for at in range(0, len(data), 7)])


def _database_seeds() -> tuple[bytes, ...]:
    backend = MemoryBackend()
    for number in range(5):
        backend.put(Bucket.KEY, b"%017d" % number, b"value" * number)
    backend.put(Bucket.META, b"consistent_index", bytes(8))
    view = backend.view()
    return (b"".join(database_stream.chunks_of(view)),)


# -- snapshot files


def bbolt_file(data: bytes) -> None:
    """Read to the end, or CorruptError; never an endless walk."""
    with tempfile.NamedTemporaryFile(prefix="fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as file:
        file.write(data)
        file.flush()
        try:
            with reader.BboltReader(Path(file.name)) as opened:
                opened.check_pages()
                for bucket in opened.buckets():
                    for _ in opened.items(bucket):
                        pass
        except errors.CorruptError:
            pass


class _Source:
    """Some buckets, as ``bbolt.writer`` reads them."""

    def __init__(self, content: dict[bytes, dict[bytes, bytes]]) -> None:
        self._content = content

    def buckets(self) -> tuple[bytes, ...]:
        return tuple(sorted(self._content))

    def items(self, bucket: bytes) -> Any:
        return iter(sorted(self._content[bucket].items()))

    def sizes(self, bucket: bytes) -> Any:
        return iter((key, len(value)) for key, value in self.items(bucket))


def _bbolt_seeds() -> tuple[bytes, ...]:
    source = _Source({b"key": {b"%05d" % number: b"v" * 60 for number in range(150)}, b"meta": {b"a": b"1"}, b"empty": {}})
    return (b"".join(writer.write(source, writer.plan(source))),)


# -- the operators' door

_MESSAGES: Final[dict[str, Callable[[Any], Any]]] = {
    "RangeRequest": convert.range_request,
    "PutRequest": convert.put_request,
    "DeleteRangeRequest": convert.delete_range_request,
    "TxnRequest": convert.txn_request,
}


def grpc_messages(data: bytes) -> None:
    """A request's bytes become a request, or are refused by protobuf's DecodeError an error of the store or of etcd's own texts."""
    from google.protobuf.message import DecodeError

    for name, converted in _MESSAGES.items():
        try:
            message = getattr(pb, name).FromString(data)
        except DecodeError:
            continue
        with contextlib.suppress(errors.StoreError, rpctypes.RpcError):
            converted(message)


class _Sink(Stream):
    __slots__ = ()

    def data_received(self, data: bytes) -> None:
        self.connection.credit(self, len(data))

    def end_received(self) -> None:
        pass

    def aborted(self) -> None:
        pass


def http2_connection(data: bytes) -> None:
    """Frames are taken, or the connection ends with Http2Error."""

    async def feed() -> None:
        written: list[bytes] = []
        connection = Connection(
            written.append,
            dict,
            lambda connection, stream_id, head: _Sink(connection, stream_id),
            stream_window=65_536,
            max_concurrent_streams=10,
        )
        try:
            for at in range(0, len(data), 100):
                connection.feed(data[at : at + 100])
        except Http2Error as error:
            connection.goaway(error.code, str(error))

    asyncio.run(feed())


def _http2_seeds() -> tuple[bytes, ...]:
    import h2.config
    import h2.connection

    client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    client.initiate_connection()
    head = [
        (":method", "POST"),
        (":path", "/etcdserverpb.KV/Range"),
        (":scheme", "http"),
        (":authority", "x"),
        ("content-type", "application/grpc"),
    ]
    for stream_id in (1, 3):
        client.send_headers(stream_id, head)
        client.send_data(stream_id, b"\0\0\0\0\x03\x0a\x01a", end_stream=True)
    client.ping(b"12345678")
    client.reset_stream(3)
    client.increment_flow_control_window(1000)
    return (client.data_to_send(),)


def targets() -> dict[str, Target]:
    made = (
        Target("wal_segment", wal_segment, _wal_seeds()),
        *_codecs(),
        Target("peer_frames", peer_frames, _peer_seeds()),
        Target("database_from_a_peer", database_from_a_peer, _database_seeds()),
        Target("bbolt_file", bbolt_file, _bbolt_seeds()),
        Target("grpc_messages", grpc_messages, _grpc_seeds()),
        Target("http2_connection", http2_connection, _http2_seeds()),
        Target("protobuf_bodies", api_targets.protobuf_bodies, api_targets.BODIES),
        Target("protobuf_requests", api_targets.protobuf_requests, api_targets.REQUESTS),
        Target("stored_value", api_targets.stored_value, api_targets.BODIES),
        Target("writes", write_targets.writes, write_targets.SEEDS),
        Target("accept_header", api_targets.accept_header, api_targets.ACCEPTED),
        Target("label_selector", selection_targets.label_selector, selection_targets.LABEL_SELECTORS),
        Target("field_selector", selection_targets.field_selector, selection_targets.FIELD_SELECTORS),
        Target("continue_token", selection_targets.token, selection_targets.TOKENS),
        Target("list_options", selection_targets.query, selection_targets.QUERIES),
    )
    return {target.name: target for target in made}


def _grpc_seeds() -> tuple[bytes, ...]:
    return (
        pb.RangeRequest(key=b"a", range_end=b"b", limit=3, revision=5, sort_order=1, sort_target=2).SerializeToString(),
        pb.PutRequest(key=b"a", value=b"b" * 20, lease=7).SerializeToString(),
        pb.TxnRequest(
            compare=[pb.Compare(result=1, target=3, key=b"k", value=b"v")],
            success=[pb.RequestOp(request_put=pb.PutRequest(key=b"k", value=b"v"))],
            failure=[pb.RequestOp(request_txn=pb.TxnRequest(success=[pb.RequestOp(request_range=pb.RangeRequest(key=b"k"))]))],
        ).SerializeToString(),
    )
