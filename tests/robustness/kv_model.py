"""The store as one may think of it: a value, and a function from a state and a request to the next state and the answer.

The dumb twin of the whole state machine: nothing is shared with ``storage.mvcc`` or ``storage.member.txn`` but the shapes of requests
and answers. States are immutable and share structure, so a checker can keep one per entry of a long log and go back to any.

Headers of predicted answers have only a revision; those of operations within a transaction have none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from immutables import Map

from storage import api, errors
from storage.maintenance import Alarm, AlarmType
from storage.member import request as log_request

Request: TypeAlias = api.RangeRequest | log_request.InternalRequest
Response: TypeAlias = (
    api.RangeResponse
    | api.PutResponse
    | api.DeleteRangeResponse
    | api.TxnResponse
    | api.CompactionResponse
    | api.LeaseGrantResponse
    | api.ResponseHeader
)
Keys: TypeAlias = Map[bytes, api.KeyValue]
"""One revision of the keys."""


@dataclass(frozen=True, slots=True)
class State:
    """``at`` holds the keys as of every revision; ``digest`` names the whole past, so equal digests mean equal behaviour for ever."""

    revision: int = 1
    compact_revision: int = -1
    keys: Keys = field(default_factory=Map)
    leases: Map[int, frozenset[bytes]] = field(default_factory=Map)
    at: Map[int, Keys] = field(default_factory=lambda: Map({1: Map()}))
    alarms: frozenset[Alarm] = frozenset()
    digest: bytes = b""


@dataclass(frozen=True, slots=True)
class Applied:
    """``answer``: a response, or the class of the error. ``events``: what changed, in the order of the changes."""

    state: State
    answer: Response | type[errors.StoreError]
    events: tuple[api.Event, ...] = ()


@dataclass(frozen=True, slots=True)
class OtherRequest:
    """An entry that touches neither keys nor leases nor revisions (membership, alarms, versions)."""


def apply(state: State, request: Request | OtherRequest) -> Applied:
    """Carry out one request."""
    try:
        _check_alarms(state, request)
        match request:
            case api.RangeRequest():
                kvs, more, count = _range(state, state.keys, request, state.revision)
                return Applied(state, api.RangeResponse(header=_header(state.revision), kvs=kvs, more=more, count=count))
            case api.PutRequest() | api.DeleteRangeRequest() | api.TxnRequest():
                return _write(state, request)
            case log_request.CompactionRequest():
                return _compact(state, request)
            case log_request.LeaseGrantRequest():
                return _lease_grant(state, request)
            case log_request.LeaseRevokeRequest():
                return _lease_revoke(state, request)
            case log_request.AlarmRequest():
                return _alarm(state, request)
            case _:
                return Applied(state, _header(state.revision))
    except errors.StoreError as error:
        return Applied(state, type(error))


def _check_alarms(state: State, request: Request | OtherRequest) -> None:
    """Alarms go through the log, so every member refuses the same entries."""
    raised = {alarm.type for alarm in state.alarms}
    if AlarmType.CORRUPT in raised and not isinstance(request, api.RangeRequest | log_request.AlarmRequest | OtherRequest):
        raise errors.CorruptAlarmError()
    if AlarmType.NOSPACE in raised and _may_add(request):
        raise errors.NoSpaceError()


def _may_add(request: Request | OtherRequest) -> bool:
    if isinstance(request, api.TxnRequest):
        return any(_may_add(operation) for operation in (*request.success, *request.failure))
    return isinstance(request, api.PutRequest | log_request.LeaseGrantRequest)


def _alarm(state: State, request: log_request.AlarmRequest) -> Applied:
    if request.action is log_request.AlarmAction.ACTIVATE:
        alarms = state.alarms | ({Alarm(request.member_id, request.alarm)} if request.alarm else set())
    else:
        alarms = frozenset(
            alarm
            for alarm in state.alarms
            if request.member_id not in (0, alarm.member_id) or request.alarm not in (AlarmType.NONE, alarm.type)
        )
    after = replace(state, alarms=alarms, digest=_digest(state, sorted(alarms, key=repr)))
    return Applied(after, _header(state.revision))


def in_range(key: bytes, start: bytes, range_end: bytes) -> bool:
    if not range_end:
        return key == start
    return key >= start and (range_end == b"\0" or key < range_end)


def _header(revision: int) -> api.ResponseHeader:
    return api.ResponseHeader(cluster_id=0, member_id=0, revision=revision, raft_term=0)


LEASE_TTL_SECONDS_MAX: Final = 9_000_000_000
"""etcd's."""

NO_HEADER: Final = _header(0)


def _selected(keys: Mapping[bytes, api.KeyValue], start: bytes, range_end: bytes) -> list[api.KeyValue]:
    if not range_end:
        found = keys.get(start)
        return [] if found is None else [found]
    return [keys[key] for key in sorted(keys) if in_range(key, start, range_end)]


_SORT: Final[dict[api.SortTarget, Callable[[api.KeyValue], bytes | int]]] = {
    api.SortTarget.KEY: lambda kv: kv.key,
    api.SortTarget.VERSION: lambda kv: kv.version,
    api.SortTarget.CREATE: lambda kv: kv.create_revision,
    api.SortTarget.MOD: lambda kv: kv.mod_revision,
    api.SortTarget.VALUE: lambda kv: kv.value,
}


def _range(
    state: State, now: Mapping[bytes, api.KeyValue], request: api.RangeRequest, newest: int
) -> tuple[tuple[api.KeyValue, ...], bool, int]:
    """(kvs, more, count). ``now`` is what the newest revision holds, within a transaction also what it has written."""
    if request.revision > newest:
        raise errors.FutureRevisionError(newest)
    if 0 < request.revision < state.compact_revision:
        raise errors.CompactedError(state.compact_revision)
    keys = state.at[request.revision] if 0 < request.revision <= state.revision else now
    kvs = _selected(keys, request.key, request.range_end)
    count = len(kvs)
    if request.count_only:
        return (), False, count
    kvs = [kv for kv in kvs if _passes(request, kv)]
    if request.sort_order != api.SortOrder.NONE or request.sort_target != api.SortTarget.KEY:
        kvs.sort(key=_SORT[request.sort_target], reverse=request.sort_order == api.SortOrder.DESCEND)
    more = 0 < request.limit < len(kvs)
    if more:
        kvs = kvs[: request.limit]
    if request.keys_only:
        kvs = [replace(kv, value=b"") for kv in kvs]
    return tuple(kvs), more, count


def _passes(request: api.RangeRequest, kv: api.KeyValue) -> bool:
    return (
        kv.mod_revision >= request.min_mod_revision
        and (not request.max_mod_revision or kv.mod_revision <= request.max_mod_revision)
        and kv.create_revision >= request.min_create_revision
        and (not request.max_create_revision or kv.create_revision <= request.max_create_revision)
    )


class _Transaction:
    """Changes that become one revision."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.now = dict(state.keys)
        self.events: list[api.Event] = []

    @property
    def revision(self) -> int:
        """The newest that its own reads see."""
        return self.state.revision + bool(self.events)

    def put(self, key: bytes, value: bytes, lease: int) -> None:
        before = self.now.get(key)
        revision = self.state.revision + 1
        created, version = (before.create_revision, before.version + 1) if before else (revision, 1)
        self.now[key] = kv = api.KeyValue(key, created, revision, version, value, lease)
        self.events.append(api.Event(api.EventType.PUT, kv, before))

    def delete(self, key: bytes) -> None:
        before = self.now.pop(key)
        self.events.append(api.Event(api.EventType.DELETE, api.KeyValue(key, 0, self.state.revision + 1, 0, b""), before))

    def end(self) -> State:
        state = self.state
        if not self.events:
            return state
        keys, leases = state.keys, state.leases
        for event in self.events:
            key, kv = event.kv.key, event.kv
            if event.prev_kv is not None and event.prev_kv.lease in leases:
                leases = leases.set(event.prev_kv.lease, leases[event.prev_kv.lease] - {key})
            if event.type is api.EventType.PUT:
                keys = keys.set(key, kv)
                if kv.lease in leases:
                    leases = leases.set(kv.lease, leases[kv.lease] | {key})
            else:
                keys = keys.delete(key)
        revision = state.revision + 1
        digest = _digest(state, [(event.type, event.kv) for event in self.events])
        at = state.at.set(revision, keys)
        return replace(state, revision=revision, keys=keys, leases=leases, at=at, digest=digest)


def _digest(state: State, change: object) -> bytes:
    return hashlib.blake2b(state.digest + repr(change).encode(), digest_size=16).digest()


def _write(state: State, request: api.PutRequest | api.DeleteRangeRequest | api.TxnRequest) -> Applied:
    _check(state, request, [])
    transaction = _Transaction(state)
    response = _execute(transaction, request)
    after = transaction.end()
    return Applied(after, replace(response, header=_header(after.revision)), tuple(transaction.events))


def _check(state: State, request: api.Op, deleted: list[api.DeleteRangeRequest]) -> None:
    """What can be refused is refused before the first change, by the state before it and the deletions before it in its transaction."""
    match request:
        case api.TxnRequest():
            for operation in _branch(state, request):
                _check(state, operation, deleted)
        case api.DeleteRangeRequest():
            deleted.append(request)
        case api.PutRequest():
            if request.lease and request.lease not in state.leases:
                raise errors.LeaseNotFoundError()
            is_there = request.key in state.keys and not any(in_range(request.key, each.key, each.range_end) for each in deleted)
            if (request.ignore_value or request.ignore_lease) and not is_there:
                raise errors.KeyNotFoundError()
        case api.RangeRequest():
            if request.revision > state.revision:
                raise errors.FutureRevisionError(state.revision)
            if 0 < request.revision < state.compact_revision:
                raise errors.CompactedError(state.compact_revision)


def _branch(state: State, request: api.TxnRequest) -> tuple[api.Op, ...]:
    """All comparisons, nested ones too, see the state before the transaction."""
    return request.success if all(_holds(state, compare) for compare in request.compare) else request.failure


def _holds(state: State, compare: api.Compare) -> bool:
    kvs = _selected(state.keys, compare.key, compare.range_end)
    if not kvs:
        if compare.target is api.CompareTarget.VALUE:
            return False
        kvs = [api.KeyValue(compare.key, 0, 0, 0, b"")]
    return all(_compare(compare.result, _ACTUAL[compare.target](kv), compare.operand) for kv in kvs)


_ACTUAL: Final[dict[api.CompareTarget, Callable[[api.KeyValue], bytes | int]]] = {
    api.CompareTarget.VERSION: lambda kv: kv.version,
    api.CompareTarget.CREATE: lambda kv: kv.create_revision,
    api.CompareTarget.MOD: lambda kv: kv.mod_revision,
    api.CompareTarget.VALUE: lambda kv: kv.value,
    api.CompareTarget.LEASE: lambda kv: kv.lease,
}


def _compare(result: api.CompareResult, actual: Any, operand: Any) -> bool:
    match result:
        case api.CompareResult.EQUAL:
            return bool(actual == operand)
        case api.CompareResult.NOT_EQUAL:
            return bool(actual != operand)
        case api.CompareResult.GREATER:
            return bool(actual > operand)
        case api.CompareResult.LESS:
            return bool(actual < operand)


def _execute(transaction: _Transaction, request: api.Op) -> api.OpResponse:
    match request:
        case api.PutRequest():
            before = transaction.now.get(request.key)
            value, lease = request.value, request.lease
            if before is not None:
                value = before.value if request.ignore_value else value
                lease = before.lease if request.ignore_lease else lease
            transaction.put(request.key, value, lease)
            return api.PutResponse(header=NO_HEADER, prev_kv=before if request.prev_kv else None)
        case api.DeleteRangeRequest():
            gone = _selected(transaction.now, request.key, request.range_end)
            for kv in gone:
                transaction.delete(kv.key)
            previous = tuple(gone) if request.prev_kv else ()
            return api.DeleteRangeResponse(header=NO_HEADER, deleted=len(gone), prev_kvs=previous)
        case api.RangeRequest():
            kvs, more, count = _range(transaction.state, transaction.now, request, transaction.revision)
            return api.RangeResponse(header=NO_HEADER, kvs=kvs, more=more, count=count)
        case api.TxnRequest():
            branch = _branch(transaction.state, request)
            succeeded = all(_holds(transaction.state, compare) for compare in request.compare)
            responses = tuple(_execute(transaction, operation) for operation in branch)
            return api.TxnResponse(header=NO_HEADER, succeeded=succeeded, responses=responses)


def _compact(state: State, request: log_request.CompactionRequest) -> Applied:
    if request.revision > state.revision:
        raise errors.FutureRevisionError(state.revision)
    if request.revision <= state.compact_revision:
        raise errors.CompactedError(state.compact_revision)
    after = replace(state, compact_revision=request.revision, digest=_digest(state, request.revision))
    return Applied(after, api.CompactionResponse(header=_header(state.revision)))


def _lease_grant(state: State, request: log_request.LeaseGrantRequest) -> Applied:
    if request.id == 0:
        raise errors.LeaseNotFoundError()
    if request.ttl_seconds > LEASE_TTL_SECONDS_MAX:
        raise errors.LeaseTtlTooLargeError()
    if request.id in state.leases:
        raise errors.LeaseExistsError()
    after = replace(state, leases=state.leases.set(request.id, frozenset()), digest=_digest(state, ("grant", request.id)))
    header = _header(state.revision)
    return Applied(after, api.LeaseGrantResponse(header=header, id=request.id, ttl_seconds=request.ttl_seconds))


def _lease_revoke(state: State, request: log_request.LeaseRevokeRequest) -> Applied:
    """Its keys go at one revision, in their order."""
    if request.id not in state.leases:
        raise errors.LeaseNotFoundError()
    transaction = _Transaction(state)
    for key in sorted(state.leases[request.id]):
        transaction.delete(key)
    after = transaction.end()
    after = replace(after, leases=after.leases.delete(request.id), digest=_digest(after, ("revoke", request.id)))
    return Applied(after, _header(after.revision), tuple(transaction.events))
