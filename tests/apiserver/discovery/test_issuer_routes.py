"""The issuer's documents: with them alone anybody verifies a token of this cluster."""

from __future__ import annotations

from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from apiserver.discovery.issuer_routes import web_key
from tests.apiserver.api import Api, config_in, running

CONFIGURATION = "/.well-known/openid-configuration"


@pytest.fixture
async def api(tmp_path: Path):  # type: ignore[no-untyped-def]
    async with running(config_in(tmp_path)) as found:
        yield found


async def test_a_token_is_verified_by_the_published_keys(api: Api) -> None:
    await api.created("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
    issued = await api.post("/api/v1/namespaces/default/serviceaccounts/robot/token", {"spec": {"audiences": ["them"]}})
    token = issued.json["status"]["token"]
    configuration = await api.get(CONFIGURATION)
    assert (configuration.status, configuration.headers["content-type"]) == (200, ["application/json"])
    assert configuration.headers["cache-control"] == ["public, max-age=3600"]
    assert configuration.json["jwks_uri"] == "https://127.0.0.1:6443/openid/v1/jwks"
    keys = await api.get("/openid/v1/jwks")
    assert keys.headers["content-type"] == ["application/jwk-set+json"]
    known = {key.key_id: key for key in jwt.PyJWKSet.from_dict(keys.json).keys}
    key = known[jwt.get_unverified_header(token)["kid"]]
    algorithms = configuration.json["id_token_signing_alg_values_supported"]
    claims = jwt.decode(token, key, algorithms=algorithms, audience="them", issuer=configuration.json["issuer"])
    assert claims["sub"] == "system:serviceaccount:default:robot"


async def test_service_accounts_may_read_them_and_others_may_not(api: Api) -> None:
    as_account = {"impersonate-user": "system:serviceaccount:default:robot"}
    as_alice = {"impersonate-user": "alice"}
    for path in (CONFIGURATION, CONFIGURATION + "/", "/openid/v1/jwks"):
        assert (await api.get(path, headers=as_account)).status == 200
        assert (await api.get(path, headers=as_alice)).status == 403
        assert (await api.post(path, {})).status == 405
    assert CONFIGURATION in (await api.get("/")).json["paths"]


@pytest.mark.parametrize("curve", [ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()])
def test_curves_and_rsa_keys_are_told(curve: ec.EllipticCurve) -> None:
    key = ec.generate_private_key(curve)
    signed = jwt.encode({"a": 1}, key, algorithm={256: "ES256", 384: "ES384", 521: "ES512"}[curve.key_size])
    assert jwt.decode(signed, jwt.PyJWK(web_key(key.public_key())), algorithms=["ES256", "ES384", "ES512"]) == {"a": 1}


def test_an_rsa_key_is_told() -> None:
    key = rsa.generate_private_key(65537, 2048)
    signed = jwt.encode({"a": 1}, key, algorithm="RS256")
    assert jwt.decode(signed, jwt.PyJWK(web_key(key.public_key())), algorithms=["RS256"]) == {"a": 1}
