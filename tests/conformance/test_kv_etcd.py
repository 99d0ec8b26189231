"""The KV suite on a real etcd."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage import api
from storage.etcdclient import ClientConfig, EtcdKV
from tests.conformance.kv_suite import KVConformance
from tests.storage.etcd_process import EtcdProcess


class TestEtcd(KVConformance):
    @pytest.fixture
    async def kv(self, tmp_path: Path) -> AsyncIterator[api.KV]:
        with EtcdProcess(tmp_path / "data") as process:
            kv = EtcdKV(ClientConfig(endpoints=(f"http://{process.target}",)))
            await kv.start()
            yield kv
            await kv.close()
