"""The server of ``--audit-webhook-config-file``: takes an EventList, and answers with a status alone."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from apiserver.outbound import kubeconfig
from apiserver.outbound.json_client import USER_AGENT, OutboundError
from apiserver.reloaded_file import ReloadedFile

if TYPE_CHECKING:
    import aiohttp

TIMEOUT_SECONDS = 30.0


class AuditEndpoint:
    """Called with a body, it posts it. Raises OutboundError where that was not taken."""

    def __init__(self, path: Path, now: Callable[[], float]) -> None:
        """Raises OSError, ValueError for a file that cannot be used."""

        def read(text: str) -> tuple[kubeconfig.Endpoint, ssl.SSLContext]:
            endpoint = kubeconfig.parse(text, path.parent)
            return endpoint, endpoint.ssl_context()

        self._file = ReloadedFile(path, read, now)
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, body: bytes) -> None:
        import aiohttp

        endpoint, context = self._file.current()
        try:
            headers = {"User-Agent": USER_AGENT, "Content-Type": "application/json", **endpoint.credentials.headers()}
        except kubeconfig.KubeconfigError as error:
            raise OutboundError(str(error), passing=True) from error
        if self._session is None:
            self._session = aiohttp.ClientSession(trust_env=False, auto_decompress=False, timeout=aiohttp.ClientTimeout(total=None))
        name = endpoint.server_name or None
        post = self._session.post
        try:
            async with (
                asyncio.timeout(TIMEOUT_SECONDS),
                post(endpoint.url, data=body, headers=headers, ssl=context, server_hostname=name, allow_redirects=False) as answer,
            ):
                if not 200 <= answer.status < 300:
                    raise OutboundError(f"it answered {answer.status}", passing=True, status=answer.status)
        except (aiohttp.ClientError, OSError) as error:
            raise OutboundError(f"it cannot be reached: {type(error).__name__}", passing=True) from error
        except TimeoutError as error:
            raise OutboundError(f"no answer within {TIMEOUT_SECONDS:g} s", passing=True) from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
