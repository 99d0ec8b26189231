"""Reads: from a range request to the key-values it names. They happen at one instant, so no transaction object is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from storage import api, errors
from storage.backend.backend import Bucket
from storage.mvcc import kv_codec

if TYPE_CHECKING:
    from storage.mvcc.store import Store

_SORT_KEYS: dict[api.SortTarget, Callable[[api.KeyValue], bytes | int]] = {
    api.SortTarget.KEY: attrgetter("key"),
    api.SortTarget.VERSION: attrgetter("version"),
    api.SortTarget.CREATE: attrgetter("create_revision"),
    api.SortTarget.MOD: attrgetter("mod_revision"),
    api.SortTarget.VALUE: attrgetter("value"),
}


@dataclass(frozen=True, slots=True)
class RangeResult:
    """``revision``: the store's when it was read, whatever revision was asked for."""

    kvs: tuple[api.KeyValue, ...]
    more: bool
    count: int
    revision: int


def check_revision(revision: int, current_revision: int, compact_revision: int) -> None:
    """Raises FutureRevisionError, CompactedError; a revision of 0 or less means the newest."""
    if revision > current_revision:
        raise errors.FutureRevisionError(current_revision)
    if 0 < revision < compact_revision:
        raise errors.CompactedError(compact_revision)


def read_range(store: Store, request: api.RangeRequest, current_revision: int) -> RangeResult:
    """What ``request`` asks for, where ``current_revision`` is the newest the reader may see.

    Raises FutureRevisionError, CompactedError.
    """
    check_revision(request.revision, current_revision, store.compact_revision)
    at = request.revision if 0 < request.revision < current_revision else None
    index = store.index
    if request.count_only:
        return RangeResult((), False, index.count(request.key, request.range_end, at), current_revision)

    filters = request.min_mod_revision or request.max_mod_revision or request.min_create_revision or request.max_create_revision
    if not request.range_end and not filters:
        kv = read_key(store, request.key, at)
        if kv is not None and request.keys_only:
            kv = _without_value(kv)
        return RangeResult(() if kv is None else (kv,), False, int(kv is not None), current_revision)

    no_order = request.sort_order == api.SortOrder.NONE
    in_key_order = request.sort_target == api.SortTarget.KEY and request.sort_order != api.SortOrder.DESCEND
    limit = max(request.limit, 0)
    if not limit or filters or not (no_order or in_key_order):
        # Only the order of keys is known beforehand: all of the range must be read, sorted, filtered.
        read_limit = 0
    else:
        # A target without an order: etcd takes one more than the limit in key order, sorts those, and cuts then.
        read_limit = limit if in_key_order else limit + 1
    revisions = index.revisions(request.key, request.range_end, at, read_limit)

    get, decode = store.backend.get, kv_codec.decode
    with_value = not request.keys_only or request.sort_target == api.SortTarget.VALUE
    kvs = []
    for revision in revisions:
        record = get(Bucket.KEY, revision)
        if record is None:
            raise errors.CorruptError(f"the backend has no record of revision {revision!r} that the index knows")
        kvs.append(decode(record, with_value=with_value))
    count = len(kvs) if not read_limit or len(kvs) < read_limit else index.count(request.key, request.range_end, at)
    more = bool(read_limit) and count > limit

    if filters:
        kvs = [kv for kv in kvs if _passes(request, kv)]
    if not in_key_order:
        kvs.sort(key=_SORT_KEYS[request.sort_target], reverse=request.sort_order == api.SortOrder.DESCEND)
    if limit and len(kvs) > limit:
        more = True
        del kvs[limit:]
    if request.keys_only and with_value:
        kvs = [_without_value(kv) for kv in kvs]
    return RangeResult(tuple(kvs), more, count, current_revision)


def read_key(store: Store, key: bytes, at: int | None = None) -> api.KeyValue | None:
    """The key as of main revision ``at`` (None: the newest, also one being written), None if it does not exist there."""
    index = store.index.key_index(key)
    if index is None:
        return None
    if at is None:
        revisions = index.generations[-1].revisions
        revision = revisions[-1] if revisions else None
    else:
        revision = store.index.get(key, at)
    if revision is None:
        return None
    record = store.backend.get(Bucket.KEY, revision)
    if record is None:
        raise errors.CorruptError(f"the backend has no record of revision {revision!r} that the index knows")
    return kv_codec.decode(record)


def _without_value(kv: api.KeyValue) -> api.KeyValue:
    return kv_codec.new_key_value(kv.key, kv.create_revision, kv.mod_revision, kv.version, b"", kv.lease)


def _passes(request: api.RangeRequest, kv: api.KeyValue) -> bool:
    if request.min_mod_revision and kv.mod_revision < request.min_mod_revision:
        return False
    if request.max_mod_revision and kv.mod_revision > request.max_mod_revision:
        return False
    if request.min_create_revision and kv.create_revision < request.min_create_revision:
        return False
    return not (request.max_create_revision and kv.create_revision > request.max_create_revision)
