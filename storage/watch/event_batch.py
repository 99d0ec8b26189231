"""From the events of one revision to what one kind of watcher is to see of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from storage import api

PrevKvReader = Callable[[api.Event], "api.KeyValue | None"]


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What a watcher wants of the events of its range; watchers with equal options share their batches."""

    prev_kv: bool
    no_put: bool
    no_delete: bool


def options_of(request: api.WatchRequest) -> WatchOptions:
    return WatchOptions(request.prev_kv, request.no_put, request.no_delete)


def matches(key: bytes, range_start: bytes, range_end: bytes) -> bool:
    """Whether ``key`` is in the range, with ``range_end`` as in ``storage.api``."""
    if not range_end:
        return key == range_start
    return range_start <= key and (range_end == b"\0" or key < range_end)


def select(events: Sequence[api.Event], options: WatchOptions, prev_kv: PrevKvReader) -> tuple[api.Event, ...]:
    """The events that pass the filters, with their previous key-values if wanted."""
    if options.no_put or options.no_delete:
        unwanted = {api.EventType.PUT} if options.no_put else set()
        if options.no_delete:
            unwanted.add(api.EventType.DELETE)
        events = [event for event in events if event.type not in unwanted]
    if options.prev_kv:
        events = [api.Event(event.type, event.kv, prev_kv(event)) for event in events]
    return tuple(events)


def payload_bytes(events: Sequence[api.Event]) -> int:
    """About how much memory the events keep alive."""
    total = 0
    for event in events:
        total += len(event.kv.value) + len(event.kv.key)
        if event.prev_kv is not None:
            total += len(event.prev_kv.value)
    return total
