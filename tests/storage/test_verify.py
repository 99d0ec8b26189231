"""The checker itself: it passes a sound state and names each kind of damage."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import api
from storage.backend.backend import Bucket
from storage.mvcc.revision import revision_key
from storage.verify import InconsistentError, check_store
from tests.fakes.memory_kv import MemoryKV


async def sound() -> MemoryKV:
    kv = MemoryKV()
    await kv.lease_grant(100, lease_id=1)
    for key in (b"a", b"b", b"a"):
        await kv.put(api.PutRequest(key=key, value=b"v", lease=1 if key == b"b" else 0))
    await kv.delete_range(api.DeleteRangeRequest(key=b"a"))
    check_store(kv.store.store, kv.lessor)
    return kv


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda kv: kv.backend.delete(Bucket.KEY, revision_key(2)), "no record of revision"),
        (lambda kv: kv.backend.put(Bucket.KEY, revision_key(2), kv.backend.get(Bucket.KEY, revision_key(3))), "is of b'b'"),
        (lambda kv: kv.backend.put(Bucket.KEY, revision_key(2), kv.backend.get(Bucket.KEY, revision_key(4))), "index has version 1"),
        (lambda kv: kv.backend.put(Bucket.KEY, revision_key(9), b""), "is not in the index"),
        (lambda kv: kv.lessor.attach(b"b", 0), "hangs on 0"),
        (lambda kv: kv.lessor.attach(b"a", 1), "does not exist but hangs on lease 1"),
        (lambda kv: kv.store.store.index._dead.discard(b"a"), "1 keys are live, the index counts 2"),
        (lambda kv: setattr(kv.store.store, "compact_revision", 5), "outlived its compaction"),
        (lambda kv: setattr(kv.store.store, "current_revision", 4), "there is a record of revision 5"),
    ],
)
async def test_damage_is_named(damage: Callable[[MemoryKV], object], text: str) -> None:
    kv = await sound()
    if "outlived" in text:
        kv.backend.put(Bucket.KEY, revision_key(1), b"")
    damage(kv)
    with pytest.raises(InconsistentError, match=text):
        check_store(kv.store.store, kv.lessor)
