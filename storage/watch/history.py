"""Reading events back from the versions in the backend, a slice at a time."""

from __future__ import annotations

from dataclasses import dataclass

from storage import api, errors
from storage.backend.backend import Backend, Bucket
from storage.mvcc import kv_codec
from storage.mvcc.revision import is_tombstone, main_of, revision_key
from storage.mvcc.store import Store
from storage.watch.event_batch import matches

#: Records looked at in one slice: about 2 ms of work.
SLICE_RECORDS_MAX = 1000

#: From so many revisions on it is worth asking the index which records are of the range …
NARROW_AFTER_REVISIONS = SLICE_RECORDS_MAX

#: … if it has no more keys than this: collecting them is again about 2 ms.
NARROW_KEYS_MAX = 1000

#: Values looked at in one slice; a single transaction is read whole whatever its size.
SLICE_BYTES_MAX = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RevisionEvents:
    """The events of one revision that are in the range; at least one."""

    revision: int
    events: tuple[api.Event, ...]


@dataclass(frozen=True, slots=True)
class HistorySlice:
    """``next_revision``: everything before it has been looked at; ``is_complete``: there is no later record."""

    revisions: tuple[RevisionEvents, ...]
    next_revision: int
    is_complete: bool


def read_slice(store: Store, start: int, key: bytes, range_end: bytes) -> HistorySlice:
    """Read on from main revision ``start``, which is neither compacted nor in the future. Only whole revisions are in the slice.

    A long history is looked through by way of the index if the range has few keys: it names their records, and no others are read.
    """
    current = store.current_revision
    assert store.compact_revision <= start <= current, (store.compact_revision, start, current)
    named = None
    if current - start >= NARROW_AFTER_REVISIONS:
        named = store.index.records_since(key, range_end, start, NARROW_KEYS_MAX)
    if named is None:
        records = store.backend.keys(Bucket.KEY, revision_key(start), None, SLICE_RECORDS_MAX)
        is_complete = len(records) < SLICE_RECORDS_MAX
    else:
        records = named[:SLICE_RECORDS_MAX]
        is_complete = len(records) == len(named)
    found: list[api.Event] = []
    size = 0
    for position, record in enumerate(records):
        value = _value(store.backend, record)
        size += len(value)
        if named is not None or matches(kv_codec.decode_key(value), key, range_end):
            found.append(_event(record, value))
        if size > SLICE_BYTES_MAX and position + 1 < len(records):
            is_complete = False
            del records[position + 1 :]
            break
    if is_complete:
        return HistorySlice(_by_revision(found), current + 1, True)
    cut = main_of(records[-1])
    if cut > main_of(records[0]):
        # The last revision may go on beyond the slice: the next one begins with it.
        return HistorySlice(_by_revision([event for event in found if event.kv.mod_revision < cut]), cut, False)
    whole = store.backend.range(Bucket.KEY, revision_key(cut), revision_key(cut + 1))
    found = [_event(record, value) for record, value in whole if matches(kv_codec.decode_key(value), key, range_end)]
    return HistorySlice(_by_revision(found), cut + 1, cut == current)


def _by_revision(events: list[api.Event]) -> tuple[RevisionEvents, ...]:
    grouped: dict[int, list[api.Event]] = {}
    for event in events:
        grouped.setdefault(event.kv.mod_revision, []).append(event)
    return tuple(RevisionEvents(revision, tuple(group)) for revision, group in grouped.items())


def _value(backend: Backend, record: bytes) -> bytes:
    value = backend.get(Bucket.KEY, record)
    if value is None:
        raise errors.CorruptError(f"the backend lists revision {record!r} but has no value for it")
    return value


def _event(record: bytes, value: bytes) -> api.Event:
    kv = kv_codec.decode(value)
    if is_tombstone(record):
        return api.Event(api.EventType.DELETE, kv_codec.new_key_value(kv.key, 0, main_of(record), 0, b"", 0))
    return api.Event(api.EventType.PUT, kv)
