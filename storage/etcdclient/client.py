"""``EtcdKV``: the calls of ``storage.api.KV``, each sent to one endpoint after another as far as that is safe."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

from storage import api, errors
from storage.etcdclient import convert, translate
from storage.etcdclient.config import ClientConfig
from storage.etcdclient.connections import REQUIRE_LEADER, Connections, Endpoint
from storage.etcdclient.shared_read import SharedRead
from storage.etcdclient.watches import EtcdWatcher
from storage.etcdpb import etcdserverpb as pb

_log = logging.getLogger(__name__)

#: Between tries of one call: the first at once, then ever longer, so that a cluster without a leader is not stormed.
RETRY_BACKOFF_SECONDS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)
#: Between questions whether etcd is there, and how long an answer may take before it counts as away (as kube-apiserver's readiness check).
#: So one that is silent, be it stopped or cut off without a word, is known within four seconds, whatever a call's own time is.
PROBE_SECONDS = 2.0
PROBE_SILENCE_SECONDS = 2.0
#: Of one try: less is not worth a message.
CALL_TIMEOUT_SECONDS_MIN = 0.01
#: A single key that nobody has written: reading it costs etcd a ReadIndex and nothing else.
_NO_KEY = b"\0"
#: Versions of etcd that answer a progress request only behind all events before it (etcd-io/etcd#15220; the versions from which on
#: kube-apiserver relies on it). 3.6 and later do.
PROGRESS_SINCE = {(3, 4): 31, (3, 5): 13}


class EtcdKV:
    """Made anywhere; ``start`` and everything after it on one event loop."""

    events_are_immediate = False

    def __init__(self, config: ClientConfig) -> None:
        """Raises ValueError."""
        config.validate()
        self._config = config
        self._read_timeout_share = 1.0 if len(config.endpoints) == 1 else 0.5
        self._connections_made: Connections | None = None
        self._watchers: set[EtcdWatcher] = set()
        self._newest_revision = 0
        self._probing: asyncio.Task[None] | None = None
        self._revision_reads = SharedRead(self._read_revision)
        self._closed = False
        #: what the last call that found no working endpoint said; "" after one that did
        self.problem = "not started"

    # -- life ----------------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Return once the cluster answers. Raises UnavailableError after the connect timeout; then ``start`` may be called again."""
        if self._connections_made is None:
            made = Connections(self._config)
            await made.open()
            self._connections_made = made
        await self.read_revision()
        await self._learn_versions()
        if self._probing is None:
            self._probing = asyncio.create_task(self._probe())

    async def _learn_versions(self) -> None:
        await asyncio.gather(*(self._learn_version(endpoint) for endpoint in self._connections.endpoints))

    async def _prepare_stream(self, endpoint: Endpoint, *, again: bool) -> None:
        """Before a watch goes over an endpoint; ``again``: after its stream has broken, so that etcd may have been replaced."""
        await self._learn_version(endpoint)
        if again:
            await self.read_revision()

    async def _probe(self) -> None:
        """``problem`` is of now also where nobody calls: whoever watches our health may have stopped all who would."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(PROBE_SECONDS)
            silence = loop.call_later(PROBE_SILENCE_SECONDS, self._note_silence)
            with contextlib.suppress(errors.StoreError):  # it is noted
                await self.read_revision()
                silence.cancel()
                await self._learn_versions()
            silence.cancel()

    def _note_silence(self) -> None:
        self.problem = f"etcd has not answered for {PROBE_SILENCE_SECONDS:.0f} s"

    async def close(self) -> None:
        """End watches, then connections. Idempotent."""
        self._closed = True
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.wait({self._probing})
        watchers = tuple(self._watchers)
        for watcher in watchers:
            watcher.stop()
        for watcher in watchers:
            await watcher.ended()
        await self._revision_reads.close()
        if self._connections_made is not None:
            await self._connections_made.close()

    @property
    def _connections(self) -> Connections:
        if self._closed:
            raise errors.StoppedError
        assert self._connections_made is not None, "start comes first"
        return self._connections_made

    @property
    def progress_on_request(self) -> bool:
        """Every endpoint that was ever reached is of a version whose answers to progress requests can be relied on."""
        versions = [endpoint.version for endpoint in self._connections.endpoints if endpoint.version]
        return bool(versions) and all(_tells_progress(version) for version in versions)

    async def _learn_version(self, endpoint: Endpoint) -> None:
        """An endpoint that is away is asked when a watch first uses it."""
        if endpoint.ready() and not endpoint.version:
            try:
                answer = await _unary("Maintenance/Status", pb.StatusRequest())(endpoint, self._config.call_timeout_seconds)
            except grpc.RpcError as error:
                _log.debug("etcd does not tell its version: endpoint=%s error=%s", endpoint.url, error.details())
                return
            endpoint.version = parse_version(answer.version)

    # -- calls ---------------------------------------------------------------------------------------------------------------

    async def _read(self, method: str, request: Any) -> Any:
        """A call that changes nothing: at another endpoint where one fails, until the deadline."""
        return await self._attempts(_unary(method, request), translate.of_read, self._read_timeout_share)

    async def _write(self, method: str, request: Any) -> Any:
        """A call that is sent at most once: tried again only where it was not sent, or where etcd says that it did not propose it."""
        return await self._attempts(_unary(method, request), translate.of_write, 1.0)

    async def _attempts(
        self, send: Callable[[Endpoint, float], Awaitable[Any]], translated: Callable[[grpc.RpcError], errors.StoreError], share: float
    ) -> Any:
        """``send`` to one endpoint after another while its error is ``UnavailableError`` itself. ``share``: of the time that is left, for
        one try, so that an endpoint that is silent leaves some for another."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._config.call_timeout_seconds
        for attempt in itertools.count():
            endpoint = self._connections.ready_now() or await self._connected()
            try:
                answer = await send(endpoint, max((deadline - loop.time()) * share, CALL_TIMEOUT_SECONDS_MIN))
            except grpc.RpcError as error:
                failure = translated(error)
                if not isinstance(failure, errors.UnavailableError):
                    raise failure from error
                self._note_failure(endpoint, failure)
                pause = RETRY_BACKOFF_SECONDS[min(attempt, len(RETRY_BACKOFF_SECONDS) - 1)]
                if type(failure) is not errors.UnavailableError or loop.time() + pause + CALL_TIMEOUT_SECONDS_MIN >= deadline:
                    raise failure from error
                await asyncio.sleep(pause)
            else:
                self.problem = ""
                return answer

    async def _connected(self) -> Endpoint:
        try:
            return await self._connections.ready()
        except errors.UnavailableError as error:
            self.problem = str(error)
            raise

    def _note_failure(self, endpoint: Endpoint, error: errors.UnavailableError) -> None:
        self.problem = f"{endpoint.url}: {error}"
        self._connections.failed(endpoint)

    # -- the store -----------------------------------------------------------------------------------------------------------

    def local_revision(self) -> int | None:
        return None

    async def read_revision(self) -> int:
        return await self._revision_reads.join()

    async def _read_revision(self) -> int:
        await self._watches_settled()
        answer = await self._read("KV/Range", pb.RangeRequest(key=_NO_KEY, count_only=True))
        revision = int(answer.header.revision)
        if revision < self._newest_revision:
            # Linearizable reads never go back: this is another history, of a backup or of an empty disk, and what watches have seen
            # says nothing of it. They would wait for revisions that come again with another meaning.
            _log.error("the store's revision went back: was=%d is=%d", self._newest_revision, revision)
            for watcher in tuple(self._watchers):
                watcher.overtake(revision)
        self._newest_revision = revision
        for watcher in self._watchers:
            watcher.want(revision)
        return revision

    async def range(self, request: api.RangeRequest) -> api.RangeResponse:
        return convert.range_response(await self._read("KV/Range", convert.range_request(request)))

    async def put(self, request: api.PutRequest) -> api.PutResponse:
        await self._watches_settled()
        return convert.put_response(await self._write("KV/Put", convert.put_request(request)))

    async def delete_range(self, request: api.DeleteRangeRequest) -> api.DeleteRangeResponse:
        await self._watches_settled()
        return convert.delete_range_response(await self._write("KV/DeleteRange", convert.delete_range_request(request)))

    async def txn(self, request: api.TxnRequest) -> api.TxnResponse:
        await self._watches_settled()
        call = self._read if reads_only(request) else self._write
        return convert.txn_response(await call("KV/Txn", convert.txn_request(request)))

    async def compact(self, revision: int, *, physical: bool = False) -> api.CompactionResponse:
        answer = await self._write("KV/Compact", pb.CompactionRequest(revision=revision, physical=physical))
        return api.CompactionResponse(header=convert.header(answer.header))

    # -- leases --------------------------------------------------------------------------------------------------------------

    async def lease_grant(self, ttl_seconds: int, *, lease_id: int = 0) -> api.LeaseGrantResponse:
        answer = await self._write("Lease/LeaseGrant", pb.LeaseGrantRequest(TTL=ttl_seconds, ID=lease_id))
        return api.LeaseGrantResponse(header=convert.header(answer.header), id=answer.ID, ttl_seconds=answer.TTL)

    async def lease_revoke(self, lease_id: int) -> api.ResponseHeader:
        answer = await self._write("Lease/LeaseRevoke", pb.LeaseRevokeRequest(ID=lease_id))
        return convert.header(answer.header)

    async def lease_keep_alive(self, lease_id: int) -> int:
        """Renewing twice does no harm, so it is tried again as a read is."""

        async def send(endpoint: Endpoint, timeout_seconds: float) -> Any:
            stream = endpoint.call("/etcdserverpb.Lease/LeaseKeepAlive")
            call = stream(iter([pb.LeaseKeepAliveRequest(ID=lease_id)]), timeout=timeout_seconds, metadata=REQUIRE_LEADER)
            try:
                return await call.read()
            finally:
                call.cancel()

        answer = await self._attempts(send, translate.of_read, self._read_timeout_share)
        if answer is grpc.aio.EOF:
            raise errors.UnavailableError("etcd: the stream of keep-alives ended")
        if answer.TTL <= 0:
            raise errors.LeaseNotFoundError
        return int(answer.TTL)

    async def lease_time_to_live(self, lease_id: int, *, keys: bool = False) -> api.LeaseTimeToLiveResponse:
        answer = await self._read("Lease/LeaseTimeToLive", pb.LeaseTimeToLiveRequest(ID=lease_id, keys=keys))
        return api.LeaseTimeToLiveResponse(
            header=convert.header(answer.header),
            id=answer.ID,
            ttl_seconds=answer.TTL,
            granted_ttl_seconds=answer.grantedTTL,
            keys=tuple(sorted(answer.keys)),
        )

    async def leases(self) -> tuple[int, ...]:
        answer = await self._read("Lease/LeaseLeases", pb.LeaseLeasesRequest())
        return tuple(sorted(lease.ID for lease in answer.leases))

    # -- watches and status --------------------------------------------------------------------------------------------------

    def watch(self, request: api.WatchRequest) -> api.Watcher:
        watcher = EtcdWatcher(self._connections, request, self._watchers.discard, self._prepare_stream, lambda: self.progress_on_request)
        self._watchers.add(watcher)
        return watcher

    async def _watches_settled(self) -> None:
        """A watch "from now on" is known to etcd before anything that is asked for after it."""
        unsettled = [watcher.created() for watcher in self._watchers if watcher.from_now_on]
        if unsettled:
            await asyncio.wait(map(asyncio.ensure_future, unsettled), timeout=self._config.connect_timeout_seconds)

    async def status(self) -> api.StoreStatus:
        answer = await self._read("Maintenance/Status", pb.StatusRequest())
        return api.StoreStatus(
            header=convert.header(answer.header),
            version=answer.version,
            db_size=answer.dbSize,
            db_size_in_use=answer.dbSizeInUse,
            leader_id=answer.leader,
            raft_index=answer.raftIndex,
            raft_applied_index=answer.raftAppliedIndex,
            is_learner=answer.isLearner,
            alarms=tuple(answer.errors),
        )


def _unary(method: str, request: Any) -> Callable[[Endpoint, float], Awaitable[Any]]:
    path = f"/etcdserverpb.{method}"
    return lambda endpoint, timeout_seconds: endpoint.call(path)(request, timeout=timeout_seconds, metadata=REQUIRE_LEADER)


def reads_only(request: api.TxnRequest) -> bool:
    return all(
        isinstance(part, api.RangeRequest) or (isinstance(part, api.TxnRequest) and reads_only(part))
        for part in (*request.success, *request.failure)
    )


def parse_version(text: str) -> tuple[int, ...]:
    """``3.5.13`` or ``3.6.0-rc.1``; what is no version is older than every other."""
    numbers = text.partition("-")[0].split(".")
    return tuple(int(number) for number in numbers) if all(number.isdecimal() for number in numbers) else (0,)


def _tells_progress(version: tuple[int, ...]) -> bool:
    series, patch = version[:2], version[2:]
    return series >= (3, 6) or any(series == known and patch >= (since,) for known, since in PROGRESS_SINCE.items())
