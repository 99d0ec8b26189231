"""The client library of Node's world against the ``sampan`` fixture."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from apiserver.pytest_plugin import SampanServer

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

#: the last line that runs on the Node of Debian's and Ubuntu's current releases
LIBRARY = "@kubernetes/client-node@1.4.0"
INSTALL_SECONDS_MAX = 300
RUN_SECONDS_MAX = 120
SCRIPT = Path(__file__).parent / "node_client.mjs"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the library in it."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not on the PATH")
    directory = tmp_path_factory.mktemp("node")
    installed = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error", LIBRARY],
        cwd=directory, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=INSTALL_SECONDS_MAX,
    )  # fmt: skip
    if installed.returncode != 0:
        pytest.skip(f"npm can't get {LIBRARY} here: {installed.stdout[-300:]}")
    shutil.copy(SCRIPT, directory)
    return directory


def test_lists_watches_informers_and_patches(sampan: SampanServer, sampan_namespace: str, library: Path) -> None:
    done = subprocess.run(
        ["node", SCRIPT.name, sampan_namespace],
        cwd=library, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=RUN_SECONDS_MAX,
        env=dict(os.environ, KUBECONFIG=str(sampan.kubeconfig)),
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.strip().endswith("done"), done.stdout
