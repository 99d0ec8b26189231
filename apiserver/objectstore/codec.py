"""The two byte forms of an object: as stored (no resourceVersion) and as served (with it), and the way between them."""

from __future__ import annotations

import re
from typing import Any

import orjson

_METADATA = b'"metadata":{'
_RESOURCE_VERSION = b'"resourceVersion":"'
_OWN_LAYOUT = re.compile(rb'\{"apiVersion":"[^"\\]+","kind":"[^"\\]+","metadata":\{"')


def encode(obj: dict[str, Any]) -> bytes:
    """The stored form: apiVersion, kind and metadata first, without resourceVersion. ``metadata`` must not be empty.

    Integers beyond 64 bits raise ``TypeError`` (orjson), as they must: nothing rounds a number.
    """
    metadata = obj["metadata"]
    if "resourceVersion" in metadata:
        metadata = {k: v for k, v in metadata.items() if k != "resourceVersion"}
    assert metadata, "an object to store has a name at least"
    ordered = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}
    for field, value in obj.items():
        if field not in ordered:
            ordered[field] = value
    return orjson.dumps(ordered)


def has_own_layout(value: bytes) -> bool:
    """Whether a stored value begins as those of ``encode`` do: what another server has written need not."""
    return _OWN_LAYOUT.match(value) is not None


def served(stored: bytes, revision: int) -> bytes:
    """``stored`` with its resourceVersion. The first ``"metadata":{`` is the object's, since only two strings stand before it."""
    at = stored.index(_METADATA) + len(_METADATA)
    return b'%b"resourceVersion":"%d",%b' % (stored[:at], revision, stored[at:])


def served_again(raw: bytes, revision: int) -> bytes:
    """The served form with another resourceVersion: what a DELETED event carries."""
    at = raw.index(_METADATA) + len(_METADATA) + len(_RESOURCE_VERSION)
    return b"%b%d%b" % (raw[:at], revision, raw[raw.index(b'"', at) :])


def decode(raw: bytes) -> dict[str, Any]:
    """A served object as a fresh dict."""
    value = orjson.loads(raw)
    assert isinstance(value, dict), "only objects are stored"
    return value


def metadata_of(raw: bytes) -> bytes:
    """The JSON of an object's metadata, without making values of the rest."""
    from apiserver.objectstore import partial_decoding

    return partial_decoding.metadata(raw)


def labels_of(raw: bytes) -> dict[str, str] | None:
    """An object's labels, without making values of the rest."""
    from apiserver.objectstore import partial_decoding

    return partial_decoding.labels(raw)


def type_prefix(api_version: str, kind: str) -> bytes:
    """The bytes that every object of one kind starts with, up to and including the comma before ``"metadata"``."""
    return b'{"apiVersion":%b,"kind":%b,' % (orjson.dumps(api_version), orjson.dumps(kind))
