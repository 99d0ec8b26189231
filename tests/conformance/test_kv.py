"""The KV suite on each store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage import api
from storage.config import MemberConfig
from storage.member.member import Member
from tests.conformance.kv_suite import KVConformance
from tests.fakes.follower_kv import FollowerKV
from tests.fakes.memory_kv import MemoryKV
from tests.fakes.travelling_kv import TravellingKV
from tests.storage.member.cluster import running_cluster


class TestMember(KVConformance):
    @pytest.fixture
    async def kv(self, tmp_path: Path) -> AsyncIterator[api.KV]:
        member = Member(MemberConfig(data_dir=tmp_path / "data", unsafe_no_fsync=True))
        await member.start()
        yield member
        await member.stop()


@pytest.mark.parametrize("role", ["leader", "follower"])
class TestMemberOfThree(KVConformance):
    """Over the transport in memory. The other two are there all the time."""

    @pytest.fixture
    async def kv(self, tmp_path: Path, role: str) -> AsyncIterator[api.KV]:
        async with running_cluster(tmp_path) as cluster:
            yield cluster.leader() if role == "leader" else cluster.followers()[0]


class TestMemoryKV(KVConformance):
    limits_requests = False

    @pytest.fixture
    async def kv(self) -> AsyncIterator[api.KV]:
        yield MemoryKV()


@pytest.mark.parametrize("progress_on_request", [True, False])
class TestTravellingKV(KVConformance):
    limits_requests = False

    @pytest.fixture
    async def kv(self, progress_on_request: bool) -> AsyncIterator[api.KV]:
        kv = TravellingKV(progress_on_request=progress_on_request)
        yield kv
        kv.close()


class TestFollowerKV(KVConformance):
    limits_requests = False

    @pytest.fixture
    async def kv(self) -> AsyncIterator[api.KV]:
        kv = FollowerKV()
        yield kv
        kv.close()
