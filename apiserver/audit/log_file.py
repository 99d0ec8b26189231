"""``--audit-log-path``: a line for each event, written by a thread, with rotation as lumberjack does it for kube-apiserver.

audit.log                               the one that is written
audit-2026-01-31T17-04-05.123.log[.gz]  full ones, by the time (UTC) at which they were
"""

from __future__ import annotations

import contextlib
import datetime
import gzip
import os
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from apiserver.audit.sinks import BYTES_MAX, EVENTS_MAX, Losses

#: after a failure to write (the disk is full), until the next attempt
FAILURE_PAUSE_SECONDS = 1.0
#: how long lines gather before they are written: a thread that wakes for each would cost the requests more than the line does
GATHER_SECONDS = 0.02
#: what an orderly end waits for the thread
CLOSE_SECONDS = 5.0
_NEWLINE = ord("\n")
_DAY_SECONDS = 86_400.0
_NAME_TIME = "%Y-%m-%dT%H-%M-%S"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """0 is no limit. ``max_age_days`` and ``max_backups`` are of full files."""

    max_bytes: int = 0
    max_age_days: int = 0
    max_backups: int = 0
    compress: bool = False


class LogFile:
    """``path`` None: standard output."""

    def __init__(
        self, path: Path | None, rotation: Rotation, losses: Losses, now: Callable[[], float] = time.time, *, blocking: bool = False
    ) -> None:
        """``blocking``: ``put`` writes, instead of the thread. Raises OSError where the file cannot be written."""
        self._path = path
        self._rotation = rotation
        self._losses = losses
        self._now = now
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._changed = threading.Condition()
        self._ends = False
        self._size = 0
        self._blocking = blocking
        #: the last line is not whole
        self._torn = False
        self._descriptor = 1
        if path is not None:
            self._descriptor = _opened(path)
            self._size = os.fstat(self._descriptor).st_size
        self._thread = threading.Thread(target=self._run, name="audit-log", daemon=True)
        self._thread.start()

    def put(self, event: bytes) -> bool:
        if self._blocking:
            return self._put_now(event)
        with self._changed:
            if len(self._waiting) < EVENTS_MAX and self._waiting_bytes + len(event) <= BYTES_MAX:
                self._waiting.append(event)
                self._waiting_bytes += len(event)
                if len(self._waiting) == 1:
                    self._changed.notify()
                return True
        self._losses.add("log", 1, "the log is slower than the requests")
        return False

    def _put_now(self, event: bytes) -> bool:
        try:
            self._write(deque((event,)))
        except OSError as error:
            self._losses.add("log", 1, error.strerror or str(error))
            return False
        return True

    def close(self) -> None:
        with self._changed:
            self._ends = True
            self._changed.notify()
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._ends:
                    self._changed.wait()
                if not self._ends:
                    self._changed.wait(GATHER_SECONDS)
                batch, self._waiting, self._waiting_bytes = self._waiting, deque(), 0
                if not batch and self._ends:
                    break
            try:
                self._write(batch)
            except OSError as error:
                self._losses.add("log", len(batch), error.strerror or str(error))
                if not self._ends:
                    time.sleep(FAILURE_PAUSE_SECONDS)
        if self._path is not None:
            os.close(self._descriptor)

    def _write(self, batch: deque[bytes]) -> None:
        """As many lines in one write as fit in the file."""
        limit = self._rotation.max_bytes if self._path is not None else 0
        part: list[bytes] = []
        size = 0
        for line in batch:
            if limit and self._size + size + len(line) > limit and (size or self._size):
                self._out(part)
                self._rotate()
                part, size = [], 0
            part.append(line)
            size += len(line)
        self._out(part)

    def _out(self, lines: list[bytes]) -> None:
        if self._torn:
            # a full disk took a part of a line: the next one is not to be lost with it
            lines = [b"\n", *lines]
        data = memoryview(b"".join(lines))
        while data:
            written = os.write(self._descriptor, data)
            self._size += written
            self._torn = written < len(data) and data[written - 1] != _NEWLINE
            data = data[written:]

    def _rotate(self) -> None:
        path = self._path
        assert path is not None
        moment = datetime.datetime.fromtimestamp(self._now(), datetime.UTC)
        backup = path.with_name(f"{path.stem}-{moment.strftime(_NAME_TIME)}.{moment.microsecond // 1000:03d}{path.suffix}")
        number = 0
        while backup.exists():  # two in a millisecond
            number += 1
            later = moment + datetime.timedelta(milliseconds=number)
            backup = path.with_name(f"{path.stem}-{later.strftime(_NAME_TIME)}.{later.microsecond // 1000:03d}{path.suffix}")
        path.rename(backup)
        fresh = _opened(path)
        os.close(self._descriptor)
        self._descriptor, self._size = fresh, 0
        if self._rotation.compress:
            self._compress(backup)
        self._remove_old()

    @staticmethod
    def _compress(path: Path) -> None:
        target = path.with_name(path.name + ".gz")
        with path.open("rb") as plain, os.fdopen(_opened(target), "wb") as out, gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as packed:
            shutil.copyfileobj(plain, packed)
        path.unlink()

    def backups(self) -> list[tuple[float, Path]]:
        """Full files with their times, the newest first."""
        path = self._path
        assert path is not None
        found = []
        for other in path.parent.iterdir():
            name = other.name.removesuffix(".gz")
            if not name.startswith(f"{path.stem}-") or not name.endswith(path.suffix):
                continue
            middle = name[len(path.stem) + 1 : len(name) - len(path.suffix) if path.suffix else None]
            with contextlib.suppress(ValueError):
                moment = datetime.datetime.strptime(middle, f"{_NAME_TIME}.%f").replace(tzinfo=datetime.UTC)
                found.append((moment.timestamp(), other))
        return sorted(found, reverse=True)

    def _remove_old(self) -> None:
        rotation = self._rotation
        kept = self.backups()
        gone = kept[rotation.max_backups :] if rotation.max_backups else []
        if rotation.max_age_days:
            oldest = self._now() - rotation.max_age_days * _DAY_SECONDS
            gone += [entry for entry in kept if entry[0] < oldest]
        for _, path in gone:
            path.unlink(missing_ok=True)


def _opened(path: Path) -> int:
    """Each write is whole, so lines of two servers do not mix; nobody else reads it."""
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
