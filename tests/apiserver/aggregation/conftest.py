"""An API server in process with an extension API server behind it, on a real TLS connection."""

from __future__ import annotations

import asyncio
import base64
import datetime
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from apiserver.cli.pki import Authority, KeyPair, Pki, Subject
from tests.apiserver.api import Api, config_in, running
from tests.fakes.extension_server import GROUP, VERSION, ExtensionServer

API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
NAME = f"{VERSION}.{GROUP}"
FERRETS = f"/apis/{GROUP}/{VERSION}/namespaces/ns-a/ferrets"


@dataclass(frozen=True, slots=True)
class Keys:
    """``serving``: the extension server's, for the service's name in the cluster."""

    ca: bytes
    serving: KeyPair
    front_proxy_ca: Path
    front_proxy: KeyPair


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    directory = tmp_path_factory.mktemp("extension")
    now = datetime.datetime.now(datetime.UTC)
    authority = Authority(directory, "extension-ca", now)
    names = (x509.DNSName("zoo.ns-a.svc"),)
    serving = authority.leaf(
        KeyPair(directory / "tls.crt", directory / "tls.key"), Subject("zoo"), (ExtendedKeyUsageOID.SERVER_AUTH,), names
    )
    pki = Pki(directory / "pki", now)
    return Keys(authority.files.certificate.read_bytes(), serving, pki.front_proxy_ca().certificate, pki.front_proxy_client())


@pytest.fixture
async def api(tmp_path_factory: pytest.TempPathFactory, keys: Keys) -> AsyncIterator[Api]:
    front = keys.front_proxy
    config = config_in(tmp_path_factory.mktemp("server"), proxy_client_cert_file=front.certificate, proxy_client_key_file=front.key)
    async with running(config) as found:
        await found.created("/api/v1/namespaces", {"metadata": {"name": "ns-a"}})
        yield found


@pytest.fixture
async def extension(keys: Keys) -> AsyncIterator[ExtensionServer]:
    async with ExtensionServer(keys.serving.certificate, keys.serving.key, keys.front_proxy_ca).running() as server:
        yield server


def api_service(keys: Keys, port: int = 443, **spec: Any) -> dict[str, Any]:
    found = {
        "group": GROUP,
        "version": VERSION,
        "groupPriorityMinimum": 2000,
        "versionPriority": 10,
        "service": {"namespace": "ns-a", "name": "zoo", "port": port},
        "caBundle": base64.b64encode(keys.ca).decode(),
        **spec,
    }
    return {"metadata": {"name": NAME}, "spec": {key: value for key, value in found.items() if value is not None}}


def external_service(host: str = "localhost") -> dict[str, Any]:
    return {"metadata": {"name": "zoo"}, "spec": {"type": "ExternalName", "externalName": host}}


async def condition(api: Api) -> dict[str, Any]:
    found = (await api.get(f"{API_SERVICES}/{NAME}")).json["status"].get("conditions") or [{}]
    return dict(found[0])


async def until(check: Callable[[], Awaitable[Any]]) -> Any:
    """What ``check`` answers once that is true."""
    async with asyncio.timeout(20):
        while True:
            found = await check()
            if found:
                return found
            await asyncio.sleep(0.02)


async def condition_with(api: Api, reason: str) -> dict[str, Any]:
    async def check() -> dict[str, Any] | None:
        found = await condition(api)
        return found if found.get("reason") == reason else None

    return dict(await until(check))


@pytest.fixture
async def zoo(api: Api, extension: ExtensionServer, keys: Keys) -> ExtensionServer:
    """The extension server behind the API server, available and discovered."""
    await api.created("/api/v1/namespaces/ns-a/services", external_service())
    await api.created(API_SERVICES, api_service(keys, extension.port))
    await condition_with(api, "Passed")

    async def discovered() -> bool:
        groups = (await api.get("/apis", headers={"accept": AGGREGATED})).json["items"]
        return any(g["metadata"]["name"] == GROUP and g["versions"][0]["freshness"] == "Current" for g in groups)

    await until(discovered)
    extension.seen.clear()
    return extension


AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
