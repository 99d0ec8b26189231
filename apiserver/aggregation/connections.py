"""``Connections``: pooled TLS connections to extension API servers, a pool for each APIService.

aiohttp is imported by the first. The front-proxy certificate is read again when its files change, the certificate authorities of a pool
are those of its APIService: when it names others the pool is made anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from apiserver.aggregation.remote import RemoteService
from apiserver.machinery import status

if TYPE_CHECKING:
    import aiohttp

#: Requests and watches of one APIService under way; one more is refused. They hold no seat among the requests in flight, so that an
#: extension server that hangs takes none from others, and this is what bounds them.
REQUESTS_MAX = 1024
CONNECT_SECONDS = 30.0
KEEP_ALIVE_SECONDS = 60.0
#: of an answer's head: Go's limit is 10 MB, which nobody has seen
HEAD_LINE_BYTES_MAX = 64 * 1024

_Key = tuple[bytes, bool, str, tuple[tuple[int, int], ...]]


class UnusableError(Exception):
    """The APIService's own settings let no connection be made; the message is for whoever asks."""


class Pool:
    """``use`` around each request: a pool whose APIService has changed is closed once the last one has ended."""

    def __init__(self, key: _Key, session: aiohttp.ClientSession, context: ssl.SSLContext) -> None:
        self.key = key
        self.session = session
        self.context = context
        self._users = 0
        self._retired = False
        self._closing: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def use(self) -> Iterator[aiohttp.ClientSession]:
        """Raises StatusError 429 where too many do."""
        if self._users >= REQUESTS_MAX:
            raise status.too_many_requests("too many requests to the extension API server are waiting for its answers")
        self._users += 1
        try:
            yield self.session
        finally:
            self._users -= 1
            self._close_if_unused()

    def retire(self) -> None:
        self._retired = True
        self._close_if_unused()

    def _close_if_unused(self) -> None:
        if self._retired and not self._users and self._closing is None:
            self._closing = asyncio.create_task(self.session.close(), name="close connections to an extension API server")


class Connections:
    def __init__(self, certificate: Path | None, key: Path | None) -> None:
        self._certificate = certificate
        self._key = key
        self._pools: dict[str, Pool] = {}

    def pool(self, remote: RemoteService) -> Pool:
        """Raises UnusableError."""
        key = (remote.ca_bundle, remote.insecure, remote.server_name, self._signature())
        found = self._pools.get(remote.name)
        if found is not None and found.key == key and not found.session.closed:
            return found
        if found is not None:
            found.retire()
        found = self._pools[remote.name] = self._open(key, remote)
        return found

    def forget(self, name: str) -> None:
        found = self._pools.pop(name, None)
        if found is not None:
            found.retire()

    async def close(self) -> None:
        for pool in self._pools.values():
            await pool.session.close()
        self._pools.clear()

    def _signature(self) -> tuple[tuple[int, int], ...]:
        found = []
        for path in (self._certificate, self._key):
            if path is not None:
                try:
                    status = path.stat()
                    found.append((status.st_mtime_ns, status.st_size))
                except OSError:
                    found.append((0, 0))
        return tuple(found)

    def _open(self, key: _Key, remote: RemoteService) -> Pool:
        import aiohttp

        context = self._context(remote)
        connector = aiohttp.TCPConnector(ssl=context, limit=REQUESTS_MAX, keepalive_timeout=KEEP_ALIVE_SECONDS, ttl_dns_cache=10)
        session = aiohttp.ClientSession(
            connector=connector,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
            max_line_size=HEAD_LINE_BYTES_MAX,
            max_field_size=HEAD_LINE_BYTES_MAX,
        )
        return Pool(key, session, context)

    def _context(self, remote: RemoteService) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if remote.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif remote.ca_bundle:
            try:
                context.load_verify_locations(cadata=remote.ca_bundle.decode("ascii"))
            except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
                raise UnusableError("unable to load root certificates: unable to parse bytes as PEM block") from error
        else:
            context.load_default_certs()
        if self._certificate is not None and self._key is not None:
            try:
                context.load_cert_chain(self._certificate, self._key)
            except (OSError, ssl.SSLError) as error:
                raise UnusableError(f"the front-proxy certificate {self._certificate} cannot be used: {error}") from error
        context.set_alpn_protocols(["http/1.1"])
        return context
