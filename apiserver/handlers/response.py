"""Answers: bytes with their headers, in the form the client negotiated."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any

from apiserver.request.negotiation import JSON, YAML, Negotiated
from apiserver.request.rendering import render
from apiserver.request.request_context import RequestContext

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

#: Answers beyond this size are compressed for clients that take gzip (kube-apiserver's number).
GZIP_BYTES_MIN = 128 * 1024
#: A large answer is sent in pieces of about this size, so that it is never in memory twice.
PIECE_BYTES = 512 * 1024

_JSON_HEADER = (b"content-type", b"application/json")
_YAML_HEADER = (b"content-type", b"application/yaml")


async def send_bytes(
    send: Send, context: RequestContext, code: int, body: bytes, *, media_type: str = JSON, headers: Mapping[str, str] | None = None
) -> None:
    """A whole answer."""
    if len(body) > GZIP_BYTES_MIN and accepts_gzip(context):
        await send_pieces(send, context, code, (body,), len(body), media_type=media_type)
        return
    found = [
        _JSON_HEADER if media_type == JSON else _YAML_HEADER if media_type == YAML else (b"content-type", media_type.encode()),
        (b"content-length", b"%d" % len(body)),
    ]
    if headers:
        found += [(key.lower().encode(), value.encode()) for key, value in headers.items()]
    await send({"type": "http.response.start", "status": code, "headers": found})
    await send({"type": "http.response.body", "body": body})


async def send_pieces(
    send: Send, context: RequestContext, code: int, pieces: Iterable[bytes], size: int, *, media_type: str = JSON
) -> None:
    """An answer of ``size`` bytes in pieces, made as they are sent; compressed where it is large and the client takes it."""
    headers = [(b"content-type", media_type.encode())]
    if size > GZIP_BYTES_MIN and accepts_gzip(context):
        headers += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
        await send({"type": "http.response.start", "status": code, "headers": headers})
        # the fastest level, as upstream; on a worker thread, since zlib lets go of the interpreter
        compressor = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
        loop = asyncio.get_running_loop()
        for piece in pieces:
            compressed = await loop.run_in_executor(None, compressor.compress, piece)
            if compressed:
                await send({"type": "http.response.body", "body": compressed, "more_body": True})
        await send({"type": "http.response.body", "body": compressor.flush()})
        return
    headers.append((b"content-length", b"%d" % size))
    await send({"type": "http.response.start", "status": code, "headers": headers})
    for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def accepts_gzip(context: RequestContext) -> bool:
    accepted = context.headers.get(b"accept-encoding")
    return accepted is not None and any(token.strip() == b"gzip" for token in accepted.split(b","))


async def send_object(send: Send, context: RequestContext, code: int, negotiated: Negotiated, obj: Mapping[str, Any]) -> None:
    """An object that is not kept as bytes, in the negotiated media type."""
    if context.audit is not None and obj.get("kind") == "Status":
        context.audit.failed = dict(obj)
    await send_bytes(send, context, code, render(negotiated, obj), media_type=negotiated.media_type)


async def send_large_object(send: Send, context: RequestContext, code: int, negotiated: Negotiated, make: Callable[[], Any]) -> None:
    """The same for one that takes long to make or to encode, which a thread does."""
    body = await asyncio.to_thread(lambda: render(negotiated, make()))
    await send_bytes(send, context, code, body, media_type=negotiated.media_type)


async def send_text(send: Send, context: RequestContext, code: int, text: str) -> None:
    body = text.encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"x-content-type-options", b"nosniff"),
        (b"content-length", b"%d" % len(body)),
    ]
    await send({"type": "http.response.start", "status": code, "headers": headers})
    await send({"type": "http.response.body", "body": body})


NOT_FOUND_TEXT = "404 page not found\n"
