"""Forgets old versions of keys: what the store keeps is bounded by time, not by what was ever written (apiserver ``storage/etcd3/
compact.go``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from storage import api, errors

_log = logging.getLogger(__name__)


class Compactor:
    """Every ``interval_seconds`` the store is compacted at the revision that it had an interval before: so a watch or a page of a list
    can be gone on with for at least one interval, and for two at most. Several API servers may do so beside one another."""

    def __init__(self, kv: api.KV, interval_seconds: float, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        assert interval_seconds > 0, interval_seconds
        self._kv = kv
        self._interval_seconds = interval_seconds
        self._sleep = sleep

    async def run(self) -> None:
        """Until cancelled. A store that is away for a while is asked again an interval later."""
        revision = 0
        while True:
            try:
                if revision:
                    await self._kv.compact(revision)
            except errors.CompactedError:
                pass  # somebody else did it
            except errors.UnavailableError as error:
                _log.warning("the store could not be compacted at revision %d: %s", revision, error)
            try:
                revision = await self._kv.read_revision()
            except errors.UnavailableError:
                revision = 0
            await self._sleep(self._interval_seconds)
