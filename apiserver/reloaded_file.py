"""A configuration file that takes effect without a restart: it is looked at when somebody asks, at most once in ``LOOK_SECONDS``. One that
cannot be used leaves the one before in force, with one warning."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")

LOOK_SECONDS = 1.0


class ReloadedFile(Generic[T]):
    def __init__(self, path: Path, parse: Callable[[str], T], now: Callable[[], float]) -> None:
        """``now``: a monotonic clock in seconds. Raises what ``parse`` raises (ValueError), and OSError."""
        self.path = path
        self._parse = parse
        self._now = now
        self._looked_at = now()
        self._signature = _signature(path)
        self._value = parse(path.read_text(encoding="utf-8"))

    def current(self) -> T:
        """The same object as long as the file is the same."""
        now = self._now()
        if now - self._looked_at < LOOK_SECONDS:
            return self._value
        self._looked_at = now
        signature = _signature(self.path)
        if signature != self._signature:
            self._signature = signature
            try:
                self._value = self._parse(self.path.read_text(encoding="utf-8"))
                logger.info("a configuration was read again: file=%s", self.path)
            except (OSError, ValueError) as error:
                logger.warning("a changed configuration cannot be used, the one before stays in force: file=%s error=%s", self.path, error)
        return self._value


def _signature(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_size, found.st_ino)
