"""ID tokens of a real issuer on loopback TLS: who they name, which are refused, what happens when keys rotate or the issuer misbehaves."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, ClassVar

import jwt
import pytest

from apiserver.access_tokens import JwtIssuers
from apiserver.authentication import issuer_keys
from apiserver.authentication.interfaces import AuthenticationError, TokenAuthentication
from apiserver.config import OidcConfig, ServerConfig
from apiserver.identity_metrics import IdentityMetrics
from apiserver.request.unanswered import settled
from tests.apiserver.api import config_in
from tests.fakes.loopback import Issuer, Reply, SigningKey, reply, unsigned

KEY = SigningKey("k1")
OTHER = SigningKey("k2")
EC = SigningKey("e1", "ES384")


@pytest.fixture
def issuer(tmp_path: Path) -> Iterator[Issuer]:
    made = Issuer(tmp_path / "issuer", KEY)
    yield made
    made.close()


def config(directory: Path, issuer: Issuer, **more: Any) -> ServerConfig:
    oidc = OidcConfig(issuer_url=issuer.url, client_id="sampan", ca_file=issuer.ca_file, **more)
    return config_in(directory, oidc=oidc)


class Asked:
    made: ClassVar[list[JwtIssuers]] = []

    def __init__(self, issuers: JwtIssuers) -> None:
        self.issuers = issuers
        self.made.append(issuers)

    async def __call__(self, token: str) -> TokenAuthentication | None:
        return await settled(lambda: self.issuers.authenticate_token(token))

    async def refusal(self, token: str) -> str:
        with pytest.raises(AuthenticationError) as caught:
            await self(token)
        assert token.split(".")[-1] == "" or token.split(".")[-1] not in str(caught.value)
        return str(caught.value)


@pytest.fixture
def asked(tmp_path: Path, issuer: Issuer) -> Asked:
    return Asked(JwtIssuers(config(tmp_path, issuer, groups_claim="groups", groups_prefix="oidc:"), ("api",), IdentityMetrics(37)))


@pytest.fixture(autouse=True)
async def closing() -> AsyncIterator[None]:
    yield
    while Asked.made:
        await Asked.made.pop().close()


def now() -> float:
    return time.time()


async def test_a_token_is_the_user_of_its_claims(asked: Asked, issuer: Issuer) -> None:
    found = await asked(KEY.sign(issuer.claims(now(), groups=["dev", "ops"], jti="j1")))
    assert found is not None and found.audiences == ("api",)
    assert found.user.name == f"{issuer.url}#ann" and found.user.groups == ("oidc:dev", "oidc:ops")
    assert found.user.extra == {"authentication.kubernetes.io/credential-id": ("JTI=j1",)}
    one = await asked(KEY.sign(issuer.claims(now(), groups="dev", aud=["x", "sampan"])))
    assert one is not None and one.user.groups == ("oidc:dev",)
    assert issuer.fetches == ["/.well-known/openid-configuration", "/keys"], "fetched once, for the first token"


async def test_tokens_of_others_are_left_to_others(asked: Asked, issuer: Issuer) -> None:
    for token in ("abc", "a.b.c", KEY.sign({"iss": "https://else.example", "aud": "sampan"}), KEY.sign({"sub": "x"}), "..", "a" * 9999):
        assert await asked(token) is None
    assert issuer.fetches == [], "nobody is asked about tokens of others"


@pytest.mark.parametrize(
    ("claims", "told"),
    [
        ({"exp": 1}, "token is expired"),
        ({"exp": None}, "claim exp is no number"),
        ({"exp": float("nan")}, "token is expired"),
        ({"exp": "99999999999"}, "claim exp is no number"),
        ({"nbf": 99999999999, "exp": 999999999999}, "before the nbf"),
        ({"aud": "other"}, "expected audience"),
        ({"aud": []}, "expected audience"),
        ({"aud": {"sampan": 1}}, "expected audience"),
        ({"sub": ""}, "username claims"),
        ({"sub": ["ann"]}, "username claims"),
        ({"groups": [1]}, "parse groups claim"),
        ({"sub": "a\ud800"}, "characters that are none"),
        ({"groups": ["a\udfff"]}, "characters that are none"),
        ({"groups": {"a": 1}}, "parse groups claim"),
    ],
)
async def test_tokens_that_are_not_valid_are_refused(asked: Asked, issuer: Issuer, claims: dict[str, Any], told: str) -> None:
    assert told in await asked.refusal(KEY.sign(issuer.claims(now()) | claims))


async def test_forged_tokens_are_refused(asked: Asked, issuer: Issuer) -> None:
    claims = issuer.claims(now(), sub="root")
    good = KEY.sign(claims)
    head, body, signature = good.split(".")
    assert "unsupported algorithm" in await asked.refusal(unsigned(claims))
    assert "unsupported algorithm" in await asked.refusal(unsigned(claims, "None"))
    public = json.dumps(KEY.public_jwk())
    assert "unsupported algorithm" in await asked.refusal(jwt.encode(claims, public * 2, algorithm="HS256", headers={"kid": "k1"}))
    assert "unsupported algorithm" in await asked.refusal(EC.sign(claims))
    assert "failed to verify" in await asked.refusal(OTHER.sign(claims, kid="k1"))
    assert "failed to verify" in await asked.refusal(f"{head}.{body}.{signature[:-8]}AAAAAAAA")
    assert "failed to verify" in await asked.refusal(f"{head}.{body}.")
    # a key that the token brings itself, or an address to fetch one from, is not looked at
    assert "failed to verify" in await asked.refusal(OTHER.sign(claims, jwk=OTHER.public_jwk(), jku=f"{issuer.url}/mine", kid="k1"))
    assert "/mine" not in issuer.fetches


async def test_a_header_that_is_nested_without_end_is_refused(asked: Asked, issuer: Issuer) -> None:
    _, body, signature = KEY.sign(issuer.claims(now())).split(".")
    header = base64.urlsafe_b64encode(b"[" * 9000).rstrip(b"=").decode()
    assert "malformed jwt" in await asked.refusal(f"{header}.{body}.{signature}")


@pytest.mark.parametrize("header", [{"alg": []}, {"alg": {}}, {"alg": "RS256", "kid": []}, {"alg": "RS256", "kid": 1}, [], "x", 1, None])
async def test_headers_of_strange_values_are_refused(asked: Asked, issuer: Issuer, header: object) -> None:
    _, body, signature = KEY.sign(issuer.claims(now())).split(".")
    made = base64.urlsafe_b64encode(json.dumps(header).encode()).rstrip(b"=").decode()
    assert "oidc: " in await asked.refusal(f"{made}.{body}.{signature}")


async def test_keys_rotate_without_a_restart(asked: Asked, issuer: Issuer) -> None:
    assert await asked(KEY.sign(issuer.claims(now()))) is not None
    issuer.keys = [OTHER]
    assert await asked(OTHER.sign(issuer.claims(now()))) is not None, "a key that is not known is looked for"
    assert "no key of the issuer fits" in await asked.refusal(KEY.sign(issuer.claims(now(), sub="x"))), "the old one is gone"


async def test_made_up_keys_do_not_make_a_flood(asked: Asked, issuer: Issuer) -> None:
    for number in range(40):
        await asked.refusal(OTHER.sign(issuer.claims(now()), kid=f"made-up-{number}"))
    assert issuer.fetches.count("/keys") <= issuer_keys.FETCHES_BURST + 1
    assert await asked(KEY.sign(issuer.claims(now()))) is not None, "those who have a good key are served meanwhile"


@pytest.mark.parametrize(
    "said",
    [
        Reply(status=500),
        Reply(body=b"<html>"),
        Reply(body=b"[" * 200_000),
        Reply(body=b"[]"),
        Reply(body=b"null"),
        reply({"keys": "none"}),
        reply({"keys": [{}] * 10_000}),
        Reply(body=b'{"keys": [' + b" " * 3_000_000 + b"]}"),
        Reply(status=302, headers=(("Location", "https://127.0.0.1:1/elsewhere"),)),
    ],
)
async def test_an_issuer_that_answers_garbage_lets_nobody_in_and_is_asked_again(asked: Asked, issuer: Issuer, said: Reply) -> None:
    issuer.overrides["/keys"] = said
    token = KEY.sign(issuer.claims(now()))
    assert "authenticator not initialized" in await asked.refusal(token)
    del issuer.overrides["/keys"]
    assert await asked(token) is not None


async def test_keys_that_cannot_be_used_are_passed_over(asked: Asked, issuer: Issuer) -> None:
    strange: list[Any] = [{"kty": "oct", "k": "AA"}, {"kty": "RSA", "kid": "k1"}, {"kty": ["RSA"]}, 1, {"kty": "EC", "crv": "P-0", "x": 1}]
    issuer.overrides["/keys"] = reply({"keys": [*strange, {**KEY.public_jwk(), "use": "enc"}, KEY.public_jwk()]})
    assert await asked(KEY.sign(issuer.claims(now()))) is not None


async def test_an_issuer_must_name_itself_and_say_where_its_keys_are(asked: Asked, issuer: Issuer) -> None:
    for document in (
        {"issuer": "https://other", "jwks_uri": issuer.url},
        {"issuer": issuer.url},
        {"issuer": issuer.url, "jwks_uri": "http://a"},
    ):
        issuer.overrides["/.well-known/openid-configuration"] = reply(document)
        assert "authenticator not initialized" in await asked.refusal(KEY.sign(issuer.claims(now())))
    assert "/keys" not in issuer.fetches


async def test_an_issuer_that_hangs_costs_a_deadline(tmp_path: Path, issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiserver.access_tokens.ISSUER_TIMEOUT_SECONDS", 0.2)
    asked = Asked(JwtIssuers(config(tmp_path, issuer), (), IdentityMetrics(37)))
    issuer.overrides["/keys"] = Reply(hangs=True)
    assert "no answer within 0.2 s" in await asked.refusal(KEY.sign(issuer.claims(now())))


async def test_another_authority_may_not_vouch_for_the_issuer(tmp_path: Path, issuer: Issuer) -> None:
    oidc = OidcConfig(issuer_url=issuer.url, client_id="sampan")
    asked = Asked(JwtIssuers(config_in(tmp_path, oidc=oidc), (), IdentityMetrics(37)))
    assert "cannot be reached" in await asked.refusal(KEY.sign(issuer.claims(now())))


async def test_addresses_must_be_verified_and_have_no_prefix(tmp_path: Path, issuer: Issuer) -> None:
    asked = Asked(JwtIssuers(config(tmp_path, issuer, username_claim="email"), (), IdentityMetrics(37)))
    found = await asked(KEY.sign(issuer.claims(now(), email="ann@example.org", email_verified=True)))
    assert found is not None and found.user.name == "ann@example.org"
    assert "email not verified" in await asked.refusal(KEY.sign(issuer.claims(now(), email="root@example.org", email_verified=False)))
    assert "email_verified" in await asked.refusal(KEY.sign(issuer.claims(now(), email="root@example.org", email_verified="true")))
    assert "claim not present" in await asked.refusal(KEY.sign(issuer.claims(now())))


async def test_required_claims_prefixes_and_algorithms_are_as_the_flags_say(tmp_path: Path, issuer: Issuer) -> None:
    issuer.keys = [EC]
    more = {"username_prefix": "-", "required_claim": {"hd": "example.org"}, "signing_algs": ("ES384",)}
    asked = Asked(JwtIssuers(config(tmp_path, issuer, **more), (), IdentityMetrics(37)))
    found = await asked(EC.sign(issuer.claims(now(), hd="example.org")))
    assert found is not None and found.user.name == "ann"
    assert "required claim hd not present" in await asked.refusal(EC.sign(issuer.claims(now())))
    assert "value does not match" in await asked.refusal(EC.sign(issuer.claims(now(), hd="example.com")))
    assert "unsupported algorithm" in await asked.refusal(KEY.sign(issuer.claims(now(), hd="example.org")))
