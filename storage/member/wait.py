"""Who waits for which request: the one place where a write's caller sleeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

W = TypeVar("W")


class Wait(Generic[W]):
    """Waiters by request id, oldest first."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[W, float]] = {}

    def register(self, request_id: int, waiter: W, now: float) -> None:
        """``now`` (monotonic seconds) is for ``overdue``."""
        assert request_id not in self._waiting, request_id
        self._waiting[request_id] = (waiter, now)

    def get(self, request_id: int) -> W | None:
        found = self._waiting.get(request_id)
        return None if found is None else found[0]

    def take(self, request_id: int) -> W | None:
        """The waiter of a request, who waits no longer; None for a request of another process or a forgotten one."""
        found = self._waiting.pop(request_id, None)
        return None if found is None else found[0]

    def overdue(self, before: float) -> Iterator[W]:
        """Take the waiters that were registered before that time."""
        while self._waiting:
            request_id = next(iter(self._waiting))
            waiter, since = self._waiting[request_id]
            if since >= before:
                return
            del self._waiting[request_id]
            yield waiter

    def take_all(self) -> list[W]:
        waiters = [waiter for waiter, _ in self._waiting.values()]
        self._waiting.clear()
        return waiters

    def __len__(self) -> int:
        return len(self._waiting)


class RequestIds:
    """Ids that no earlier run of this member has used: 16 bits of the member's id, 40 of the start time in ms, 8 that count; the count
    runs over into the time, which it would catch up with only at more than 256 requests a millisecond (etcd's scheme)."""

    __slots__ = ("_next",)

    def __init__(self, member_id: int, started_ms: int) -> None:
        self._next = (member_id & 0xFFFF) << 48 | (started_ms & 0xFF_FFFF_FFFF) << 8

    def next(self) -> int:
        self._next += 1
        return self._next
