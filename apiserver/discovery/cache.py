"""Bytes of documents, kept until what they were built from changes."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

#: shorter answers are sent as they are, as kube-apiserver does
GZIP_MIN_BYTES = 128 * 1024
#: a few percent larger than the best, in a third of its time
_GZIP_LEVEL = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """``etag`` is quoted, as it stands in the header; ``gzipped`` is empty for small bodies."""

    raw: bytes
    etag: str
    gzipped: bytes = b""


def body_of(raw: bytes) -> Body:
    etag = f'"{hashlib.sha512(raw).hexdigest().upper()}"'
    gzipped = gzip.compress(raw, _GZIP_LEVEL, mtime=0) if len(raw) > GZIP_MIN_BYTES else b""
    return Body(raw=raw, etag=etag, gzipped=gzipped)


class DocumentCache:
    """Documents by key, all forgotten when ``generation`` (a number that rises with every change) is another."""

    def __init__(self, generation: Callable[[], int]) -> None:
        self._generation = generation
        self._built_at = generation()
        self._bodies: dict[object, Body] = {}

    def get(self, key: object, build: Callable[[], Any], render: Callable[[Any], bytes] = orjson.dumps) -> Body:
        """The body under ``key``, of the document that ``build`` answers if it is not there yet. Passes on what ``build`` raises."""
        current = self._generation()
        if current != self._built_at:
            self._bodies.clear()
            self._built_at = current
        body = self._bodies.get(key)
        if body is None:
            body = self._bodies[key] = body_of(render(build()))
        return body
