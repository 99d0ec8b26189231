"""One lease, and its form on disk: ``leasepb.Lease`` {1: ID, 2: TTL, 3: RemainingTTL}, all int64 varints, TTLs in seconds."""

from __future__ import annotations

from storage.errors import CorruptError
from storage.mvcc.kv_codec import read_varint, to_int64, varint

NO_LEASE = 0


class Lease:
    """``expiry`` is in monotonic seconds, infinity while this member does not lead; ``remaining_ttl_seconds`` is the checkpoint, 0 for
    none; ``has_checkpoint`` is also true while one is on its way through the log."""

    __slots__ = ("expiry", "has_checkpoint", "id", "keys", "remaining_ttl_seconds", "ttl_seconds")

    def __init__(self, id: int, ttl_seconds: int, remaining_ttl_seconds: int = 0) -> None:
        self.id = id
        self.ttl_seconds = ttl_seconds
        self.remaining_ttl_seconds = remaining_ttl_seconds
        self.has_checkpoint = remaining_ttl_seconds > 0
        self.keys: set[bytes] = set()
        self.expiry = float("inf")

    @property
    def run_seconds(self) -> int:
        """How long it runs when it is started anew: the checkpointed remainder, or else the whole TTL."""
        return self.remaining_ttl_seconds or self.ttl_seconds

    def refresh(self, now: float, extend_seconds: float = 0.0) -> None:
        """Run from ``now`` on."""
        self.expiry = now + extend_seconds + self.run_seconds

    def encode(self) -> bytes:
        fields = ((b"\x08", self.id), (b"\x10", self.ttl_seconds), (b"\x18", self.remaining_ttl_seconds))
        return b"".join(tag + varint(number) for tag, number in fields if number)


def decode(data: bytes) -> Lease:
    """Raises CorruptError."""
    numbers = [0, 0, 0]
    position = 0
    try:
        while position < len(data):
            tag, position = read_varint(data, position)
            number, position = read_varint(data, position)
            if tag not in (0x08, 0x10, 0x18):
                raise CorruptError(f"a lease in the backend has a field with tag {tag:#x}")
            numbers[(tag >> 3) - 1] = to_int64(number)
    except IndexError as error:
        raise CorruptError("a lease in the backend is cut short") from error
    return Lease(*numbers)
