"""Another server decides: what it is asked, how long its word holds, and what happens when it hangs, fails or talks nonsense."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.authorization.authorization_file import parse
from apiserver.authorization.match_conditions import compile_conditions
from apiserver.config import ServerConfig, WebhookConfig
from apiserver.machinery.config_file import ConfigFileError
from tests.apiserver.api import Api, config_in, running
from tests.fakes.loopback import LoopbackServer, Reply, Seen, reply

PODS = "/api/v1/namespaces/default/pods"
SAR = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class Hook:
    """Allows what ``allows`` says of a SubjectAccessReviewSpec."""

    def __init__(self, directory: Path) -> None:
        self.allowed: set[tuple[str, str]] = {("list", "pods")}
        self.reply: Reply | None = None
        self.server = LoopbackServer(directory / "hook", self._answer)
        self.config_file = self.server.kubeconfig(directory / "hook.kubeconfig")

    def _answer(self, seen: Seen) -> Reply:
        if self.reply is not None:
            return self.reply
        spec = seen.json["spec"]
        asked = spec.get("resourceAttributes") or {}
        allowed = (asked.get("verb"), asked.get("resource")) in self.allowed
        denied = asked.get("resource") == "secrets"
        return reply({"kind": "SubjectAccessReview", "status": {"allowed": allowed, "denied": denied, "reason": "said the hook"}})

    @property
    def specs(self) -> list[Any]:
        return [seen.json["spec"] for seen in self.server.seen]


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[Hook]:
    made = Hook(tmp_path)
    yield made
    made.server.close()


def by_flags(directory: Path, hook: Hook, *modes: str, version: Any = "v1", ttl: float = 60.0) -> ServerConfig:
    webhook = WebhookConfig(config_file=hook.config_file, version=version, authorized_ttl_seconds=ttl, unauthorized_ttl_seconds=ttl)
    return config_in(directory, authorization_mode=modes or ("RBAC", "Webhook"), authorization_webhook=webhook)


async def test_what_rbac_does_not_allow_the_webhook_may(tmp_path: Path, hook: Hook) -> None:
    async with running(by_flags(tmp_path, hook)) as api:
        for _ in range(3):
            assert (await api.get(PODS, token="alice-token")).status == 200
        assert len(hook.specs) == 1, "its word is remembered"
        assert hook.specs[0] == {
            "resourceAttributes": {"namespace": "default", "verb": "list", "version": "v1", "resource": "pods"},
            "user": "alice",
            "groups": ["devs", "system:authenticated"],
            "uid": "2",
        }
        refused = await api.get("/api/v1/namespaces/default/services", token="alice-token")
        assert refused.status == 403 and refused.message.endswith('in the namespace "default": said the hook')
        assert (await api.get(PODS)).status == 200
        assert len(hook.specs) == 2, "administrators are not asked about"
        path = await api.get("/metrics", token="alice-token")
        assert path.status == 403 and hook.specs[2]["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}


async def test_selectors_are_told_and_part_of_the_question(tmp_path: Path, hook: Hook) -> None:
    async with running(by_flags(tmp_path, hook)) as api:
        for query in (
            "fieldSelector=spec.nodeName%3Dn1",
            "labelSelector=a+in+(b),!c",
            "",
            "fieldSelector=%3D%3D,",
            "fieldSelector=status.phase!%3DX",
        ):
            await api.get(PODS, query=query, token="alice-token")
        told = [spec["resourceAttributes"] for spec in hook.specs]
        assert told[0]["fieldSelector"] == {"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["n1"]}]}
        assert told[1]["labelSelector"] == {
            "requirements": [{"key": "a", "operator": "In", "values": ["b"]}, {"key": "c", "operator": "DoesNotExist"}]
        }
        assert told[3]["fieldSelector"]["requirements"][0]["operator"] == "NotIn"
        assert len(told) == 4, "one that cannot be parsed narrows nothing, so it is the question without any"
        asked = {"verb": "list", "resource": "pods", "fieldSelector": {"rawSelector": "spec.nodeName=n2"}}
        review = await api.post(SAR, {"spec": {"user": "bob", "resourceAttributes": asked}})
        assert review.json["status"] == {"allowed": True, "reason": "said the hook"}
        assert hook.specs[-1]["resourceAttributes"]["fieldSelector"]["requirements"][0]["values"] == ["n2"]


async def test_a_refusal_is_final_and_an_order_is_kept(tmp_path: Path, hook: Hook) -> None:
    async with running(by_flags(tmp_path, hook, "Webhook", "AlwaysAllow")) as api:
        refused = await api.get("/api/v1/secrets", token="alice-token")
        assert refused.status == 403 and refused.message.endswith("at the cluster scope: said the hook")
        assert (await api.get("/api/v1/services", token="alice-token")).status == 200, "no opinion: the next one decides"
        rules = await api.post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": "x"}}, token="alice-token")
        assert rules.json["status"]["incomplete"] is True
        assert rules.json["status"]["evaluationError"] == "webhook authorizer does not support user rule resolution"
        assert rules.json["status"]["resourceRules"] == [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]


async def test_writes_ask_for_all_that_they_need(tmp_path: Path, hook: Hook) -> None:
    """A PUT that creates needs create as well; impersonation asks whether it is allowed for this request alone, then about each name: none
    of it is lost on the way."""
    hook.allowed |= {("update", "leases"), ("create", "leases"), ("impersonate", "users"), ("impersonate", "groups")}
    async with running(by_flags(tmp_path, hook)) as api:
        headers = {"Impersonate-User": "bob", "Impersonate-Group": "ops"}
        body = {"metadata": {"name": "c"}}
        answer = await api.put("/apis/coordination.k8s.io/v1/namespaces/default/leases/c", body, token="alice-token", headers=headers)
        assert answer.status == 201, answer.body
        verbs = [(spec["user"], spec["resourceAttributes"]["verb"]) for spec in hook.specs]
        assert verbs == [
            ("alice", "impersonate-on:user-info:update"),
            *(("alice", "impersonate"), ("alice", "impersonate"), ("bob", "update"), ("bob", "create")),
        ]
        role = {"metadata": {"name": "r"}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}]}
        hook.allowed |= {("create", "roles")}
        path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
        refused = await api.post(path, role, token="alice-token")
        assert refused.status == 403 and "attempting to grant RBAC permissions not currently held" in refused.message
        assert hook.specs[-1]["resourceAttributes"]["verb"] == "escalate"


async def test_without_a_time_to_live_each_request_asks(tmp_path: Path, hook: Hook) -> None:
    async with running(by_flags(tmp_path, hook, version="v1beta1", ttl=0.0)) as api:
        for _ in range(2):
            assert (await api.get(PODS, token="alice-token")).status == 200
        assert len(hook.specs) == 2 and hook.specs[0]["group"] == ["devs", "system:authenticated"], "v1beta1 names groups so"
        hook.allowed.clear()
        assert (await api.get(PODS, token="alice-token")).status == 403, "at once"


@pytest.mark.parametrize(
    "said",
    [
        Reply(status=404),
        Reply(body=b"<html>"),
        Reply(body=b"null"),
        Reply(body=b"[" * 100_000),
        reply({"status": "yes"}),
        reply({"status": {"allowed": "true"}}),
        reply({"status": {"allowed": 1}}),
        reply({"status": {"allowed": True, "reason": "\ud800"}}),
        reply({"status": {"allowed": True, "denied": True}}),
        reply({"status": {"allowed": True, "reason": ["x"]}}),
        Reply(body=b'{"status": {"allowed": true, "reason": "' + b"x" * 3_000_000 + b'"}}'),
    ],
)
async def test_a_webhook_that_talks_nonsense_allows_nothing(tmp_path: Path, hook: Hook, said: Reply) -> None:
    hook.reply = said
    async with running(by_flags(tmp_path, hook)) as api:
        answer = await api.get(PODS, token="alice-token")
        assert answer.status == 500 and answer.reason == "InternalError"
        assert (await api.get(PODS)).status == 200, "administrators go on"
        review = await api.post(SAR, {"spec": {"user": "bob", "resourceAttributes": {"verb": "list", "resource": "pods"}}})
        assert review.json["status"]["allowed"] is False and review.json["status"]["evaluationError"]
        hook.reply = None
        if b"denied" not in said.body:
            assert (await api.get(PODS, token="alice-token")).status == 200, "a fault is not remembered"


async def test_a_webhook_that_hangs_costs_its_timeout(tmp_path: Path, hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiserver.access_authorizers.WEBHOOK_TIMEOUT_SECONDS", 0.3)
    hook.reply = Reply(hangs=True)
    async with running(by_flags(tmp_path, hook)) as api:
        answer = await api.get(PODS, token="alice-token")
        assert answer.status == 500 and "no answer within 0.3 s" in answer.message
        started = time.monotonic()
        slow = await api.get(PODS, token="alice-token", query="timeout=100ms")
        assert slow.status == 504 and time.monotonic() - started < 0.3, "the request's own deadline holds as well"


# -- configuration files


def webhook(hook: Hook, **more: Any) -> dict[str, Any]:
    return {
        "timeout": "3s",
        "subjectAccessReviewVersion": "v1",
        "matchConditionSubjectAccessReviewVersion": "v1",
        "failurePolicy": "NoOpinion",
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": str(hook.config_file)},
        **more,
    }


def document(*authorizers: dict[str, Any]) -> str:
    head = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration"}
    return json.dumps({**head, "authorizers": list(authorizers)})


RBAC = {"type": "RBAC", "name": "rbac"}


async def test_conditions_spare_the_question(tmp_path: Path, hook: Hook) -> None:
    conditions = [
        {"expression": "has(request.resourceAttributes)"},
        {"expression": "request.resourceAttributes.namespace == 'default'"},
        {"expression": "!('ops' in request.groups) || request.extra['scope'][0] == 'x'"},
    ]
    path = tmp_path / "authz.json"
    path.write_text(document({"type": "Webhook", "name": "hook", "webhook": webhook(hook, matchConditions=conditions)}, RBAC))
    async with running(config_in(tmp_path, authorization_config=path)) as api:
        assert (await api.get(PODS, token="alice-token")).status == 200
        assert (await api.get("/api/v1/namespaces/other/pods", token="alice-token")).status == 403
        assert (await api.get("/metrics", token="alice-token")).status == 403
        assert len(hook.specs) == 1
        headers = {"Impersonate-User": "bob", "Impersonate-Group": "ops"}
        failed = await api.get(PODS, headers=headers)
        assert failed.status == 500 and "no such key: scope" in failed.message and len(hook.specs) == 1
        other = await api.get("/api/v1/namespaces/other/pods", headers=headers)
        assert other.status == 403, "one that is false decides, whatever else fails"


async def test_a_failure_may_mean_no(tmp_path: Path, hook: Hook) -> None:
    path = tmp_path / "authz.json"
    path.write_text(
        document(
            {"type": "Webhook", "name": "hook", "webhook": webhook(hook, failurePolicy="Deny")},
            {"type": "AlwaysAllow", "name": "all"},
        )
    )
    async with running(config_in(tmp_path, authorization_config=path)) as api:
        hook.reply = Reply(status=400)
        assert (await api.get(PODS, token="alice-token")).status == 500
        hook.reply = None
        assert (await api.get("/api/v1/services", token="alice-token")).status == 200


async def test_a_changed_file_takes_effect_at_once(tmp_path: Path, hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiserver.reloaded_file.LOOK_SECONDS", 0.0)
    path = tmp_path / "authz.json"
    path.write_text(document(RBAC))

    async def status(api: Api) -> int:
        return (await api.get(PODS, token="alice-token")).status

    async with running(config_in(tmp_path, authorization_config=path)) as api:
        assert await status(api) == 403
        path.write_text(document(RBAC, {"type": "Webhook", "name": "hook", "webhook": webhook(hook)}))
        assert await status(api) == 200
        path.write_text(document({"type": "AlwaysAllow", "name": "all"}))
        assert await status(api) == 200 and (await api.get("/metrics", token="alice-token")).status == 403, "RBAC cannot go"
        path.write_text(document(RBAC, {"type": "AlwaysAllow", "name": "all"}))
        assert (await api.get("/metrics", token="alice-token")).status == 200
        path.write_text(document(RBAC))
        assert (await api.get("/metrics", token="alice-token")).status == 403, "what was allowed is forgotten"


@pytest.mark.parametrize(
    ("authorizers", "told"),
    [
        ([], "authorizers: Required value: at least one authorization mode must be defined"),
        ([{"name": "a"}], "authorizers[0].type: Required value"),
        ([{"type": "ABAC", "name": "a"}], 'authorizers[0].type: Unsupported value: "ABAC"'),
        ([RBAC, RBAC], 'authorizers[1].type: Duplicate value: "RBAC"'),
        ([{"type": "RBAC"}], "authorizers[0].name: Required value"),
        ([RBAC, {"type": "Node", "name": "rbac"}], 'authorizers[1].name: Duplicate value: "rbac"'),
        ([{"type": "RBAC", "name": "A"}], "authorizer name is invalid: a lowercase RFC 1123 subdomain"),
        ([{"type": "Webhook", "name": "a"}], "authorizers[0].webhook: Required value: required when type=Webhook"),
        ([{**RBAC, "webhook": {}}], 'authorizers[0].webhook: Invalid value: "non-null": may only be specified when type=Webhook'),
        ({"timeout": "31s"}, 'authorizers[0].timeout: Invalid value: "31s": must be > 0s and <= 30s'),
        ({"timeout": ""}, "authorizers[0].timeout: Required value"),
        ({"authorizedTTL": "-1s"}, 'authorizers[0].authorizedTTL: Invalid value: "-1s": must be > 0s'),
        ({"subjectAccessReviewVersion": "v2"}, 'authorizers[0].subjectAccessReviewVersion: Unsupported value: "v2"'),
        ({"failurePolicy": ""}, "authorizers[0].failurePolicy: Required value"),
        ({"connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "a"}}, "must be an absolute path"),
        ({"connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "/nonexistent"}}, "error loading file"),
        ({"matchConditions": [{"expression": ""}]}, "authorizers[0].matchConditions[0].expression: Required value"),
        ({"matchConditions": [{"expression": "request.user"}]}, "must evaluate to bool but got string"),
        ({"matchConditions": [{"expression": "request.nothing"}]}, "undefined field 'nothing'"),
        ({"surplus": 1}, 'unknown field "authorizers[0].webhook.surplus"'),
    ],
)
def test_mistakes_are_told_with_their_place(hook: Hook, authorizers: Any, told: str) -> None:
    if isinstance(authorizers, dict):
        authorizers = [{"type": "Webhook", "name": "hook", "webhook": webhook(hook, **authorizers)}]
    with pytest.raises(ConfigFileError) as caught:
        parse(document(*authorizers), compile_conditions)
    assert told in str(caught.value)
