"""Token requests (``kubectl create token``, the kubelet)."""

from __future__ import annotations

from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from apiserver.authentication.service_account import TokenIssuer
from apiserver.authentication.token_request import create_token
from apiserver.machinery.status import StatusError
from tests.fakes.object_getter import FakeObjects

KEY = ec.generate_private_key(ec.SECP256R1())
API = ("https://kubernetes.default.svc.cluster.local",)


def ask(**spec: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the answer, the token's claims)"""
    world = FakeObjects()
    account = world.add("", "serviceaccounts", "robot", "ns")
    world.add("", "pods", "p", "ns", spec={"serviceAccountName": "robot", "nodeName": "n1"})
    world.add("", "pods", "q", "ns", spec={"serviceAccountName": "other"})
    world.add("", "nodes", "n1")
    issuer = TokenIssuer(key=KEY, issuer=API[0], now=lambda: 1_700_000_000.0, new_id=lambda: "id")
    answer = create_token({"spec": spec}, account, issuer, world, API)
    return answer, jwt.decode(answer["status"]["token"], options={"verify_signature": False})


def pod(name: str = "p", **more: str) -> dict[str, str]:
    return {"kind": "Pod", "apiVersion": "v1", "name": name, **more}


def test_a_plain_request_is_for_the_api_server_and_an_hour() -> None:
    answer, claims = ask()
    assert answer["spec"] == {"audiences": list(API), "expirationSeconds": 3600, "boundObjectRef": None}
    assert answer["status"]["expirationTimestamp"] == "2023-11-14T23:13:20Z"
    assert (claims["aud"], claims["exp"] - claims["iat"]) == (list(API), 3600)
    assert claims["kubernetes.io"] == {"namespace": "ns", "serviceaccount": {"name": "robot", "uid": "uid-robot"}}


def test_a_token_bound_to_a_pod_names_it_and_its_node() -> None:
    _, claims = ask(boundObjectRef=pod(uid="uid-p"), audiences=["vault"], expirationSeconds=600)
    assert claims["aud"] == ["vault"]
    assert claims["kubernetes.io"]["pod"] == {"name": "p", "uid": "uid-p"}
    assert claims["kubernetes.io"]["node"] == {"name": "n1", "uid": "uid-n1"}


def test_the_token_that_is_mounted_in_pods_works_longer_than_it_says() -> None:
    answer, claims = ask(boundObjectRef=pod(), expirationSeconds=3607)
    assert answer["status"]["expirationTimestamp"] == "2023-11-14T23:13:27Z"
    assert claims["exp"] - claims["iat"] == 365 * 24 * 3600
    assert claims["kubernetes.io"]["warnafter"] - claims["iat"] == 3607


JOB = {"kind": "Job", "apiVersion": "batch/v1", "name": "j"}


@pytest.mark.parametrize(
    ("spec", "code", "why"),
    [
        ({"expirationSeconds": 5}, 422, "may not specify a duration less than 10 minutes"),
        ({"expirationSeconds": 2**40}, 422, "may not specify a duration larger than 2^32 seconds"),
        ({"boundObjectRef": pod("gone")}, 404, 'pods "gone" not found'),
        ({"boundObjectRef": pod("q")}, 400, 'cannot bind token for serviceaccount "robot" to pod running with different serviceaccount'),
        ({"boundObjectRef": pod(uid="x")}, 409, "the UID in the bound object reference (x) does not match"),
        ({"boundObjectRef": JOB}, 400, "cannot bind token to object of type batch/v1, Kind=Job"),
    ],
)
def test_refusals(spec: dict[str, Any], code: int, why: str) -> None:
    with pytest.raises(StatusError) as caught:
        ask(**spec)
    assert caught.value.code == code and why in caught.value.message
