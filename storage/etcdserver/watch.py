"""``etcdserverpb.Watch``: any number of watches on one stream.

Each watch has a task that hands what its store watcher has to the stream. While the client does not read, nothing is taken: the store
watcher keeps a bounded buffer and reads the rest from history when it is taken again. So a slow client costs what its windows and
buffers hold, and nobody waits for it.

What etcd's clients rely on: ``created`` comes first; a watch whose start is compacted is created, then cancelled in a second message;
a watch that is refused (its id is taken, its range is empty) is answered by one message that says both, with id -1.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from storage import api, errors
from storage.etcdpb import etcdserverpb as pb
from storage.etcdserver import convert
from storage.etcdserver.convert import Header
from storage.etcdserver.grpc_server import Call, Handler

NO_WATCH: Final = -1
"""The id in messages that are of no watch, or of all."""
PROGRESS_SECONDS_MIN: Final = 0.1
PUMP_BATCHES_MAX: Final = 64
"""What one watch hands over at a time before the others, and the rest of the process, get their turn."""
RESPONSE_BYTES: Final = 1024 * 1024
"""Of events; an answer that has more is sent, and the next one begun."""
WATCHES_MAX: Final = 100_000
"""Of one stream; each costs a task and a watcher."""


class WatchService:
    """``header`` answers the newest revision that is applied here. ``progress_seconds``: how often a watch that asked for it is told
    that nothing happened; a tenth is added at random, so that clients which began together do not all wake together."""

    def __init__(self, kv: api.KV, header: Header, *, progress_seconds: float, fragment_bytes_max: int, rng: random.Random) -> None:
        self.kv = kv
        self.header = header
        self.fragment_bytes_max = fragment_bytes_max
        self.stream_count = 0
        self._progress_seconds = max(progress_seconds, PROGRESS_SECONDS_MIN)
        self._rng = rng
        self._last_batch: api.WatchBatch | None = None
        self._last_encoded = b""

    def handlers(self) -> Mapping[str, Handler]:
        return {"/etcdserverpb.Watch/Watch": self.watch}

    async def watch(self, call: Call) -> None:
        stream = _WatchStream(self, call)
        self.stream_count += 1
        loop = asyncio.get_running_loop()
        interval = self._progress_seconds * (1 + self._rng.random() / 10)
        timer: list[asyncio.TimerHandle] = []

        def tick() -> None:
            timer[:] = [loop.call_later(interval, tick)]
            stream.tick()

        timer.append(loop.call_later(interval, tick))
        try:
            while (request := await call.receive()) is not None:
                stream.take(request)
                await call.connection.drained(call)
        finally:
            timer[0].cancel()
            stream.close()
            self.stream_count -= 1

    def encoded(self, batch: api.WatchBatch) -> bytes:
        """A batch's events as fields of a WatchResponse. Watchers of one range share their batches, and wake one after the other."""
        if batch is not self._last_batch:
            self._last_batch = batch
            self._last_encoded = pb.WatchResponse(events=[convert.event(each) for each in batch.events]).SerializeToString()
        return self._last_encoded


class _Watch:
    __slots__ = ("id", "progress_due", "start_revision", "task", "wants_fragments", "wants_progress", "watcher")

    def __init__(self, watch_id: int, watcher: api.Watcher, start_revision: int, *, wants_progress: bool, wants_fragments: bool) -> None:
        self.id = watch_id
        self.watcher = watcher
        self.start_revision = start_revision
        self.wants_progress = wants_progress
        self.wants_fragments = wants_fragments
        self.progress_due = wants_progress
        self.task: asyncio.Task[None] | None = None


class _WatchStream:
    def __init__(self, service: WatchService, call: Call) -> None:
        self._service = service
        self._call = call
        self._watches: dict[int, _Watch] = {}
        self._next_id = 0

    def take(self, request: Any) -> None:
        """Carry out one message of the client; what is none of the three kinds is passed over."""
        match request.WhichOneof("request_union"):
            case "create_request":
                self._create(request.create_request)
            case "cancel_request":
                watch = self._watches.get(request.cancel_request.watch_id)
                if watch is not None:
                    self._forget(watch)
                    self._send(pb.WatchResponse(header=self._header(), watch_id=watch.id, canceled=True))
            case "progress_request":
                self._progress_of_all()

    def tick(self) -> None:
        """Tell the watches that asked for it and have had no event since the last tick how far they are."""
        try:
            for watch in list(self._watches.values()):
                if watch.wants_progress:
                    if watch.progress_due and self._is_synced(watch):
                        self._send(pb.WatchResponse(header=self._header(), watch_id=watch.id))
                    watch.progress_due = True
        except errors.StoreError as error:
            self._call.end(error)

    def close(self) -> None:
        for watch in list(self._watches.values()):
            self._forget(watch)

    def _create(self, message: Any) -> None:
        refusal = self._refusal(message)
        if refusal:
            self._send(pb.WatchResponse(header=self._header(), watch_id=NO_WATCH, created=True, canceled=True, cancel_reason=refusal))
            return
        watch_id = message.watch_id or self._free_id()
        watcher = self._service.kv.watch(convert.watch_request(message))
        watch = _Watch(watch_id, watcher, message.start_revision, wants_progress=message.progress_notify, wants_fragments=message.fragment)
        self._watches[watch_id] = watch
        self._send(pb.WatchResponse(header=self._header(), watch_id=watch_id, created=True))
        watch.task = asyncio.get_running_loop().create_task(self._run(watch))

    def _refusal(self, message: Any) -> str:
        if message.start_revision < 0:
            return errors.CompactedError.text
        key, end = message.key or b"\0", message.range_end
        if end and end != b"\0" and key >= end:
            return "mvcc: watcher range is empty"
        if message.watch_id and message.watch_id in self._watches:
            return "mvcc: duplicate watch ID provided on the WatchStream"
        if len(self._watches) >= WATCHES_MAX:
            return errors.TooManyRequestsError.text
        return ""

    def _free_id(self) -> int:
        while self._next_id in self._watches:
            self._next_id += 1
        self._next_id += 1
        return self._next_id - 1

    async def _run(self, watch: _Watch) -> None:
        call = self._call
        try:
            while watch.id in self._watches:
                await watch.watcher.wait()
                if not self._pump(watch):
                    await call.connection.drained(call)
                    await asyncio.sleep(0)
        except errors.StoreError as error:
            call.end(error)

    def _pump(self, watch: _Watch) -> bool:
        """Hand over what the watcher has; whether that was all, so that every event up to the newest revision is on its way."""
        call = self._call
        encoded: list[bytes] = []
        size = 0
        is_all = False
        try:
            for _ in range(PUMP_BATCHES_MAX):
                if call.has_ended or call.has_unsent:
                    break
                batch = watch.watcher.take()
                if batch is None:
                    is_all = True
                    break
                events = self._service.encoded(batch)
                if watch.wants_fragments and len(batch.events) > 1 and len(events) >= self._service.fragment_bytes_max:
                    self._send_events(watch, encoded)
                    self._send_fragments(watch, batch.events)
                    encoded, size = [], 0
                elif events:
                    encoded.append(events)
                    size += len(events)
                    if size >= RESPONSE_BYTES:
                        self._send_events(watch, encoded)
                        encoded, size = [], 0
        except errors.CompactedError as error:
            self._send_events(watch, encoded)
            self._forget(watch)
            # etcd leaves the header's revision out here
            header = self._header()
            header.revision = 0
            self._send(pb.WatchResponse(header=header, watch_id=watch.id, canceled=True, compact_revision=error.compact_revision))
            return False
        self._send_events(watch, encoded)
        return is_all

    def _is_synced(self, watch: _Watch) -> bool:
        """Whether a notice of the newest revision would be true, and useful: to one that begins later it would say nothing."""
        return self._pump(watch) and watch.start_revision <= self._service.header().revision

    def _send_events(self, watch: _Watch, encoded: list[bytes]) -> None:
        """The batches in one answer: the fields of a message may come in pieces, so what follows its head is the same message."""
        if encoded:
            watch.progress_due = False
            head: bytes = pb.WatchResponse(header=self._header(), watch_id=watch.id).SerializeToString()
            self._call.send_now(b"".join((head, *encoded)))

    def _send_fragments(self, watch: _Watch, events: Sequence[api.Event]) -> None:
        """One revision's events in several answers, for a client that cannot take them in one."""
        watch.progress_due = False
        header = self._header()
        for part, is_last in _fragments(events, self._service.fragment_bytes_max):
            encoded = [convert.event(each) for each in part]
            self._send(pb.WatchResponse(header=header, watch_id=watch.id, fragment=not is_last, events=encoded))

    def _progress_of_all(self) -> None:
        """One notice for all watches of the stream, if each of them has been handed everything; else none, as in etcd."""
        if self._watches and all(self._is_synced(watch) for watch in list(self._watches.values())):
            self._send(pb.WatchResponse(header=self._header(), watch_id=NO_WATCH))

    def _forget(self, watch: _Watch) -> None:
        del self._watches[watch.id]
        watch.watcher.cancel()
        if watch.task is not None and watch.task is not asyncio.current_task():
            watch.task.cancel()

    def _header(self) -> Any:
        return convert.header(self._service.header())

    def _send(self, message: Any) -> None:
        self._call.send_now(message.SerializeToString())


def _fragments(events: Sequence[api.Event], limit: int) -> Iterator[tuple[list[api.Event], bool]]:
    """Parts of at least one event and, where that is possible, less than ``limit`` bytes; and whether it is the last one."""
    part: list[api.Event] = []
    size = 0
    for each in events:
        added = convert.event(each).ByteSize()
        if part and size + added >= limit:
            yield part, False
            part, size = [], 0
        part.append(each)
        size += added
    yield part, True
