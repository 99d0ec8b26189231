"""``v3lockpb.Lock`` and ``v3electionpb.Election``: locks and elections on the key space, with the layout of etcd's client library.

Who asks for lock or election NAME with lease L owns the key ``NAME/L`` (L in hexadecimal), bound to the lease. The oldest key under
``NAME/`` holds the lock, or leads; each of the others waits for the one before it to be deleted. When its client gives up while it
waits, its key goes again.

Errors have the code UNKNOWN, as etcd's have: there the service is a client of the store, whose errors lose their code on the way.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Coroutine, Mapping
from typing import Any, Final

from storage import api, errors
from storage.etcdpb import v3electionpb, v3lockpb
from storage.etcdserver import convert
from storage.etcdserver.grpc_server import Call, Handler
from storage.etcdserver.rpctypes import Code, RpcError

LEASE_TTL_SECONDS: Final = 60
"""Of the lease that is granted to who brings none (etcd's default)."""


class ConcurrencyService:
    def __init__(self, kv: api.KV) -> None:
        self._kv = kv
        self._cleaning: set[asyncio.Task[None]] = set()

    def handlers(self) -> Mapping[str, Handler]:
        methods: dict[str, Handler] = {
            "/v3lockpb.Lock/Lock": self.lock,
            "/v3lockpb.Lock/Unlock": self.unlock,
            "/v3electionpb.Election/Campaign": self.campaign,
            "/v3electionpb.Election/Proclaim": self.proclaim,
            "/v3electionpb.Election/Leader": self.leader,
            "/v3electionpb.Election/Observe": self.observe,
            "/v3electionpb.Election/Resign": self.resign,
        }
        return {path: _unknown_errors(method) for path, method in methods.items()}

    async def lock(self, request: Any, call: Call) -> Any:
        lease = await self._lease(request.lease)
        prefix, key = _keys(request.name, lease)
        first = _first(prefix)
        acquired = await self._kv.txn(
            api.TxnRequest(
                compare=(_created(key, 0),),
                success=(api.PutRequest(key=key, value=b"", lease=lease), first),
                failure=(api.RangeRequest(key=key), first),
            )
        )
        mine, owner = acquired.responses
        assert isinstance(owner, api.RangeResponse)
        revision = mine.kvs[0].create_revision if isinstance(mine, api.RangeResponse) else acquired.header.revision
        if not owner.kvs or owner.kvs[0].create_revision == revision:
            return v3lockpb.LockResponse(header=convert.header(acquired.header), key=key)
        try:
            await self._wait_for_deletes(prefix, revision - 1)
            held = await self._kv.range(api.RangeRequest(key=key))
        except BaseException:
            self._clean(self._delete(key))
            raise
        if not held.kvs:
            raise RpcError(Code.UNKNOWN, "mutex: session is expired")
        return v3lockpb.LockResponse(header=convert.header(held.header), key=key)

    async def unlock(self, request: Any, call: Call) -> Any:
        response = await self._kv.delete_range(api.DeleteRangeRequest(key=request.key))
        return v3lockpb.UnlockResponse(header=convert.header(response.header))

    async def campaign(self, request: Any, call: Call) -> Any:
        lease = await self._lease(request.lease)
        prefix, key = _keys(request.name, lease)
        put = api.PutRequest(key=key, value=request.value, lease=lease)
        entered = await self._kv.txn(api.TxnRequest(compare=(_created(key, 0),), success=(put,), failure=(api.RangeRequest(key=key),)))
        revision = entered.header.revision
        found = entered.responses[0]
        if isinstance(found, api.RangeResponse):
            revision = found.kvs[0].create_revision
            if found.kvs[0].value != request.value:
                await self._proclaim(key, revision, put)
        try:
            await self._wait_for_deletes(prefix, revision - 1)
        except BaseException:
            self._clean(self._resign(key, revision))
            raise
        return v3electionpb.CampaignResponse(
            header=convert.header(entered.header),
            leader=v3electionpb.LeaderKey(name=request.name, key=key, rev=revision, lease=lease),
        )

    async def proclaim(self, request: Any, call: Call) -> Any:
        leader = _leader_of(request)
        put = api.PutRequest(key=leader.key, value=request.value, lease=leader.lease)
        header = await self._proclaim(leader.key, leader.rev, put)
        return v3electionpb.ProclaimResponse(header=convert.header(header))

    async def leader(self, request: Any, call: Call) -> Any:
        response = await self._kv.range(_first(request.name + b"/"))
        if not response.kvs:
            raise RpcError(Code.UNKNOWN, "election: no leader")
        return v3electionpb.LeaderResponse(header=convert.header(response.header), kv=convert.key_value(response.kvs[0]))

    async def observe(self, message: Any, call: Call) -> None:
        """Every leader from now on, and what each proclaims."""
        prefix = message.name + b"/"
        while True:
            response = await self._kv.range(_first(prefix))
            if response.kvs:
                kv, header = response.kvs[0], response.header
            else:
                kv = await self._first_put(prefix, response.header.revision)
                header = _at(response.header, kv.mod_revision)
            await call.send(v3electionpb.LeaderResponse(header=convert.header(header), kv=convert.key_value(kv)))
            request = api.WatchRequest(key=kv.key, start_revision=header.revision + 1)
            with contextlib.closing(_Events(self._kv, request)) as events:
                while (event := await events.next()).type is api.EventType.PUT:
                    header = _at(header, event.kv.mod_revision)
                    await call.send(v3electionpb.LeaderResponse(header=convert.header(header), kv=convert.key_value(event.kv)))

    async def resign(self, request: Any, call: Call) -> Any:
        leader = _leader_of(request)
        return v3electionpb.ResignResponse(header=convert.header(await self._resign_now(leader.key, leader.rev)))

    async def _lease(self, lease_id: int) -> int:
        return lease_id or (await self._kv.lease_grant(LEASE_TTL_SECONDS)).id

    async def _proclaim(self, key: bytes, revision: int, put: api.PutRequest) -> api.ResponseHeader:
        response = await self._kv.txn(api.TxnRequest(compare=(_created(key, revision),), success=(put,)))
        if not response.succeeded:
            raise RpcError(Code.UNKNOWN, "election: not leader")
        return response.header

    async def _resign_now(self, key: bytes, revision: int) -> api.ResponseHeader:
        delete = api.DeleteRangeRequest(key=key)
        return (await self._kv.txn(api.TxnRequest(compare=(_created(key, revision),), success=(delete,)))).header

    async def _resign(self, key: bytes, revision: int) -> None:
        await self._resign_now(key, revision)

    async def _delete(self, key: bytes) -> None:
        await self._kv.delete_range(api.DeleteRangeRequest(key=key))

    async def _wait_for_deletes(self, prefix: bytes, create_revision_max: int) -> None:
        """Until no key under ``prefix`` is as old as that or older."""
        while True:
            response = await self._kv.range(
                api.RangeRequest(
                    key=prefix,
                    range_end=_prefix_end(prefix),
                    sort_target=api.SortTarget.CREATE,
                    sort_order=api.SortOrder.DESCEND,
                    limit=1,
                    max_create_revision=create_revision_max,
                )
            )
            if not response.kvs:
                return
            before = api.WatchRequest(key=response.kvs[0].key, start_revision=response.header.revision)
            with contextlib.closing(_Events(self._kv, before)) as events:
                while (await events.next()).type is not api.EventType.DELETE:
                    pass

    async def _first_put(self, prefix: bytes, revision: int) -> api.KeyValue:
        request = api.WatchRequest(key=prefix, range_end=_prefix_end(prefix), start_revision=revision, no_delete=True)
        with contextlib.closing(_Events(self._kv, request)) as events:
            return (await events.next()).kv

    def _clean(self, work: Coroutine[Any, Any, None]) -> None:
        """Do it although the call is over."""

        async def run() -> None:
            # a store that has stopped cannot be cleaned, and the key is bound to a lease
            with contextlib.suppress(errors.StoreError):
                await work

        task = asyncio.get_running_loop().create_task(run())
        self._cleaning.add(task)
        task.add_done_callback(self._cleaning.discard)


def _unknown_errors(method: Handler) -> Handler:
    """The method with the codes of the store's errors lost."""

    async def run(request: Any, call: Call) -> Any:
        try:
            return await method(request, call)
        except errors.StoreError as error:
            raise RpcError(Code.UNKNOWN, str(error)) from error

    return run


def _keys(name: bytes, lease: int) -> tuple[bytes, bytes]:
    prefix = name + b"/"
    return prefix, prefix + b"%x" % lease


def _prefix_end(prefix: bytes) -> bytes:
    """The end of the range of all keys that begin with ``prefix``, which ends with a slash."""
    return prefix[:-1] + bytes((prefix[-1] + 1,))


def _first(prefix: bytes) -> api.RangeRequest:
    """The oldest key under ``prefix``."""
    return api.RangeRequest(
        key=prefix, range_end=_prefix_end(prefix), sort_target=api.SortTarget.CREATE, sort_order=api.SortOrder.ASCEND, limit=1
    )


def _created(key: bytes, revision: int) -> api.Compare:
    return api.Compare(key=key, target=api.CompareTarget.CREATE, operand=revision)


def _leader_of(request: Any) -> Any:
    if not request.HasField("leader"):
        raise RpcError(Code.UNKNOWN, '"leader" field must be provided')
    return request.leader


def _at(header: api.ResponseHeader, revision: int) -> api.ResponseHeader:
    return api.ResponseHeader(cluster_id=header.cluster_id, member_id=header.member_id, revision=revision, raft_term=header.raft_term)


class _Events:
    """The events of a watch, one at a time; ``close`` ends it."""

    def __init__(self, kv: api.KV, request: api.WatchRequest) -> None:
        self._watcher = kv.watch(request)
        self._pending: deque[api.Event] = deque()

    async def next(self) -> api.Event:
        """Raises CompactedError, StoppedError."""
        while not self._pending:
            await self._watcher.wait()
            batch = self._watcher.take()
            if batch is not None:
                self._pending.extend(batch.events)
        return self._pending.popleft()

    def close(self) -> None:
        self._watcher.cancel()
