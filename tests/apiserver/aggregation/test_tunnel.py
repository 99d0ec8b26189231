"""Connections that are upgraded, through a real listener to the extension API server."""

from __future__ import annotations

import aiohttp
import pytest

from tests.apiserver.aggregation.conftest import FERRETS
from tests.apiserver.api import Api
from tests.apiserver.test_http_protocol import listening
from tests.fakes.extension_server import ExtensionServer

AUTHORIZED = {"Authorization": "Bearer admin-token", "X-Remote-User": "forged"}


async def test_a_websocket_passes_both_ways(api: Api, zoo: ExtensionServer) -> None:
    async with listening(api.server.app) as (_, port), aiohttp.ClientSession(headers=AUTHORIZED) as session:
        url = f"http://127.0.0.1:{port}{FERRETS}/kit/talk"
        async with session.ws_connect(url, max_msg_size=0) as talk:
            await talk.send_str("hello")
            assert await talk.receive_bytes(timeout=10) == b"hello"
            big = b"x" * 3_000_000
            await talk.send_bytes(big)
            assert await talk.receive_bytes(timeout=10) == big
            assert zoo.seen[-1]["user"]["name"] == "admin"
        # another request on a connection of its own is served as ever
        async with session.get(f"http://127.0.0.1:{port}/api/v1/namespaces/ns-a") as answer:
            assert answer.status == 200


async def test_an_upgrade_that_is_refused_there_is_told_as_refused(api: Api, zoo: ExtensionServer) -> None:
    async with listening(api.server.app) as (_, port), aiohttp.ClientSession(headers=AUTHORIZED) as session:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(f"http://127.0.0.1:{port}{FERRETS}/kit")
        assert refused.value.status == 404
        with pytest.raises(aiohttp.WSServerHandshakeError) as forbidden:
            await session.ws_connect(f"http://127.0.0.1:{port}{FERRETS}/kit/talk", headers={"Authorization": "Bearer alice-token"})
        assert forbidden.value.status == 403


async def test_a_tunnel_to_nobody_is_told_as_unreachable(api: Api, zoo: ExtensionServer) -> None:
    zoo.behaviour.answers_garbage = True
    async with listening(api.server.app) as (_, port), aiohttp.ClientSession(headers=AUTHORIZED) as session:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(f"http://127.0.0.1:{port}{FERRETS}/kit/talk")
        assert refused.value.status in (502, 503)
