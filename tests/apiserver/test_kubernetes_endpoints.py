"""Names under which API servers say that they live."""

from __future__ import annotations

import pytest

from apiserver.kubernetes_endpoints import ApiAddress, KubernetesEndpoints
from tests.apiserver.api import Api


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("10.0.0.1:5", ApiAddress("10.0.0.1", 5)),
        ("[fd00::1]:2", ApiAddress("fd00::1", 2)),
        # kube-apiserver's are addresses alone
        ("10.0.0.1", ApiAddress("10.0.0.1", 7)),
        ("fd00::1:2", ApiAddress("fd00::1:2", 7)),
    ],
)
async def test_names_of_servers(api: Api, name: str, address: ApiAddress) -> None:
    endpoints = KubernetesEndpoints(api.server.registry, ApiAddress("127.0.0.1", 7), lambda: True)
    assert endpoints._parsed(name) == address
    assert endpoints._parsed(str(address)) == address
