"""The simulated network between members: ``storage.member.transport.Transport`` in memory, with everything that networks do.

Messages are late, lost, doubled and overtake each other; links are cut in one direction or both, or clogged (what is sent arrives in
one burst later); snapshot streams break half way; of a call the question or the answer is lost.

A PROPOSE message is never doubled: it has no place in Raft's log yet, so its effect would be doubled too. Real transports send it
once, over a connection that does not double.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final

from storage import errors
from storage.member.transport import PeerHandler, SnapshotSource
from storage.raft.messages import Message, MessageType
from tests.simulation.world import ProcessLoop, World

SNAPSHOT_STALL_SECONDS: Final = 1.0
"""A snapshot stream that got nowhere for so long is given up."""

IN_FLIGHT_PER_LINK_MAX: Final = 256
"""Messages on one link; beyond it the sender is told that the peer cannot be reached."""


@dataclass(slots=True)
class NetworkFaults:
    """Chances per message; times in seconds."""

    delay_min: float = 0.0005
    delay_max: float = 0.003
    slow_chance: float = 0.0
    slow_seconds_max: float = 0.2
    loss_chance: float = 0.0
    double_chance: float = 0.0
    snapshot_break_chance: float = 0.0

    def calm(self) -> None:
        """From now on only short delays."""
        self.slow_chance = self.loss_chance = self.double_chance = self.snapshot_break_chance = 0.0


@dataclass(slots=True)
class _Link:
    """One direction between two hosts."""

    is_cut: bool = False
    clogged_until: float = 0.0
    changed_at: float = 0.0


class Network:
    def __init__(self, world: World, faults: NetworkFaults) -> None:
        self.world = world
        self.faults = faults
        self.messages_sent = 0
        self.messages_lost = 0
        self.snapshots_sent = 0
        self._links: dict[tuple[str, str], _Link] = {}
        self.on_send: Callable[[Message, str], None] = lambda message, host: None
        self._by_url: dict[str, SimulatedTransport] = {}

    def link(self, source: str, target: str) -> _Link:
        found = self._links.get((source, target))
        if found is None:
            found = self._links[source, target] = _Link()
        return found

    def cut(self, source: str, target: str) -> None:
        """Nothing gets from ``source`` to ``target`` (hosts) any more; what is under way is lost as well."""
        link = self.link(source, target)
        link.is_cut = True
        link.changed_at = self.world.now

    def clog(self, source: str, target: str, seconds: float) -> None:
        self.link(source, target).clogged_until = self.world.now + seconds

    def heal(self) -> None:
        """All links are as new."""
        for link in self._links.values():
            if link.is_cut:
                link.is_cut = False
                link.changed_at = self.world.now
            link.clogged_until = 0.0

    def delay(self, source: str, target: str) -> float | None:
        """Of one message sent now; None when it is lost."""
        world, faults = self.world, self.faults
        rng = world.rng
        link = self.link(source, target)
        if link.is_cut or (faults.loss_chance and rng.random() < faults.loss_chance):
            return None
        seconds = faults.delay_min + rng.random() * (faults.delay_max - faults.delay_min)
        if faults.slow_chance and rng.random() < faults.slow_chance:
            seconds += rng.random() * faults.slow_seconds_max
        if link.clogged_until > world.now:
            seconds += link.clogged_until - world.now
        return seconds

    def register(self, url: str, transport: SimulatedTransport) -> None:
        self._by_url[url] = transport

    def at(self, url: str) -> SimulatedTransport | None:
        """Who listens there now."""
        found = self._by_url.get(url)
        return None if found is None or found.process.is_dead or not found.is_started else found

    def urls_reach(self, urls: tuple[str, ...]) -> SimulatedTransport | None:
        for url in urls:
            found = self.at(url)
            if found is not None:
                return found
        return None


class SimulatedTransport:
    """The transport of one process on host ``host``, which listens at ``url``."""

    def __init__(self, network: Network, process: ProcessLoop, *, host: str, url: str) -> None:
        self.network = network
        self.process = process
        self.host = host
        self.url = url
        self.member_id = 0
        self.cluster_id = 0
        self.is_started = False
        self.started_at = 0.0
        self.handler: PeerHandler | None = None
        self._peers: dict[int, tuple[str, ...]] = {}
        self._removed: dict[int, None] = {}
        self._was_removed = False
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._in_flight: dict[SimulatedTransport, int] = {}

    # -- Transport

    async def start(self, handler: PeerHandler, *, member_id: int, cluster_id: int) -> None:
        assert self.network.at(self.url) is None, f"{self.url}: address in use"
        self.handler = handler
        self.member_id, self.cluster_id = member_id, cluster_id
        self.started_at = self.network.world.now
        self.is_started = True
        self.network.register(self.url, self)

    async def stop(self) -> None:
        self.is_started = False
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        for task in tasks:
            await asyncio.wait([task])

    def set_peer(self, member_id: int, urls: tuple[str, ...]) -> None:
        self._peers[member_id] = urls
        self._removed.pop(member_id, None)

    def remove_peer(self, member_id: int) -> None:
        self._peers.pop(member_id, None)
        self._removed[member_id] = None

    def send(self, messages: Sequence[Message]) -> None:
        if self.process.is_dead or not self.is_started:
            return
        unreachable: dict[int, None] = {}
        for message in messages:
            assert message.type is not MessageType.SNAPSHOT, message
            self.network.on_send(message, self.host)
            if not self._send_one(message):
                unreachable[message.to] = None
        for member_id in unreachable:
            assert self.handler is not None
            self.process.call_soon(self._report_unreachable, member_id)

    def send_snapshot(self, message: Message, source: SnapshotSource) -> None:
        if not self.process.is_dead:
            self.network.snapshots_sent += 1
            self._spawn(self._stream(message, source))

    async def call(self, member_id: int, method: str, body: bytes, *, timeout_seconds: float) -> bytes:
        urls = self._peers.get(member_id)
        if urls is None:
            raise errors.UnavailableError(f"no peer {member_id:x}")
        return await self._call(self.network.urls_reach(urls), self.member_id, method, body, timeout_seconds)

    async def call_url(self, url: str, method: str, body: bytes, *, timeout_seconds: float) -> bytes:
        return await self._call(self.network.at(url), 0, method, body, timeout_seconds)

    def active_since(self, member_id: int) -> float | None:
        network = self.network
        target = network.urls_reach(self._peers.get(member_id, ()))
        if target is None or target.process.is_paused:
            return None
        there, back = network.link(self.host, target.host), network.link(target.host, self.host)
        if there.is_cut or back.is_cut or max(there.clogged_until, back.clogged_until) > network.world.now:
            return None
        since = max(there.changed_at, back.changed_at, there.clogged_until, back.clogged_until, target.started_at, self.started_at)
        return self.process.offset + self.process.rate * since

    def was_removed(self) -> bool:
        return self._was_removed

    # -- inside

    def _report_unreachable(self, member_id: int) -> None:
        if self.handler is not None and self.is_started:
            self.handler.peer_unreachable(member_id)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.process.create_task(work, name=f"{self.process.name} transport")
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    def _send_one(self, message: Message) -> bool:
        """False when the sender can tell that it does not arrive."""
        network = self.network
        target = network.urls_reach(self._peers.get(message.to, ()))
        if target is None:
            return False
        network.messages_sent += 1
        world = network.world
        link = network.link(self.host, target.host)
        in_flight = self._in_flight.get(target, 0)
        if in_flight >= IN_FLIGHT_PER_LINK_MAX:
            network.messages_lost += 1
            return False
        delay = network.delay(self.host, target.host)
        if delay is None:
            network.messages_lost += 1
            # A cut connection shows at some point, a lost message never does.
            return not (link.is_cut and world.rng.random() < 0.3)
        self._in_flight[target] = in_flight + 1
        world.call_at(world.now + delay, target.process, target.receive, self, link, message)
        doubles = network.faults.double_chance
        if doubles and message.type is not MessageType.PROPOSE and world.rng.random() < doubles:
            self._in_flight[target] += 1
            again = delay + world.rng.random() * 0.05
            world.call_at(world.now + again, target.process, target.receive, self, link, message)
        return True

    def receive(self, sender: SimulatedTransport, link: _Link, message: Message) -> None:
        """In the receiving process, when the message has arrived; nothing happens if it has died meanwhile."""
        sender._in_flight[self] -= 1
        if link.is_cut or not self.is_started or not self.accepts(sender):
            self.network.messages_lost += 1
        elif self.handler is not None:
            self.handler.receive(message)

    def accepts(self, sender: SimulatedTransport) -> bool:
        """The cluster is the same and the sender was not removed; one that was is told so."""
        if sender.cluster_id != self.cluster_id:
            return False
        if sender.member_id in self._removed:
            sender._was_removed = True
            return False
        return True

    async def _stream(self, message: Message, source: SnapshotSource) -> None:
        assert self.handler is not None
        ok = False
        try:
            ok = await self._stream_to(message, source)
        except (errors.StoreError, OSError):
            ok = False  # reading the database failed, which is as good as a broken connection
        finally:
            await source.chunks.aclose()  # type: ignore[attr-defined]
            if self.is_started:
                self.handler.snapshot_sent(message.to, ok=ok)

    async def _stream_to(self, message: Message, source: SnapshotSource) -> bool:
        network, world = self.network, self.network.world
        target = network.urls_reach(self._peers.get(message.to, ()))
        if target is None or not target.accepts(self):
            return False
        breaks_after: float | None = None
        if world.rng.random() < network.faults.snapshot_break_chance:
            breaks_after = world.rng.randrange(0, 4)
        answer: asyncio.Future[bool] = self.process.create_future()
        inbox = _Inbox(target.process)
        arrives_at = world.now  # a stream keeps its order

        def deliver(what: object) -> bool:
            nonlocal arrives_at
            delay = network.delay(self.host, target.host)
            if delay is None and network.link(self.host, target.host).is_cut:
                return False
            # TCP sends lost packets again: they are only late.
            arrives_at = max(arrives_at, world.now + (0.1 if delay is None else delay))
            world.call_at(arrives_at, target.process, inbox.put, what)
            return True

        def answered(ok: bool) -> None:
            if not answer.done():
                answer.set_result(ok)

        def reply(ok: bool) -> None:
            delay = network.delay(target.host, self.host)
            if delay is not None:
                world.call_at(world.now + delay, self.process, answered, ok)

        async def receive() -> None:
            assert target.handler is not None
            try:
                await target.handler.receive_snapshot(message, inbox.chunks())
            except (errors.StoreError, OSError):
                reply(False)
            else:
                reply(True)

        world.call_at(world.now + (network.delay(self.host, target.host) or 0.05), target.process, lambda: target._spawn(receive()))
        count = 0
        async for chunk in source.chunks:
            if breaks_after is not None and count >= breaks_after:
                deliver(_BROKEN)
                return False
            if not deliver(chunk):
                world.call_at(world.now + SNAPSHOT_STALL_SECONDS, target.process, inbox.put, _BROKEN)
                return False
            count += 1
            await asyncio.sleep(0.0005)
        if breaks_after is not None:
            deliver(_BROKEN)
            return False
        deliver(_END)
        try:
            async with asyncio.timeout(SNAPSHOT_STALL_SECONDS):
                return await answer
        except TimeoutError:
            return False

    async def _call(self, target: SimulatedTransport | None, sender_id: int, method: str, body: bytes, timeout_seconds: float) -> bytes:
        network, world = self.network, self.network.world
        if target is None:
            raise errors.UnavailableError("etcdserver: peer cannot be reached")
        if sender_id and not target.accepts(self):
            raise errors.UnavailableError("etcdserver: the peer refuses this member")
        delay = network.delay(self.host, target.host)
        if delay is None and network.link(self.host, target.host).is_cut and world.rng.random() < 0.5:
            raise errors.UnavailableError("etcdserver: peer cannot be reached")
        answer: asyncio.Future[bytes] = self.process.create_future()

        def answered(result: bytes | errors.StoreError) -> None:
            if answer.done():
                return
            if isinstance(result, bytes):
                answer.set_result(result)
            else:
                answer.set_exception(result)

        async def serve() -> None:
            result: bytes | errors.StoreError
            try:
                assert target.handler is not None
                result = await target.handler.answer_call(sender_id, method, body)
            except errors.StoreError as error:
                result = error
            back = network.delay(target.host, self.host)
            if back is not None:
                world.call_at(world.now + back, self.process, answered, result)

        if delay is not None:
            world.call_at(world.now + delay, target.process, lambda: target._spawn(serve()) if target.is_started else None)
        try:
            async with asyncio.timeout(timeout_seconds):
                return await answer
        except TimeoutError:
            raise errors.RequestTimeoutError() from None


_BROKEN: Final = object()
_END: Final = object()


class _Inbox:
    """Chunks of a stream as they arrive in the receiving process."""

    def __init__(self, process: ProcessLoop) -> None:
        self._process = process
        self._items: list[object] = []
        self._waiter: asyncio.Future[None] | None = None

    def put(self, item: object) -> None:
        self._items.append(item)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            while not self._items:
                self._waiter = self._process.create_future()
                try:
                    async with asyncio.timeout(SNAPSHOT_STALL_SECONDS):
                        await self._waiter
                except TimeoutError:
                    raise errors.UnavailableError("the stream stalled") from None
            item = self._items.pop(0)
            if item is _END:
                return
            if item is _BROKEN:
                raise errors.UnavailableError("the stream broke")
            assert isinstance(item, bytes)
            yield item
