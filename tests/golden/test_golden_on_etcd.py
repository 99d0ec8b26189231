"""A share of the golden transcripts with a real etcd as the store; all of them with ``SAMPAN_TEST_ETCD=1`` (README, "Long runs")."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.server_process import ServerProcess
from tests.golden.test_golden import FLAGS, RATCHET, replay
from tests.storage.etcd_process import EtcdProcess

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with tempfile.TemporaryDirectory() as directory, EtcdProcess(Path(directory) / "etcd") as etcd:
        made = ServerProcess(Path(directory) / "server", *FLAGS, "--etcd-servers", f"http://{etcd.target}", users={"alice": ("devs",)})
        made.start()
        yield made
        made.stop()


@pytest.mark.parametrize("area", ["crud", "watch"])
def test_area_passes_as_far_as_with_the_embedded_store(server: ServerProcess, area: str) -> None:
    passed, output = replay(server, area)
    assert passed >= RATCHET[area], output
