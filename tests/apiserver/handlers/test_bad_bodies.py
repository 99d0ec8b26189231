"""Bodies that are broken, too large, too deep or strange: a Kubernetes error, and the server goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from tests.apiserver.api import MERGE, Api

CM = "/api/v1/namespaces/ns-a/configmaps"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"metadata": {"name": "a"', "json parse error"),
        (b"[1, 2]", "json parse error"),
        (b"", "json parse error"),
        (b"7", "json parse error"),
        (b'"text"', "json parse error"),
        (b'{"metadata": {"name": "a"}, "data": [1]}', "ConfigMap in version"),
        (b'{"metadata": {"name": "a"}, "data": {"k": 1}}', "ConfigMap in version"),
        (b'{"metadata": "a"}', "ConfigMap in version"),
        (b'{"kind": 7}', ""),
        (b'{"metadata": {"name": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}", ""),
        (b"[" * 1_000_000, ""),
        (b'{"a":' * 100_000, ""),
    ],
)
async def test_bodies_that_do_not_parse(api: Api, body: bytes, text: str) -> None:
    answer = await api.post(CM, body)
    assert (answer.status, answer.reason) == (400, "BadRequest"), answer.body[:300]
    assert text in answer.message
    assert len(answer.body) < 10_000
    assert (await api.get(CM)).status == 200


async def test_invalid_utf8_never_fails_the_server(api: Api) -> None:
    answer = await api.post(CM, b'{"metadata": {"name": "a"}, "data": {"k": "\xff\xfe"}}')
    assert answer.status in (201, 400)


async def test_bodies_beyond_the_limit(api: Api) -> None:
    large = orjson.dumps({"metadata": {"name": "a"}, "data": {"k": "v" * (4 * 1024 * 1024)}})
    for headers in ({}, {"content-length": str(10 * 1024 * 1024)}):
        answer = await api.post(CM, large, headers=headers)
        assert (answer.status, answer.reason) == (413, "RequestEntityTooLarge")
        assert "limit is 3145728" in answer.message


async def test_a_body_in_many_pieces_is_bounded_too(api: Api) -> None:
    sent = 0

    async def receive() -> dict[str, Any]:
        nonlocal sent
        sent += 1
        return {"type": "http.request", "body": b"x" * 65536, "more_body": True}

    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    scope = api.scope("POST", CM, {}, {"authorization": "Bearer admin-token", "content-type": "application/json"})
    await api.server.app(scope, receive, send)
    assert messages[0]["status"] == 413
    assert sent <= 49


async def test_a_body_that_never_comes_ends_with_the_request_deadline(api: Api) -> None:
    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    headers = {"authorization": "Bearer admin-token", "content-type": "application/json"}
    await api.server.app(api.scope("POST", CM, {"timeout": "50ms"}, headers), receive, send)
    assert messages[0]["status"] == 504


async def test_a_client_that_leaves_gets_no_answer(api: Api) -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        raise AssertionError(message)

    await api.server.app(api.scope("POST", CM, {}, {"authorization": "Bearer admin-token"}), receive, send)


@pytest.mark.parametrize("content_type", ["text/plain", "application/xml", "application/cbor", "multipart/form-data"])
async def test_media_types_that_are_not_read(api: Api, content_type: str) -> None:
    answer = await api.post(CM, b"hello", content_type=content_type)
    assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")


async def test_yaml_in_json_out(api: Api) -> None:
    """Field case V3; YAML's scalars are Kubernetes' (a time is text)."""
    text = b"metadata: {name: a}\ndata:\n  on: 'yes'\n  when: 2024-01-02T03:04:05Z\n  ratio: '1:30'\n"
    answer = await api.post(CM, text, content_type="application/yaml")
    assert answer.status == 201, answer.body
    assert answer.json["data"]["when"] == "2024-01-02T03:04:05Z"


async def test_yaml_bombs_are_refused(api: Api) -> None:
    lines = [b"a0: &a0 [x, x]"] + [b"a%d: &a%d [%s]" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 12)]
    answer = await api.post(CM, b"\n".join(lines), content_type="application/yaml")
    assert answer.status == 400
    assert "excessive aliasing" in answer.message


@pytest.mark.parametrize("directive", ["", "Warn", "Strict", "Ignore"])
async def test_unknown_and_duplicate_fields(api: Api, directive: str) -> None:
    body = b'{"metadata": {"name": "a"}, "data": {"k": "v"}, "extra": 1, "data": {"k": "w"}}'
    answer = await api.post(CM, body, query={"fieldValidation": directive} if directive else None)
    if directive == "Strict":
        assert answer.status == 400
        assert "strict decoding error: " in answer.message
        assert 'unknown field "extra"' in answer.message
        assert 'duplicate field "data"' in answer.message
        return
    assert answer.status == 201
    assert answer.json["data"] == {"k": "w"}
    warned = answer.headers.get("warning", [])
    assert (len(warned) == 2) == (directive != "Ignore")
    assert all(w.startswith('299 - "') for w in warned)


async def test_an_unknown_field_validation_is_refused(api: Api) -> None:
    answer = await api.post(CM, {"metadata": {"name": "a"}}, query={"fieldValidation": "Maybe"})
    assert (answer.status, answer.reason) == (422, "Invalid")


async def test_patches_that_leave_no_object(api: Api) -> None:
    await api.created(CM, {"metadata": {"name": "a"}})
    answer = await api.patch(f"{CM}/a", {"data": [1]}, MERGE)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert (await api.patch(f"{CM}/a", b"{", MERGE)).status == 400
    assert (await api.patch(f"{CM}/a", b"[]", MERGE)).status == 400


async def test_integers_beyond_64_bits_are_refused_and_those_within_survive(api: Api) -> None:
    """Field case T1."""
    leases = "/apis/coordination.k8s.io/v1/namespaces/ns-a/leases"
    answer = await api.post(leases, b'{"metadata": {"name": "l"}, "spec": {"leaseTransitions": 99999999999999999999}}')
    assert answer.status == 400
    revisions = "/apis/apps/v1/namespaces/ns-a/controllerrevisions"
    body = b'{"metadata": {"name": "r"}, "revision": 9223372036854775807, "data": {"n": 8611686018427387904}}'
    created = await api.post(revisions, body)
    assert b"9223372036854775807" in created.body and b"8611686018427387904" in created.body
    patched = await api.patch(f"{revisions}/r", {"metadata": {"labels": {"a": "b"}}})
    assert b"9223372036854775807" in patched.body and b"8611686018427387904" in patched.body


async def test_no_scaling_policies_are_not_those_of_the_defaults(api: Api) -> None:
    """An empty list is no list that is left out."""
    path = "/apis/autoscaling/v2/namespaces/ns-a/horizontalpodautoscalers"
    target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}

    def autoscaler(name: str, rules: dict[str, object]) -> dict[str, object]:
        spec = {"maxReplicas": 3, "scaleTargetRef": target, "behavior": {"scaleUp": rules}}
        return {"metadata": {"name": name}, "spec": spec}

    refused = await api.post(path, autoscaler("a", {"policies": []}))
    assert refused.status == 422
    assert "spec.behavior.scaleUp.policies: Required value: must specify at least one Policy" in refused.message
    await api.created(path, autoscaler("b", {"policies": None, "selectPolicy": "Min"}))
    patched = await api.patch(f"{path}/b", {"spec": {"behavior": {"scaleDown": {"policies": []}}}})
    assert "spec.behavior.scaleDown.policies: Required value" in patched.message
    applied = await api.patch(
        f"{path}/b",
        {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", **autoscaler("b", {"policies": []})},
        "application/apply-patch+yaml",
        query={"fieldManager": "m", "force": "true"},
    )
    assert applied.status == 422
