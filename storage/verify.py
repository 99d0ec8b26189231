"""Whole-state checks, too costly for the server to make and made by the tests all the time: do index, backend and leases agree?"""

from __future__ import annotations

from storage.backend.backend import Bucket
from storage.lease.lessor import Lessor
from storage.mvcc import kv_codec
from storage.mvcc.revision import REVISION_BYTES, is_tombstone, main_of
from storage.mvcc.store import Store


class InconsistentError(AssertionError):
    """The state contradicts itself: a fault of this program."""


def check_store(store: Store, lessor: Lessor) -> None:
    """Raises InconsistentError, naming the first contradiction.

    Every revision in the index has its record, of that key; every record that is not awaiting compaction is in the index; versions
    count the puts; the number of live keys is right; the newest version's lease is the one the key hangs on.
    """
    records = dict(store.backend.range(Bucket.KEY, b"", None))
    indexed: set[bytes] = set()
    live = 0
    for index in store.index.key_indexes_from(b"", len(store.index)):
        live += index.is_live
        if index.is_empty:
            raise InconsistentError(f"{index.key!r} is in the index without a revision")
        for number, generation in enumerate(index.generations):
            is_last = number == len(index.generations) - 1
            if not generation.revisions and not is_last:
                raise InconsistentError(f"{index.key!r} has an empty generation before its last")
            for position, revision in enumerate(generation.revisions):
                ends = position == len(generation.revisions) - 1 and not is_last
                record = revision + (b"t" if ends else b"")
                value = records.get(record)
                if value is None:
                    raise InconsistentError(f"{index.key!r}: no record of revision {record!r}")
                kv = kv_codec.decode(value)
                version = generation.version - (len(generation.revisions) - 1 - position)
                if kv.key != index.key:
                    raise InconsistentError(f"{index.key!r}: record {record!r} is of {kv.key!r}")
                if not ends and (kv.version, kv.create_revision, kv.mod_revision) != (version, generation.created, main_of(revision)):
                    raise InconsistentError(f"{index.key!r}: index has version {version} at {record!r}, the record is {kv}")
                indexed.add(record)
        if index.is_live:
            newest = kv_codec.decode(records[index.generations[-1].revisions[-1]])
            if newest.lease != lessor.lease_of(index.key):
                raise InconsistentError(f"{index.key!r} was written with lease {newest.lease}, hangs on {lessor.lease_of(index.key)}")
        elif lessor.lease_of(index.key):
            raise InconsistentError(f"{index.key!r} does not exist but hangs on lease {lessor.lease_of(index.key)}")
    for record in records.keys() - indexed:
        if main_of(record) > store.compact_revision:
            raise InconsistentError(f"the record {record!r} (tombstone: {is_tombstone(record)}) is not in the index")
        if not store.is_compacting:
            raise InconsistentError(f"the record {record[:REVISION_BYTES]!r} outlived its compaction")
    counted = store.index.count(b"\0", b"\0", None)
    if live != counted:
        raise InconsistentError(f"{live} keys are live, the index counts {counted}")
    newest_main = max((main_of(record) for record in records), default=0)
    if newest_main > store.current_revision:
        raise InconsistentError(f"there is a record of revision {newest_main}, the store is at {store.current_revision}")
