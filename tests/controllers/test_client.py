"""The HTTP client against a real socket: verbs, errors, retries of reads only, watch streams, kubeconfig files, discovery."""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from apiserver.machinery.status import StatusError, failure
from controllers.client import errors, kubeconfig
from controllers.client.discovery import discover
from controllers.client.interface import DeleteOptions, ListOptions, PatchType, Propagation, WatchEvent
from controllers.client.kubeconfig import ClientConfig
from controllers.client.rate_limiter import TokenBucket
from controllers.client.resources import CONFIG_MAPS, DEPLOYMENTS, NODES, PODS
from controllers.client.rest import Client, Transport
from tests.controllers.fake_api import FakeApi
from tests.controllers.virtual_clock import VirtualClock

Answer = Callable[[web.Request], Any]


class NoWait(VirtualClock):
    """Sleeps pass at once; how long they were is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[tuple[Client, list[web.Request], NoWait]]:
    requests: list[web.Request] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        await request.read()
        requests.append(request)
        out = answer(request)
        found: web.StreamResponse = await out if asyncio.iscoroutine(out) else out
        return found

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    clock = NoWait()
    client = Client(Transport(ClientConfig(server=f"http://127.0.0.1:{port}", token="secret")), clock=clock, rng=random.Random(1))
    try:
        yield client, requests, clock
    finally:
        await client.close()
        await runner.cleanup()


def status(code: int, reason: str, message: str) -> web.Response:
    return web.Response(status=code, body=orjson.dumps(failure(code, reason, message)), content_type="application/json")


def ok(value: Any) -> web.Response:
    return web.Response(body=orjson.dumps(value), content_type="application/json")


def test_paths() -> None:
    assert PODS.path("a", "b", "status") == "/api/v1/namespaces/a/pods/b/status"
    assert DEPLOYMENTS.path("a") == "/apis/apps/v1/namespaces/a/deployments"
    assert DEPLOYMENTS.path() == "/apis/apps/v1/deployments"
    assert NODES.path("ignored", "n/1") == "/api/v1/nodes/n%2F1"


async def test_requests_carry_what_the_api_asks_for() -> None:
    async with serving(lambda r: ok({"metadata": {"name": "x"}})) as (client, requests, _):
        await client.patch(CONFIG_MAPS, "a", "x", {"data": None}, PatchType.STRATEGIC, field_manager="me")
        await client.delete(CONFIG_MAPS, "a", "x", DeleteOptions(propagation=Propagation.ORPHAN, uid="u", grace_period_seconds=0))
        await client.list(PODS, "", ListOptions(label_selector="a=b", limit=5, metadata_only=True))
        patch, delete, listing = requests
        assert patch.method == "PATCH" and patch.headers["Content-Type"] == "application/strategic-merge-patch+json"
        assert patch.query["fieldManager"] == "me" and patch.headers["Authorization"] == "Bearer secret"
        assert orjson.loads(await delete.read()) == {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": "Orphan",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": "u"},
        }
        assert listing.query["labelSelector"] == "a=b" and listing.query["limit"] == "5"
        assert listing.headers["Accept"].startswith("application/json;as=PartialObjectMetadataList")


async def test_a_status_is_raised_with_its_code_and_reason() -> None:
    async with serving(lambda r: status(409, "Conflict", "changed")) as (client, requests, _):
        with pytest.raises(StatusError) as refused:
            await client.create(CONFIG_MAPS, "a", {"metadata": {"name": "x"}})
        assert errors.is_conflict(refused.value) and refused.value.message == "changed" and len(requests) == 1


async def test_a_plain_text_refusal_becomes_a_status() -> None:
    async with serving(lambda r: web.Response(status=404, text="404 page not found")) as (client, _, __):
        with pytest.raises(StatusError) as refused:
            await client.get(CONFIG_MAPS, "a", "x")
        assert errors.is_not_found(refused.value) and refused.value.message == "404 page not found"


async def test_reads_are_retried_a_bounded_number_of_times_and_writes_never() -> None:
    answers = iter([503, 500, 200])

    def answer(request: web.Request) -> web.Response:
        code = next(answers, 503)
        return ok({"ok": True}) if code == 200 else status(code, "", "wait")

    async with serving(answer) as (client, requests, clock):
        assert await client.get(CONFIG_MAPS, "a", "x") == {"ok": True}
        assert len(requests) == 3 and clock.slept[0] < clock.slept[1]
        with pytest.raises(StatusError):
            await client.get(CONFIG_MAPS, "a", "x")
        assert len(requests) == 8
        with pytest.raises(StatusError):
            await client.update(CONFIG_MAPS, {"metadata": {"name": "x", "namespace": "a"}})
        assert len(requests) == 9


async def test_retry_after_is_respected() -> None:
    answers = iter([web.Response(status=429, headers={"Retry-After": "3"}, text="slow down"), ok({})])
    async with serving(lambda r: next(answers)) as (client, _, clock):
        await client.get(CONFIG_MAPS, "a", "x")
        assert 3 <= clock.slept[0] <= 3.7


async def test_no_server_is_a_connection_failure() -> None:
    client = Client(Transport(ClientConfig(server="http://127.0.0.1:1")), clock=NoWait())
    with pytest.raises(errors.ConnectionFailed):
        await client.get(CONFIG_MAPS, "a", "x")
    await client.close()


async def test_watch_lines_are_joined_over_any_chunks_and_long_lines_pass() -> None:
    big = "x" * 700_000
    sent = [
        {"type": "ADDED", "object": {"metadata": {"name": "a"}, "data": {"k": big}}},
        {"type": "MODIFIED", "object": {"metadata": {"name": "b"}}},
    ]
    body = b"".join(orjson.dumps(e) + b"\n" for e in sent)

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for start in range(0, len(body), 99_991):
            await response.write(body[start : start + 99_991])
            await asyncio.sleep(0)
        return response

    async with serving(answer) as (client, requests, _):
        seen: list[WatchEvent] = [e async for e in client.watch(CONFIG_MAPS, "a", ListOptions(resource_version="7"))]
        assert [(e.type, e.object["metadata"]["name"]) for e in seen] == [("ADDED", "a"), ("MODIFIED", "b")]
        assert seen[0].object["data"]["k"] == big
        assert requests[0].query["watch"] == "true" and requests[0].query["resourceVersion"] == "7"


async def test_a_refused_watch_raises_its_status_and_a_cut_one_a_connection_failure() -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(orjson.dumps({"type": "ADDED", "object": {}}) + b"\n")
        assert request.transport is not None
        request.transport.abort()
        return response

    async with serving(lambda r: status(410, "Expired", "too old")) as (client, _, __):
        with pytest.raises(StatusError) as refused:
            _ = [e async for e in client.watch(CONFIG_MAPS)]
        assert errors.is_expired(refused.value)
    async with serving(cut) as (client, _, __):
        with pytest.raises(errors.ConnectionFailed):
            _ = [e async for e in client.watch(CONFIG_MAPS)]


async def test_a_token_bucket_lets_a_burst_pass_and_then_the_rate() -> None:
    clock = VirtualClock()
    bucket = TokenBucket(qps=10, burst=3, clock=clock)
    assert [bucket.reserve() for _ in range(5)] == [0, 0, 0, pytest.approx(0.1), pytest.approx(0.2)]
    await clock.advance(10)
    assert bucket.try_accept()


def test_kubeconfig_with_certificate_data_and_files(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("CA")
    (tmp_path / "config").write_text(f"""
current-context: c
clusters: [{{name: k, cluster: {{server: "https://h:1/", certificate-authority: ca.crt}}}}]
contexts: [{{name: c, context: {{cluster: k, user: u}}}}]
users: [{{name: u, user: {{client-certificate-data: {base64.b64encode(b"CRT").decode()}, token: t}}}}]
""")
    config = kubeconfig.load(tmp_path / "config")
    assert (config.server, config.ca, config.client_certificate, config.token) == ("https://h:1", b"CA", b"CRT", "t")
    assert config.anonymous().token == "" and config.anonymous().client_certificate == b""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("[a", "is not YAML"),
        ("current-context: c\n", "no entry 'c' in contexts"),
        ("current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\nclusters: [{name: k, cluster: {}}]\n", "has no server"),
    ],
)
def test_kubeconfigs_that_cannot_be_used_say_why(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(errors.ConfigInvalid, match=message):
        kubeconfig.load(tmp_path / "config")


async def test_discovery_prefers_the_groups_version_and_survives_a_failing_group() -> None:
    api = FakeApi(VirtualClock())

    def listing(*names: str) -> dict[str, Any]:
        return {"resources": [{"name": n, "kind": n.title(), "namespaced": True, "verbs": ["list", "delete"]} for n in names]}

    api.raw_answers = {
        "/api": {"versions": ["v1"]},
        "/api/v1": listing("pods", "pods/status"),
        "/apis": {
            "groups": [
                {"name": "g", "versions": [{"version": "v1"}, {"version": "v1beta1"}], "preferredVersion": {"version": "v1"}},
                {"name": "broken", "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}},
            ]
        },
        "/apis/g/v1": listing("things"),
        "/apis/g/v1beta1": listing("things", "olds"),
        "/apis/broken/v1": errors.ConnectionFailed("away"),
    }
    found = await discover(api)
    assert [(r.group, r.version, r.plural) for r in found.with_verbs("delete")] == [
        ("", "v1", "pods"),
        ("g", "v1", "things"),
        ("g", "v1beta1", "olds"),
    ]
    assert found.failed == {"broken/v1": "away"}
