"""What a store holds that other servers have written: JSON in any order of fields, or Kubernetes' protobuf form; and how it is read.

This server writes ``{"apiVersion":…,"kind":…,"metadata":{…},…}`` without resourceVersion (``codec.encode``). kube-apiserver writes
built-in kinds as protobuf (``k8s\\0`` and an envelope) and custom resources, their definitions and APIServices as JSON with ``kind``
first; both behind ``k8s:enc:<provider>:v1:<key>:`` where encryption at rest is configured
(k8s.io/apiserver ``pkg/storage/value/encrypt``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson

from apiserver.objectstore import codec
from apiserver.objectstore.interface import ObjectStoreError, Unreadable

if TYPE_CHECKING:
    from apiserver.objectstore.encryption.transformer import Transformer

_OWN_START = b'{"apiVersion":"'
_PROTOBUF_START = b"k8s\x00"
_ENCRYPTED_START = b"k8s:enc:"
#: the self-describing tag: kube-apiserver with the gate CBORServingAndStorage
_CBOR_START = b"\xd9\xd9\xf7"
#: provider, version of its form, name of its key (of a KMS plugin: the plugin's)
_ENCRYPTION = re.compile(rb"k8s:enc:([a-z0-9]{1,32}):(v[0-9]{1,3}):(?:([!-9;-~]{1,253}):)?")
#: What a message shows of a value.
_SHOWN_BYTES = 40


IDENTITY_WORDS = "identity transformer tried to read encrypted data"

#: From the version that an object was stored in to the one that its kind is stored in here. Raises UnreadableValueError.
Upgrade = Callable[[dict[str, Any]], dict[str, Any]]


class UnreadableValueError(ObjectStoreError):
    """A stored value is no object that this server can read. ``reason`` tells which sort, the text tells more."""

    def __init__(self, reason: Unreadable, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def stored_form(value: bytes, upgrade: Upgrade | None = None) -> bytes:
    """``value`` in the form that this server stores. Its own values come back as they are, unchecked; what others wrote goes through
    ``upgrade``. Raises UnreadableValueError."""
    if value.startswith(_OWN_START) and codec.has_own_layout(value) and value.endswith(b"}"):
        return value
    obj = decode(value)
    if not obj["metadata"].get("name"):
        raise UnreadableValueError(Unreadable.DAMAGED, "the object has no name")
    if upgrade is not None:
        try:
            obj = upgrade(obj)
        except (TypeError, AttributeError, LookupError, ValueError) as error:  # a part of it is of another type than in any version
            raise UnreadableValueError(Unreadable.DAMAGED, f"not as {obj['apiVersion']} {obj['kind']} should be: {error!r}") from error
    return codec.encode(obj)


def decrypted(value: bytes, key: bytes, transformer: Transformer) -> tuple[bytes, bool]:
    """What stands under ``key`` in the clear, and whether another key than the first of its configuration has encrypted it. Raises
    UnreadableValueError."""
    from apiserver.objectstore.encryption.providers import DecryptionError  # only where there is a configuration

    try:
        return transformer.decrypt(value, key)
    except DecryptionError as error:
        words = str(error)
        if words == IDENTITY_WORDS:
            words = _encrypted_by(value)
        raise UnreadableValueError(Unreadable.ENCRYPTED, words) from error


def decode(value: bytes) -> dict[str, Any]:
    """The object of a value of any form, as it was written: in the version it was stored in, without defaults of later versions.

    Raises UnreadableValueError.
    """
    if value.startswith(_PROTOBUF_START):
        obj: Any = _from_protobuf(value)
    elif value.startswith(_ENCRYPTED_START):
        raise UnreadableValueError(Unreadable.ENCRYPTED, _encrypted_by(value))
    elif value.startswith(_CBOR_START):
        raise UnreadableValueError(Unreadable.UNKNOWN_TYPE, "the value is CBOR, which this server does not read")
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


def _encrypted_by(value: bytes) -> str:
    """kube-apiserver's words where it is not told how to decrypt, and what would be needed for it."""
    words = IDENTITY_WORDS
    found = _ENCRYPTION.match(value)
    if found is None:
        return words
    provider, version, key = (part.decode("ascii") if part is not None else "" for part in found.groups())
    return f"{words} (provider {provider} {version}{f', key {key}' if key else ''})"


def _from_protobuf(value: bytes) -> dict[str, Any]:
    from apiserver.schemas import protobuf  # its table is needed by those alone whose store another server wrote

    try:
        return protobuf.decode(value)
    except protobuf.UnknownKindError as error:
        raise UnreadableValueError(Unreadable.UNKNOWN_TYPE, str(error)) from error
    except protobuf.ProtobufError as error:
        raise UnreadableValueError(Unreadable.DAMAGED, str(error)) from error
    except RecursionError as error:
        raise UnreadableValueError(Unreadable.DAMAGED, "objects within objects too deep") from error
