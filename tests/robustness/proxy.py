"""A TCP proxy on loopback that stands for one direction of one link between two members, and can be cut."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

CHUNK_BYTES: Final = 64 * 1024


class Link:
    """Passes on what is sent to ``port``. While it is ``cut`` nothing gets through: connections stay open and silent, as in a network
    that drops packets; ``reset`` also breaks them, as a host that reboots does."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._open = asyncio.Event()
        self._open.set()
        self._connections: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        self._open.clear()

    def mend(self) -> None:
        """What was held back is lost: a connection that lay silent is broken, so that nothing old comes through."""
        if not self._open.is_set():
            self.reset()
            self._open.set()

    def reset(self) -> None:
        for writer in list(self._connections):
            writer.transport.abort()

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        self.reset()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            await self._open.wait()
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            writer.transport.abort()
            self._connections.discard(writer)
            return
        self._connections.add(to_writer)
        try:
            with contextlib.suppress(OSError):
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._pass_on(reader, to_writer))
                    tasks.create_task(self._pass_on(to_reader, writer))
        except* OSError:
            pass
        finally:
            for each in (writer, to_writer):
                each.transport.abort()
                self._connections.discard(each)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK_BYTES):
            await self._open.wait()
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError  # one side has closed: so does the other
