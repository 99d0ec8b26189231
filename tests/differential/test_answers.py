"""Our answers to the recorded requests, one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.differential.__main__ import answers, expected
from tests.differential.differences import ACCEPTED, LOOSE
from tests.differential.exchange import Server
from tests.differential.requests import REQUESTS
from tests.e2e.server_process import ServerProcess

EXPECTED = expected()
NAMES = [ask.name for ask in REQUESTS if not ask.quiet]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    directory: Path = tmp_path_factory.mktemp("differential")
    server = ServerProcess(directory, "--no-controllers", "--nodes", "0")
    server.start()
    try:
        return answers(Server(host="127.0.0.1", port=server.port, token=server.token))
    finally:
        server.stop()


@pytest.mark.e2e
@pytest.mark.parametrize("name", NAMES)
def test_the_answer_is_a_real_servers(name: str, ours: dict[str, Any]) -> None:
    assert ours[name] == EXPECTED[name]


def test_every_request_has_a_name_of_its_own_and_an_answer() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert set(NAMES) == set(EXPECTED)
    assert set(NAMES) >= ACCEPTED | LOOSE
