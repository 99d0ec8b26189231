"""3 MB of YAML held up every other request for 17 seconds: PyYAML reads 200 KB a second. Long texts are read in a thread."""

from __future__ import annotations

import asyncio
import threading

import pytest

from apiserver.request import body as request_body
from apiserver.schemas import yaml_bodies
from tests.apiserver.api import APPLY, Api

CM = "/api/v1/namespaces/ns-a/configmaps"
YAML = "application/yaml"


def _text(name: str, keys: int) -> bytes:
    lines = "".join(f"  k{i}: v\n" for i in range(keys))
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata:\n{lines}".encode()


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
async def test_other_requests_go_on_while_a_long_yaml_is_read(api: Api, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """The reading is held by the test until another request has been answered."""
    await api.created(CM, {"metadata": {"name": "there"}})
    others_done, reading = threading.Event(), threading.Event()

    def held(body: bytes) -> tuple[str, ...]:
        reading.set()
        assert others_done.wait(20), "nothing else was answered"
        return ()

    monkeypatch.setattr(yaml_bodies, "duplicate_keys", held)
    body = _text("long" if method == "POST" else "there", 2_000)
    assert len(body) > request_body.YAML_ON_LOOP_BYTES_MAX
    path = CM if method == "POST" else f"{CM}/there"
    query = {"fieldManager": "m"} if method == "PATCH" else None
    writing = asyncio.create_task(api.request(method, path, body, query=query, content_type=APPLY if method == "PATCH" else YAML))
    async with asyncio.timeout(20):
        await asyncio.to_thread(reading.wait, 15)
        assert (await api.get(f"{CM}/there")).status == 200
        others_done.set()
        answer = await writing
    assert answer.status in (200, 201), answer.body
    assert len(answer.json["data"]) == 2_000


async def test_a_long_text_that_is_no_yaml_is_refused(api: Api) -> None:
    answer = await api.request("POST", CM, b"a: [" * 20_000, content_type=YAML)
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_what_is_no_yaml_is_refused_by_scales_too(api: Api) -> None:
    """It was a 500 with a trace in the log."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    path = "/apis/apps/v1/namespaces/ns-a/deployments"
    await api.created(path, {"metadata": {"name": "d"}, "spec": spec})
    for body in (b"{", b"a: [", b"\xff", b"a: b: c"):
        answer = await api.request("PATCH", f"{path}/d/scale", body, query={"fieldManager": "m"}, content_type=APPLY)
        assert (answer.status, answer.reason) == (400, "BadRequest"), answer.body
