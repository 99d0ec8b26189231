"""A server whose store does not do what it should: one with an alarm takes no writes, and whoever shall mend that needs the server and its
client port; one without a quorum does not answer, and must not hold up the end of the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from apiserver import server as api_server
from apiserver.config import ServerConfig
from storage import api as storage_api
from storage import errors
from tests.apiserver.api import running
from tests.fakes.memory_kv import MemoryKV

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


class AlarmedKV(MemoryKV):
    """``alarm`` is what every write gets, as long as it is set; deletions as etcd lets them."""

    alarm: errors.StoreError | None = None

    def _apply(self) -> None:
        if self.alarm is not None:
            raise self.alarm
        super()._apply()

    async def delete_range(self, request: storage_api.DeleteRangeRequest) -> storage_api.DeleteRangeResponse:
        if isinstance(self.alarm, errors.CorruptAlarmError):
            raise self.alarm
        return self.applier.delete_range(request)


async def eventually(found: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not found():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("alarm", [errors.NoSpaceError(), errors.CorruptAlarmError()])
async def test_a_server_starts_reads_and_writes_the_rest_once_the_alarm_is_off(
    server_config: ServerConfig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, alarm: errors.StoreError
) -> None:
    monkeypatch.setattr(api_server, "POSTPONED_SECONDS", 0.01)
    kv = AlarmedKV()
    async with running(server_config, kv) as first:
        await first.created(CONFIGMAPS, {"metadata": {"name": "kept"}})
    before = kv.store.current_revision
    kv.alarm = alarm
    # other flags than before: its configuration, at least, is to be written
    changed = server_config.model_copy(update={"event_ttl_seconds": server_config.event_ttl_seconds + 1})
    async with running(changed, kv) as second:
        assert str(alarm) in caplog.text and "alarm list" in caplog.text
        assert (await second.get("/readyz")).status == 200
        assert (await second.get(f"{CONFIGMAPS}/kept")).status == 200
        refused = await second.post(CONFIGMAPS, {"metadata": {"name": "new"}})
        assert (refused.status, str(alarm) in refused.message) == (500, True)
        assert kv.store.current_revision == before
        kv.alarm = None
        await eventually(lambda: kv.store.current_revision > before)
        await second.created(CONFIGMAPS, {"metadata": {"name": "new"}})


async def test_the_end_does_not_wait_for_a_store_that_does_not_answer(server_config: ServerConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_server, "LEAVE_SECONDS", 0.01)
    async with running(server_config) as api:
        monkeypatch.setattr(api.server._endpoints, "leave", asyncio.Event().wait)
        leaving = asyncio.create_task(api.server.leave())
        ended, _ = await asyncio.wait({leaving}, timeout=5)
        leaving.cancel()
        assert ended
