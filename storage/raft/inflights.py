"""The window of appends that are on their way to one follower."""

from __future__ import annotations

from collections import deque


class Inflights:
    """Bounded in messages (``count_max``) and in bytes of entry data (``bytes_max``, 0: not bounded).

    The message that passes ``bytes_max`` is still let in, so that one entry larger than the window is not stuck; then it is full.

    Example: count_max 3; appends that end at 5, 7 and 9 are sent, the window is full; an answer for 8 frees the first two.
    """

    __slots__ = ("_ends", "bytes", "bytes_max", "count_max")

    def __init__(self, *, count_max: int, bytes_max: int) -> None:
        self.count_max = count_max
        self.bytes_max = bytes_max
        self.bytes = 0
        self._ends: deque[tuple[int, int]] = deque()  # (last index, bytes) of each message, in order

    def __len__(self) -> int:
        return len(self._ends)

    def is_full(self) -> bool:
        return len(self._ends) >= self.count_max or (self.bytes_max > 0 and self.bytes >= self.bytes_max)

    def add(self, last_index: int, size: int) -> None:
        """An append whose last entry is ``last_index`` leaves."""
        assert not self.is_full(), "an append was sent into a full window"
        assert not self._ends or self._ends[-1][0] < last_index, (self._ends[-1][0], last_index)
        self._ends.append((last_index, size))
        self.bytes += size

    def free_up_to(self, index: int) -> None:
        """The follower holds all up to ``index``."""
        ends = self._ends
        while ends and ends[0][0] <= index:
            self.bytes -= ends.popleft()[1]

    def clear(self) -> None:
        self._ends.clear()
        self.bytes = 0
