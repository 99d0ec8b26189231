"""What every sink is, and the count of what was lost."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Protocol

logger = logging.getLogger(__name__)

#: events that wait for a sink; more are dropped (kube-apiserver's buffer of a batch)
EVENTS_MAX = 10_000
#: and their bytes, since events may hold bodies
BYTES_MAX = 64 * 1024 * 1024


class Sink(Protocol):
    def put(self, event: bytes) -> bool:
        """Take one event; whether it was taken. Never raises; waits only where it was told to (``blocking``)."""

    def close(self) -> None:
        """Write what is there, and end. May wait a moment."""


class Losses:
    """Of all sinks, for metrics; told in the log once for each power of ten."""

    def __init__(self) -> None:
        self.by_plugin: Counter[str] = Counter()

    def add(self, plugin: str, count: int, why: str) -> None:
        before = self.by_plugin[plugin]
        self.by_plugin[plugin] = before + count
        if len(str(before)) != len(str(before + count)) or not before:
            logger.warning("audit events were lost: plugin=%s total=%s reason=%s", plugin, before + count, why)
