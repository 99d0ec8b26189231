"""The protocol of a backend and the limits that its implementations share."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Protocol

#: etcd's ``backend-batch-interval``: how long a write may wait before its batch is committed.
BATCH_INTERVAL_SECONDS = 0.1

#: etcd's ``backend-batch-limit``: a batch with so many operations is committed at the next chance, however young it is.
BATCH_OPERATIONS_MAX = 10_000

#: While one batch is on its way to the disk the next one grows. Beyond this the writer waits for the disk: a few hundred MB of
#: buffered values is the point where a stalled disk must be felt rather than hidden.
BUFFERED_OPERATIONS_MAX = 20 * BATCH_OPERATIONS_MAX


class Bucket(enum.IntEnum):
    """The named databases; ``BUCKET_NAMES`` holds their names on disk, which are etcd's."""

    KEY = 0
    META = 1
    LEASE = 2
    ALARM = 3
    CLUSTER = 4
    MEMBERS = 5
    MEMBERS_REMOVED = 6
    AUTH = 7
    AUTH_USERS = 8
    AUTH_ROLES = 9


BUCKET_NAMES: tuple[bytes, ...] = (
    b"key",
    b"meta",
    b"lease",
    b"alarm",
    b"cluster",
    b"members",
    b"members_removed",
    b"auth",
    b"authUsers",
    b"authRoles",
)
assert len(BUCKET_NAMES) == len(Bucket), (BUCKET_NAMES, list(Bucket))


PreCommitHook = Callable[[], None]


class BackendView(Protocol):
    """The backend as it was at one moment, whatever is written meanwhile. Reads may be made from any thread, one at a time; ``close``
    is for the owner of the backend. All reads raise UnavailableError if the backend had to take the view back."""

    def range(self, bucket: Bucket, start: bytes, end: bytes | None, limit: int = 0) -> list[tuple[bytes, bytes]]: ...

    def keys(self, bucket: Bucket, start: bytes, end: bytes | None, limit: int = 0) -> list[bytes]: ...

    def sizes(self, bucket: Bucket, start: bytes, end: bytes | None, limit: int = 0) -> list[tuple[bytes, int]]:
        """As ``range``, with the size of each value instead of the value."""

    def chunk(self, bucket: Bucket, start: bytes, bytes_max: int) -> list[tuple[bytes, bytes]]:
        """The pairs from ``start`` on until they are ``bytes_max`` or just above, at least one if there is one."""

    def close(self) -> None:
        """Idempotent. A read that is under way is waited for; a later one raises UnavailableError."""


class Defragmentation(Protocol):
    """Rewriting the backend's file without its holes, while it is in use. The order: ``catch_up`` in any thread, then ``maybe_finish``
    in the owner's, both again until that is True; ``abandon`` at the end in any case, in the owner's."""

    def catch_up(self) -> None:
        """Copy what is not copied yet; takes as long as writing that does. Raises OSError."""

    def maybe_finish(self) -> bool:
        """Go on with the copy if nothing is missing in it; does not wait. What was written before the first call is in the new file. From
        then on new writes stay in memory until the end, so after few calls one succeeds. Raises OSError."""

    def abandon(self) -> None:
        """Drop an unfinished copy, when a ``catch_up`` that is under way has ended; nothing happens to a finished one."""


class Backend(Protocol):
    """An ordered map of bytes in buckets. Ranges are [start, end); ``end`` None is no end; ``limit`` 0 is no limit."""

    def get(self, bucket: Bucket, key: bytes) -> bytes | None:
        """The value of ``key``, written or not yet written to disk."""

    def range(self, bucket: Bucket, start: bytes, end: bytes | None, limit: int = 0) -> list[tuple[bytes, bytes]]:
        """The pairs of the range in key order."""

    def keys(self, bucket: Bucket, start: bytes, end: bytes | None, limit: int = 0) -> list[bytes]:
        """The keys of the range in order."""

    def put(self, bucket: Bucket, key: bytes, value: bytes) -> None: ...

    def delete(self, bucket: Bucket, key: bytes) -> None:
        """Remove ``key``; nothing happens if it is not there."""

    def durable_get(self, bucket: Bucket, key: bytes) -> bytes | None:
        """The value that a crash at this moment would leave behind."""

    def set_pre_commit(self, hook: PreCommitHook | None) -> None:
        """``hook`` is called at the start of every commit and may write: what it writes is in the batch."""

    def maybe_commit(self, now: float) -> bool:
        """Start a commit if the batch is old or large enough; ``now`` is a monotonic time in seconds. Never waits for the disk,
        except past ``BUFFERED_OPERATIONS_MAX``. Raises CorruptError or OSError if an earlier commit failed."""

    def commit(self) -> None:
        """Make everything written so far durable, and wait for it."""

    def view(self) -> BackendView:
        """Everything written so far, as one state that does not change; at once, without the disk. Not within an entry. A view keeps
        replaced data alive: it must be closed. Raises OSError if an earlier commit failed."""

    def begin_defragmentation(self) -> Defragmentation:
        """Raises OSError; UnavailableError if one is under way."""

    def size(self) -> int:
        """Bytes of the file."""

    def size_in_use(self) -> int:
        """Bytes of the file that hold data; the rest is reused by later writes."""

    def close(self) -> None:
        """Commit and release the file; idempotent."""
