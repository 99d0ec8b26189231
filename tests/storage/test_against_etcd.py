"""The same random requests to a real etcd and to the store: equal answers, equal refusals, equal hashes, equal watches."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import api, errors
from storage.mvcc.kv_hash import hash_kv
from tests.fakes.memory_kv import MemoryKV
from tests.storage.etcd_process import EtcdError, EtcdProcess, operation, simplify, simplify_answer

KEYS = [b"a", b"ab", b"b", b"b\0", b"c", b"d/1", b"d/2"]
ENDS = [b"", b"", b"\0", b"b", b"c", b"d0"]
LEASES = [0, 0, 0, 1, 2, 9]
PATHS = {api.RangeRequest: "range", api.PutRequest: "put", api.DeleteRangeRequest: "deleterange", api.TxnRequest: "txn"}


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdProcess]:
    with EtcdProcess(tmp_path / "etcd") as process:
        yield process


def random_range(rng: random.Random, revision: int) -> api.RangeRequest:
    def near(probability: float) -> int:
        return rng.randint(max(revision - 15, 0), revision + 1) if rng.random() < probability else 0

    return api.RangeRequest(
        key=rng.choice(KEYS),
        range_end=rng.choice(ENDS),
        limit=rng.choice([0, 0, 1, 2, 3]),
        revision=near(0.3),
        sort_order=rng.choice(list(api.SortOrder)),
        # Values and versions repeat, and etcd's sort is not stable: only targets that decide the order can be compared.
        sort_target=rng.choice([api.SortTarget.KEY, api.SortTarget.KEY, api.SortTarget.MOD]),
        keys_only=rng.random() < 0.2,
        count_only=rng.random() < 0.15,
        min_mod_revision=near(0.1),
        max_mod_revision=near(0.1),
        min_create_revision=near(0.1),
        max_create_revision=near(0.1),
    )


def random_put(rng: random.Random) -> api.PutRequest:
    ignore_value, ignore_lease = rng.random() < 0.1, rng.random() < 0.1
    return api.PutRequest(
        key=rng.choice(KEYS) if rng.random() < 0.98 else b"",
        value=b"" if ignore_value else b"%d" % rng.randrange(5),
        lease=0 if ignore_lease else rng.choice(LEASES),
        prev_kv=rng.random() < 0.3,
        ignore_value=ignore_value,
        ignore_lease=ignore_lease,
    )


def random_compare(rng: random.Random, revision: int) -> api.Compare:
    target = rng.choice(list(api.CompareTarget))
    operand: int | bytes
    match target:
        case api.CompareTarget.VALUE:
            operand = b"%d" % rng.randrange(5)
        case api.CompareTarget.VERSION:
            operand = rng.randrange(4)
        case api.CompareTarget.LEASE:
            operand = rng.choice(LEASES)
        case _:
            operand = rng.choice([0, rng.randint(max(revision - 10, 0), revision)])
    result = rng.choice(list(api.CompareResult))
    return api.Compare(key=rng.choice(KEYS), range_end=rng.choice(ENDS), target=target, result=result, operand=operand)


def random_op(rng: random.Random, revision: int, depth: int) -> api.Op:
    kind = rng.choices(("put", "delete", "range", "txn"), (5, 2, 2, 3 if depth else 0))[0]
    match kind:
        case "put":
            return random_put(rng)
        case "delete":
            return api.DeleteRangeRequest(key=rng.choice(KEYS), range_end=rng.choice(ENDS), prev_kv=rng.random() < 0.3)
        case "range":
            return random_range(rng, revision)
    return api.TxnRequest(
        compare=tuple(random_compare(rng, revision) for _ in range(rng.randrange(3))),
        success=tuple(random_op(rng, revision, depth - 1) for _ in range(rng.randrange(4))),
        failure=tuple(random_op(rng, revision, depth - 1) for _ in range(rng.randrange(3))),
    )


#: Which of several reasons a transaction is refused for differs between versions of etcd.
STATE_ERRORS = {
    f"etcdserver: {text}"
    for text in (
        "requested lease not found",
        "key not found",
        "mvcc: required revision has been compacted",
        "mvcc: required revision is a future revision",
    )
}


def refusal(request: api.Op, text: str) -> str:
    return "refused by the state" if isinstance(request, api.TxnRequest) and text in STATE_ERRORS else text


async def ours(kv: MemoryKV, request: api.Op) -> object:
    try:
        match request:
            case api.RangeRequest():
                return simplify(await kv.range(request))
            case api.PutRequest():
                return simplify(await kv.put(request))
            case api.DeleteRangeRequest():
                return simplify(await kv.delete_range(request))
            case api.TxnRequest():
                return simplify(await kv.txn(request))
    except errors.StoreError as error:
        return refusal(request, str(error))


def theirs(etcd: EtcdProcess, request: api.Op) -> object:
    try:
        return simplify_answer(request, etcd.call(f"/v3/kv/{PATHS[type(request)]}", operation(request)[1]))
    except EtcdError as error:
        return refusal(request, error.text)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_random_requests_are_answered_as_etcd_answers_them(etcd: EtcdProcess, seed: int) -> None:
    rng = random.Random(seed)
    kv = MemoryKV()
    for lease in (1, 2):
        etcd.call("/v3/lease/grant", {"ID": lease, "TTL": 1000})
        await kv.lease_grant(1000, lease_id=lease)
    refused = 0
    for step in range(500):
        revision = kv.store.current_revision
        if step % 60 == 59:
            at = rng.randint(revision - 20, revision + 1)
            compare_hashes(etcd, kv, rng)
            await compact(etcd, kv, at)
            compare_hashes(etcd, kv, rng)
            continue
        request = random_op(rng, revision, depth=2)
        answer = await ours(kv, request)
        assert answer == theirs(etcd, request), (seed, step, request)
        refused += isinstance(answer, str)
    assert 10 < refused < 250
    assert kv.store.current_revision > 150

    found = hash_kv(kv.store.store)
    assert etcd.hash_kv(found.revision) == (found.hash, found.compact_revision)

    await kv.put(api.PutRequest(key=b"last", value=b""))
    etcd.call("/v3/kv/put", {"key": "bGFzdA=="})
    # Not from the compact revision itself: etcd before 3.5.16 lost a deletion there (etcd-io/etcd#19179).
    start = kv.store.compact_revision + 1
    watch = kv.watch(api.WatchRequest(key=b"\0", range_end=b"\0", start_revision=start, prev_kv=True))
    events: list[api.Event] = []
    while (batch := watch.take()) is not None:
        events += batch.events
    body = {"key": "AA==", "range_end": "AA==", "start_revision": start, "prev_kv": True}
    assert events == list(etcd.watch(body, kv.store.current_revision))


def compare_hashes(etcd: EtcdProcess, kv: MemoryKV, rng: random.Random) -> None:
    """At the newest revision and at one between. Not at the compact revision: etcd before 3.5.16 refuses that one."""
    store = kv.store.store
    least = max(store.compact_revision, 1) + 1
    for revision in (0, *((rng.randint(least, store.current_revision),) if least <= store.current_revision else ())):
        found = hash_kv(store, revision)
        assert etcd.hash_kv(revision) == (found.hash, found.compact_revision), (revision, store.compact_revision)


async def compact(etcd: EtcdProcess, kv: MemoryKV, at: int) -> None:
    outcomes: list[str] = []
    try:
        await kv.compact(at)
        outcomes.append("done")
    except errors.StoreError as error:
        outcomes.append(str(error))
    try:
        etcd.call("/v3/kv/compaction", {"revision": at, "physical": True})
        outcomes.append("done")
    except EtcdError as refused:
        outcomes.append(refused.text)
    assert outcomes[0] == outcomes[1], at
