"""ServiceAccount tokens: what is issued is accepted as long as it should be, and nothing else is."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Callable

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from apiserver.authentication.interfaces import AuthenticationError
from apiserver.authentication.service_account import (
    LEGACY_ISSUER,
    BoundReference,
    PrivateKey,
    ServiceAccountAuthenticator,
    TokenIssuer,
    load_public_keys,
)
from apiserver.identity_metrics import IdentityMetrics
from apiserver.machinery.objects import Object
from apiserver.metrics import Exposition

ISSUER = "https://kubernetes.default.svc.cluster.local"
START = 1_700_000_000.0
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Objects:
    """A trusted ObjectGetter over a dict."""

    def __init__(self, *entries: tuple[str, str, str, str]) -> None:
        self.by_key: dict[tuple[str, str, str], Object] = {}
        for resource, namespace, name, uid in entries:
            self.put(resource, namespace, name, uid)

    def put(self, resource: str, namespace: str, name: str, uid: str, **more: object) -> None:
        metadata = {"name": name, "namespace": namespace, "uid": uid}
        self.by_key[(resource, namespace, name)] = {"metadata": metadata, **more}

    def get(self, group: str, resource: str, namespace: str, name: str) -> Object | None:
        assert group == ""
        return self.by_key.get((resource, namespace, name))

    def list(self, group: str, resource: str, namespace: str = "") -> list[Object]:
        return [o for (r, ns, _), o in self.by_key.items() if r == resource and namespace in ("", ns)]


class World:
    def __init__(self, key: PrivateKey = RSA_KEY) -> None:
        self.now = START
        self.objects = Objects(("serviceaccounts", "ns", "robot", "sa-uid"), ("pods", "ns", "p", "pod-uid"))
        ids = itertools.count(1)
        self.issuer = TokenIssuer(key=key, issuer=ISSUER, now=lambda: self.now, new_id=lambda: f"id-{next(ids)}")
        self.authenticator = ServiceAccountAuthenticator([key.public_key()], [ISSUER], [ISSUER], self.objects, lambda: self.now)

    @property
    def account(self) -> Object:
        return self.objects.by_key[("serviceaccounts", "ns", "robot")]

    def issue(self, seconds: int = 600, bound: BoundReference | None = None, audiences: tuple[str, ...] = (ISSUER,), warn: int = 0) -> str:
        return self.issuer.issue(self.account, audiences, seconds, bound, warn)

    def refusal(self, token: str) -> str:
        with pytest.raises(AuthenticationError) as caught:
            self.authenticator.authenticate_token(token)
        assert token not in str(caught.value)
        return str(caught.value)


@pytest.mark.parametrize("key", [RSA_KEY, EC_KEY], ids=["RS256", "ES256"])
def test_an_issued_token_names_its_account_pod_and_node(key: PrivateKey) -> None:
    world = World(key)
    bound = BoundReference(kind="pod", name="p", uid="pod-uid", node_name="n1", node_uid="node-uid")
    found = world.authenticator.authenticate_token(world.issue(bound=bound))
    assert found is not None
    assert found.user.name == "system:serviceaccount:ns:robot"
    assert found.user.uid == "sa-uid"
    assert found.user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns")
    assert found.user.extra == {
        "authentication.kubernetes.io/credential-id": ("JTI=id-1",),
        "authentication.kubernetes.io/pod-name": ("p",),
        "authentication.kubernetes.io/pod-uid": ("pod-uid",),
        "authentication.kubernetes.io/node-name": ("n1",),
        "authentication.kubernetes.io/node-uid": ("node-uid",),
    }


def test_claims_are_those_of_kubernetes() -> None:
    world = World()
    token = world.issue(bound=BoundReference(kind="pod", name="p", uid="pod-uid"))
    assert jwt.decode(token, options={"verify_signature": False}) == {
        "aud": [ISSUER],
        "exp": START + 600,
        "iat": START,
        "iss": ISSUER,
        "jti": "id-1",
        "kubernetes.io": {
            "namespace": "ns",
            "serviceaccount": {"name": "robot", "uid": "sa-uid"},
            "pod": {"name": "p", "uid": "pod-uid"},
        },
        "nbf": START,
        "sub": "system:serviceaccount:ns:robot",
    }
    assert jwt.get_unverified_header(token)["kid"]


def test_a_remembered_token_still_expires() -> None:
    world = World()
    token = world.issue(600)
    world.now += 599
    assert world.authenticator.authenticate_token(token) is not None
    world.now += 1
    assert "expired" in world.refusal(token)
    assert "expired" in world.refusal(token)


def test_a_token_of_the_future_is_refused_beyond_the_leeway() -> None:
    world = World()
    world.now += 100
    token = world.issue()
    world.now -= 61
    assert "not valid yet" in world.refusal(token)
    world.now += 1
    assert world.authenticator.authenticate_token(token) is not None


@pytest.mark.parametrize("remembered", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        lambda o: o.by_key.pop(("serviceaccounts", "ns", "robot")),
        lambda o: o.put("serviceaccounts", "ns", "robot", "another-uid"),
        lambda o: o.by_key.pop(("pods", "ns", "p")),
        lambda o: o.put("pods", "ns", "p", "another-uid"),
    ],
    ids=["account deleted", "account made anew", "pod deleted", "pod made anew"],
)
def test_a_token_ends_with_what_it_is_bound_to(change: Callable[[Objects], object], remembered: bool) -> None:
    world = World()
    token = world.issue(bound=BoundReference(kind="pod", name="p", uid="pod-uid"))
    if remembered:
        assert world.authenticator.authenticate_token(token) is not None
    change(world.objects)
    world.refusal(token)


def test_a_pod_being_deleted_keeps_its_token_until_its_grace_period_is_over() -> None:
    world = World()
    token = world.issue(bound=BoundReference(kind="pod", name="p", uid="pod-uid"))
    world.objects.by_key[("pods", "ns", "p")]["metadata"]["deletionTimestamp"] = "2023-11-14T22:13:20Z"
    assert world.authenticator.authenticate_token(token) is not None
    world.now += 61
    world.refusal(token)


def test_the_audience_must_fit() -> None:
    world = World()
    token = world.issue(audiences=("vault", "other"))
    assert f'token audiences ["vault" "other"] is invalid for the target audiences ["{ISSUER}"]' in world.refusal(token)
    found = world.authenticator.authenticate_token(token, ("vault", "elsewhere"))
    assert found is not None and found.audiences == ("vault",)
    found = world.authenticator.authenticate_token(world.issue(audiences=("vault", ISSUER)))
    assert found is not None and found.audiences == (ISSUER,)


def _segment(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def _forgeries() -> dict[str, str]:
    world = World()
    good = world.issue()
    header, payload, signature = good.split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    public_pem = RSA_KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    # PyJWT refuses to sign with a PEM as an HMAC secret, an attacker does not
    import hashlib
    import hmac

    hs_head = _segment({"alg": "HS256", "typ": "JWT"})
    mac = hmac.new(public_pem, f"{hs_head}.{payload}".encode(), hashlib.sha256).digest()
    other_subject = claims | {"sub": "system:serviceaccount:kube-system:admin"}
    return {
        "alg none": f"{_segment({'alg': 'none'})}.{payload}.",
        "alg none in capitals": f"{_segment({'alg': 'NONE'})}.{payload}.",
        "public key as HMAC secret": f"{hs_head}.{payload}." + base64.urlsafe_b64encode(mac).rstrip(b"=").decode(),
        "claims changed": f"{header}.{_segment(other_subject)}.{signature}",
        "signature cut": good[:-10],
        "signature missing": f"{header}.{payload}.",
        "signed by another key": jwt.encode(claims, OTHER_KEY, algorithm="RS256"),
        "signed by another key under our kid": jwt.encode(
            claims, OTHER_KEY, algorithm="RS256", headers={"kid": jwt.get_unverified_header(good)["kid"]}
        ),
        "subject differs from account": jwt.encode(other_subject, RSA_KEY, algorithm="RS256"),
        "no expiry": jwt.encode({k: v for k, v in claims.items() if k != "exp"}, RSA_KEY, algorithm="RS256"),
        "no audience": jwt.encode({k: v for k, v in claims.items() if k != "aud"}, RSA_KEY, algorithm="RS256"),
        "expiry is a text": jwt.encode(claims | {"exp": "never"}, RSA_KEY, algorithm="RS256"),
        "legacy without its claims": jwt.encode(claims | {"iss": LEGACY_ISSUER}, RSA_KEY, algorithm="RS256"),
    }


FORGERIES = _forgeries()


@pytest.mark.parametrize("token", FORGERIES.values(), ids=FORGERIES.keys())
def test_forgeries_are_refused(token: str) -> None:
    World().refusal(token)


OF_ANOTHER_ISSUER = f"{_segment({'alg': 'RS256'})}.{_segment({'iss': 'x'})}.AA"


@pytest.mark.parametrize("token", ["", "abc", "a.b.c", "a.b", "....", "e30.e30.e30", OF_ANOTHER_ISSUER])
def test_tokens_of_others_are_left_to_others(token: str) -> None:
    assert World().authenticator.authenticate_token(token) is None


def _legacy_claims() -> dict[str, object]:
    prefix = "kubernetes.io/serviceaccount/"
    return {
        "iss": LEGACY_ISSUER,
        "sub": "system:serviceaccount:ns:robot",
        prefix + "namespace": "ns",
        prefix + "secret.name": "robot-token",
        prefix + "service-account.name": "robot",
        prefix + "service-account.uid": "sa-uid",
    }


def test_a_legacy_token_lives_as_long_as_its_secret_holds_it() -> None:
    world = World()
    token = jwt.encode(_legacy_claims(), RSA_KEY, algorithm="RS256")
    held = {"token": base64.b64encode(token.encode()).decode()}
    world.objects.put("secrets", "ns", "robot-token", "s", data=held)
    found = world.authenticator.authenticate_token(token)
    assert found is not None and found.user.name == "system:serviceaccount:ns:robot"
    assert found.annotations == {
        "authentication.k8s.io/legacy-token": "system:serviceaccount:ns:robot",
        "authentication.k8s.io/legacy-token-manual-secret": "robot-token",
    }
    assert found.warnings == ()
    secret = world.objects.by_key["secrets", "ns", "robot-token"]
    secret["metadata"]["deletionTimestamp"] = "2100-01-01T00:00:00Z"
    assert world.refusal(token) == "token has been invalidated", "there is no leeway for what holds the token"
    world.objects.put("secrets", "ns", "robot-token", "s", data={"token": "b3RoZXI="})
    assert "does not match" in world.refusal(token)
    world.objects.by_key.pop(("secrets", "ns", "robot-token"))
    assert world.refusal(token) == "token has been invalidated"
    world.objects.put("secrets", "ns", "robot-token", "s", data=held)
    world.objects.put("serviceaccounts", "ns", "robot", "another-uid")
    assert "does not match claim" in world.refusal(token)


def test_a_legacy_token_that_was_made_for_its_account_is_warned_of_and_may_be_marked_invalid() -> None:
    world = World()
    metrics = IdentityMetrics(37)
    used: list[str] = []
    world.authenticator = ServiceAccountAuthenticator(
        [RSA_KEY.public_key()],
        [ISSUER],
        [ISSUER],
        world.objects,
        lambda: world.now,
        metrics=metrics,
        note_legacy_use=lambda secret: used.append(secret["metadata"]["name"]),
    )
    token = jwt.encode(_legacy_claims(), RSA_KEY, algorithm="RS256")
    world.objects.put("secrets", "ns", "robot-token", "s", data={"token": base64.b64encode(token.encode()).decode()})
    world.authenticator.authenticate_token(token)
    world.objects.put("serviceaccounts", "ns", "robot", "sa-uid", secrets=[{"name": "robot-token"}])
    found = world.authenticator.authenticate_token(token)
    assert found is not None and found.annotations["authentication.k8s.io/legacy-token-autogenerated-secret"] == "robot-token"
    assert found.warnings[0].startswith("Use tokens from the TokenRequest API")
    world.objects.by_key["secrets", "ns", "robot-token"]["metadata"]["labels"] = {"kubernetes.io/legacy-token-invalid-since": "2026-01-01"}
    with pytest.raises(AuthenticationError) as caught:
        world.authenticator.authenticate_token(token)
    assert "has been marked invalid. Use tokens from the TokenRequest API" in str(caught.value)
    assert caught.value.annotations == {"authentication.k8s.io/legacy-token-invalidated": "robot-token/ns"}
    assert used == ["robot-token"] * 3, "the use of an invalid one is noted as well: somebody still has it"
    out = Exposition()
    metrics.expose(out)
    lines = out.text().splitlines()
    for name, count in (("legacy_tokens", 2), ("legacy_manual_token_uses", 1), ("legacy_auto_token_uses", 1)):
        assert f"serviceaccount_{name}_total {count}" in lines
    assert "serviceaccount_invalid_legacy_auto_token_uses_total 1" in lines
    assert 'authentication_token_cache_request_total{status="hit"} 2' in lines


def test_an_extended_token_is_reported_once_its_nominal_end_has_passed() -> None:
    world = World()
    token = world.issue(seconds=1000, warn=100)
    found = world.authenticator.authenticate_token(token)
    assert found is not None and found.annotations == {}
    world.now += 130
    found = world.authenticator.authenticate_token(token)
    assert found is not None
    text = "subject: system:serviceaccount:ns:robot, seconds after warning threshold: 30"
    assert found.annotations == {"authentication.k8s.io/stale-token": text}


def test_keys_are_read_from_one_file_of_several() -> None:
    public = serialization.PublicFormat.SubjectPublicKeyInfo
    pem = RSA_KEY.public_key().public_bytes(serialization.Encoding.PEM, public)
    pem += EC_KEY.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    keys = load_public_keys(b"# a comment\n" + pem)
    assert [type(k).__name__ for k in keys] == [type(RSA_KEY.public_key()).__name__, type(EC_KEY.public_key()).__name__]
    with pytest.raises(ValueError):
        load_public_keys(b"nothing")


@pytest.mark.parametrize("part", [0, 1])
def test_a_token_that_is_nested_without_end_is_nobodys(part: int) -> None:
    parts = World().issue().split(".")
    parts[part] = base64.urlsafe_b64encode(b"[" * 9000).rstrip(b"=").decode()
    assert World().authenticator.authenticate_token(".".join(parts)) is None


@pytest.mark.parametrize("claims", [{"iss": []}, {"iss": {}}, {"iss": 1}, {"iss": None}, {}, [], "x", 1, None])
@pytest.mark.parametrize("header", [{"alg": "RS256"}, {"alg": []}, {"alg": "RS256", "kid": []}, {"alg": "RS256", "kid": {}}, [], "x", None])
def test_tokens_of_strange_values_are_nobodys(claims: object, header: object) -> None:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    assert World().authenticator.authenticate_token(f"{part(header)}.{part(claims)}.AA") is None


def test_keys_and_issuers_rotate_while_old_tokens_live_on() -> None:
    """The new key signs as the new issuer; what the old key signed as the old issuer holds until it is taken out of the files."""
    old, new = World(RSA_KEY), World(EC_KEY)
    token_of_old = old.issue()
    signer = TokenIssuer(key=EC_KEY, issuer="https://new.example", now=lambda: START, new_id=lambda: "id")
    token_of_new = signer.issue(new.account, ("api",), 600)
    both = ServiceAccountAuthenticator(
        [EC_KEY.public_key(), RSA_KEY.public_key()], ["https://new.example", ISSUER], ["api", ISSUER], new.objects, lambda: START
    )
    for token in (token_of_old, token_of_new):
        found = both.authenticate_token(token)
        assert found is not None and found.user.name == "system:serviceaccount:ns:robot"
    after = ServiceAccountAuthenticator([EC_KEY.public_key()], ["https://new.example"], ["api", ISSUER], new.objects, lambda: START)
    assert after.authenticate_token(token_of_old) is None, "an issuer that is not ours any more"
    half = ServiceAccountAuthenticator([EC_KEY.public_key()], ["https://new.example", ISSUER], ["api"], new.objects, lambda: START)
    with pytest.raises(AuthenticationError, match="invalid signature"):
        half.authenticate_token(token_of_old)
