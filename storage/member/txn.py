"""Requests on keys: checked at the gateway, then carried out on the store.

Checks come in two stages, as in etcd. ``check`` needs only the request and runs before it is proposed, so a request that contradicts
itself never reaches the log. What depends on the state (leases, revisions, keys that must exist) is checked when the entry is applied,
before the first change: an entry that fails changes nothing, on every member alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from storage import api, errors
from storage.lease.lessor import Lessor
from storage.mvcc import read_txn
from storage.mvcc.key_index import KeyIndex
from storage.mvcc.revision import main_of
from storage.mvcc.store import Store
from storage.mvcc.tree_index import FROM_KEY
from storage.mvcc.write_txn import WriteTxn
from storage.watch.event_batch import matches

#: etcd's ``max-txn-ops``: of comparisons, of operations of a branch; nested ones count what is left.
TXN_OPERATIONS_MAX = 128

#: A nesting that no request limit of 1.5 MB makes sensible; it keeps recursion far from Python's limit.
TXN_DEPTH_MAX = 32

MakeHeader = Callable[[int], api.ResponseHeader]


def check(request: api.Op, *, operations_max: int = TXN_OPERATIONS_MAX) -> None:
    """Raises EmptyKeyError, DuplicateKeyError, TooManyOpsError, InvalidRequestError."""
    match request:
        case api.TxnRequest():
            _check_txn(request, operations_max, TXN_DEPTH_MAX)
            for branch in (request.success, request.failure):
                if len(branch) > 1 or (branch and isinstance(branch[0], api.TxnRequest)):
                    _check_overlaps(branch)
        case api.PutRequest():
            if not request.key:
                raise errors.EmptyKeyError()
            if request.ignore_value and request.value:
                raise errors.InvalidRequestError("etcdserver: value is provided")
            if request.ignore_lease and request.lease:
                raise errors.InvalidRequestError("etcdserver: lease is provided")
        case api.RangeRequest() | api.DeleteRangeRequest():
            if not request.key:
                raise errors.EmptyKeyError()


def is_read_only(request: api.TxnRequest) -> bool:
    """Whether neither branch can change anything, so that it need not go through the log."""
    for operation in (*request.success, *request.failure):
        if isinstance(operation, api.TxnRequest):
            if not is_read_only(operation):
                return False
        elif not isinstance(operation, api.RangeRequest):
            return False
    return True


def payload_bytes(request: api.Op) -> int:
    """About the size of the request on the wire, for the request size limit."""
    match request:
        case api.PutRequest():
            return len(request.key) + len(request.value)
        case api.RangeRequest() | api.DeleteRangeRequest():
            return len(request.key) + len(request.range_end)
        case api.TxnRequest():
            compares = sum(
                len(each.key) + len(each.range_end) + (len(each.operand) if isinstance(each.operand, bytes) else 8)
                for each in request.compare
            )
            return compares + sum(payload_bytes(each) for each in (*request.success, *request.failure))


def execute_range(store: Store, request: api.RangeRequest, header: MakeHeader) -> api.RangeResponse:
    """Raises FutureRevisionError, CompactedError."""
    return _range_response(store.range(request), header)


def execute_put(store: Store, lessor: Lessor, request: api.PutRequest, header: MakeHeader) -> api.PutResponse:
    """Raises LeaseNotFoundError, KeyNotFoundError."""
    _check_put(store, lessor, request, ())
    txn = store.write_txn()
    response = _put(txn, request, header)
    txn.end()
    return response


def execute_delete_range(store: Store, request: api.DeleteRangeRequest, header: MakeHeader) -> api.DeleteRangeResponse:
    txn = store.write_txn()
    response = _delete_range(txn, request, header)
    txn.end()
    return response


def execute_txn(store: Store, lessor: Lessor, request: api.TxnRequest, header: MakeHeader) -> api.TxnResponse:
    """Raises as its operations do, all before anything is changed."""
    # All comparisons, also of nested transactions, see the state before the first change.
    branches: list[bool] = []
    _choose_branches(store, request, branches)
    _check_chosen(store, lessor, request, iter(branches), [])
    txn = store.write_txn()
    response = _txn(txn, request, iter(branches), header)
    txn.end()
    return response


def _check_txn(request: api.TxnRequest, operations_max: int, depth_max: int) -> None:
    operations = max(len(request.compare), len(request.success), len(request.failure))
    if operations > operations_max or depth_max == 0:
        raise errors.TooManyOpsError()
    for compare in request.compare:
        if not compare.key:
            raise errors.EmptyKeyError()
    for operation in (*request.success, *request.failure):
        if isinstance(operation, api.TxnRequest):
            _check_txn(operation, operations_max - operations, depth_max - 1)
        else:
            check(operation)


class _Touched:
    """The keys that a list of operations puts and the ranges that it deletes."""

    __slots__ = ("deletes", "puts")

    def __init__(self) -> None:
        self.puts: set[bytes] = set()
        self.deletes: list[api.DeleteRangeRequest] = []

    def deletes_key(self, key: bytes) -> bool:
        """Deletes without an end are not looked at, since etcd takes their ``b"\\0"`` literally in this check and so lets them pass:
        refusing here what etcd accepts would break its clients."""
        return any(each.range_end != FROM_KEY and matches(key, each.key, each.range_end) for each in self.deletes)

    def add_put(self, key: bytes) -> None:
        if key in self.puts or self.deletes_key(key):
            raise errors.DuplicateKeyError()
        self.puts.add(key)


def _check_overlaps(operations: Sequence[api.Op]) -> _Touched:
    """No key may be put twice, or put and deleted, by one list of operations and what is nested in it; two branches of one nested
    transaction may touch the same keys, since only one of them runs. Deleting twice is allowed. Raises DuplicateKeyError."""
    touched = _Touched()
    touched.deletes = [each for each in operations if isinstance(each, api.DeleteRangeRequest)]
    for operation in operations:
        if isinstance(operation, api.TxnRequest):
            success, failure = _check_overlaps(operation.success), _check_overlaps(operation.failure)
            for key in sorted(success.puts | failure.puts):
                touched.add_put(key)
            touched.deletes += success.deletes
            touched.deletes += failure.deletes
    for operation in operations:
        if isinstance(operation, api.PutRequest):
            touched.add_put(operation.key)
    return touched


def _choose_branches(store: Store, request: api.TxnRequest, branches: list[bool]) -> None:
    """Append, in the order of execution, which branch each transaction takes."""
    succeeded = all(_holds(store, compare) for compare in request.compare)
    branches.append(succeeded)
    for operation in request.success if succeeded else request.failure:
        if isinstance(operation, api.TxnRequest):
            _choose_branches(store, operation, branches)


def _check_chosen(
    store: Store, lessor: Lessor, request: api.TxnRequest, branches: Iterator[bool], deleted: list[api.DeleteRangeRequest]
) -> None:
    """``deleted``: what comes before, in the order of execution."""
    for operation in request.success if next(branches) else request.failure:
        match operation:
            case api.PutRequest():
                _check_put(store, lessor, operation, deleted)
            case api.DeleteRangeRequest():
                deleted.append(operation)
            case api.RangeRequest():
                read_txn.check_revision(operation.revision, store.current_revision, store.compact_revision)
            case api.TxnRequest():
                _check_chosen(store, lessor, operation, branches, deleted)


def _check_put(store: Store, lessor: Lessor, request: api.PutRequest, deleted: Sequence[api.DeleteRangeRequest]) -> None:
    """A put that keeps the value or the lease needs its key, also after the deletions before it in its transaction (those that
    ``_Touched.deletes_key`` lets pass; etcd's members end at such an entry)."""
    if request.lease and lessor.lookup(request.lease) is None:
        raise errors.LeaseNotFoundError()
    if request.ignore_value or request.ignore_lease:
        index = store.index.key_index(request.key)
        if index is None or not index.is_live or any(matches(request.key, each.key, each.range_end) for each in deleted):
            raise errors.KeyNotFoundError()


def _holds(store: Store, compare: api.Compare) -> bool:
    if compare.range_end:
        kvs = store.range(api.RangeRequest(key=compare.key, range_end=compare.range_end)).kvs
        if kvs:
            return all(_compare(compare, _TARGETS[compare.target](kv)) for kv in kvs)
    elif compare.target in _IN_INDEX:
        # The comparison of nearly every write that is guarded; it needs no look at the value.
        return _compare(compare, _of_newest(store.index.key_index(compare.key), compare.target))
    else:
        kv = store.get(compare.key)
        if kv is not None:
            return _compare(compare, _TARGETS[compare.target](kv))
    # An absent key has zeros, but no value to compare with, not even an empty one.
    return compare.target != api.CompareTarget.VALUE and _compare(compare, 0)


_TARGETS: dict[api.CompareTarget, Callable[[api.KeyValue], int | bytes]] = {
    api.CompareTarget.VERSION: attrgetter("version"),
    api.CompareTarget.CREATE: attrgetter("create_revision"),
    api.CompareTarget.MOD: attrgetter("mod_revision"),
    api.CompareTarget.LEASE: attrgetter("lease"),
    api.CompareTarget.VALUE: attrgetter("value"),
}
_IN_INDEX = frozenset((api.CompareTarget.VERSION, api.CompareTarget.CREATE, api.CompareTarget.MOD))


def _of_newest(index: KeyIndex | None, target: api.CompareTarget) -> int:
    """What the index knows of a key's newest version; 0 for a key that does not exist."""
    if index is None or not index.is_live:
        return 0
    generation = index.generations[-1]
    if target == api.CompareTarget.MOD:
        return main_of(generation.revisions[-1])
    return generation.version if target == api.CompareTarget.VERSION else generation.created


def _compare(compare: api.Compare, actual: int | bytes) -> bool:
    operand = compare.operand
    match compare.result:
        case api.CompareResult.EQUAL:
            return actual == operand
        case api.CompareResult.NOT_EQUAL:
            return actual != operand
        case api.CompareResult.GREATER:
            return actual > operand  # type: ignore[operator]
        case api.CompareResult.LESS:
            return actual < operand  # type: ignore[operator]


def _txn(txn: WriteTxn, request: api.TxnRequest, branches: Iterator[bool], header: MakeHeader) -> api.TxnResponse:
    succeeded = next(branches)
    responses: list[api.OpResponse] = []
    for operation in request.success if succeeded else request.failure:
        match operation:
            case api.PutRequest():
                responses.append(_put(txn, operation, header))
            case api.RangeRequest():
                responses.append(_range_response(txn.range(operation), header))
            case api.DeleteRangeRequest():
                responses.append(_delete_range(txn, operation, header))
            case api.TxnRequest():
                responses.append(_txn(txn, operation, branches, header))
    return api.TxnResponse(header=header(txn.revision), succeeded=succeeded, responses=tuple(responses))


def _put(txn: WriteTxn, request: api.PutRequest, header: MakeHeader) -> api.PutResponse:
    value, lease = request.value, request.lease
    previous = None
    if request.prev_kv or request.ignore_value or request.ignore_lease:
        previous = txn.get(request.key)
        if request.ignore_value:
            assert previous is not None, request.key
            value = previous.value
        if request.ignore_lease:
            assert previous is not None, request.key
            lease = previous.lease
    txn.put(request.key, value, lease)
    return api.PutResponse(header=header(txn.revision), prev_kv=previous if request.prev_kv else None)


def _delete_range(txn: WriteTxn, request: api.DeleteRangeRequest, header: MakeHeader) -> api.DeleteRangeResponse:
    previous: tuple[api.KeyValue, ...] = ()
    if request.prev_kv:
        previous = txn.range(api.RangeRequest(key=request.key, range_end=request.range_end)).kvs
    deleted = txn.delete_range(request.key, request.range_end)
    return api.DeleteRangeResponse(header=header(txn.revision), deleted=deleted, prev_kvs=previous)


def _range_response(result: read_txn.RangeResult, header: MakeHeader) -> api.RangeResponse:
    return api.RangeResponse(header=header(result.revision), kvs=result.kvs, more=result.more, count=result.count)
