"""The space quota: writes that add data are refused once the backend is full; deletes and compaction go on."""

from __future__ import annotations

from typing import Final

from storage import api
from storage.member.request import InternalRequest, LeaseGrantRequest

KEY_OVERHEAD_BYTES: Final = 256
"""Of one version beside key and value: revision, index, page slack (etcd's number)."""
LEASE_OVERHEAD_BYTES: Final = 64


def cost(request: InternalRequest | api.Op) -> int:
    """Bytes that the request may add at most."""
    if isinstance(request, api.PutRequest):
        return KEY_OVERHEAD_BYTES + len(request.key) + len(request.value)
    if isinstance(request, api.TxnRequest):
        return max(sum([cost(each) for each in request.success]), sum([cost(each) for each in request.failure]))
    if isinstance(request, LeaseGrantRequest):
        return LEASE_OVERHEAD_BYTES
    return 0


class Quota:
    """What is in use is measured now and then (``observe``); in between the costs of what was let in are added."""

    __slots__ = ("_charged", "_limit", "_measured", "_near")

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._near = limit_bytes - limit_bytes // 8
        self._measured = 0
        self._charged = 0

    def observe(self, in_use_bytes: int) -> None:
        self._measured = in_use_bytes
        self._charged = 0

    def maybe_charge(self, request: InternalRequest, encoded_bytes: int) -> bool:
        """Let the request in if there is space for it; False if not. What adds nothing is always let in. Far from the limit the size
        of the encoded request is counted instead of what it adds: that is near enough, and spares the hot path a walk."""
        if not self._limit:
            return True
        charged = self._charged + encoded_bytes + KEY_OVERHEAD_BYTES
        if self._measured + charged < self._near:
            self._charged = charged
            return True
        amount = cost(request)
        if not amount:
            return True
        charged = self._charged + amount
        if self._measured + charged > self._limit:
            return False
        self._charged = charged
        return True

    def is_exceeded(self) -> bool:
        return bool(self._limit) and self._measured + self._charged > self._limit
