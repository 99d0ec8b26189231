"""How far the backend is, compared with the log: an entry is applied exactly once, over any crash.

The backend holds, in the same batch as what an entry wrote, the index of that entry (``consistent_index``). After a restart the log is
replayed from the one after it.
"""

from __future__ import annotations

from storage.errors import CorruptError
from storage.wal.wal import Replay


def check(consistent_index: int, replay: Replay, *, backend_file: str, log_dir: str) -> None:
    """Raises CorruptError when backend and log cannot belong together.

    The backend runs behind the log, never ahead: an entry is applied after it is durable. And never before the snapshot marker: the
    marker is written after the backend was synced. So either case means that one of the two was lost, replaced or cut.
    """
    last_index = replay.entries[-1].index if replay.entries else replay.snapshot.index
    if consistent_index > last_index:
        raise CorruptError(
            f"{backend_file} holds entry {consistent_index}, but the log in {log_dir} ends at {last_index}: a part of the log is missing"
        )
    if consistent_index < replay.snapshot.index:
        raise CorruptError(
            f"{backend_file} ends at entry {consistent_index}, but the log in {log_dir} was released up to {replay.snapshot.index}: "
            "the backend is missing or older than the log"
        )
