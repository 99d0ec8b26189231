"""Clients that watch: each follows a range from member to member, and every batch it gets is compared with the committed log."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Final

from storage import api, errors
from storage.member.member import Member
from tests.simulation.checkers import ClusterHistory
from tests.simulation.clients import CLIENT_HOST, Port
from tests.simulation.hosts import Host
from tests.simulation.world import InvariantError, ProcessLoop

SILENCE_SECONDS_MAX: Final = 1.5
"""A client that heard nothing for so long asks another member."""


class WatchClient:
    """Promises checked (etcd's "watch guarantees"): ordered, unique, reliable, atomic, resumable, filtered; a revision told without
    events means that there were none. ``seen``: every event of the range up to this revision was delivered."""

    def __init__(
        self,
        port: Port,
        history: ClusterHistory,
        hosts: Callable[[], list[Host]],
        rng: random.Random,
        *,
        name: str,
        request: api.WatchRequest,
    ) -> None:
        self.name = name
        self.seen = -1
        self.events = 0
        self.resumed = 0
        self.relisted = 0
        self.is_stopped = False
        self._port = port
        self._history = history
        self._hosts = hosts
        self._rng = rng
        self._request = request
        self._slow_seconds = rng.choice((0.0, 0.0, 0.3, 2.0))
        self._inbox: list[api.WatchBatch | None] = []
        self._wake: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Follow the range until stopped."""
        while not self.is_stopped:
            hosts = [host for host in self._hosts() if host.is_ready]
            if not hosts:
                await asyncio.sleep(0.2)
                continue
            await self._follow(self._rng.choice(hosts))
            self.resumed += 1
            await asyncio.sleep(0.05)

    async def _follow(self, host: Host) -> None:
        """One stream, until it breaks."""
        inbox: list[api.WatchBatch | None] = []
        self._inbox = inbox
        stream = _Stream(self, host, inbox)
        world, network = self._port.world, self._port.network
        delay = network.delay(CLIENT_HOST, host.name)
        if delay is None or host.process is None:
            return
        start = self.seen + 1 if self.seen >= 0 else 0
        world.call_at(world.now + delay, host.process, stream.begin, start)
        try:
            while not self.is_stopped:
                while inbox:
                    batch = inbox.pop(0)
                    if batch is None:
                        return
                    self._take(batch)
                    if self._slow_seconds and self._rng.random() < 0.1:
                        await asyncio.sleep(self._rng.random() * self._slow_seconds)
                self._wake = self._port.process.create_future()
                try:
                    async with asyncio.timeout(SILENCE_SECONDS_MAX * (0.5 + self._rng.random())):
                        await self._wake
                except TimeoutError:
                    return
        finally:
            stream.cancel()

    def arrive(self, inbox: list[api.WatchBatch | None], batch: api.WatchBatch | None) -> None:
        """In the client's process: what a stream delivered; None is its end."""
        inbox.append(batch)
        if inbox is self._inbox and self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def relist(self, revision: int) -> None:
        """What comes next was compacted: begin again after ``revision``."""
        self.relisted += 1
        self.seen = max(self.seen, revision)

    def _take(self, batch: api.WatchBatch) -> None:
        if self.seen < 0:
            self.seen = batch.revision if not batch.events else batch.revision - 1
        if batch.revision <= self.seen and batch.events:
            raise InvariantError(f"{self.name}: events of revision {batch.revision} after those up to {self.seen}: {batch.events}")
        self.events += len(batch.events)
        self.seen = max(self.seen, batch.revision)

    def expected(self, after: int, up_to: int, compacted: int) -> list[tuple[int, list[api.Event]]]:
        """What a watcher of this range must be told of (after, up_to]. ``compacted``: up to where the member knows no previous versions."""
        request = self._request
        found = []
        for revision, events in self._history.events_between(after, up_to, request.key, request.range_end):
            kept = [event for event in events if not (request.no_put if event.type is api.EventType.PUT else request.no_delete)]
            if kept:
                found.append((revision, [api.Event(event.type, event.kv, self._previous(event)) for event in kept]))
        return found

    def _previous(self, event: api.Event) -> api.KeyValue | None:
        if not self._request.prev_kv:
            return None
        return self._history.state.at[event.kv.mod_revision - 1].get(event.kv.key)

    @property
    def request(self) -> api.WatchRequest:
        return self._request


class _Stream:
    """One watch on one member, in that member's process. Batches go to the client in order; when one is lost, nothing follows it."""

    def __init__(self, client: WatchClient, host: Host, inbox: list[api.WatchBatch | None]) -> None:
        self._client = client
        self._host = host
        self._inbox = inbox
        self._is_cancelled = False
        self._watcher: api.Watcher | None = None
        self._arrives_at = 0.0
        self._seen = 0

    def begin(self, start: int) -> None:
        process, member = self._host.process, self._host.member
        if process is None or member is None or not self._host.is_ready:
            return
        process.create_task(self._pump(process, member, start), name=f"{self._client.name} on {process.name}")

    def cancel(self) -> None:
        """The client is gone; the member may notice later."""
        self._is_cancelled = True

    async def _pump(self, process: ProcessLoop, member: Member, start: int) -> None:
        request = self._client.request
        try:
            current = member._machine.store.current_revision
            watcher = self._watcher = member.watch(
                api.WatchRequest(
                    key=request.key,
                    range_end=request.range_end,
                    start_revision=start,
                    prev_kv=request.prev_kv,
                    no_put=request.no_put,
                    no_delete=request.no_delete,
                )
            )
        except errors.StoreError:
            self._send(None)
            return
        self._seen = start - 1 if start else current
        if not start:
            self._send(api.WatchBatch(revision=current, events=()))
        try:
            while not self._is_cancelled and not process.is_dead:
                batch = watcher.take()
                if batch is None:
                    await watcher.wait()
                    continue
                self._check(process, member, batch)
                self._send(batch)
        except errors.CompactedError as error:
            self._check_compacted(process, member, error)
        except errors.StoppedError:
            pass
        finally:
            watcher.cancel()
            self._send(None)

    def _check(self, process: ProcessLoop, member: Member, batch: api.WatchBatch) -> None:
        client = self._client
        expected = client.expected(self._seen, batch.revision, 0)
        told = [(batch.revision, list(batch.events))] if batch.events else []
        if not _agree(told, expected, client.request.prev_kv, member._machine.store.compact_revision):
            raise InvariantError(
                f"{client.name} on {process.name} got {told} after revision {self._seen}; the committed log says {expected}"
            )
        self._seen = max(self._seen, batch.revision)

    def _check_compacted(self, process: ProcessLoop, member: Member, error: errors.CompactedError) -> None:
        compacted = member._machine.store.compact_revision
        if self._seen + 1 >= compacted or error.compact_revision > compacted:
            raise InvariantError(
                f"{self._client.name} on {process.name} was told that revision {self._seen + 1} is compacted "
                f"(at {error.compact_revision}), the member is compacted at {compacted}"
            )
        world = process.world
        world.call_at(world.now + 0.01, self._client._port.process, self._client.relist, compacted - 1)

    def _send(self, batch: api.WatchBatch | None) -> None:
        port = self._client._port
        delay = port.network.delay(self._host.name, CLIENT_HOST)
        if delay is None:
            self._is_cancelled = True  # the connection is gone: nothing of this stream arrives any more
            return
        world = port.world
        self._arrives_at = max(self._arrives_at, world.now + delay)
        world.call_at(self._arrives_at, port.process, self._client.arrive, self._inbox, batch)


def _agree(told: list[tuple[int, list[api.Event]]], expected: list[tuple[int, list[api.Event]]], prev_kv: bool, compacted: int) -> bool:
    if [revision for revision, _ in told] != [revision for revision, _ in expected]:
        return False
    for (revision, ours), (_, theirs) in zip(told, expected, strict=True):
        if [(each.type, each.kv) for each in ours] != [(each.type, each.kv) for each in theirs]:
            return False
        if prev_kv:
            for one, other in zip(ours, theirs, strict=True):
                # A previous version that was compacted meanwhile is not told.
                if one.prev_kv != other.prev_kv and not (one.prev_kv is None and revision - 1 < compacted):
                    return False
    return True
