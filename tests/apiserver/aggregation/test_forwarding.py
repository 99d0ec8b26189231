"""Requests to an extension API server: who it takes them to come from, streams both ways, and what its troubles cost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from apiserver.machinery.status import StatusError
from tests.apiserver.aggregation.conftest import API_SERVICES, FERRETS, NAME, Keys, api_service, condition_with, external_service, until
from tests.apiserver.api import Api
from tests.fakes.extension_server import ExtensionServer

FERRET = {"metadata": {"name": "kit"}, "spec": {"color": "sable"}}


async def test_objects_of_another_server_are_written_and_read_through_this_one(api: Api, zoo: ExtensionServer) -> None:
    made = await api.post(FERRETS, FERRET)
    assert made.status == 201
    assert made.headers["warning"] == ['299 - "ferrets bite"']
    assert len(made.headers["audit-id"]) == 1
    assert (await api.get(FERRETS)).json["items"][0]["spec"] == {"color": "sable"}
    assert (await api.patch(f"{FERRETS}/kit", {"spec": {"color": "white"}})).json["spec"] == {"color": "white"}
    assert (await api.delete(f"{FERRETS}/kit")).status == 200
    assert (await api.get(f"{FERRETS}/kit")).message == 'ferrets.zoo.example.com "kit" not found'


async def test_the_user_is_the_one_of_this_server_and_not_what_the_client_says(api: Api, zoo: ExtensionServer) -> None:
    forged = {
        "X-Remote-User": "root",
        "x-remote-group": "system:masters",
        "X-Remote-Extra-Scopes": "all",
        "X-Remote-Uid": "0",
        "Cookie": "session=1",
        "X-Custom": "kept",
    }
    await api.get(FERRETS, headers=forged)
    seen = zoo.seen[-1]
    assert seen["user"] == {"name": "admin", "groups": ["system:masters", "system:authenticated"], "extra": {}}
    assert "Authorization" not in seen["headers"]
    assert "Cookie" not in seen["headers"]
    assert seen["headers"]["X-Custom"] == "kept"
    assert seen["headers"]["X-Remote-Uid"] == "1"
    assert seen["headers"]["X-Forwarded-For"] == "127.0.0.1"


async def test_an_impersonated_user_arrives_with_extra(api: Api, zoo: ExtensionServer) -> None:
    acting = {"Impersonate-User": "jane", "Impersonate-Group": "system:masters", "Impersonate-Extra-example.com%2fscopes": "view"}
    await api.get(FERRETS, headers=acting)
    seen = zoo.seen[-1]
    assert seen["user"]["name"] == "jane"
    assert seen["user"]["extra"] == {"example.com%2fscopes": "view"}
    assert not [name for name in seen["headers"] if name.lower().startswith("impersonate")]


async def test_whoever_may_not_here_does_not_get_there(api: Api, zoo: ExtensionServer) -> None:
    refused = await api.get(FERRETS, token="alice-token")
    assert refused.status == 403
    assert refused.message.startswith('ferrets.zoo.example.com is forbidden: User "alice" cannot list resource "ferrets"')
    assert zoo.seen == []
    rules = [{"apiGroups": ["zoo.example.com"], "resources": ["ferrets"], "verbs": ["list"]}]
    role: dict[str, Any] = {"metadata": {"name": "keeper"}, "rules": rules}
    await api.created("/apis/rbac.authorization.k8s.io/v1/namespaces/ns-a/roles", role)
    binding = {
        "metadata": {"name": "keeper"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "keeper"},
        "subjects": [{"kind": "User", "name": "alice"}],
    }
    await api.created("/apis/rbac.authorization.k8s.io/v1/namespaces/ns-a/rolebindings", binding)
    assert (await api.get(FERRETS, token="alice-token")).status == 200
    assert zoo.seen[-1]["user"]["name"] == "alice"


async def test_the_path_that_was_authorized_is_the_one_that_arrives(api: Api, zoo: ExtensionServer) -> None:
    """An escaped slash is a slash for both, so that both speak of the same object."""
    scope = api.scope("GET", f"{FERRETS}/a/b c", "labelSelector=a%3Db", {"authorization": "Bearer admin-token"})
    scope["raw_path"] = f"{FERRETS}/a%2fb%20c".encode()
    received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    received.put_nowait({"type": "http.request", "body": b"", "more_body": False})

    async def send(message: Any) -> None:
        pass

    await api.server.app(scope, received.get, send)
    assert zoo.seen[-1]["path"] == f"{FERRETS}/a/b%20c?labelSelector=a%3Db"


async def test_a_watch_passes_events_at_once_and_ends_with_its_client(api: Api, zoo: ExtensionServer) -> None:
    async with api.watch(FERRETS) as watch:
        await api.post(FERRETS, FERRET)
        event = await watch.next()
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "kit")
        assert zoo.watchers == 1

    async def ended() -> bool:
        return zoo.watchers == 0

    await until(ended)


async def test_a_large_body_passes_both_ways(api: Api, zoo: ExtensionServer) -> None:
    big = {"metadata": {"name": "big"}, "spec": {"color": "x" * 5_000_000}}
    assert (await api.post(FERRETS, big)).status == 201
    assert len((await api.get(f"{FERRETS}/big")).json["spec"]["color"]) == 5_000_000


async def test_a_server_that_hangs_costs_nobody_else_anything(api: Api, zoo: ExtensionServer) -> None:
    zoo.behaviour.hangs = True
    flow = api.server.app._flow_control
    waiting = [asyncio.create_task(api.get(FERRETS, query={"timeout": "1s"})) for _ in range(50)]
    await asyncio.sleep(0.1)
    assert flow.read_in_flight == 0
    assert (await api.get("/api/v1/namespaces/ns-a")).status == 200
    for answer in await asyncio.gather(*waiting):
        assert (answer.status, answer.reason) == (504, "Timeout")


async def test_a_server_that_answers_no_http_is_told_as_unreachable(api: Api, zoo: ExtensionServer) -> None:
    zoo.behaviour.answers_garbage = True
    answer = await api.get(FERRETS)
    assert answer.status == 503
    assert answer.body.startswith(b"error trying to reach service: ")
    assert answer.headers["content-type"] == ["text/plain; charset=utf-8"]


async def test_an_answer_that_breaks_off_does_not_end_as_a_whole_one(api: Api, zoo: ExtensionServer) -> None:
    zoo.behaviour.breaks_off = True
    with pytest.raises(StatusError, match="broke its answer off"):  # in process there is no connection that could be cut instead
        async with api.watch(FERRETS) as watch:
            await api.post(FERRETS, FERRET)
            await watch.next()
            await asyncio.wait({watch.task}, timeout=10)


async def test_a_redirect_is_not_passed_on_to_the_client(api: Api, zoo: ExtensionServer) -> None:
    """CVE-2022-3172: it would be followed with the client's credentials."""
    zoo.behaviour.redirects = True
    for answer in (await api.get(f"{FERRETS}/a"), await api.post(FERRETS, {"metadata": {"name": "a"}})):
        assert answer.status == 502
        assert answer.body == b"the backend attempted to redirect this request, which is not permitted"
        assert not any(name.lower() == "location" for name in answer.headers)


async def test_a_service_without_an_available_condition_is_unavailable_at_once(api: Api, keys: Keys) -> None:
    await api.created("/api/v1/namespaces/ns-a/services", external_service())
    await api.created(API_SERVICES, api_service(keys, 1))
    answer = await api.get(FERRETS)
    assert (answer.status, answer.body) == (503, b"service unavailable\n")
    assert (await api.get("/apis/zoo.example.com/v1alpha1")).status == 503
    found = await condition_with(api, "FailedDiscoveryCheck")
    url = "https://localhost:1/apis/zoo.example.com/v1alpha1"
    assert found["message"] == f'failing or missing response from {url}: Get "{url}": dial tcp localhost:1: connect: connection refused'
    assert (await api.delete(f"{API_SERVICES}/{NAME}")).status == 200
    assert (await api.get(FERRETS)).status == 404


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"caBundle": None}, "x509: certificate signed by unknown authority"),
        ({"service": {"namespace": "ns-a", "name": "other"}}, "x509: certificate is not valid for other.ns-a.svc"),
    ],
)
async def test_a_certificate_that_is_not_the_services_is_not_believed(
    api: Api, extension: ExtensionServer, keys: Keys, spec: dict[str, Any], words: str
) -> None:
    service = external_service()
    wanted = api_service(keys, extension.port, **spec)
    wanted["spec"]["service"]["port"] = extension.port
    service["metadata"]["name"] = wanted["spec"]["service"]["name"]
    await api.created("/api/v1/namespaces/ns-a/services", service)
    await api.created(API_SERVICES, wanted)
    assert words in (await condition_with(api, "FailedDiscoveryCheck"))["message"]
    assert extension.seen == []


async def test_with_insecure_skip_tls_verify_any_certificate_will_do(api: Api, extension: ExtensionServer, keys: Keys) -> None:
    await api.created("/api/v1/namespaces/ns-a/services", external_service())
    await api.created(API_SERVICES, api_service(keys, extension.port, caBundle=None, insecureSkipTLSVerify=True))
    await condition_with(api, "Passed")
    assert (await api.post(FERRETS, FERRET)).status == 201


async def test_requests_that_go_round_in_a_circle_are_refused(api: Api, zoo: ExtensionServer) -> None:
    passed = {"X-Forwarded-For": ", ".join(["10.0.0.1"] * 9)}
    assert (await api.get(FERRETS, headers=passed)).status == 508
    assert zoo.seen == []
