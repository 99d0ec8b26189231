"""Answers in Kubernetes' protobuf form, made of bytes that are kept beside each stored object.

A list is the concatenation of its items' messages and a watch event wraps one, so that an object is encoded once for all who read it as
protobuf, in the version in which it was first asked for. Objects that nobody asks for so have no such bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from apiserver.handlers import forms, response
from apiserver.handlers.response import Send
from apiserver.handlers.scope import ResourceScope
from apiserver.machinery import status
from apiserver.objectstore.interface import StoredObject
from apiserver.request.negotiation import PROTOBUF
from apiserver.request.request_context import RequestContext
from apiserver.schemas import protobuf
from apiserver.schemas.protobuf import table
from apiserver.schemas.protobuf.wire import with_length, write_varint

STREAM = f"{PROTOBUF};stream=watch"

#: Objects encoded between two turns of the loop: about 10 ms.
OBJECTS_PER_TURN = 64

_LIST_META = f"{table.META}ListMeta"
_METADATA_TAG, _ITEM_TAG = b"\x0a", b"\x12"
_END = b"\x1a\x00\x22\x00"


def message_of(scope: ResourceScope, stored: StoredObject) -> bytes:
    """The object's message in the served version, without the envelope. Raises StatusError for one that does not fit into it, which no
    validated object is."""
    version = scope.info.api_version
    kept = stored.message
    if kept is not None and kept[0] == version:
        return kept[1]
    assert scope.message is not None, "negotiation allows protobuf only where there is a message"
    try:
        message = protobuf.encode_message(scope.message, scope.store.decode(stored))
    except protobuf.ProtobufError as error:
        raise status.internal_error(f"unable to encode {stored.path}: {error}") from error
    if kept is None:
        stored.message = (version, message)
    return message


def object_bytes(scope: ResourceScope, _: str, stored: StoredObject) -> bytes:
    """The object with its envelope."""
    return protobuf.envelope(scope.info.api_version, scope.info.kind, message_of(scope, stored))


def metadata_bytes(scope: ResourceScope, version: str, stored: StoredObject) -> bytes:
    """The object's metadata as meta.k8s.io's ``version`` has them, with their envelope."""
    return protobuf.encode(forms.partial(scope.store.decode(stored), version))


async def send_list(
    scope: ResourceScope, context: RequestContext, send: Send, metadata: Mapping[str, Any], objects: Sequence[StoredObject]
) -> None:
    messages = []
    encoded = 0
    for stored in objects:
        encoded += stored.message is None
        messages.append(message_of(scope, stored))
        if encoded >= OBJECTS_PER_TURN:
            encoded = 0
            await asyncio.sleep(0)
    info = scope.info
    head = with_length(_METADATA_TAG, protobuf.encode_message(_LIST_META, metadata))
    heads = [_ITEM_TAG + write_varint(len(message)) for message in messages]
    message_bytes = len(head) + sum(map(len, heads)) + sum(map(len, messages))
    start = protobuf.envelope_start(info.api_version, info.list_kind or info.kind + "List", message_bytes) + head
    size = message_bytes + len(start) - len(head) + len(_END)
    pieces = _pieces(start, heads, messages)
    if size > response.PIECE_BYTES:
        await response.send_pieces(send, context, 200, pieces, size, media_type=PROTOBUF)
    else:
        await response.send_bytes(send, context, 200, b"".join(pieces), media_type=PROTOBUF)


def _pieces(start: bytes, heads: Sequence[bytes], messages: Sequence[bytes]) -> Iterator[bytes]:
    parts, size = [start], 0
    for head, message in zip(heads, messages, strict=True):
        parts += (head, message)
        size += len(message)
        if size >= response.PIECE_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
    yield b"".join((*parts, _END))


def frame(type: str, enveloped: bytes) -> bytes:
    """A watch event: its length in four bytes, most significant first, and a ``WatchEvent`` of the type and the object's whole form."""
    return _frame_start(type, len(enveloped)) + enveloped


def added_frames(scope: ResourceScope, objects: Sequence[StoredObject]) -> bytes:
    """The events of an initial state, each message copied once."""
    info = scope.info
    parts: list[bytes] = []
    for stored in objects:
        message = message_of(scope, stored)
        parts += (_added_start(info.api_version, info.kind, len(message)), message, _END)
    return b"".join(parts)


@lru_cache(maxsize=4096)
def _added_start(api_version: str, kind: str, message_bytes: int) -> bytes:
    """What stands before a message of so many bytes in the frame of an ADDED event."""
    start = protobuf.envelope_start(api_version, kind, message_bytes)
    return _frame_start("ADDED", len(start) + message_bytes + len(_END)) + start


def _frame_start(type: str, enveloped_bytes: int) -> bytes:
    raw = b"\x0a" + write_varint(enveloped_bytes)
    event = with_length(b"\x0a", type.encode()) + b"\x12" + write_varint(len(raw) + enveloped_bytes) + raw
    return (len(event) + enveloped_bytes).to_bytes(4, "big") + event
