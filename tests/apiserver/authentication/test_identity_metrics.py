"""What is counted of who comes and who may, as ``/metrics`` tells it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from apiserver.authentication import service_account
from apiserver.config import ServerConfig, WebhookConfig
from apiserver.metrics import Exposition
from tests.apiserver.api import Api, config_in, running
from tests.fakes.loopback import LoopbackServer, Reply, Seen, reply

PODS = "/api/v1/namespaces/default/pods"
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def told(api: Api) -> Samples:
    out = Exposition()
    api.server.access.metrics.expose(out)
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for f in text_string_to_metric_families(out.text()) for s in f.samples}


def labels(**values: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(values.items()))


class Grown:
    """By how much samples have grown since."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._before = told(api)

    def __call__(self, name: str, /, **values: str) -> float:
        key = (name, labels(**values))
        return told(self._api).get(key, 0) - self._before.get(key, 0)


async def test_every_attempt_is_counted_once_by_its_result(tmp_path: Path) -> None:
    async with running(config_in(tmp_path, anonymous_auth=False)) as api:
        grown = Grown(api)
        assert [(await api.get(PODS)).status for _ in range(3)] == [200] * 3
        assert (await api.get(PODS, token="alice-token")).status == 403
        assert (await api.get(PODS, token="no-such-token")).status == 401
        assert (await api.get(PODS, token="")).status == 401
        for result, count in (("success", 4), ("error", 1), ("failure", 1)):
            assert grown("authentication_attempts_total", result=result) == count
            assert grown("authentication_duration_seconds_count", result=result) == count
        # of user names no more is told than a few kinds
        names = {dict(key[1])["username"] for key in told(api) if key[0].startswith("authenticated_user_requests")}
        assert names <= {"admin", "other", "email_id"}
        for result, count in (("allowed", 3), ("no-opinion", 1)):
            assert grown("authorization_attempts_total", result=result) == count
            assert grown("authorization_duration_seconds_count", result=result) == count


async def test_who_decides_is_counted_also_where_the_decision_is_remembered(tmp_path: Path) -> None:
    async with running(config_in(tmp_path)) as api:
        role = {"metadata": {"name": "readers"}, "rules": [{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}]}
        assert (await api.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", role)).status == 201
        subjects = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}]
        reference = {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": "readers"}
        binding = {"metadata": {"name": "readers"}, "roleRef": reference, "subjects": subjects}
        assert (await api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)).status == 201
        grown = Grown(api)
        assert [(await api.get(PODS, token="alice-token")).status for _ in range(4)] == [200] * 4
        assert (await api.get(PODS)).status == 200, "those of system:masters are nobody's decision"
        name = "apiserver_authorization_decisions_total"
        assert grown(name, type="RBAC", name="rbac", decision="allowed") == 4
        assert {dict(key[1])["decision"] for key in told(api) if key[0] == name} == {"allowed"}


async def test_impersonation_is_counted_by_its_mode(tmp_path: Path) -> None:
    async with running(config_in(tmp_path)) as api:
        grown = Grown(api)
        assert (await api.get(PODS, headers={"Impersonate-User": "bob"})).status == 403
        assert (await api.get(PODS, token="alice-token", headers={"Impersonate-User": "bob"})).status == 403
        assert grown("apiserver_impersonation_attempts_total", mode="user-info", decision="allowed") == 1
        assert grown("apiserver_impersonation_attempts_total", mode="", decision="denied") == 1
        checks = "apiserver_impersonation_authorization_attempts_total"
        assert grown(checks, mode="user-info", decision="allowed") == 2
        assert grown(checks, mode="user-info", decision="denied") == grown(checks, mode="legacy", decision="denied") == 1


class Hook:
    def __init__(self, directory: Path) -> None:
        self.reply: Reply | None = None
        self.server = LoopbackServer(directory / "hook", self._answer)
        self.config_file = self.server.kubeconfig(directory / "hook.kubeconfig")

    def _answer(self, seen: Seen) -> Reply:
        if self.reply is not None:
            return self.reply
        if seen.json["kind"] == "TokenReview":
            return reply({"kind": "TokenReview", "status": {"authenticated": True, "user": {"username": "carol@example.org"}}})
        return reply({"kind": "SubjectAccessReview", "status": {"allowed": True}})


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[Hook]:
    made = Hook(tmp_path)
    yield made
    made.server.close()


def asking(directory: Path, hook: Hook, **more: Any) -> ServerConfig:
    webhook = WebhookConfig(config_file=hook.config_file, version="v1", authorized_ttl_seconds=60, unauthorized_ttl_seconds=60)
    return config_in(directory, authentication_token_webhook=webhook, **more)


async def test_reviews_are_counted_by_code_and_result(tmp_path: Path, hook: Hook) -> None:
    path = tmp_path / "authz.json"
    conditions = [{"expression": "request.user != 'alice'"}]
    webhook = {
        "timeout": "3s",
        "subjectAccessReviewVersion": "v1",
        "matchConditionSubjectAccessReviewVersion": "v1",
        "failurePolicy": "NoOpinion",
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": str(hook.config_file)},
        "matchConditions": conditions,
    }
    authorizers = [{"type": "Webhook", "name": "hook", "webhook": webhook}, {"type": "RBAC", "name": "roles"}]
    path.write_text(
        json.dumps({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration", "authorizers": authorizers})
    )
    async with running(asking(tmp_path, hook, authorization_config=path)) as api:
        grown = Grown(api)
        assert [(await api.get(PODS, token="carols")).status for _ in range(3)] == [200] * 3
        assert grown("authenticated_user_requests_total", username="email_id") == 3
        assert grown("authentication_token_cache_fetch_total", status="ok") == 1
        assert grown("authentication_token_cache_request_total", status="hit") == 2
        for short in ("authn", "authz"):
            assert grown(f"apiserver_delegated_{short}_request_total", code="200") == 1
        assert grown("apiserver_authorization_webhook_evaluations_total", name="hook", result="success") == 1
        assert grown("apiserver_authorization_decisions_total", type="Webhook", name="hook", decision="allowed") == 3
        assert (await api.get(PODS, token="alice-token")).status == 403
        assert grown("apiserver_authorization_match_condition_exclusions_total", type="Webhook", name="hook") == 1
        hook.reply = Reply(status=400)
        assert (await api.get("/api/v1/services", token="carols")).status == 500
        assert grown("apiserver_authorization_webhook_evaluations_total", name="hook", result="error") == 1
        assert grown("apiserver_authorization_webhook_evaluations_fail_open_total", name="hook", result="error") == 1
        assert grown("apiserver_delegated_authz_request_total", code="400") == 1
        assert grown("authorization_attempts_total", result="error") == 1
        assert told(api)["authentication_token_cache_active_fetch_count", labels(status="in_flight")] == 0


async def test_reloads_are_counted_with_what_is_in_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiserver.reloaded_file.LOOK_SECONDS", 0.0)
    path = tmp_path / "authentication.json"
    head = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration"}
    path.write_text(json.dumps(head))
    async with running(config_in(tmp_path, authentication_config=path)) as api:

        def hashes() -> set[str]:
            name = "apiserver_authentication_config_controller_last_config_info"
            return {dict(key[1])["hash"] for key in told(api) if key[0] == name}

        first = hashes()
        path.write_text(json.dumps(head | {"anonymous": {"enabled": False}}))
        await api.get(PODS, token="")
        second = hashes()
        path.write_text("nonsense that is longer than what was there")
        await api.get(PODS, token="")
        assert first != second == hashes() and len(second) == 1
        counted = {
            dict(key[1])["status"]: value
            for key, value in told(api).items()
            if key[0] == "apiserver_authentication_config_controller_automatic_reloads_total"
        }
        assert counted == {"success": 1, "failure": 1}


@pytest.mark.parametrize(("version", "there"), [("1.37", True), ("1.27", False)])
async def test_releases_tell_what_they_have(tmp_path: Path, version: str, there: bool) -> None:
    async with running(config_in(tmp_path, kubernetes_version=version)) as api:
        await api.get(PODS)
        names = {name for name, _ in told(api)}
        assert "authentication_attempts_total" in names and "apiserver_client_certificate_expiration_seconds_count" in names
        assert ("authorization_attempts_total" in names) is there
        assert ("serviceaccount_invalid_legacy_auto_token_uses_total" in names) is there


async def test_uses_of_legacy_tokens_are_noted_once_a_day(tmp_path: Path) -> None:
    async with running(config_in(tmp_path)) as api:
        tracked = await api.get("/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking")
        assert len(tracked.json["data"]["since"]) == len("2026-01-01")
        account = (await api.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})).json
        key = service_account.load_private_key(api.server.config.service_account_signing_key_file.read_bytes())
        prefix = "kubernetes.io/serviceaccount/"
        claims = {
            "iss": service_account.LEGACY_ISSUER,
            "sub": "system:serviceaccount:default:robot",
            prefix + "namespace": "default",
            prefix + "secret.name": "robot-token",
            prefix + "service-account.name": "robot",
            prefix + "service-account.uid": account["metadata"]["uid"],
        }
        import jwt

        token = jwt.encode(claims, key, algorithm=service_account.algorithm_of(key))
        path = "/api/v1/namespaces/default/secrets"
        annotations = {"kubernetes.io/service-account.name": "robot"}
        secret = {
            "metadata": {"name": "robot-token", "annotations": annotations},
            "type": "kubernetes.io/service-account-token",
            "stringData": {"token": token},
        }
        assert (await api.post(path, secret)).status == 201
        tracking = api.server.access.legacy_tokens
        assert tracking is not None
        assert (await api.get(PODS, token=token)).status == 403
        [key_] = [name for names in tracking._upkeep._waiting.values() for name in names]
        await tracking._write(key_)
        written = (await api.get(f"{path}/robot-token")).json["metadata"]
        assert written["labels"] == {"kubernetes.io/legacy-token-last-used": tracked.json["data"]["since"]}
        tracking._upkeep._waiting.clear()
        assert (await api.get(PODS, token=token)).status == 403
        assert not tracking._upkeep._waiting, "the day is there"
        await tracking._write(key_)
        again = (await api.get(f"{path}/robot-token")).json["metadata"]
        assert again["resourceVersion"] == written["resourceVersion"]
