"""``EtcdWatcher``: a watch that outlives the connections it goes over.

Each watch has an HTTP/2 stream of its own; HTTP/2 is what multiplexes them over the endpoint's one connection. So:

* a reader that is slow stops reading its stream, HTTP/2's flow control stops etcd, and etcd catches the watch up from its history: no
  buffer of ours can overflow, and no other watch waits;
* what a progress notice says is about this one watch. On a shared stream etcd answers a progress request for all watches at once, and
  the notice may overtake the creation of the one that was added last, which then would believe it had seen what it has not.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import grpc
import grpc.aio

from storage import api, errors
from storage.etcdclient import convert, translate
from storage.etcdclient.connections import REQUIRE_LEADER, Connections, Endpoint
from storage.etcdpb import etcdserverpb as pb

_log = logging.getLogger(__name__)

#: Events buffered for a reader before its stream is left unread. etcd sends up to a thousand at once while it catches a watch up.
BUFFER_EVENTS_MAX = 4_096
#: Between attempts to go on after a stream has broken.
RESUME_BACKOFF_SECONDS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)
#: A progress request that is not answered (some watch of etcd's is behind) is repeated so often while somebody waits; kube-apiserver's.
PROGRESS_REQUEST_SECONDS = 0.1
_PATH = "/etcdserverpb.Watch/Watch"


class PrepareStream(Protocol):
    def __call__(self, endpoint: Endpoint, *, again: bool) -> Awaitable[None]: ...


class EtcdWatcher:
    """``on_end`` is told once the watch is over. ``prepare`` is awaited before each stream."""

    def __init__(
        self,
        connections: Connections,
        request: api.WatchRequest,
        on_end: Callable[[EtcdWatcher], None],
        prepare: PrepareStream,
        progress_on_request: Callable[[], bool],
    ) -> None:
        self._connections = connections
        self._request = request
        self._on_end = on_end
        self._prepare = prepare
        self._progress_on_request = progress_on_request
        self._batches: deque[api.WatchBatch] = deque()
        self._buffered_events = 0
        self._error: errors.StoreError | None = None
        self._cancelled = False
        #: every event before it has been buffered, or is not asked for; 0 until etcd has said what "now" is
        self._next_revision = request.start_revision
        #: somebody waits for progress up to it
        self._wanted = 0
        self._readable = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._created = asyncio.Event()
        self._asking: asyncio.Task[None] | None = None
        self._call: Any = None
        self._has_broken = False
        self._task = asyncio.create_task(self._run())

    # -- api.Watcher ---------------------------------------------------------------------------------------------------------

    def take(self) -> api.WatchBatch | None:
        if self._batches:
            batch = self._batches.popleft()
            self._buffered_events -= len(batch.events)
            if self._buffered_events < BUFFER_EVENTS_MAX:
                self._room.set()
            if not self._batches and self._error is None and not self._cancelled:
                self._readable.clear()
            return batch
        if self._error is not None:
            raise self._error
        return None

    async def wait(self) -> None:
        await self._readable.wait()

    def cancel(self) -> None:
        if not self._cancelled:
            self._cancelled = True
            self._batches.clear()
            self._task.cancel()
            self._readable.set()

    # -- for EtcdKV ----------------------------------------------------------------------------------------------------------

    @property
    def from_now_on(self) -> bool:
        """Whether etcd has yet to say at which revision the watch begins."""
        return self._next_revision == 0 and not self._task.done()

    async def created(self) -> None:
        await self._created.wait()

    def stop(self) -> None:
        """The client is closed: what is buffered can be taken, then ``StoppedError`` is raised."""
        if self._error is None:
            self._end(errors.StoppedError())
        self._task.cancel()

    def overtake(self, revision: int) -> None:
        """etcd's history is another one now, at ``revision``: whoever reads this watch must start anew, as after a compaction."""
        if self._error is None:
            self._end(errors.CompactedError(revision))
            if self._task is not asyncio.current_task():
                self._task.cancel()

    async def ended(self) -> None:
        await asyncio.wait({self._task})

    def want(self, revision: int) -> None:
        """Somebody waits until the watch has come to ``revision``: ask etcd, which by itself is silent as long as nothing happens."""
        self._wanted = max(self._wanted, revision)
        if self._wanted >= self._next_revision and (self._asking is None or self._asking.done()) and not self._task.done():
            self._asking = asyncio.create_task(self._ask_for_progress())

    # -- inside --------------------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            attempt = 0
            while self._error is None:
                received, reason = await self._stream()
                self._has_broken = True
                if self._error is None:
                    attempt = 0 if received else attempt + 1
                    _log.info("watch broke, it goes on: next_revision=%d reason=%s", self._next_revision, reason)
                    await asyncio.sleep(RESUME_BACKOFF_SECONDS[min(attempt, len(RESUME_BACKOFF_SECONDS) - 1)])
        finally:
            self._created.set()
            if self._asking is not None:
                self._asking.cancel()
            self._on_end(self)

    async def _stream(self) -> tuple[bool, str]:
        """One stream, as long as it lasts; whether something was received over it, and why it ended."""
        received = False
        endpoint: Endpoint | None = None
        call: Any = None
        try:
            endpoint = await self._connections.ready()
            await self._prepare(endpoint, again=self._has_broken and self._next_revision > 0)
            call = endpoint.call(_PATH)(metadata=REQUIRE_LEADER)
            endpoint.streams.add(call)
            await call.write(convert.watch_create_request(self._request, self._next_revision))
            fragments: list[api.Event] = []
            while True:
                await self._room.wait()
                answer = await call.read()
                if answer is grpc.aio.EOF:
                    return received, "etcd ended it"
                if answer.created:
                    self._begin(answer, call)
                if answer.canceled:
                    return received, self._canceled(answer, endpoint)
                received = True
                if answer.created:
                    continue
                fragments.extend(convert.events(answer))
                if not answer.fragment:
                    self._deliver(fragments, answer.header.revision)
                    fragments = []
        except errors.UnavailableError as error:
            return received, str(error)
        except grpc.RpcError as error:
            assert endpoint is not None
            self._connections.failed(endpoint)
            return received, str(translate.of_read(error))
        except asyncio.InvalidStateError as error:  # written to a stream that has just ended
            return received, str(error)
        except asyncio.CancelledError:
            if self._task.cancelling():
                raise
            return received, "its endpoint was given up"  # the call was cancelled, not this task
        finally:
            self._call = None
            if call is not None:
                assert endpoint is not None
                endpoint.streams.discard(call)
                call.cancel()

    def _begin(self, answer: Any, call: Any) -> None:
        if self._next_revision == 0:
            self._next_revision = answer.header.revision + 1
        self._created.set()
        self._call = call

    def _canceled(self, answer: Any, endpoint: Endpoint) -> str:
        if answer.compact_revision:
            self._end(errors.CompactedError(answer.compact_revision))
        else:
            _log.warning("etcd canceled a watch, it is tried again: reason=%s", answer.cancel_reason)
            self._connections.failed(endpoint)
        return answer.cancel_reason or "etcd canceled it"

    def _deliver(self, events: list[api.Event], header_revision: int) -> None:
        """Buffer a whole answer. Without events it is a notice that everything up to the header's revision has been sent; with some, the
        header says nothing, since a watch that is caught up gets its events in parts under the newest revision."""
        revision = events[-1].kv.mod_revision if events else header_revision
        if not events and revision < self._next_revision:
            return  # the start is in the future, or nothing is new
        assert not events or events[0].kv.mod_revision >= self._next_revision, "etcd sent what was delivered already"
        self._next_revision = revision + 1
        self._batches.append(api.WatchBatch(revision=revision, events=tuple(events)))
        self._buffered_events += len(events)
        if self._buffered_events >= BUFFER_EVENTS_MAX:
            self._room.clear()
        self._readable.set()

    def _end(self, error: errors.StoreError) -> None:
        self._error = error
        self._created.set()
        self._readable.set()

    async def _ask_for_progress(self) -> None:
        while self._wanted >= self._next_revision:
            call = self._call
            if call is not None and self._progress_on_request():
                with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError):  # broken: the next stream is asked
                    await call.write(pb.WatchRequest(progress_request=pb.WatchProgressRequest()))
            await asyncio.sleep(PROGRESS_REQUEST_SECONDS)
