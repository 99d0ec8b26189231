"""The webhook client against real TLS servers: what goes wrong is told in the words of Go's client, and never lasts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from apiserver.outbound.service_endpoints import Place, UnresolvedError
from apiserver.webhooks import client
from apiserver.webhooks.client import CallError, ClientConfig, WebhookClient, client_config
from tests.fakes.webhook_server import AUTHORITY, Authority, http, serving

NO_MORE = "the server responded with the status code {} but did not return more information"
PEM = AUTHORITY.pem.decode()


def no_service(namespace: str, name: str, port: int) -> Place:
    raise UnresolvedError(f'service "{name}" not found')


@pytest.fixture
async def caller() -> AsyncIterator[WebhookClient]:
    found = WebhookClient(no_service, "test")
    yield found
    await found.close()


async def failure(caller: WebhookClient, url: str, pem: str = PEM, seconds: float = 5.0) -> str:
    with pytest.raises(CallError) as caught:
        await caller.post(ClientConfig(url=url, ca_bundle=pem), b"{}", seconds)
    return str(caught.value)


def answering(answer: bytes) -> Callable[[str, bytes, asyncio.StreamWriter], Awaitable[bytes]]:
    async def respond(path: str, body: bytes, writer: asyncio.StreamWriter) -> bytes:
        return answer

    return respond


async def test_an_answer_comes_back_and_connections_are_used_again(caller: WebhookClient) -> None:
    async with serving(answering(http(b"fine"))) as server:
        config = ClientConfig(url=f"{server.url}/a?x=1", ca_bundle=PEM)
        for _ in range(3):
            assert await caller.post(config, b'{"a":1}', 10) == b"fine"
        assert server.connections == 1
        assert server.asked == [("/a?x=1&timeout=10s", {"a": 1})] * 3


async def test_a_webhook_that_was_started_again_is_found_at_once(caller: WebhookClient) -> None:
    """A connection that was kept is of no use any more, which is no failure of the webhook's."""
    async with serving(answering(http(b"fine"))) as server:
        config = ClientConfig(url=server.url, ca_bundle=PEM)
        await caller.post(config, b"{}", 10)
        server.hang_up()
        assert await caller.post(config, b"{}", 10) == b"fine"
        assert server.connections == 2


async def test_a_service_is_called_where_it_listens_under_its_own_name() -> None:
    async with serving(answering(http(b"fine")), "hook.ns.svc") as server:
        found = WebhookClient(lambda namespace, name, port: Place(host="127.0.0.1", port=server.port), "test")
        said = {"service": {"namespace": "ns", "name": "hook", "path": "/p"}, "caBundle": AUTHORITY.bundle}
        config = client_config(said)
        assert config.url == "https://hook.ns.svc:443/p"
        assert await found.post(config, b"{}", 10) == b"fine"
        await found.close()


async def test_what_is_not_there_is_told_as_dialling_tells_it(caller: WebhookClient) -> None:
    async with serving(answering(b"")) as server:
        url = server.url
    assert await failure(caller, url) == (f'Post "{url}/?timeout=5s": dial tcp 127.0.0.1:{server.port}: connect: connection refused')
    assert await failure(caller, "https://hook.ns.svc:443/p") == ('Post "https://hook.ns.svc:443/p?timeout=5s": service "hook" not found')


async def test_who_is_not_trusted_is_not_asked(caller: WebhookClient) -> None:
    async with serving(answering(http(b"fine"))) as server:
        why = await failure(caller, server.url, Authority().pem.decode())
        assert why.endswith("tls: failed to verify certificate: x509: certificate signed by unknown authority")
        assert server.asked == []
    async with serving(answering(http(b"fine")), "elsewhere.example.com") as server:
        assert (await failure(caller, server.url)).endswith("x509: certificate is not valid for 127.0.0.1")
    async with serving(answering(http(b"fine")), context=AUTHORITY.context(days=-1)) as server:
        assert (await failure(caller, server.url)).endswith("x509: certificate has expired or is not yet valid")
    assert (await failure(caller, "https://127.0.0.1:1", "no certificate")).startswith("unable to load root certificates")


async def test_a_server_without_tls_is_told(caller: WebhookClient) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert (await failure(caller, f"https://127.0.0.1:{port}")).endswith("http: server gave HTTP response to HTTPS client")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (http(b"broken", "500 Oh", "text/plain"), 'an error on the server ("broken") has prevented the request from succeeding'),
        (http(b"", "404 Not Found", "text/plain"), "the server could not find the requested resource"),
        (http(b"", "503 Service Unavailable", "text/plain"), "the server is currently unable to handle the request"),
        (http(b"", "302 Found", "text/html", "Location: https://127.0.0.1:1/"), f"{NO_MORE.format(302)}"),
        (http(b""), "0-length response with status code: 200 and content type: application/json"),
    ],
)  # fmt: skip
async def test_an_unsuccessful_answer_is_told_by_its_status(caller: WebhookClient, answer: bytes, why: str) -> None:
    async with serving(answering(answer)) as server:
        assert await failure(caller, server.url) == why


async def test_one_who_hangs_up_or_talks_nonsense_is_told(caller: WebhookClient) -> None:
    async def hang_up(path: str, body: bytes, writer: asyncio.StreamWriter) -> bytes:
        writer.transport.abort()
        return b""

    async with serving(hang_up) as server:
        assert (await failure(caller, server.url)).startswith(f'Post "{server.url}/?timeout=5s": ')
    async with serving(answering(b"\x00\x01\x02 nonsense\r\n\r\n")) as server:
        assert (await failure(caller, server.url)).startswith(f'Post "{server.url}/?timeout=5s": net/http: ')


async def test_one_who_hangs_costs_the_timeout_and_no_more(caller: WebhookClient) -> None:
    never = asyncio.Event()

    async def hang(path: str, body: bytes, writer: asyncio.StreamWriter) -> bytes:
        await never.wait()
        return b""

    async with serving(hang) as server:
        assert (await failure(caller, server.url, seconds=0.2)).endswith('/?timeout=1s": context deadline exceeded')


async def test_one_who_drips_costs_the_timeout_and_no_more(caller: WebhookClient) -> None:
    async def drip(path: str, body: bytes, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with serving(drip) as server:
        started = time.monotonic()
        assert (await failure(caller, server.url, seconds=0.3)).endswith("context deadline exceeded")
        assert time.monotonic() - started < 5


async def test_one_who_floods_is_cut_off(caller: WebhookClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "ANSWER_BYTES_MAX", 100_000)
    sent = 0

    async def flood(path: str, body: bytes, writer: asyncio.StreamWriter) -> bytes:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        for _ in range(1000):
            writer.write(b"x" * 100_000)
            sent += 100_000
            await writer.drain()
        return b""

    async with serving(flood) as server:
        assert await failure(caller, server.url) == "the response is larger than the limit of 100000 bytes"
    assert sent < 50_000_000, "what is too much is not taken in"
