"""The data directory: its layout, its lock, and errors that name the file."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from storage.errors import DataDirError, DataDirLockedError


class DirectoryLock:
    """Holds a directory for this process; the lock goes with the process, however it ends."""

    def __init__(self, directory: Path) -> None:
        """Make the directory if it is missing. Raises DataDirError, DataDirLockedError."""
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise data_dir_error(directory, error) from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._fd)
            raise DataDirLockedError(f"{directory}: in use by another process") from None

    def release(self) -> None:
        """Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def data_dir_error(path: Path, error: OSError) -> DataDirError:
    return DataDirError(f"{error.filename or path}: {error.strerror or error}")
