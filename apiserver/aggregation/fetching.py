"""``Fetcher``: documents of extension API servers, read by this server itself as ``system:kube-aggregator``."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from apiserver.aggregation import go_words, headers
from apiserver.aggregation.connections import Connections, UnusableError
from apiserver.aggregation.remote import RemoteService
from apiserver.authentication.user import MASTERS, UserInfo
from apiserver.machinery.status import StatusError
from apiserver.outbound.service_endpoints import Objects, Place, UnresolvedError, places

AGGREGATOR = UserInfo(name="system:kube-aggregator", groups=(MASTERS,))
SECONDS = 5.0
#: of a document; the largest that Kubernetes itself has (OpenAPI of version 2) is 4 MB
BYTES_MAX = 16 * 1024 * 1024


class FetchError(Exception):
    """No answer, or none that can be used; the message tells why in the words of a condition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """``body`` as it was sent, not compressed."""

    code: int
    media_type: str
    etag: str
    body: bytes


class Fetcher:
    def __init__(self, connections: Connections, cached: Objects) -> None:
        self._connections = connections
        self._cached = cached

    async def get(self, remote: RemoteService, path: str, accept: str = "application/json", etag: str = "") -> Fetched:
        """From the first of the service's addresses that answers. Raises FetchError."""
        try:
            found = places(self._cached, remote.namespace, remote.service, remote.port)
        except UnresolvedError as error:
            raise FetchError(str(error)) from error
        last = FetchError("no endpoints")
        for place in found[:PLACES_MAX]:
            try:
                return await self.get_at(remote, place, path, accept, etag)
            except FetchError as error:
                last = error
        raise last

    async def get_at(self, remote: RemoteService, place: Place, path: str, accept: str = "application/json", etag: str = "") -> Fetched:
        """Raises FetchError, within ``SECONDS``."""
        import aiohttp
        import yarl

        url = f"https://{place}{path}"
        sent = [("Accept", accept), ("Accept-Encoding", "identity"), ("User-Agent", "kube-aggregator"), *headers.of_user(AGGREGATOR)]
        if etag:
            sent.append(("If-None-Match", etag))
        try:
            with self._connections.pool(remote).use() as session:
                async with (
                    asyncio.timeout(SECONDS),
                    session.get(
                        yarl.URL(url, encoded=True), headers=sent, allow_redirects=False, server_hostname=remote.server_name
                    ) as answer,
                ):
                    body = await answer.content.read(BYTES_MAX + 1)
                    while len(body) <= BYTES_MAX and (more := await answer.content.read(BYTES_MAX + 1 - len(body))):
                        body += more
                    if len(body) > BYTES_MAX:
                        raise FetchError(f"{url} has more than {BYTES_MAX} bytes")
                    media_type = answer.headers.get("Content-Type", "")
                    return Fetched(code=answer.status, media_type=media_type, etag=answer.headers.get("Etag", ""), body=body)
        except UnusableError as error:
            raise FetchError(str(error)) from error
        except StatusError as error:
            raise FetchError(error.message) from error
        except TimeoutError as error:
            words = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            raise FetchError(f'Get "{url}": {words}') from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise FetchError(f'Get "{url}": {go_words.of_connection(error, place, remote.server_name)}') from error


#: addresses of one service that are tried for a document
PLACES_MAX = 3
