"""How others verify this cluster's ServiceAccount tokens: the issuer's OpenID configuration and its keys (RFC 8414, RFC 7517; apiserver
``--service-account-issuer``).

    /.well-known/openid-configuration      who issues, and where the keys are
    /openid/v1/jwks                        the public keys

Both are given to whoever the role ``system:service-account-issuer-discovery`` is bound to.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import orjson
from cryptography.hazmat.primitives.asymmetric import rsa
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from apiserver.authentication.service_account import PublicKey, algorithm_of, key_id_of
from apiserver.discovery.routes import METHODS, only_get

_KEYS_PATH = "/openid/v1/jwks"
#: keys change with a restart, if ever
_HEADERS = {"Cache-Control": "public, max-age=3600"}
_CURVES = {"secp256r1": "P-256", "secp384r1": "P-384", "secp521r1": "P-521"}


def router(issuer: str, keys: Sequence[PublicKey], keys_url: str = "") -> APIRouter:
    """``keys_url``: where others are told to find the keys, "" for here."""
    algorithms = sorted({algorithm_of(key) for key in keys})
    key_set = orjson.dumps({"keys": [web_key(key) for key in keys]})

    async def configuration(request: Request) -> Response:
        host, port = request.scope.get("server") or ("127.0.0.1", 443)
        document = {
            "issuer": issuer,
            "jwks_uri": keys_url or f"https://{host}:{port}{_KEYS_PATH}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": algorithms,
        }
        return Response(orjson.dumps(document), headers=_HEADERS, media_type="application/json")

    async def public_keys(request: Request) -> Response:
        return Response(key_set, headers=_HEADERS, media_type="application/jwk-set+json")

    routes = APIRouter()
    for path, endpoint in (("/.well-known/openid-configuration", configuration), (_KEYS_PATH, public_keys)):
        for spelled in (path, path + "/"):
            routes.add_route(spelled, only_get(endpoint), methods=METHODS, include_in_schema=False)
    return routes


def web_key(key: PublicKey) -> dict[str, Any]:
    """A public key as a JSON Web Key (RFC 7518 §6)."""
    common = {"use": "sig", "kid": key_id_of(key), "alg": algorithm_of(key)}
    if isinstance(key, rsa.RSAPublicKey):
        numbers = key.public_numbers()
        return {**common, "kty": "RSA", "n": _number(numbers.n), "e": _number(numbers.e)}
    point = key.public_numbers()
    size = (key.curve.key_size + 7) // 8
    return {**common, "kty": "EC", "crv": _CURVES[key.curve.name], "x": _number(point.x, size), "y": _number(point.y, size)}


def _number(value: int, size: int = 0) -> str:
    """Base64urlUInt; coordinates have the length of their curve."""
    size = size or (value.bit_length() + 7) // 8
    return base64.urlsafe_b64encode(value.to_bytes(size, "big")).rstrip(b"=").decode()
