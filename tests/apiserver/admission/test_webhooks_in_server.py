"""Admission webhooks on real sockets, called by a whole API server."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import orjson

from tests.apiserver.api import APPLY, Answer, Api
from tests.fakes.webhook_server import WebhookServer, http, reviewing, serving
from tests.fakes.webhooks import patch, webhook

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
VALIDATING, MUTATING = f"{REGISTRATION}/validatingwebhookconfigurations", f"{REGISTRATION}/mutatingwebhookconfigurations"
NS = "/api/v1/namespaces/ns-a"
CM, PODS = f"{NS}/configmaps", f"{NS}/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/ns-a/deployments"
POD: dict[str, Any] = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
DEPLOYMENT = {
    "metadata": {"name": "d"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}


def about(*resources: str, groups: str = "*", operations: tuple[str, ...] = ("*",)) -> list[dict[str, Any]]:
    return [{"operations": list(operations), "apiGroups": [groups], "apiVersions": ["*"], "resources": list(resources)}]


@contextlib.asynccontextmanager
async def configured(api: Api, kind: str, answer: Any, *resources: str, **more: Any) -> AsyncIterator[WebhookServer]:
    async with serving(reviewing(answer)) as server:
        said = webhook("w.example.com", **{"rules": about(*resources), "clientConfig": server.client_config, **more})
        await api.created(kind, {"metadata": {"name": "c"}, "webhooks": [said]})
        yield server


def allow(request: dict[str, Any]) -> dict[str, Any]:
    return {"allowed": True}


def deny(request: dict[str, Any]) -> dict[str, Any]:
    return {"allowed": False, "status": {"message": "never", "code": 403, "reason": "Forbidden"}}


def labelled(request: dict[str, Any]) -> dict[str, Any]:
    labels = {**(request["object"]["metadata"].get("labels") or {}), "by": "webhook"}
    return patch({"op": "add", "path": "/metadata/labels", "value": labels})


async def test_a_webhook_refuses_and_is_gone_with_its_configuration(api: Api) -> None:
    async with configured(api, VALIDATING, deny, "configmaps") as server:
        refused = await api.post(CM, {"metadata": {"name": "a"}})
        assert (refused.status, refused.reason) == (403, "Forbidden")
        assert refused.message == 'admission webhook "w.example.com" denied the request: never'
        assert server.requests[0]["object"]["metadata"]["name"] == "a"
        assert (await api.get(f"{CM}/a")).status == 404
        await api.delete(f"{VALIDATING}/c")
        await api.created(CM, {"metadata": {"name": "a"}})


async def test_what_a_webhook_changes_is_stored_for_every_verb(api: Api) -> None:
    async with configured(api, MUTATING, labelled, "configmaps", rules=about("configmaps", operations=("CREATE", "UPDATE"))) as server:
        created = await api.created(CM, {"metadata": {"name": "a"}, "data": {"k": "1"}})
        assert created["metadata"]["labels"] == {"by": "webhook"}
        replaced = (await api.put(f"{CM}/a", {"metadata": {"name": "a", "labels": {"x": "1"}}})).json
        assert replaced["metadata"]["labels"] == {"x": "1", "by": "webhook"}
        patched = (await api.patch(f"{CM}/a", {"metadata": {"labels": {"by": None}}})).json
        assert patched["metadata"]["labels"] == {"x": "1", "by": "webhook"}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"k": "2"}}
        applied = (await api.patch(f"{CM}/b", body, APPLY, query={"fieldManager": "m"})).json
        assert applied["metadata"]["labels"] == {"by": "webhook"}
        assert [r["operation"] for r in server.requests] == ["CREATE", "UPDATE", "UPDATE", "CREATE"]
        assert server.requests[3]["options"] == {"kind": "PatchOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "m"}
        assert await api.get(f"{CM}/b") and (await api.get(f"{CM}/b")).json == applied


async def test_what_a_webhook_makes_is_pruned_defaulted_and_checked(api: Api) -> None:
    def inject(request: dict[str, Any]) -> dict[str, Any]:
        sidecar = {"name": "side", "image": "s", "nonsense": 1}
        return patch({"op": "add", "path": "/spec/containers/-", "value": sidecar}, {"op": "add", "path": "/unknown", "value": 1})

    async with configured(api, MUTATING, inject, "pods"):
        created = await api.created(PODS, POD)
        assert "unknown" not in created
        side = created["spec"]["containers"][1]
        assert "nonsense" not in side and side["imagePullPolicy"] == "Always" and side["terminationMessagePolicy"] == "File"
        assert side["volumeMounts"], "the other plugins see what a webhook put in: the account's token is mounted there too"

    def spoil(request: dict[str, Any]) -> dict[str, Any]:
        return patch({"op": "replace", "path": "/spec/containers", "value": []})

    await api.delete(f"{MUTATING}/c")
    async with configured(api, MUTATING, spoil, "pods"):
        refused = await api.post(PODS, {**POD, "metadata": {"name": "q"}})
        assert (refused.status, refused.reason) == (422, "Invalid")

    def of_the_wrong_type(request: dict[str, Any]) -> dict[str, Any]:
        return patch({"op": "replace", "path": "/spec/containers", "value": "none"})

    await api.delete(f"{MUTATING}/c")
    async with configured(api, MUTATING, of_the_wrong_type, "pods"):
        refused = await api.post(PODS, {**POD, "metadata": {"name": "q"}})
        assert (refused.status, refused.reason) == (500, "InternalError")


async def test_a_deletion_shows_what_is_deleted(api: Api) -> None:
    await api.created(CM, {"metadata": {"name": "a"}})
    async with configured(api, VALIDATING, deny, "configmaps") as server:
        refused = await api.delete(f"{CM}/a")
        assert refused.status == 403
        (asked,) = server.requests
        assert (asked["operation"], asked["object"], asked["oldObject"]["metadata"]["name"]) == ("DELETE", None, "a")
        assert asked["options"] == {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
        assert (await api.delete(CM)).status == 403, "a collection is deleted one by one"


async def test_subresources_show_what_they_take(api: Api) -> None:
    await api.created(DEPLOYMENTS, DEPLOYMENT)
    await api.created("/api/v1/nodes", {"metadata": {"name": "n"}})
    await api.created(PODS, POD)
    rules = about("deployments/scale", "pods/*", "serviceaccounts/token")
    async with configured(api, VALIDATING, allow, rules=rules) as server:
        scaled = await api.patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 3}})
        assert scaled.json["spec"]["replicas"] == 3
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
        assert (await api.post(f"{PODS}/p/binding", binding)).status == 201
        await api.post(f"{NS}/serviceaccounts/default/token", {"spec": {}})
        await api.post(f"{PODS}/p/exec", None, query={"command": ["ls", "-l"], "stdin": "true"})
        await api.patch(f"{PODS}/p/status", {"status": {"phase": "Running"}})
        assert (await api.post(f"{PODS}/p/eviction", {"metadata": {"name": "p"}})).status == 201
        seen = [(r["operation"], r["resource"]["resource"], r["subResource"], r["kind"]["kind"]) for r in server.requests]
        assert seen == [
            ("UPDATE", "deployments", "scale", "Scale"),
            ("CREATE", "pods", "binding", "Binding"),
            ("CREATE", "serviceaccounts", "token", "TokenRequest"),
            ("CONNECT", "pods", "exec", "PodExecOptions"),
            ("UPDATE", "pods", "status", "Pod"),
            ("CREATE", "pods", "eviction", "Eviction"),
        ]
        scale, bound, _, connect, _, _ = server.requests
        assert (scale["object"]["kind"], scale["object"]["spec"], scale["oldObject"]["spec"]) == ("Scale", {"replicas": 3}, {"replicas": 1})
        assert bound["object"]["target"] == {"kind": "Node", "name": "n"}
        assert connect["object"] == {"kind": "PodExecOptions", "apiVersion": "v1", "command": ["ls", "-l"], "stdin": True}


async def test_a_webhook_changes_a_scale(api: Api) -> None:
    await api.created(DEPLOYMENTS, DEPLOYMENT)

    def at_most_two(request: dict[str, Any]) -> dict[str, Any]:
        return patch({"op": "replace", "path": "/spec/replicas", "value": 2})

    async with configured(api, MUTATING, at_most_two, "deployments/scale"):
        scaled = await api.patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 9}})
        assert scaled.json["spec"]["replicas"] == 2
        assert (await api.get(f"{DEPLOYMENTS}/d")).json["spec"]["replicas"] == 2


async def test_a_service_reference_is_called_under_the_services_name(api: Api) -> None:
    async with serving(reviewing(deny), "hook.ns-a.svc") as server:
        spec = {"type": "ExternalName", "externalName": "localhost"}
        await api.created(f"{NS}/services", {"metadata": {"name": "hook"}, "spec": spec})
        service = {"namespace": "ns-a", "name": "hook", "path": "/deny", "port": server.port}
        config = {"service": service, "caBundle": server.authority.bundle}
        said = webhook("w.example.com", rules=about("configmaps"), clientConfig=config)
        await api.created(VALIDATING, {"metadata": {"name": "c"}, "webhooks": [said]})
        assert (await api.post(CM, {"metadata": {"name": "a"}})).status == 403
        assert server.asked[0][0] == "/deny?timeout=10s"
        await api.delete(f"{NS}/services/hook")
    refused = await api.post(CM, {"metadata": {"name": "a"}})
    assert refused.status == 500
    assert refused.message == (
        'Internal error occurred: failed calling webhook "w.example.com": failed to call webhook: '
        f'Post "https://hook.ns-a.svc:{server.port}/deny?timeout=10s": service "hook" not found'
    )


async def test_warnings_reach_the_client(api: Api) -> None:
    def warn(request: dict[str, Any]) -> dict[str, Any]:
        return {"allowed": True, "warnings": ["mind the gap"]}

    async with configured(api, VALIDATING, warn, "configmaps"):
        answer = await api.post(CM, {"metadata": {"name": "a"}})
        assert answer.headers["warning"] == ['299 - "mind the gap"']


async def test_a_namespace_is_shown_as_within_itself(api: Api) -> None:
    async with configured(api, VALIDATING, allow, "namespaces") as server:
        await api.created("/api/v1/namespaces", {"metadata": {"name": "fresh"}})
        assert (server.requests[0]["name"], server.requests[0]["namespace"]) == ("fresh", "fresh")


async def test_a_write_that_meets_another_asks_again(api: Api) -> None:
    await api.created(CM, {"metadata": {"name": "a"}})
    meanwhile = True

    async def respond(path: str, body: bytes, writer: asyncio.StreamWriter) -> bytes:
        nonlocal meanwhile
        if meanwhile:
            meanwhile = False
            await api.patch(f"{CM}/a", {"data": {"other": "1"}}, query={"fieldManager": "other"})
        review = orjson.loads(body)
        operation = {"op": "add", "path": "/metadata/labels", "value": {"seen": str(len(review["request"]["object"].get("data") or {}))}}
        response = {"uid": review["request"]["uid"], "allowed": True, "patchType": "JSONPatch"}
        response["patch"] = base64.b64encode(orjson.dumps([operation])).decode()
        return http(orjson.dumps({"kind": review["kind"], "apiVersion": review["apiVersion"], "response": response}))

    async with serving(respond) as server:
        said = webhook("w.example.com", rules=about("configmaps"), clientConfig=server.client_config)
        await api.created(MUTATING, {"metadata": {"name": "c"}, "webhooks": [said]})
        answer = await api.patch(f"{CM}/a", {"data": {"mine": "1"}})
        assert answer.json["data"] == {"mine": "1", "other": "1"}
        assert answer.json["metadata"]["labels"] == {"seen": "2"}


async def test_conditions_are_evaluated_before_a_webhook_is_called(api: Api) -> None:
    conditions = [
        {"name": "not-mine", "expression": "request.userInfo.username != 'alice'"},
        {"name": "wanted", "expression": "object.metadata.labels['check'] == 'yes'"},
    ]
    async with configured(api, VALIDATING, deny, "configmaps", matchConditions=conditions) as server:
        refused = await api.post(CM, {"metadata": {"name": "a", "labels": {"check": "yes"}}})
        assert refused.message == 'admission webhook "w.example.com" denied the request: never'
        await api.created(CM, {"metadata": {"name": "a", "labels": {"check": "no"}}})
        assert len(server.requests) == 1
        unclear = await api.post(CM, {"metadata": {"name": "b"}})
        assert (unclear.status, unclear.reason) == (403, "Forbidden") and "no such key" in unclear.message


async def test_a_webhook_that_calls_back_into_what_it_admits_holds_up_nobody_else(api: Api) -> None:
    """Each call makes another object of the kind that it is asked about; the fifth refuses."""
    depth = 0
    deep, go_on = asyncio.Event(), asyncio.Event()

    async def respond(path: str, body: bytes, writer: asyncio.StreamWriter) -> bytes:
        nonlocal depth
        depth += 1
        if depth == 5:
            deep.set()
            await go_on.wait()
            return http(b"enough")
        answer = await api.post(CM, {"metadata": {"generateName": "more-"}})
        return http(answer.body)

    async with serving(respond) as server:
        said = webhook("w.example.com", rules=about("configmaps"), clientConfig=server.client_config, timeoutSeconds=30)
        await api.created(VALIDATING, {"metadata": {"name": "c"}, "webhooks": [said]})
        writing = asyncio.create_task(api.post(CM, {"metadata": {"name": "a"}}))
        await deep.wait()
        assert (await api.post(f"{NS}/secrets", {"metadata": {"name": "s"}})).status == 201
        assert (await api.delete(f"{VALIDATING}/c")).status == 200, "the way out stays open"
        go_on.set()
        refused = await writing
        assert refused.status == 500 and "got v1, Kind=Status" in refused.message


async def test_writes_behind_a_hanging_webhook_hold_up_nobody_else(api: Api) -> None:
    many, go_on = asyncio.Event(), asyncio.Event()

    async def hang(path: str, body: bytes, writer: asyncio.StreamWriter) -> bytes:
        if len(server.asked) == 10:
            many.set()
        await go_on.wait()
        return http(b"at last")

    async with serving(hang) as server:
        said = webhook("w.example.com", rules=about("configmaps"), clientConfig=server.client_config, timeoutSeconds=30)
        await api.created(VALIDATING, {"metadata": {"name": "c"}, "webhooks": [said]})
        writing = [asyncio.create_task(api.post(CM, {"metadata": {"name": f"a{i}"}})) for i in range(10)]
        await many.wait()
        assert (await api.get(CM)).json["items"] == []
        assert (await api.post(f"{NS}/secrets", {"metadata": {"name": "s"}})).status == 201
        go_on.set()
        answers: list[Answer] = await asyncio.gather(*writing)
        assert {answer.status for answer in answers} == {500}
