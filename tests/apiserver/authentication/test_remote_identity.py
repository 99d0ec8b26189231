"""Webhooks, proxies and configuration files in front of a whole server: who a request is, and which requests are refused."""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.config import AuditConfig, RequestHeaderConfig, ServerConfig, WebhookConfig
from apiserver.handler_chain import PEER_CERTIFICATE_KEY
from tests.apiserver.api import Answer, Api, config_in, running
from tests.fakes.loopback import Authority, Issuer, LoopbackServer, Reply, Seen, SigningKey, reply

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
KEY = SigningKey("k1", "ES256")


class Hook:
    """A webhook that knows the tokens in ``users``."""

    def __init__(self, directory: Path) -> None:
        self.users: dict[str, dict[str, Any]] = {"good": {"username": "hooked", "uid": "7", "groups": ["devs"], "extra": {"a/b": ["c"]}}}
        self.reply: Reply | None = None
        self.server = LoopbackServer(directory / "hook", self._answer)
        self.config_file = self.server.kubeconfig(directory / "hook.kubeconfig", {"token": "for-the-hook"})

    def _answer(self, seen: Seen) -> Reply:
        if self.reply is not None:
            return self.reply
        user = self.users.get(seen.json["spec"]["token"])
        status = {"authenticated": True, "user": user} if user else {"authenticated": False, "error": "unknown here"}
        return reply({"apiVersion": seen.json["apiVersion"], "kind": "TokenReview", "status": status})

    def webhook(self, ttl: float = 60.0, version: Any = "v1") -> WebhookConfig:
        return WebhookConfig(config_file=self.config_file, version=version, authorized_ttl_seconds=ttl, unauthorized_ttl_seconds=ttl)


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[Hook]:
    made = Hook(tmp_path)
    yield made
    made.server.close()


@contextlib.asynccontextmanager
async def served(config: ServerConfig) -> AsyncIterator[Api]:
    async with running(config) as api:
        yield api


async def who(api: Api, token: str = "", **more: Any) -> Answer:
    return await api.post(WHO, {}, token=token, **more)


async def test_a_webhook_names_the_user_and_is_asked_once(tmp_path: Path, hook: Hook) -> None:
    async with served(config_in(tmp_path, authentication_token_webhook=hook.webhook())) as api:
        for _ in range(3):
            answer = await who(api, "good")
            assert answer.status == 201
            user = {"username": "hooked", "uid": "7", "groups": ["devs", "system:authenticated"], "extra": {"a/b": ["c"]}}
            assert answer.json["status"]["userInfo"] == user
        assert len(hook.server.seen) == 1
        review = hook.server.seen[0]
        assert review.path == "/review" and review.headers["Authorization"] == "Bearer for-the-hook"
        assert review.json["apiVersion"] == "authentication.k8s.io/v1"
        assert review.json["spec"] == {"token": "good", "audiences": ["https://kubernetes.default.svc.cluster.local"]}
        for _ in range(2):
            assert (await who(api, "bad")).status == 401
        assert len(hook.server.seen) == 2, "a refusal is remembered too"
        reviewed = await api.post(REVIEWS, {"spec": {"token": "good"}})
        assert reviewed.json["status"]["authenticated"] is True and reviewed.json["status"]["user"]["username"] == "hooked"
        refused = await api.post(REVIEWS, {"spec": {"token": "bad"}})
        assert refused.json["status"] == {"user": {}, "error": "[invalid bearer token, unknown here]"}
        assert len(hook.server.seen) == 2
        assert (await who(api, "admin-token")).status == 201
        assert len(hook.server.seen) == 2, "tokens that are known here are asked nowhere"


async def test_without_a_time_to_live_each_request_asks(tmp_path: Path, hook: Hook) -> None:
    async with served(config_in(tmp_path, authentication_token_webhook=hook.webhook(ttl=0, version="v1beta1"))) as api:
        for _ in range(2):
            assert (await who(api, "good")).status == 201
        assert [seen.json["apiVersion"] for seen in hook.server.seen] == ["authentication.k8s.io/v1beta1"] * 2
        hook.users.clear()
        assert (await who(api, "good")).status == 401


async def test_a_token_for_others_is_not_for_this_server(tmp_path: Path, hook: Hook) -> None:
    hook.reply = reply({"kind": "TokenReview", "status": {"authenticated": True, "user": {"username": "x"}, "audiences": ["elsewhere"]}})
    async with served(config_in(tmp_path, authentication_token_webhook=hook.webhook())) as api:
        assert (await who(api, "good")).status == 401
        reviewed = await api.post(REVIEWS, {"spec": {"token": "good", "audiences": ["elsewhere", "third"]}})
        assert reviewed.json["status"]["audiences"] == ["elsewhere"]


@pytest.mark.parametrize(
    "said",
    [
        Reply(status=404),
        Reply(body=b"<html>"),
        Reply(body=b"[" * 100_000),
        Reply(body=b"null"),
        Reply(body=b"{}"),
        Reply(body=b'{"status": {"authenticated": true, "user": {"username": "' + b"x" * 3_000_000 + b'"}}}'),
        reply({"status": {"authenticated": True}}),
        reply({"status": {"authenticated": True, "user": {"username": "x\ud800"}}}),
        reply({"status": {"authenticated": False, "error": "\ud800", "user": 1}}, 500),
        reply({"status": {"authenticated": "true", "user": {"username": "x"}}}),
        reply({"status": {"authenticated": True, "user": {"username": ["x"]}}}),
        reply({"status": {"authenticated": True, "user": {"username": "x", "groups": "system:masters"}}}),
        reply({"status": {"authenticated": True, "user": {"username": "x", "groups": [{}]}}}),
        reply({"status": {"authenticated": True, "user": {"username": "x", "extra": {"a": "b"}}}}),
        Reply(status=302, headers=(("Location", "https://127.0.0.1:1/"),)),
    ],
)
async def test_a_webhook_that_answers_garbage_lets_nobody_in(tmp_path: Path, hook: Hook, said: Reply) -> None:
    hook.reply = said
    async with served(config_in(tmp_path, authentication_token_webhook=hook.webhook())) as api:
        answer = await who(api, "good")
        assert answer.status == 401 and answer.json["reason"] == "Unauthorized"
        hook.reply = None
        assert (await who(api, "good")).status == 201, "a fault is not remembered"


async def test_a_webhook_that_hangs_holds_up_nobody_else(tmp_path: Path, hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiserver.access_tokens.TOKEN_WEBHOOK_TIMEOUT_SECONDS", 0.3)
    hook.reply = Reply(hangs=True)
    async with served(config_in(tmp_path, authentication_token_webhook=hook.webhook())) as api:
        answer = await who(api, "good")
        assert answer.status == 401
        asked = len(hook.server.seen)
        assert (await who(api, "admin-token")).status == 201
        assert len(hook.server.seen) == asked, "those who are known need no answer of it"


async def test_tokens_are_in_no_log(tmp_path: Path, hook: Hook, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    hook.reply = Reply(status=400, body=b"no")
    audit = AuditConfig(log_path=tmp_path / "audit.log")
    async with served(config_in(tmp_path, authentication_token_webhook=hook.webhook(), audit=audit)) as api:
        assert (await who(api, "very-secret-token")).status == 401
        await api.post(REVIEWS, {"spec": {"token": "very-secret-token"}})
        assert (await api.get("/api", headers={"x-remote-user": "very-secret-name"})).status == 200
    assert "very-secret" not in caplog.text
    assert "very-secret" not in (tmp_path / "audit.log").read_text()


# -- request headers


PROXIES = Authority("proxy-ca")
HEADERS = {
    "X-Remote-User": "ann",
    "X-Remote-Uid": "u1",
    "X-Remote-Group": "dev",
    "X-Remote-Extra-Acme.Example%2fScope": "read",
}


def proxied(directory: Path, **more: Any) -> ServerConfig:
    ca = directory / "proxies.crt"
    ca.write_bytes(PROXIES.pem)
    values: dict[str, Any] = {
        "client_ca_file": ca,
        "allowed_names": ("front",),
        "username_headers": ("X-Remote-User", "X-User"),
        "uid_headers": ("X-Remote-Uid",),
        "group_headers": ("X-Remote-Group",),
        "extra_headers_prefix": ("X-Remote-Extra-",),
    }
    return config_in(directory, request_header=RequestHeaderConfig(**(values | more)))


class ByCertificate(Api):
    """Requests on a connection that showed a certificate."""

    certificate: bytes = b""
    repeated: tuple[tuple[bytes, bytes], ...] = ()

    def scope(self, method: str, path: str, query: Any, headers: dict[str, str]) -> dict[str, Any]:
        scope = super().scope(method, path, query, headers)
        scope["headers"] += list(self.repeated)
        return scope | ({PEER_CERTIFICATE_KEY: self.certificate} if self.certificate else {})


async def test_a_proxy_says_who_the_user_is(tmp_path: Path) -> None:
    async with served(proxied(tmp_path)) as api:
        proxy = ByCertificate(api.server, api.kv)
        proxy.certificate = PROXIES.signed_der("front")
        proxy.repeated = ((b"x-remote-group", b"ops"),)
        answer = await who(proxy, headers=HEADERS)
        assert answer.json["status"]["userInfo"] == {
            "username": "ann",
            "uid": "u1",
            "groups": ["dev", "ops", "system:authenticated"],
            "extra": {"acme.example/scope": ["read"]},
        }
        assert (await who(proxy, headers={"x-user": "bob"})).json["status"]["userInfo"]["username"] == "bob"
        nobody = await proxy.get("/api/v1/pods", token="")
        assert nobody.status == 403 and "system:anonymous" in nobody.message, "a proxy itself is nobody"


@pytest.mark.parametrize("headers", [HEADERS, {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}, {"x_remote_user": "admin"}])
async def test_smuggled_headers_get_nobody_in(tmp_path: Path, headers: dict[str, str]) -> None:
    """Without a certificate, with one of another authority, with another name, with one that is no certificate."""
    strangers = Authority("proxy-ca")
    async with served(proxied(tmp_path)) as api:
        for certificate in (b"", strangers.signed_der("front"), PROXIES.signed_der("other", "system:masters"), b"garbage"):
            caller = ByCertificate(api.server, api.kv)
            caller.certificate = certificate
            answer = await caller.get("/api/v1/secrets", token="", headers=headers)
            expected = 401 if certificate else 403
            assert answer.status == expected, (certificate[:10], answer.body)
            if expected == 403:
                assert 'User "system:anonymous" cannot list' in answer.message
            named = await who(caller, "alice-token", headers=headers)
            assert named.json["status"]["userInfo"]["username"] == "alice", "a token of one's own is one's own user"


# -- configuration files


def configuration(directory: Path, **more: Any) -> Path:
    path = directory / "authentication.json"
    path.write_text(json.dumps({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", **more}))
    return path


async def test_anonymous_requests_are_for_the_paths_that_are_said(tmp_path: Path) -> None:
    path = configuration(tmp_path, anonymous={"enabled": True, "conditions": [{"path": "/livez"}, {"path": "/readyz"}]})
    async with served(config_in(tmp_path, authentication_config=path)) as api:
        assert (await api.get("/livez", token="")).status == 200
        for other in ("/healthz", "/livez/", "/livez/../api", "/LIVEZ", "//livez", "/livez%2f..", "/api/v1/pods", "/"):
            assert (await api.get(other, token="")).status == 401, other


async def test_anonymous_requests_can_be_switched_off_and_on_while_the_server_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiserver.reloaded_file.LOOK_SECONDS", 0.0)
    path = configuration(tmp_path, anonymous={"enabled": False})
    async with served(config_in(tmp_path, authentication_config=path)) as api:
        assert (await api.get("/livez", token="")).status == 401
        configuration(tmp_path, anonymous={"enabled": True})
        assert (await api.get("/livez", token="")).status == 200
        path.write_text("anonymous: {enabled: false}")
        assert (await api.get("/livez", token="")).status == 200, "a file that cannot be used changes nothing"


async def test_several_issuers_of_a_file_each_by_its_own_rules(tmp_path: Path) -> None:
    first, second = Issuer(tmp_path / "first", KEY), Issuer(tmp_path / "second", KEY)
    second.overrides["/elsewhere"] = reply({"issuer": second.url, "jwks_uri": f"{second.url}/keys"})
    try:
        jwt = [
            {
                "issuer": {"url": first.url, "audiences": ["sampan"], "certificateAuthority": first.ca_file.read_text()},
                "claimValidationRules": [{"claim": "hd", "requiredValue": "example.org"}],
                "claimMappings": {
                    "username": {"claim": "sub", "prefix": "one:"},
                    "groups": {"claim": "roles", "prefix": ""},
                    "uid": {"claim": "oid"},
                },
            },
            {
                "issuer": {
                    "url": second.url,
                    "discoveryURL": f"{second.url}/elsewhere",
                    "audiences": ["a", "b"],
                    "audienceMatchPolicy": "MatchAny",
                    "certificateAuthority": second.ca_file.read_text(),
                },
                "claimMappings": {"username": {"claim": "name", "prefix": ""}},
            },
        ]
        async with served(config_in(tmp_path, authentication_config=configuration(tmp_path, jwt=jwt))) as api:
            answer = await who(api, KEY.sign(first.claims(time.time(), hd="example.org", roles=["r"], oid="7")))
            user = answer.json["status"]["userInfo"]
            assert (user["username"], user["uid"], user["groups"]) == ("one:ann", "7", ["r", "system:authenticated"])
            assert (await who(api, KEY.sign(first.claims(time.time(), oid="7")))).status == 401
            other = await who(api, KEY.sign(second.claims(time.time(), aud="b", name="bob")))
            assert other.json["status"]["userInfo"]["username"] == "bob"
            assert second.fetches == ["/elsewhere", "/keys"]
            assert (await who(api, KEY.sign(second.claims(time.time(), name="bob")))).status == 401
    finally:
        first.close()
        second.close()
