"""A TCP proxy on loopback whose answers can be held back, and whose connections can be cut."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType

CHUNK_BYTES = 65_536


class Proxy:
    """``async with Proxy(host_and_port) as proxy``: listens on ``proxy.target``, passes everything on to the other."""

    def __init__(self, upstream: str) -> None:
        self._host, _, port = upstream.rpartition(":")
        self._port = int(port)
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        #: answers are thrown away while it is set
        self.swallow_answers = False
        self.connections = 0
        self.refuse = False

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.target = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.close()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Break every connection."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuse:
            writer.transport.abort()
            return
        self.connections += 1
        upstream_reader, upstream_writer = await asyncio.open_connection(self._host, self._port)
        self._writers |= {writer, upstream_writer}
        for source, sink, answers in ((reader, upstream_writer, False), (upstream_reader, writer, True)):
            task = asyncio.create_task(self._pump(source, sink, answers))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(CHUNK_BYTES):
                if not (answers and self.swallow_answers):
                    sink.write(data)
                    await sink.drain()
        self._writers.discard(sink)
        sink.transport.abort()
