"""Indexes of an indexed job as text: ``1,3-5,7``, increasing, below the number of completions."""

from __future__ import annotations

from collections.abc import Iterator


class IndexesError(ValueError):
    """The text is none; its words are Kubernetes'."""


def _number(text: str, completions: int) -> int:
    digits = text.removeprefix("-").removeprefix("+")
    if not (digits.isascii() and digits.isdigit()):
        raise IndexesError(f'cannot convert string to integer for index: "{text}"')
    found = int(text)
    if found >= completions:
        raise IndexesError(f'too large index: "{text}"')
    return found


def _interval(text: str, completions: int) -> tuple[int, int]:
    limits = text.split("-")
    if len(limits) > 2:
        raise IndexesError(
            f"the fragment \"{text}\" violates the requirement that an index interval can have at most two parts separated by '-'"
        )
    first = _number(limits[0], completions)
    if len(limits) == 1:
        return first, first
    last = _number(limits[1], completions)
    if first >= last:
        raise IndexesError(f"non-increasing order, previous: {first}, current: {last}")
    return first, last


def intervals(text: str, completions: int) -> Iterator[tuple[int, int]]:
    """Raises IndexesError where the text stops being one."""
    before: int | None = None
    for part in text.split(",") if text else ():
        first, last = _interval(part, completions)
        if before is not None and before >= first:
            raise IndexesError(f"non-increasing order, previous: {before}, current: {first}")
        before = last
        yield first, last


def count(text: str, completions: int) -> int:
    """How many indexes it names. Raises IndexesError."""
    return sum(last - first + 1 for first, last in intervals(text, completions))


def overlap(completed: str, failed: str, completions: int) -> int | None:
    """The first index that both name; None where there is none, and where one of them is no such text."""
    try:
        done, lost = list(intervals(completed, completions)), list(intervals(failed, completions))
    except IndexesError:
        return None
    position = 0
    for first, last in lost:
        while position < len(done) and done[position][1] < first:
            position += 1
        if position < len(done) and done[position][0] <= last:
            return max(first, done[position][0])
    return None
