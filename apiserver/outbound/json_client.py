"""A bounded HTTP client: one request, one JSON answer.

A server that hangs costs a deadline; one that answers megabytes, other content or redirects is an ``OutboundError``, as is one that cannot
be reached. Faults that may pass (no connection, 429, 5xx) are tried again with growing pauses, as kube-apiserver does with its webhooks.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import aiohttp

#: of an answer: a review has some KiB, an issuer's key set a few dozen
ANSWER_BYTES_MAX = 1024 * 1024
#: connections to one server at once
CONNECTIONS_MAX = 64
USER_AGENT = "sampan"


class OutboundError(Exception):
    """No usable answer came; ``passing`` where another attempt may bring one. The text has no credential and no body in it."""

    def __init__(self, message: str, *, passing: bool = False, status: int = 0) -> None:
        super().__init__(message)
        self.passing = passing
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """``attempts`` in all, with pauses that begin with ``pause_seconds`` and grow by half."""

    attempts: int = 5
    pause_seconds: float = 0.5


class JsonClient:
    def __init__(self, *, timeout_seconds: float, answer_bytes_max: int = ANSWER_BYTES_MAX) -> None:
        """``timeout_seconds`` of a whole call, with all its attempts."""
        self._timeout_seconds = timeout_seconds
        self._answer_bytes_max = answer_bytes_max
        self._session: aiohttp.ClientSession | None = None

    async def get(self, url: str, context: ssl.SSLContext) -> tuple[Any, Mapping[str, str]]:
        """The document at ``url`` and the answer's headers. Raises OutboundError."""
        return await self._bounded("GET", url, None, {}, context, "", Retry(attempts=1))

    async def post(
        self, url: str, body: Any, context: ssl.SSLContext, *, headers: Mapping[str, str], server_name: str = "", retry: Retry | None = None
    ) -> Any:
        """What ``url`` answers to ``body``. Raises OutboundError."""
        answer, _ = await self._bounded("POST", url, json.dumps(body).encode(), headers, context, server_name, retry or Retry())
        return answer

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _bounded(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str], context: ssl.SSLContext, server_name: str, retry: Retry
    ) -> tuple[Any, Mapping[str, str]]:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await self._attempts(method, url, body, headers, context, server_name, retry)
        except TimeoutError as error:
            raise OutboundError(f"no answer within {self._timeout_seconds:g} s", passing=True) from error

    async def _attempts(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str], context: ssl.SSLContext, server_name: str, retry: Retry
    ) -> tuple[Any, Mapping[str, str]]:
        pause = retry.pause_seconds
        for attempt in range(1, retry.attempts + 1):
            try:
                return await self._once(method, url, body, headers, context, server_name)
            except OutboundError as error:
                if not error.passing or attempt == retry.attempts:
                    raise
            await asyncio.sleep(pause)
            pause *= 1.5
        raise AssertionError("an attempt answers or raises")

    async def _once(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str], context: ssl.SSLContext, server_name: str
    ) -> tuple[Any, Mapping[str, str]]:
        import aiohttp

        sent = {"User-Agent": USER_AGENT, "Accept": "application/json", "Accept-Encoding": "identity", **headers}
        if body is not None:
            sent["Content-Type"] = "application/json"
        try:
            async with self._opened().request(
                method, url, data=body, headers=sent, ssl=context, server_hostname=server_name or None, allow_redirects=False
            ) as answer:
                content = await self._read(answer)
                if not 200 <= answer.status < 300:
                    passing = answer.status == 429 or answer.status >= 500
                    raise OutboundError(f"it answered {answer.status}", passing=passing, status=answer.status)
                return json.loads(content), dict(answer.headers)
        except (aiohttp.ClientError, OSError) as error:
            # the kind is enough to mend it by: what an error of the client says may quote the request
            raise OutboundError(f"it cannot be reached: {_told(error)}", passing=True) from error
        except (ValueError, RecursionError) as error:
            raise OutboundError("it answered something that is no JSON") from error

    async def _read(self, answer: aiohttp.ClientResponse) -> bytes:
        parts = bytearray()
        async for chunk in answer.content.iter_chunked(64 * 1024):
            parts += chunk
            if len(parts) > self._answer_bytes_max:
                raise OutboundError(f"it answered more than {self._answer_bytes_max} bytes")
        return bytes(parts)

    def _opened(self) -> aiohttp.ClientSession:
        import aiohttp

        if self._session is None:
            connector = aiohttp.TCPConnector(limit=CONNECTIONS_MAX)
            # the deadline is that of the whole call; nothing is decompressed, so that the bound on bytes is one of memory
            self._session = aiohttp.ClientSession(
                connector=connector, trust_env=False, auto_decompress=False, timeout=aiohttp.ClientTimeout(total=None)
            )
        return self._session


def _told(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
