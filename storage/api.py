"""The door of the store: its values, requests and answers, and the ``KV`` protocol that every store implements.

Shapes and meanings are those of etcd's v3 API (``etcdserverpb``, ``mvccpb``): keys and values are bytes; a revision is a counter of
the whole store, 1 before the first write; ``range_end`` empty means the one key, ``b"\\0"`` means all keys from ``key`` on, else the
range is [key, range_end). Implementations: ``storage.member.Member`` (embedded) and ``storage.etcdclient`` (an external etcd).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Protocol, TypeAlias


class EventType(enum.IntEnum):
    PUT = 0
    DELETE = 1


@dataclass(frozen=True, slots=True)
class KeyValue:
    """One version of one key. ``version`` is 1 after creation; ``lease`` 0 means none."""

    key: bytes
    create_revision: int
    mod_revision: int
    version: int
    value: bytes
    lease: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """A change of one key. For a DELETE ``kv`` has only ``key`` and ``mod_revision`` (the revision of the deletion)."""

    type: EventType
    kv: KeyValue
    prev_kv: KeyValue | None = None


class SortTarget(enum.IntEnum):
    KEY = 0
    VERSION = 1
    CREATE = 2
    MOD = 3
    VALUE = 4


class SortOrder(enum.IntEnum):
    NONE = 0
    ASCEND = 1
    DESCEND = 2


class CompareTarget(enum.IntEnum):
    VERSION = 0
    CREATE = 1
    MOD = 2
    VALUE = 3
    LEASE = 4


class CompareResult(enum.IntEnum):
    EQUAL = 0
    GREATER = 1
    LESS = 2
    NOT_EQUAL = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """``target of key`` ``result`` ``operand``; with ``range_end`` it must hold for every key there. An absent key has zeros."""

    key: bytes
    target: CompareTarget
    result: CompareResult = CompareResult.EQUAL
    operand: int | bytes
    range_end: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRequest:
    """``limit`` 0 is no limit; ``revision`` 0 is the newest. ``serializable`` may read a member that lags."""

    key: bytes
    range_end: bytes = b""
    limit: int = 0
    revision: int = 0
    sort_order: SortOrder = SortOrder.NONE
    sort_target: SortTarget = SortTarget.KEY
    serializable: bool = False
    keys_only: bool = False
    count_only: bool = False
    min_mod_revision: int = 0
    max_mod_revision: int = 0
    min_create_revision: int = 0
    max_create_revision: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PutRequest:
    key: bytes
    value: bytes
    lease: int = 0
    prev_kv: bool = False
    ignore_value: bool = False
    ignore_lease: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRangeRequest:
    key: bytes
    range_end: bytes = b""
    prev_kv: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnRequest:
    """If all of ``compare`` hold, ``success`` is done, else ``failure``; all of it at one revision."""

    compare: tuple[Compare, ...] = ()
    success: tuple[Op, ...] = ()
    failure: tuple[Op, ...] = ()


Op: TypeAlias = "RangeRequest | PutRequest | DeleteRangeRequest | TxnRequest"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseHeader:
    """``revision``: the store's when the request was applied."""

    cluster_id: int
    member_id: int
    revision: int
    raft_term: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeResponse:
    """``count``: how many keys are in the range whatever the limit; ``more``: whether the limit cut some off."""

    header: ResponseHeader
    kvs: tuple[KeyValue, ...]
    more: bool
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PutResponse:
    header: ResponseHeader
    prev_kv: KeyValue | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRangeResponse:
    header: ResponseHeader
    deleted: int
    prev_kvs: tuple[KeyValue, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnResponse:
    header: ResponseHeader
    succeeded: bool
    responses: tuple[OpResponse, ...]


OpResponse: TypeAlias = "RangeResponse | PutResponse | DeleteRangeResponse | TxnResponse"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionResponse:
    header: ResponseHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseGrantResponse:
    header: ResponseHeader
    id: int
    ttl_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimeToLiveResponse:
    """``ttl_seconds`` is what is left, -1 for a lease that does not exist."""

    header: ResponseHeader
    id: int
    ttl_seconds: int
    granted_ttl_seconds: int
    keys: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """``start_revision`` 0 means from now on: the first event is of a later revision than the store's at creation."""

    key: bytes
    range_end: bytes = b""
    start_revision: int = 0
    prev_kv: bool = False
    no_put: bool = False
    no_delete: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchBatch:
    """Events in revision order; all events of one revision are in one batch. ``revision``: every event of the range up to and
    including it has been delivered with this batch (a progress notice has no events)."""

    revision: int
    events: tuple[Event, ...]


class Watcher(Protocol):
    """One watch. ``take`` and ``wait`` raise ``CompactedError`` once what comes next was compacted, after all that was buffered
    before has been taken; ``StoppedError`` once the store has stopped. A watcher that is not drained loses nothing: beyond its
    bound it is caught up from history."""

    def take(self) -> WatchBatch | None:
        """The next batch if there is one, at once. Every event up to ``KV.local_revision()`` is there to be taken, so a reader
        that takes until None has seen every acknowledged write (embedded store only: ``KV.events_are_immediate``)."""

    async def wait(self) -> None:
        """Return when ``take`` has something (a batch or an error)."""

    def cancel(self) -> None:
        """Stop; idempotent. A pending ``wait`` returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    """What ``etcdctl endpoint status`` shows. Sizes are bytes."""

    header: ResponseHeader
    version: str
    db_size: int
    db_size_in_use: int
    leader_id: int
    raft_index: int
    raft_applied_index: int
    is_learner: bool
    alarms: tuple[str, ...] = ()


class KV(Protocol):
    """The store as its client sees it. Every coroutine may raise ``UnavailableError`` and, for writes, ``RequestTimeoutError``
    (outcome unknown); other errors are named at each method. Cancelling a write's coroutine does not undo the write."""

    events_are_immediate: bool

    @property
    def progress_on_request(self) -> bool:
        """Whether every watcher soon has a batch of at least the revision that ``read_revision`` has answered, even if none of the
        changes up to it are in its range. True wherever ``events_are_immediate``; of external stores some cannot promise it."""

    def local_revision(self) -> int | None:
        """The revision a linearizable read would see, if that is known here without I/O (a single voter that leads); else None."""

    async def read_revision(self) -> int:
        """ReadIndex (Raft thesis §6.4): a revision that covers every write acknowledged before this call; applied here on return."""

    async def range(self, request: RangeRequest) -> RangeResponse:
        """Raises CompactedError, FutureRevisionError, EmptyKeyError."""

    async def put(self, request: PutRequest) -> PutResponse:
        """Raises RequestTooLargeError, NoSpaceError, LeaseNotFoundError, KeyNotFoundError, InvalidRequestError, TooManyRequestsError."""

    async def delete_range(self, request: DeleteRangeRequest) -> DeleteRangeResponse: ...

    async def txn(self, request: TxnRequest) -> TxnResponse:
        """Raises as its parts do; a refused txn changes nothing and moves no revision."""

    async def compact(self, revision: int, *, physical: bool = False) -> CompactionResponse:
        """Forget versions superseded at or before ``revision``. Raises CompactedError, FutureRevisionError."""

    async def lease_grant(self, ttl_seconds: int, *, lease_id: int = 0) -> LeaseGrantResponse: ...

    async def lease_revoke(self, lease_id: int) -> ResponseHeader: ...

    async def lease_keep_alive(self, lease_id: int) -> int:
        """Renew; answers the TTL in seconds. Raises LeaseNotFoundError."""

    async def lease_time_to_live(self, lease_id: int, *, keys: bool = False) -> LeaseTimeToLiveResponse: ...

    async def leases(self) -> tuple[int, ...]: ...

    def watch(self, request: WatchRequest) -> Watcher:
        """Start a watch. A compacted ``start_revision`` shows itself at the first ``take`` or ``wait``."""

    async def status(self) -> StoreStatus: ...
