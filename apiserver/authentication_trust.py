"""What further API servers (metrics-server, aggregated ones) need to know in order to trust whom this one trusts: the ConfigMap
``kube-system/extension-apiserver-authentication`` with the authorities of client certificates and of authenticating proxies, and the
proxies' header names. The role ``extension-apiserver-authentication-reader`` lets them read it.

Several servers write it: each adds what it has and takes nothing away but certificates that have expired, as kube-apiserver does. Files are
looked at again every ``INTERVAL_SECONDS``, so that a new authority is known before it signs.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson

from apiserver.bootstrap import prepared
from apiserver.config import ServerConfig
from apiserver.machinery.objects import Object
from apiserver.objectstore.interface import KeyNotFoundError, ObjectStoreError
from apiserver.registry.registry import Registry

logger = logging.getLogger(__name__)

NAMESPACE, NAME = "kube-system", "extension-apiserver-authentication"
INTERVAL_SECONDS = 60.0
_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?", re.DOTALL)
_CERTIFICATES = ("client-ca-file", "requestheader-client-ca-file")


def trust_of(config: ServerConfig) -> dict[str, str]:
    """The ConfigMap's data as this server alone would have it. Raises OSError for a file that cannot be read."""
    data: dict[str, str] = {}
    if config.client_ca_file is not None:
        data["client-ca-file"] = config.client_ca_file.read_text(encoding="utf-8")
    proxy = config.request_header
    if proxy is not None:
        data["requestheader-client-ca-file"] = proxy.client_ca_file.read_text(encoding="utf-8")
        lists = {
            "requestheader-allowed-names": proxy.allowed_names,
            "requestheader-username-headers": proxy.username_headers,
            "requestheader-group-headers": proxy.group_headers,
            "requestheader-extra-headers-prefix": proxy.extra_headers_prefix,
        }
        if proxy.uid_headers:
            lists["requestheader-uid-headers"] = proxy.uid_headers
        data |= {name: orjson.dumps(values).decode() for name, values in lists.items()}
    return data


def merged(there: Mapping[str, str], own: Mapping[str, str], now: float) -> dict[str, str]:
    """``there`` and all of ``own``. Lists and bundles keep their order, what is new comes last. ``now``: seconds since the epoch."""
    data = dict(there)
    for name, text in own.items():
        if name not in data:
            data[name] = text
        elif name in _CERTIFICATES:
            data[name] = _joined(data[name], text, now)
        else:
            data[name] = _joined_lists(data[name], text)
    return data


def _joined(there: str, own: str, now: float) -> str:
    blocks = {block.strip(): None for block in _BLOCK.findall(there) + _BLOCK.findall(own)}
    living = [block for block in blocks if not _has_expired(block, now)]
    if [*dict.fromkeys(block.strip() for block in _BLOCK.findall(there))] == living:
        return there
    return "".join(f"{block}\n" for block in living)


def _has_expired(block: str, now: float) -> bool:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(block.encode()).not_valid_after_utc.timestamp() < now
    except ValueError:
        return True


def _joined_lists(there: str, own: str) -> str:
    try:
        known, new = orjson.loads(there), orjson.loads(own)
    except orjson.JSONDecodeError:
        return own
    if not isinstance(known, list):
        return own
    together = list(dict.fromkeys([*(str(each) for each in known), *new]))
    return there if together == known else orjson.dumps(together).decode()


class AuthenticationTrust:
    def __init__(
        self,
        registry: Registry,
        config: ServerConfig,
        now: Callable[[], float],
        passing: tuple[type[Exception], ...],
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        """``now``: seconds since the epoch. ``passing``: errors of a store that is away for a while."""
        self._registry = registry
        self._config = config
        self._now = now
        self._passing: tuple[type[Exception], ...] = (ObjectStoreError, OSError, *passing)
        self._sleep = sleep

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._sleep(INTERVAL_SECONDS)
            try:
                await self.keep()
            except self._passing as error:
                logger.warning("whom to trust could not be told: error=%s", error)

    async def keep(self) -> None:
        """Make the ConfigMap say what this server knows. Raises OSError for a file that cannot be read."""
        own = trust_of(self._config)
        if not own:
            return
        store = self._registry.stored("", "configmaps")
        path = store.path(NAMESPACE, NAME)

        async def change(found: Any) -> Object | None:
            obj = found.decode()
            data = merged(obj.get("data") or {}, own, self._now())
            return None if data == obj.get("data") else {**obj, "data": data}

        try:
            await store.storage.guaranteed_update(path, change)
        except KeyNotFoundError:
            made: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": NAMESPACE}, "data": own}
            await self._registry.objects.create_missing([prepared(self._registry, "", "configmaps", made)])
