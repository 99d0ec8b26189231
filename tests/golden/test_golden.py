"""The golden transcripts against a running server, as a ratchet: each area may only get better.

``ratchet.json`` holds how many scenarios of each area pass at least. ``python tests/golden/ratchet.py`` replays everything and
raises the numbers.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.server_process import ServerProcess

HERE = Path(__file__).resolve().parent
RATCHET: dict[str, int] = json.loads((HERE / "ratchet.json").read_text())
REPLAY_SECONDS_MAX = 300
#: as the server that was recorded: controllers, but no scheduler and no nodes
FLAGS = ("--nodes", "0", "--controllers=*,-scheduler")
#: definitions and their objects were recorded from a server that nobody collects garbage for
CUSTOM_FLAGS = ("--nodes", "0", "--controllers=namespace,serviceaccount")

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


#: Today's rules of names and owner references are not those of the recorded 1.20; those of the oldest release served still are.
OLDEST_FLAGS = (*FLAGS, "--kubernetes-version", "1.25")


def flags_of(area: str) -> tuple[str, ...]:
    if area == "validation-core":
        return OLDEST_FLAGS
    return CUSTOM_FLAGS if area.startswith("crd-") else FLAGS


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[ServerProcess]:
    with tempfile.TemporaryDirectory() as directory:
        made = ServerProcess(Path(directory), *request.param, users={"alice": ("devs",)})
        made.start()
        yield made
        made.stop()


def replay(server: ServerProcess, area: str) -> tuple[int, str]:
    """How many scenarios of the area pass, and the replayer's output."""
    command = [sys.executable, str(HERE / "golden.py"), "replay", "--server", f"https://127.0.0.1:{server.port}"]
    command += ["--token", server.token, "--as-token", f"alice={server.tokens['alice']}", str(HERE / f"{area}.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=REPLAY_SECONDS_MAX)
    found = re.search(r"(\d+) passed, \d+ failed", done.stdout)
    assert found, done.stdout + done.stderr
    return int(found[1]), done.stdout


@pytest.mark.parametrize(("server", "area"), [(flags_of(area), area) for area in sorted(RATCHET)], indirect=["server"])
def test_area_passes_as_far_as_it_did(server: ServerProcess, area: str) -> None:
    passed, output = replay(server, area)
    assert passed >= RATCHET[area], output
