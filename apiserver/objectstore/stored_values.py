"""What a store holds that other servers have written: JSON in any order of fields, or Kubernetes' protobuf form; and how it is read.

This server writes ``{"apiVersion":…,"kind":…,"metadata":{…},…}`` without resourceVersion (``codec.encode``). kube-apiserver writes
built-in kinds as protobuf (``k8s\\0`` and an envelope) and custom resources, their definitions and APIServices as JSON with ``kind``
first; both behind ``k8s:enc:<provider>:v1:<key>:`` where encryption at rest is configured
(k8s.io/apiserver ``pkg/storage/value/encrypt``).
"""

from __future__ import annotations

import enum
from typing import Any

import orjson

from apiserver.objectstore import codec
from apiserver.objectstore.interface import ObjectStoreError

_OWN_START = b'{"apiVersion":"'
_PROTOBUF_START = b"k8s\x00"
_ENCRYPTED_START = b"k8s:enc:"
#: What a message shows of a value.
_SHOWN_BYTES = 40


class Unreadable(enum.Enum):
    """Why a value cannot be read."""

    ENCRYPTED = "encrypted"
    UNKNOWN_TYPE = "of an unknown type"
    DAMAGED = "damaged"


class UnreadableValueError(ObjectStoreError):
    """A stored value is no object that this server can read. ``reason`` tells which sort, the text tells more."""

    def __init__(self, reason: Unreadable, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def stored_form(value: bytes) -> bytes:
    """``value`` in the form that this server stores. Its own values come back as they are, unchecked. Raises UnreadableValueError."""
    if value.startswith(_OWN_START) and codec.has_own_layout(value):
        return value
    obj = decode(value)
    if not obj["metadata"].keys() - {"resourceVersion"}:
        raise UnreadableValueError(Unreadable.DAMAGED, "the object has no name")
    return codec.encode(obj)


def decode(value: bytes) -> dict[str, Any]:
    """The object of a value of any form, as it was written: in the version it was stored in, without defaults of later versions.

    Raises UnreadableValueError.
    """
    if value.startswith(_PROTOBUF_START):
        obj: Any = _from_protobuf(value)
    elif value.startswith(_ENCRYPTED_START):
        provider = value[len(_ENCRYPTED_START) :][:_SHOWN_BYTES].rpartition(b":")[0].decode("ascii", "replace")
        raise UnreadableValueError(Unreadable.ENCRYPTED, f"the value is encrypted ({provider})")
    else:
        try:
            obj = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            shown = value[:_SHOWN_BYTES]
            raise UnreadableValueError(Unreadable.DAMAGED, f"the value is neither JSON nor protobuf: {shown!r}") from error
    if not isinstance(obj, dict) or not all(isinstance(obj.get(key), str) and obj[key] for key in ("apiVersion", "kind")):
        raise UnreadableValueError(Unreadable.DAMAGED, "the value names no apiVersion and kind")
    if not isinstance(obj.get("metadata"), dict):
        raise UnreadableValueError(Unreadable.DAMAGED, "the value has no metadata")
    return obj


def _from_protobuf(value: bytes) -> dict[str, Any]:
    from apiserver.schemas import protobuf  # its table is needed by those alone whose store another server wrote

    try:
        return protobuf.decode(value)
    except protobuf.UnknownKindError as error:
        raise UnreadableValueError(Unreadable.UNKNOWN_TYPE, str(error)) from error
    except protobuf.ProtobufError as error:
        raise UnreadableValueError(Unreadable.DAMAGED, str(error)) from error
