"""What the buckets hold, byte for byte as etcd 3.5 lays it out.

| bucket | key | value |
|---|---|---|
| ``key`` | revision: 8-byte big-endian main, ``_``, 8-byte big-endian sub, then ``t`` if it is a tombstone | ``mvccpb.KeyValue`` |
| ``meta`` | ``consistent_index``, ``term`` | 8-byte big-endian |
| ``meta`` | ``scheduledCompactRev``, ``finishedCompactRev`` | a revision as above with sub 0 |
| ``meta`` | ``confState`` | ``raftpb.ConfState`` as JSON |
| ``meta`` | ``storageVersion`` | text, ``3.6.0`` |
| ``lease`` | lease id, 8-byte big-endian | ``leasepb.Lease`` |
| ``alarm`` | ``etcdserverpb.AlarmMember`` | empty |
| ``members`` | member id in hex | the member as JSON |
| ``cluster`` | ``clusterVersion`` | text |

Sources: etcd ``server/storage/schema`` (bucket and key names), ``server/storage/mvcc/revision.go``, ``server/lease/leasepb``.
"""

from __future__ import annotations

from storage.backend.backend import Backend, Bucket
from storage.errors import CorruptError

UINT64_BYTES = 8
CONSISTENT_INDEX = b"consistent_index"
TERM = b"term"
SCHEDULED_COMPACT_REVISION = b"scheduledCompactRev"
FINISHED_COMPACT_REVISION = b"finishedCompactRev"
COMPACT_REVISIONS = (SCHEDULED_COMPACT_REVISION, FINISHED_COMPACT_REVISION)
CONF_STATE = b"confState"
STORAGE_VERSION = b"storageVersion"

UINT64_BYTES = 8


def uint64_to_bytes(number: int) -> bytes:
    return number.to_bytes(UINT64_BYTES, "big")


def read_uint64(backend: Backend, bucket: Bucket, key: bytes, *, durable: bool = False) -> int:
    """The number under ``key``, 0 if there is none. Raises CorruptError if it is not eight bytes."""
    value = backend.durable_get(bucket, key) if durable else backend.get(bucket, key)
    if value is None:
        return 0
    if len(value) != UINT64_BYTES:
        raise CorruptError(f"the backend's {bucket.name.lower()} bucket holds {len(value)} bytes under {key!r}, want {UINT64_BYTES}")
    return int.from_bytes(value, "big")


def put_consistent_index(backend: Backend, index: int, term: int) -> None:
    """Note that everything up to the log's ``index`` is in the backend. Must share a batch with what the entry wrote."""
    backend.put(Bucket.META, CONSISTENT_INDEX, index.to_bytes(UINT64_BYTES, "big"))
    backend.put(Bucket.META, TERM, term.to_bytes(8, "big"))


def lease_key(lease_id: int) -> bytes:
    """Ids are int64; negative ones are in two's complement, as etcd's uint64 conversion leaves them."""
    return (lease_id & 0xFFFF_FFFF_FFFF_FFFF).to_bytes(8, "big")
