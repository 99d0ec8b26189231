"""Transactions: what is refused, what is compared, and that a refused one changes nothing."""

from __future__ import annotations

import random

import pytest

from storage import api, errors
from storage.member import txn
from storage.mvcc.kv_hash import hash_kv
from storage.verify import check_store
from tests.fakes.memory_kv import MemoryKV

EQUAL, GREATER, LESS, NOT_EQUAL = api.CompareResult.EQUAL, api.CompareResult.GREATER, api.CompareResult.LESS, api.CompareResult.NOT_EQUAL


def put(key: bytes, value: bytes = b"v", **options: object) -> api.PutRequest:
    return api.PutRequest(key=key, value=value, **options)  # type: ignore[arg-type]


def delete(key: bytes, range_end: bytes = b"") -> api.DeleteRangeRequest:
    return api.DeleteRangeRequest(key=key, range_end=range_end)


def get(key: bytes, **options: object) -> api.RangeRequest:
    return api.RangeRequest(key=key, **options)  # type: ignore[arg-type]


def then(*operations: api.Op) -> api.TxnRequest:
    return api.TxnRequest(success=operations)


@pytest.mark.parametrize(
    "request_",
    [
        then(put(b"a", b"1"), put(b"a", b"2")),
        then(put(b"a"), delete(b"a", b"c")),
        then(delete(b"a", b"c"), put(b"b")),
        then(then(put(b"a")), put(b"a")),
        then(then(put(b"a")), then(put(b"a"))),
        then(then(delete(b"a")), then(put(b"a"))),
        then(delete(b"a"), then(then(put(b"a")))),
        api.TxnRequest(failure=(put(b"a"), put(b"a"))),
        then(api.TxnRequest(success=(put(b"b"),), failure=(put(b"a"),)), put(b"a")),
    ],
)
async def test_a_key_twice_in_one_transaction_is_refused(request_: api.TxnRequest) -> None:
    """ST-T1, etcd-io/etcd#4376, #8102."""
    kv = MemoryKV()
    with pytest.raises(errors.DuplicateKeyError) as refused:
        await kv.txn(request_)
    assert str(refused.value) == "etcdserver: duplicate key given in txn request"
    assert kv.store.current_revision == 1


@pytest.mark.parametrize(
    "request_",
    [
        then(delete(b"a"), delete(b"a")),
        then(put(b"a"), put(b"b"), delete(b"c", b"d")),
        then(put(b"a"), delete(b"b", b"a")),
        api.TxnRequest(success=(put(b"a"),), failure=(put(b"a"),)),
        then(api.TxnRequest(success=(put(b"a"),), failure=(put(b"a"), delete(b"b")))),
        then(put(b"a"), get(b"a")),
        then(put(b"z"), delete(b"a", b"\0")),
    ],
)
async def test_these_are_no_duplicates(request_: api.TxnRequest) -> None:
    await MemoryKV().txn(request_)


@pytest.mark.parametrize(
    ("request_", "error", "text"),
    [
        (put(b""), errors.EmptyKeyError, "key is not provided"),
        (get(b""), errors.EmptyKeyError, "key is not provided"),
        (delete(b""), errors.EmptyKeyError, "key is not provided"),
        (then(put(b"")), errors.EmptyKeyError, "key is not provided"),
        (then(then(get(b""))), errors.EmptyKeyError, "key is not provided"),
        (
            api.TxnRequest(compare=(api.Compare(key=b"", target=api.CompareTarget.MOD, operand=0),)),
            errors.EmptyKeyError,
            "key is not provided",
        ),
        (put(b"a", b"v", ignore_value=True), errors.InvalidRequestError, "value is provided"),
        (put(b"a", lease=7, ignore_lease=True), errors.InvalidRequestError, "lease is provided"),
        (then(*[get(b"a")] * 129), errors.TooManyOpsError, "too many operations in txn request"),
        (then(*[get(b"a")] * 100, then(*[get(b"a")] * 29)), errors.TooManyOpsError, "too many operations in txn request"),
    ],
)
def test_requests_that_contradict_themselves(request_: api.Op, error: type[errors.StoreError], text: str) -> None:
    with pytest.raises(error) as refused:
        txn.check(request_)
    assert type(refused.value) is error
    assert str(refused.value) == f"etcdserver: {text}"


def test_as_many_operations_as_allowed_pass() -> None:
    txn.check(then(*[get(b"a")] * 128))
    txn.check(then(*[get(b"a")] * 64, then(*[get(b"a")] * 63)))


def test_nesting_without_end_is_refused() -> None:
    request = then(get(b"a"))
    for _ in range(txn.TXN_DEPTH_MAX + 1):
        request = api.TxnRequest(failure=(request,))
    with pytest.raises(errors.TooManyOpsError):
        txn.check(request)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (then(put(b"new"), put(b"b", lease=99)), errors.LeaseNotFoundError),
        (then(put(b"new"), put(b"absent", b"", ignore_value=True)), errors.KeyNotFoundError),
        (then(put(b"new"), put(b"absent", ignore_lease=True)), errors.KeyNotFoundError),
        (then(put(b"new"), get(b"a", revision=1000)), errors.FutureRevisionError),
        (then(put(b"new"), get(b"a", revision=1)), errors.CompactedError),
        (then(put(b"new"), then(then(put(b"b", lease=99)))), errors.LeaseNotFoundError),
    ],
)
async def test_a_transaction_refused_by_the_state_changes_nothing(request_: api.TxnRequest, error: type[errors.StoreError]) -> None:
    kv = MemoryKV()
    await kv.put(put(b"a"))
    await kv.put(put(b"a"))
    await kv.compact(2)
    before = hash_kv(kv.store.store)
    with pytest.raises(error):
        await kv.txn(request_)
    assert hash_kv(kv.store.store) == before
    await kv.txn(then(put(b"after")))
    assert kv.store.current_revision == before.revision + 1


async def test_every_target_can_be_compared_in_every_way() -> None:
    kv = MemoryKV()
    await kv.lease_grant(100, lease_id=5)
    for written in (b"x", b"m"):
        await kv.put(put(b"a", written, lease=5))
    actual: dict[api.CompareTarget, int | bytes] = {
        api.CompareTarget.VERSION: 2,
        api.CompareTarget.CREATE: 2,
        api.CompareTarget.MOD: 3,
        api.CompareTarget.LEASE: 5,
        api.CompareTarget.VALUE: b"m",
    }
    for target, value in actual.items():
        lower: int | bytes
        higher: int | bytes
        lower, higher = (b"l", b"n") if isinstance(value, bytes) else (value - 1, value + 1)
        for operand, holds in ((lower, {GREATER, NOT_EQUAL}), (value, {EQUAL}), (higher, {LESS, NOT_EQUAL})):
            for result in api.CompareResult:
                response = await kv.txn(api.TxnRequest(compare=(api.Compare(key=b"a", target=target, result=result, operand=operand),)))
                assert response.succeeded == (result in holds), (target, result, operand)


async def test_an_absent_key_has_zeros_but_no_value() -> None:
    kv = MemoryKV()
    for target in (api.CompareTarget.VERSION, api.CompareTarget.CREATE, api.CompareTarget.MOD, api.CompareTarget.LEASE):
        assert (await kv.txn(api.TxnRequest(compare=(api.Compare(key=b"a", target=target, operand=0),)))).succeeded
    for result in api.CompareResult:
        compare = api.Compare(key=b"a", target=api.CompareTarget.VALUE, result=result, operand=b"")
        assert not (await kv.txn(api.TxnRequest(compare=(compare,)))).succeeded


async def test_a_comparison_of_a_range_must_hold_for_every_key() -> None:
    kv = MemoryKV()
    for key in (b"a", b"b", b"c"):
        await kv.put(put(key))
    for operand, holds in ((5, True), (4, False)):
        compare = api.Compare(key=b"a", range_end=b"d", target=api.CompareTarget.MOD, result=LESS, operand=operand)
        assert (await kv.txn(api.TxnRequest(compare=(compare,)))).succeeded is holds


async def test_operations_see_those_before_them_and_share_one_revision() -> None:
    kv = MemoryKV()
    await kv.put(put(b"a", b"old"))
    response = await kv.txn(
        then(get(b"a"), put(b"a", b"new", prev_kv=True), get(b"a"), then(delete(b"b", b"c"), put(b"d")), get(b"\0", range_end=b"\0"))
    )
    before, written, after, nested, everything = response.responses
    assert isinstance(before, api.RangeResponse) and before.kvs[0].value == b"old" and before.header.revision == 2
    assert isinstance(written, api.PutResponse) and written.prev_kv is not None and written.prev_kv.value == b"old"
    assert isinstance(after, api.RangeResponse) and after.kvs[0].value == b"new" and after.header.revision == 3
    assert isinstance(nested, api.TxnResponse) and nested.succeeded
    assert isinstance(everything, api.RangeResponse)
    assert [(kv_.key, kv_.mod_revision) for kv_ in everything.kvs] == [(b"a", 3), (b"d", 3)]
    assert response.header.revision == kv.store.current_revision == 3


async def test_nested_comparisons_see_the_state_before_the_transaction() -> None:
    kv = MemoryKV()
    nested = api.TxnRequest(
        compare=(api.Compare(key=b"a", target=api.CompareTarget.VERSION, operand=0),),
        success=(put(b"was-absent"),),
        failure=(put(b"was-there"),),
    )
    await kv.txn(then(put(b"a"), nested))
    found = await kv.range(get(b"w", range_end=b"x"))
    assert [each.key for each in found.kvs] == [b"was-absent"]


async def test_a_transaction_that_changes_nothing_moves_no_revision() -> None:
    kv = MemoryKV()
    response = await kv.txn(then(delete(b"absent"), get(b"a")))
    assert response.header.revision == kv.store.current_revision == 1


async def test_ignore_value_and_ignore_lease_keep_what_is_there() -> None:
    kv = MemoryKV()
    await kv.lease_grant(100, lease_id=5)
    await kv.put(put(b"a", b"1", lease=5))
    await kv.put(put(b"a", b"2", ignore_lease=True))
    await kv.put(api.PutRequest(key=b"a", value=b"", ignore_value=True))
    (found,) = (await kv.range(get(b"a"))).kvs
    assert (found.value, found.lease, found.version) == (b"2", 0, 3)
    assert (await kv.lease_time_to_live(5, keys=True)).keys == ()


def test_read_only_transactions_are_known_as_such() -> None:
    assert txn.is_read_only(then(get(b"a"), then(get(b"b"))))
    assert not txn.is_read_only(then(get(b"a"), then(delete(b"b"))))
    assert not txn.is_read_only(api.TxnRequest(failure=(put(b"a"),)))


def random_request(rng: random.Random, depth: int = 2) -> api.TxnRequest:
    def operation() -> api.Op:
        key, end = b"%d" % rng.randrange(6), rng.choice([b"", b"\0", b"3", b"5"])
        kind = rng.choice(["put", "put", "delete", "get", "txn" if depth else "get"])
        if kind == "put":
            return put(key, b"%d" % rng.randrange(100), lease=rng.choice([0, 0, 1, 9]), ignore_lease=False)
        if kind == "delete":
            return delete(key, end)
        return get(key, range_end=end) if kind == "get" else random_request(rng, depth - 1)

    compare = api.Compare(key=b"%d" % rng.randrange(6), target=api.CompareTarget.VERSION, result=GREATER, operand=rng.randrange(3))
    return api.TxnRequest(
        compare=(compare,),
        success=tuple(operation() for _ in range(rng.randrange(4))),
        failure=tuple(operation() for _ in range(rng.randrange(3))),
    )


async def test_equal_requests_lead_to_equal_states_and_answers() -> None:
    rng = random.Random(4)
    members = [MemoryKV() for _ in range(2)]
    refused = 0
    for kv in members:
        await kv.lease_grant(100, lease_id=1)
    for _ in range(400):
        request = random_request(rng)
        outcomes: list[object] = []
        for kv in members:
            try:
                outcomes.append(await kv.txn(request))
            except errors.StoreError as error:
                outcomes.append((type(error), str(error)))
        refused += isinstance(outcomes[0], tuple)
        assert outcomes[0] == outcomes[1]
        check_store(members[0].store.store, members[0].lessor)
    assert 0 < refused < 300
    assert hash_kv(members[0].store.store) == hash_kv(members[1].store.store)


@pytest.mark.parametrize("options", [{"ignore_value": True}, {"ignore_lease": True}])
@pytest.mark.parametrize("nested", [False, True])
async def test_a_put_that_keeps_what_its_transaction_has_deleted_is_refused(options: dict[str, bool], nested: bool) -> None:
    """1. A deletion without an end passes the check for duplicate keys, as in etcd. 2. The put after it finds nothing to keep. 3. An
    entry of the log that cannot be applied would end every member, and again at each restart."""
    kv = MemoryKV()
    await kv.put(put(b"b"))
    keep = put(b"b", b"", **options)
    with pytest.raises(errors.KeyNotFoundError):
        await kv.txn(then(delete(b"a", b"\0"), then(keep) if nested else keep))
    assert kv.store.current_revision == 2
    await kv.txn(then(keep, delete(b"a", b"\0")))
    assert (await kv.range(get(b"b"))).count == 0
