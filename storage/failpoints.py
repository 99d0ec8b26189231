"""Named places in the code where a test can make something happen: raise, kill the process, count.

Code calls ``hit("room.name")`` before and after durable steps. While nothing is armed that is one load and one test. Only tests arm
points; there is no way to do so from a command line or the environment.

    with failpoints.armed("wal.before_write", lambda: os._exit(9)): ...
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Final

NAMES: Final = frozenset(
    {
        "wal.before_create",
        "wal.after_create",
        "wal.before_cut",
        "wal.after_cut",
        "wal.before_write",
        "wal.after_write",
        "wal.before_rotate",
        "wal.after_rotate",
        "wal.before_segment_is_named",
        "wal.after_segment_is_named",
        "wal.before_snapshot_marker",
        "wal.after_snapshot_marker",
        "wal.before_restart",
        "wal.after_restart",
        "wal.before_release",
        "wal.after_release",
        "backend.before_commit",
        "backend.after_commit",
        "mvcc.before_compaction_slice",
        "mvcc.after_compaction_slice",
        "backend.before_defragmented",
        "backend.after_defragmented",
        "member.before_apply",
        "member.after_apply",
        "member.before_received",
        "member.after_received",
        "member.before_installed",
        "member.after_installed",
    }
)
"""Every point there is; a test goes through all of them."""

_armed: dict[str, Callable[[], None]] = {}


def hit(name: str) -> None:
    """Run what is armed at ``name``, if anything."""
    if _armed:
        action = _armed.get(name)
        if action is not None:
            action()


def arm(name: str, action: Callable[[], None]) -> None:
    if name not in NAMES:
        raise ValueError(f"no failpoint {name!r}")
    _armed[name] = action


def disarm(name: str) -> None:
    _armed.pop(name, None)


@contextlib.contextmanager
def armed(name: str, action: Callable[[], None]) -> Iterator[None]:
    arm(name, action)
    try:
        yield
    finally:
        disarm(name)
