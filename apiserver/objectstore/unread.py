"""Objects of a store that another server has filled, kept as they were found until somebody looks at them.

Decoding a protobuf Pod takes a third of a millisecond, so that a snapshot with 50,000 of them would be half a minute away from its
first answer; and most of them nobody ever looks at. ``EventSource`` decodes the first values at once, and keeps of further ones of the
same kinds the bytes of the store. Each becomes an ordinary ``StoredObject`` at the first look at its ``raw``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apiserver.objectstore import codec
from apiserver.objectstore.interface import StoredObject

#: Values in protobuf that a load decodes before it begins to keep them unread: about a second. What is wrong with the values of a small
#: store is known, and told, when the server is ready.
READ_AT_ONCE_MAX = 3_000
#: How long ``EventSource.check_unread`` works before others get a turn, and how long it leaves them.
CHECK_SECONDS, REST_SECONDS = 0.005, 0.02

PROTOBUF_START = b"k8s\x00"
#: the slot that holds the bytes, stored or served
_RAW: Any = StoredObject.__dict__["raw"]

#: path, stored value and revision → served form. Never raises.
Convert = Callable[[str, bytes, int], bytes]


def unread_class(convert: Convert) -> type[StoredObject]:
    """Of objects that are made with the stored value in place of the served form, and become plain ones when ``raw`` is read."""

    def raw(self: StoredObject) -> bytes:
        served = convert(self.path, _RAW.__get__(self), self.revision)
        self.__class__ = StoredObject
        _RAW.__set__(self, served)
        return served

    return type("UnreadObject", (StoredObject,), {"__slots__": (), "raw": property(raw, _RAW.__set__)})


def stored_value(obj: StoredObject) -> bytes | None:
    """What the store holds of an object that nobody has looked at; None of others."""
    return None if type(obj) is StoredObject else _RAW.__get__(obj)


def type_of(value: bytes) -> bytes:
    """The part of a protobuf value that names its version and kind, b"" of anything else: what two objects of one kind have alike."""
    if not value.startswith(PROTOBUF_START) or len(value) < 6 or value[5] >= 0x80:
        return b""
    return value[: 6 + value[5]]


def nameless_content(path: str, api_version: str, kind: str) -> bytes:
    """Stands for a value that turns out to be damaged when it is looked at, until ``check_unread`` takes it out: its name alone."""
    namespace, _, name = path.rpartition("/")
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return codec.encode({"apiVersion": api_version, "kind": kind, "metadata": metadata})
