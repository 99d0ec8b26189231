"""Forgets old versions of keys: what the store keeps is bounded by time, not by what was ever written (apiserver ``storage/etcd3/
compact.go``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from storage import api, errors

_log = logging.getLogger(__name__)

#: kube-apiserver's key, so that API servers of both kinds agree on one store. Its version counts the compactions.
COMPACT_REV_KEY = b"compact_rev_key"


class Compactor:
    """Every ``interval_seconds`` the store is compacted at the revision that it had an interval before: so a watch or a page of a list
    can be gone on with for at least one interval, and for two at most.

    However many API servers there are, one of them does it. The version of ``COMPACT_REV_KEY`` is a clock that each reads and tries to
    advance: 1. both A and B have read 7 at their last turns; 2. A writes the key if its version is 7 still, succeeds, and compacts;
    3. B tries the same, fails, and learns 8 and the revision of now, at which it may compact an interval later, if A does not.

    Without space the key cannot be written, and to compact is what makes space: then each does it, at a revision an interval old.
    """

    def __init__(self, kv: api.KV, interval_seconds: float, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        assert interval_seconds > 0, interval_seconds
        self._kv = kv
        self._interval_seconds = interval_seconds
        self._sleep = sleep
        self._turn = 0
        #: the store's at the last turn, or at one before; 0: none yet
        self._revision = 0

    async def run(self) -> None:
        """Until cancelled. A store that is away for a while, or refuses, is asked again an interval later."""
        while True:
            try:
                await self._maybe_compact()
            except errors.CompactedError:
                pass  # somebody else did it
            except errors.StoreError as error:
                _log.warning("the store could not be compacted: revision=%d error=%s", self._revision, error)
            await self._sleep(self._interval_seconds)

    async def _maybe_compact(self) -> bool:
        """One turn of the clock; whether it was ours, and the store was compacted."""
        due = self._revision
        try:
            answer = await self._kv.txn(
                api.TxnRequest(
                    compare=(api.Compare(key=COMPACT_REV_KEY, target=api.CompareTarget.VERSION, operand=self._turn),),
                    success=(api.PutRequest(key=COMPACT_REV_KEY, value=str(due).encode()),),
                    failure=(api.RangeRequest(key=COMPACT_REV_KEY),),
                )
            )
        except errors.NoSpaceError:
            self._revision = await self._kv.read_revision()
            if due:
                await self._kv.compact(due)
            return bool(due)
        self._revision = answer.header.revision
        if not answer.succeeded:
            [found] = answer.responses
            assert isinstance(found, api.RangeResponse)
            self._turn = found.kvs[0].version if found.kvs else 0
            return False
        self._turn += 1
        if not due:
            return False
        await self._kv.compact(due)
        return True
