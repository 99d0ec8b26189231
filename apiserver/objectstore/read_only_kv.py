"""A store that is only read, whoever asks."""

from __future__ import annotations

from typing import Any

from apiserver.objectstore.interface import ReadOnlyError
from storage import api


class ReadOnlyKV:
    """An ``api.KV`` whose writes raise ReadOnlyError. Requests that write are refused before, and the server itself has nothing to write:
    it guards a store that others use (an external etcd) against what was forgotten."""

    def __init__(self, kv: api.KV) -> None:
        self.events_are_immediate = kv.events_are_immediate
        self._kv = kv
        self.local_revision = kv.local_revision
        self.read_revision = kv.read_revision
        self.range = kv.range
        self.lease_time_to_live = kv.lease_time_to_live
        self.leases = kv.leases
        self.watch = kv.watch
        self.status = kv.status
        self.put = self.delete_range = self.txn = self.compact = _refused
        self.lease_grant = self.lease_revoke = self.lease_keep_alive = _refused

    @property
    def progress_on_request(self) -> bool:
        return self._kv.progress_on_request

    @property
    def problem(self) -> str:
        return str(getattr(self._kv, "problem", ""))


async def _refused(*_: Any, **__: Any) -> Any:
    raise ReadOnlyError("this server only reads its store")
