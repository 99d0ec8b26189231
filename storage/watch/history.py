"""Reading events back from the versions in the backend, a slice at a time."""

from __future__ import annotations

from dataclasses import dataclass

from storage import api, errors
from storage.backend.backend import Backend, Bucket
from storage.mvcc import kv_codec
from storage.mvcc.revision import is_tombstone, main_of, revision_key
from storage.watch.event_batch import matches

#: Records looked at in one slice: about 2 ms of work.
SLICE_RECORDS_MAX = 1000

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


def read_slice(backend: Backend, start: int, current: int, key: bytes, range_end: bytes) -> HistorySlice:
    """Read on from main revision ``start``, which is not compacted, towards ``current``. Only whole revisions are in the slice."""
    assert start <= current, (start, current)
    records = backend.keys(Bucket.KEY, revision_key(start), None, SLICE_RECORDS_MAX)
    is_complete = len(records) < SLICE_RECORDS_MAX
    found: list[api.Event] = []
    size = 0
    for position, record in enumerate(records):
        value = _value(backend, record)
        size += len(value)
        if matches(kv_codec.decode_key(value), key, range_end):
            found.append(_event(record, value))
        if size > SLICE_BYTES_MAX and position + 1 < len(records):
            is_complete = False
            del records[position + 1 :]
            break
    if is_complete:
        return HistorySlice(_by_revision(found), current + 1, True)
    cut = main_of(records[-1])
    if cut > start:
        # The last revision may go on beyond the slice: the next one begins with it.
        return HistorySlice(_by_revision([event for event in found if event.kv.mod_revision < cut]), cut, False)
    whole = backend.range(Bucket.KEY, revision_key(start), revision_key(start + 1))
    found = [_event(record, value) for record, value in whole if matches(kv_codec.decode_key(value), key, range_end)]
    return HistorySlice(_by_revision(found), start + 1, start == current)


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
