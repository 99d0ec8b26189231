"""The HTTP pages of the client port: the same for HTTP/1.1 and HTTP/2."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from storage.etcdserver import http2_frames as frames
from storage.etcdserver.http2 import Connection, Stream

logger = logging.getLogger(__name__)

TEXT: Final = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Page:
    status: int
    content_type: str
    body: bytes


PageOf = Callable[[str], Awaitable[Page]]
"""From a path, with its query, to what is there."""


async def answer(verb: str, path: str, page_of: PageOf) -> Page:
    """The page, or the refusal, for any request that is not gRPC's."""
    if verb not in ("GET", "HEAD"):
        return Page(405, TEXT, b"Method Not Allowed\n")
    try:
        return await page_of(path)
    except Exception as error:
        logger.error("the page %s failed", path, exc_info=error)
        return Page(500, TEXT, b"Internal Server Error\n")


class PageStream(Stream):
    """A page asked for over HTTP/2. A body that comes with the request is passed over."""

    __slots__ = ("_page_of", "_path", "_task", "_verb")

    def __init__(self, connection: Connection, stream_id: int, verb: str, path: str, page_of: PageOf) -> None:
        super().__init__(connection, stream_id)
        self._verb = verb
        self._path = path
        self._page_of = page_of
        self._task = asyncio.get_running_loop().create_task(self._run())

    def data_received(self, data: bytes) -> None:
        self.connection.credit(self, len(data))

    def end_received(self) -> None:
        pass

    def aborted(self) -> None:
        self._task.cancel()

    async def _run(self) -> None:
        page = await answer(self._verb, self._path, self._page_of)
        block = frames.header_block(
            (
                (b":status", b"%d" % page.status),
                (b"content-type", page.content_type.encode()),
                (b"content-length", b"%d" % len(page.body)),
            )
        )
        body = b"" if self._verb == "HEAD" else page.body
        self.connection.send(self, body, trailers=b"", head=block)
