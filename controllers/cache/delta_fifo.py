"""``DeltaFIFO``: what happened to each object since its consumer last looked (client-go ``delta_fifo.go``).
Keys come in the order of their first change.

Example: added a, updated b, updated a, deleted a → ``pop`` gives (a: Added, Updated, Deleted), then (b: Updated).
Two Deleted in a row are one. ``replace`` marks what the new list has as Replaced, and what only the consumer or the queue still
knows as Deleted with the last known object.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable
from dataclasses import dataclass

from apiserver.machinery.objects import Object
from controllers.cache.indexer import key_of


class DeltaType(enum.Enum):
    ADDED = "Added"
    UPDATED = "Updated"
    DELETED = "Deleted"
    REPLACED = "Replaced"
    SYNC = "Sync"


@dataclass(frozen=True, slots=True)
class Delta:
    type: DeltaType
    object: Object


class DeltaFIFO:
    """``known`` gives the consumer's keys and objects (its Indexer) for deletions that only a new list shows, and for resyncs."""

    def __init__(self, known_keys: Callable[[], list[str]], known_object: Callable[[str], Object | None]) -> None:
        self._known_keys, self._known_object = known_keys, known_object
        self._deltas: dict[str, list[Delta]] = {}  # a dict keeps its order: this is the queue
        self._ready = asyncio.Event()
        self._initial_left: int | None = None
        self._initial_keys: set[str] = set()

    def __len__(self) -> int:
        return len(self._deltas)

    @property
    def has_synced(self) -> bool:
        """Every object of the first ``replace`` has been popped."""
        return self._initial_left == 0

    def add(self, obj: Object) -> None:
        self._push(key_of(obj), Delta(DeltaType.ADDED, obj))

    def update(self, obj: Object) -> None:
        self._push(key_of(obj), Delta(DeltaType.UPDATED, obj))

    def delete(self, obj: Object) -> None:
        key = key_of(obj)
        if key not in self._deltas and self._known_object(key) is None:
            return  # neither queue nor consumer ever had it
        self._push(key, Delta(DeltaType.DELETED, obj))

    def replace(self, found: list[Object]) -> None:
        keys = set()
        for obj in found:
            key = key_of(obj)
            keys.add(key)
            self._push(key, Delta(DeltaType.REPLACED, obj))
        for key in list(self._deltas):
            if key not in keys and self._deltas[key][-1].type is not DeltaType.DELETED:
                self._push(key, Delta(DeltaType.DELETED, self._deltas[key][-1].object))
        for key in self._known_keys():
            if key not in keys and key not in self._deltas:
                last = self._known_object(key)
                assert last is not None, key
                self._push(key, Delta(DeltaType.DELETED, last))
        if self._initial_left is None:
            self._initial_keys = set(self._deltas)
            self._initial_left = len(self._initial_keys)
            self._ready.set()

    def resync(self) -> None:
        """Shows each known object again, unless news of it are waiting anyway."""
        for key in self._known_keys():
            if key not in self._deltas:
                obj = self._known_object(key)
                assert obj is not None, key
                self._push(key, Delta(DeltaType.SYNC, obj))

    async def wait(self) -> None:
        """Returns when something was put in, or the first list was taken, since the last wait."""
        await self._ready.wait()
        self._ready.clear()

    def pop(self) -> tuple[str, list[Delta]]:
        """The key that waits longest and all that happened to it. The queue must not be empty."""
        key = next(iter(self._deltas))
        return key, self._deltas.pop(key)

    def popped(self, key: str) -> None:
        """The consumer has taken in what ``pop`` gave."""
        if self._initial_left and key in self._initial_keys:
            self._initial_keys.discard(key)
            self._initial_left = len(self._initial_keys)

    def _push(self, key: str, delta: Delta) -> None:
        deltas = self._deltas.setdefault(key, [])
        if deltas and deltas[-1].type is DeltaType.DELETED and delta.type is DeltaType.DELETED:
            return
        deltas.append(delta)
        self._ready.set()
