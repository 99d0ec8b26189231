"""The clock that every controller is given: the wall for stamped fields, a monotonic one for durations, and sleep.

Tests pass a virtual one. Wall time is UTC; Kubernetes stamps whole seconds (``metav1.Time``) or microseconds (``MicroTime``).
"""

from __future__ import annotations

import asyncio
import datetime
import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime.datetime:
        """The wall clock, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> datetime.datetime:
        return datetime.datetime.now(datetime.UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def format_time(moment: datetime.datetime) -> str:
    """``2024-05-01T10:00:00Z``, the form of ``metav1.Time``: parts of a second are cut off."""
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(moment: datetime.datetime) -> str:
    """``2024-05-01T10:00:00.123456Z``, the form of ``metav1.MicroTime``."""
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str | None) -> datetime.datetime | None:
    """The moment of an RFC 3339 time; None of an empty or malformed one (the API server lets none of those through)."""
    if not text:
        return None
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
