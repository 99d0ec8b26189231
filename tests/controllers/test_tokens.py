"""Secrets that ask for a ServiceAccount's token: filled, put right, and taken away with their account."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from apiserver.machinery.objects import Object
from controllers.client import errors
from controllers.client.resources import SECRETS, SERVICE_ACCOUNTS
from controllers.lib.context import ControllerContext
from controllers.serviceaccount.tokens import ACCOUNT_NAME, ACCOUNT_UID, SECRET_TYPE, TokensController, TokenSigner
from tests.controllers.world import World


def controller(context: ControllerContext) -> TokensController:
    return TokensController(context, "the CA", lambda account, secret: f"token of {account['metadata']['name']}")


def account(name: str) -> Object:
    return {"metadata": {"name": name, "namespace": "n"}}


def secret(name: str, of: str, **data: str) -> Object:
    return {"metadata": {"name": name, "namespace": "n", "annotations": {ACCOUNT_NAME: of}}, "type": SECRET_TYPE, "data": data}


def decoded(found: Object) -> dict[str, str]:
    return {name: base64.b64decode(value).decode() for name, value in found["data"].items()}


async def exists(world: World, name: str) -> bool:
    try:
        await world.api.get(SECRETS, "n", name)
    except errors.StatusError as error:
        assert errors.is_not_found(error)
        return False
    return True


async def test_a_secret_is_filled_put_right_and_goes_with_its_account() -> None:
    world = World()
    async with world.running(controller):
        made = await world.api.create(SERVICE_ACCOUNTS, "n", account("robot"))
        await world.api.create(SECRETS, "n", secret("t", "robot", own="eA=="))
        await world.rest()
        found = await world.api.get(SECRETS, "n", "t")
        assert decoded(found) == {"ca.crt": "the CA", "namespace": "n", "token": "token of robot", "own": "x"}
        assert found["metadata"]["annotations"][ACCOUNT_UID] == made["metadata"]["uid"]
        await world.api.update(SECRETS, {**found, "data": {"token": found["data"]["token"], "ca.crt": "eA=="}})
        await world.rest()
        assert decoded(await world.api.get(SECRETS, "n", "t"))["ca.crt"] == "the CA"
        await world.api.delete(SERVICE_ACCOUNTS, "n", "robot")
        await world.rest()
        assert not await exists(world, "t")


async def test_a_secret_of_nobody_or_of_an_earlier_account_goes() -> None:
    world = World()
    stale = secret("stale", "robot")
    stale["metadata"]["annotations"][ACCOUNT_UID] = "of-an-earlier-one"
    await world.api.create(SERVICE_ACCOUNTS, "n", account("robot"))
    await world.api.create(SECRETS, "n", secret("lonely", "nobody"))
    await world.api.create(SECRETS, "n", stale)
    other: dict[str, Any] = {"metadata": {"name": "other", "namespace": "n", "annotations": {ACCOUNT_NAME: "nobody"}}, "type": "Opaque"}
    await world.api.create(SECRETS, "n", other)
    async with world.running(controller):
        assert [await exists(world, name) for name in ("lonely", "stale", "other")] == [False, False, True]


def test_a_token_names_account_and_secret(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    path = tmp_path / "sa.key"
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    owner = {"metadata": {"name": "robot", "namespace": "n", "uid": "u"}}
    token = TokenSigner(path).sign(owner, {"metadata": {"name": "t", "namespace": "n"}})
    assert jwt.decode(token, key.public_key(), algorithms=["ES256"]) == {
        "iss": "kubernetes/serviceaccount",
        "sub": "system:serviceaccount:n:robot",
        "kubernetes.io/serviceaccount/namespace": "n",
        "kubernetes.io/serviceaccount/secret.name": "t",
        "kubernetes.io/serviceaccount/service-account.name": "robot",
        "kubernetes.io/serviceaccount/service-account.uid": "u",
    }
