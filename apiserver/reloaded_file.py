"""A configuration file that takes effect without a restart: it is looked at when somebody asks, at most once in ``LOOK_SECONDS``. One that
cannot be used leaves the one before in force, with one warning."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")

LOOK_SECONDS = 1.0


class ReloadObserver(Protocol):
    def read(self, text: str) -> None:
        """What stands in the file at the start."""

    def reloaded(self, text: str | None) -> None:
        """What is in force now; None: it has changed and cannot be used."""


class ReloadedFile(Generic[T]):
    def __init__(self, path: Path, parse: Callable[[str], T], now: Callable[[], float], observer: ReloadObserver | None = None) -> None:
        """``now``: a monotonic clock in seconds. Raises what ``parse`` raises (ValueError), and OSError."""
        self._observer = observer
        self.path = path
        self._parse = parse
        self._now = now
        self._looked_at = now()
        self._signature = _signature(path)
        text = path.read_text(encoding="utf-8")
        self._value = parse(text)
        if observer is not None:
            observer.read(text)

    def current(self) -> T:
        """The same object as long as the file is the same."""
        now = self._now()
        if now - self._looked_at < LOOK_SECONDS:
            return self._value
        self._looked_at = now
        signature = _signature(self.path)
        if signature != self._signature:
            self._signature = signature
            text: str | None = None
            try:
                text = self.path.read_text(encoding="utf-8")
                self._value = self._parse(text)
                logger.info("a configuration was read again: file=%s", self.path)
            except (OSError, ValueError) as error:
                logger.warning("a changed configuration cannot be used, the one before stays in force: file=%s error=%s", self.path, error)
                text = None
            if self._observer is not None:
                self._observer.reloaded(text)
        return self._value


def _signature(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_size, found.st_ino)
