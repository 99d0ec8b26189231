from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from apiserver.config import ServerConfig
from tests.apiserver.api import Api, config_in, running


@pytest.fixture(scope="session")
def server_config(tmp_path_factory: pytest.TempPathFactory) -> ServerConfig:
    directory: Path = tmp_path_factory.mktemp("server")
    return config_in(directory)


@pytest.fixture
async def api(server_config: ServerConfig) -> AsyncIterator[Api]:
    """A fresh API server with the namespace ``ns-a`` and its default ServiceAccount."""
    async with running(server_config) as found:
        await found.created("/api/v1/namespaces", {"metadata": {"name": "ns-a"}})
        await found.created("/api/v1/namespaces/ns-a/serviceaccounts", {"metadata": {"name": "default"}})
        yield found
