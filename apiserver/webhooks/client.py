"""``WebhookClient``: one POST of JSON to a webhook, and its answer, under a timeout and a limit.

One pool of connections for all webhooks of a server. A connection is kept by host, port and certificate bundle, so that a webhook whose
bundle changes is verified anew. Services are looked up when a connection is made: a webhook that has moved is found once its old
connection is gone.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import math
import socket
import ssl
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver
from yarl import URL

from apiserver.outbound.kubeconfig import HTTPS_PORT, NO_CREDENTIALS, Credentials, KubeconfigError
from apiserver.outbound.service_endpoints import Place, UnresolvedError
from apiserver.webhooks import wording

Resolve = Callable[[str, str, int], Place]

#: An answer holds at most a patch in base64 that puts in all that a request may hold (3 MiB), some times over.
ANSWER_BYTES_MAX = 16 * 1024 * 1024
#: Certificate bundles whose TLS contexts are kept; a context holds some 100 kB where the system's authorities are in it.
CONTEXTS_MAX = 200
#: Connections to one webhook: beyond that calls wait for each other, within their timeout.
CONNECTIONS_PER_HOST_MAX = 256
#: A webhook that was not called for so long is connected to anew.
KEEP_ALIVE_SECONDS = 30.0

_SERVICE_SUFFIX = ".svc"


class CallError(Exception):
    """No usable answer; the text says why. ``code`` is the HTTP status that the caller's metrics tell, 503 where there was none."""

    def __init__(self, why: str, code: int = 503) -> None:
        super().__init__(why)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """Where a webhook is: ``url`` as it is called (of a service ``https://NAME.NAMESPACE.svc:PORT/PATH``) and whom to trust (PEM)."""

    url: str
    ca_bundle: str = ""

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or HTTPS_PORT


def client_config(said: Mapping[str, Any]) -> ClientConfig:
    """From ``clientConfig`` of a webhook or a conversion. Raises CallError for what no current server would have stored."""
    bundle = said.get("caBundle") or ""
    try:
        pem = base64.b64decode(bundle).decode("ascii").strip()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise CallError("unable to load root certificates: unable to parse bytes as PEM block") from error
    service = said.get("service")
    if service is not None:
        path = service.get("path") or ""
        port = service.get("port") or HTTPS_PORT
        slash = "" if path.startswith("/") or not path else "/"
        return ClientConfig(url=f"https://{service['name']}.{service['namespace']}.svc:{port}{slash}{path}", ca_bundle=pem)
    url = said.get("url") or ""
    if not url:
        raise CallError("webhook configuration must have either service or URL")
    return ClientConfig(url=url, ca_bundle=pem)


class WebhookClient:
    """Made inside a running loop. ``close`` at its end."""

    def __init__(self, resolve: Resolve, user_agent: str) -> None:
        self._contexts: OrderedDict[tuple[str, bytes], ssl.SSLContext] = OrderedDict()
        connector = aiohttp.TCPConnector(
            resolver=_Resolver(resolve),
            use_dns_cache=False,
            limit=0,
            limit_per_host=CONNECTIONS_PER_HOST_MAX,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
        )
        trace = aiohttp.TraceConfig()
        trace.on_connection_reuseconn.append(_note_reuse)
        self._session = aiohttp.ClientSession(
            connector=connector,
            trace_configs=[trace],
            headers={"Accept": "application/json, */*", "Accept-Encoding": "identity", "User-Agent": user_agent},
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )

    async def close(self) -> None:
        await self._session.close()

    async def post(self, config: ClientConfig, body: bytes, timeout_seconds: float, credentials: Credentials = NO_CREDENTIALS) -> bytes:
        """The body of the answer. Raises CallError."""
        url = called_url(config.url, timeout_seconds)
        try:
            async with asyncio.timeout(timeout_seconds):
                reused: list[bool] = []
                try:
                    return await self._post(url, config, body, credentials, reused)
                except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                    if not reused:
                        raise
                # a connection that was kept was closed at the other end meanwhile, by a restart most likely: that is no answer
                return await self._post(url, config, body, credentials, [])
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise CallError(f'Post "{url}": {wording.transport(error, config.host)}') from error

    async def _post(self, url: str, config: ClientConfig, body: bytes, credentials: Credentials, reused: list[bool]) -> bytes:
        """``reused`` gets an entry where the connection is one that was kept."""
        try:
            headers = {"Content-Type": "application/json", **credentials.headers()}
        except KubeconfigError as error:
            raise CallError(str(error)) from error
        async with self._session.post(
            URL(url, encoded=True),
            data=body,
            headers=headers,
            ssl=self._context(config.ca_bundle, credentials),
            timeout=_NO_TIMEOUT,
            allow_redirects=False,
            trace_request_ctx=reused,
        ) as answer:
            content = await _read(answer)
            media_type = answer.headers.get("Content-Type", "")
            if not 200 <= answer.status <= 206:
                raise CallError(wording.unsuccessful(answer.status, content, media_type).message, answer.status)
            if not content:
                raise CallError(f"0-length response with status code: {answer.status} and content type: {media_type}")
            return content

    def _context(self, ca_bundle: str, credentials: Credentials) -> ssl.SSLContext:
        """Connections are kept by it: what was authenticated by one certificate is used by nobody else."""
        key = (ca_bundle, credentials.certificate)
        found = self._contexts.get(key)
        if found is None:
            found = self._contexts[key] = tls_context(ca_bundle)
            credentials.present(found)
            if len(self._contexts) > CONTEXTS_MAX:
                self._contexts.popitem(last=False)
        else:
            self._contexts.move_to_end(key)
        return found


async def _note_reuse(session: aiohttp.ClientSession, context: Any, params: aiohttp.TraceConnectionReuseconnParams) -> None:
    context.trace_request_ctx.append(True)


#: ``post`` has one around everything
_NO_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=None)


def tls_context(ca_bundle: str) -> ssl.SSLContext:
    """Trusts the bundle, or the system's authorities where there is none. As in Go a certificate in the bundle is trusted by itself, and
    names that stand in the subject alone do not count. Raises CallError."""
    try:
        context = ssl.create_default_context(cadata=ca_bundle or None)
    except (ssl.SSLError, ValueError) as error:
        raise CallError("unable to load root certificates: unable to parse bytes as PEM block") from error
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.hostname_checks_common_name = False
    return context


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    pieces, size = [], 0
    async for piece in answer.content.iter_any():
        size += len(piece)
        if size > ANSWER_BYTES_MAX:
            answer.close()  # the rest is not waited for
            raise CallError(f"the response is larger than the limit of {ANSWER_BYTES_MAX} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def called_url(url: str, timeout_seconds: float) -> str:
    """With the time that the webhook has, in whole seconds, as kube-apiserver tells it."""
    parts = urlsplit(url)
    query = f"{parts.query}&" if parts.query else ""
    return parts._replace(path=parts.path or "/", query=f"{query}timeout={math.ceil(timeout_seconds)}s", fragment="").geturl()


class _Resolver(AbstractResolver):
    """Host names as usual; ``NAME.NAMESPACE.svc`` by the services of the cluster, which also say the port."""

    def __init__(self, resolve_service: Resolve) -> None:
        self._resolve_service = resolve_service
        self._names = ThreadedResolver()

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[ResolveResult]:
        labels = host.removesuffix(_SERVICE_SUFFIX).split(".")
        if not host.endswith(_SERVICE_SUFFIX) or len(labels) != 2:
            return await self._names.resolve(host, port, family)
        try:
            address = self._resolve_service(labels[1], labels[0], port)
        except UnresolvedError as error:
            raise OSError(str(error)) from error
        if address.host == "localhost":
            return [{**found, "hostname": host} for found in await self._localhost(address.port)]
        found = await self._names.resolve(address.host, address.port, family)
        return [{**one, "hostname": host, "port": address.port} for one in found]

    async def _localhost(self, port: int) -> list[ResolveResult]:
        """Both loopback addresses, without asking anybody."""
        return [
            ResolveResult(hostname="localhost", host=host, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST)
            for host, family in (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6))
        ]

    async def close(self) -> None:
        await self._names.close()
