"""Files named by flags that can be read only once, as ``<(…)`` of a shell makes them: kept in memory, to be read as often as is needed."""

from __future__ import annotations

import argparse
import os
import stat
from pathlib import Path


def keep(flags: argparse.Namespace) -> None:
    """Put a file in memory in the place of each pipe among the flags' paths. It lives as long as the process; the pipe has been read to its
    end. A path that cannot be looked at stays as it is, and is told of where it is used."""
    for name, value in vars(flags).items():
        if isinstance(value, Path) and _is_pipe(value):
            setattr(flags, name, _in_memory(name, value))
        elif isinstance(value, list) and any(isinstance(each, Path) and _is_pipe(each) for each in value):
            setattr(flags, name, [_in_memory(name, each) if _is_pipe(each) else each for each in value])


def _is_pipe(path: Path) -> bool:
    try:
        return stat.S_ISFIFO(path.stat().st_mode)
    except OSError:
        return False


def _in_memory(name: str, path: Path) -> Path:
    if not hasattr(os, "memfd_create"):
        return path
    content = path.read_bytes()
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
    os.write(descriptor, content)
    return Path(f"/proc/self/fd/{descriptor}")
