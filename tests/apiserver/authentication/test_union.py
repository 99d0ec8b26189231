"""The union, the token file, bootstrap tokens, reviews and token requests."""

from __future__ import annotations

import base64

import pytest

from apiserver.authentication.anonymous import ANONYMOUS_USER, AnonymousAuthenticator
from apiserver.authentication.bearer import BearerTokenAuthenticator, TokenUnion
from apiserver.authentication.bootstrap_token import BootstrapTokenAuthenticator
from apiserver.authentication.interfaces import AuthenticationError
from apiserver.authentication.reviews import self_subject_review, token_review
from apiserver.authentication.token_file import TokenFileAuthenticator, TokenFileError, parse_token_file
from apiserver.authentication.union import UnionAuthenticator
from apiserver.authentication.user import UserInfo
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.request.request_context import RequestContext, RequestInfo

FILE = 'secret1,alice,1,"devs,ops"\n\nsecret2,bob,2\n'


def context(**headers: str) -> RequestContext:
    info = RequestInfo(is_resource_request=False, path="/x", verb="get")
    raw = {name.encode(): value.encode() for name, value in headers.items()}
    return RequestContext(info=info, method="GET", query={}, headers=raw, audit_id="id", received_at=0.0)


def union(anonymous: bool = True) -> UnionAuthenticator:
    tokens = TokenUnion([TokenFileAuthenticator(parse_token_file(FILE))])
    return UnionAuthenticator([BearerTokenAuthenticator(tokens)], AnonymousAuthenticator() if anonymous else None)


def test_a_token_of_the_file_is_its_user() -> None:
    user = union().authenticate(context(authorization="Bearer secret1"))
    assert user == UserInfo(name="alice", uid="1", groups=("devs", "ops", "system:authenticated"))
    assert union().authenticate(context(authorization="bearer  secret2")).groups == ("system:authenticated",)


def test_a_wrong_token_is_401_and_never_anonymous() -> None:
    with pytest.raises(StatusError) as caught:
        union().authenticate(context(authorization="Bearer wrong"))
    assert (caught.value.code, caught.value.message) == (401, "Unauthorized")


@pytest.mark.parametrize("header", ["", "Basic YTpi", "Bearer", "Bearer "])
def test_what_is_no_bearer_token_is_anonymous(header: str) -> None:
    assert union().authenticate(context(authorization=header)) == ANONYMOUS_USER
    with pytest.raises(StatusError):
        union(anonymous=False).authenticate(context(authorization=header))


def test_a_good_token_heals_a_bad_certificate() -> None:
    class Bad:
        def authenticate(self, context: RequestContext) -> UserInfo | None:
            raise AuthenticationError("bad certificate")

    tokens = TokenUnion([TokenFileAuthenticator(parse_token_file(FILE))])
    authenticator = UnionAuthenticator([Bad(), BearerTokenAuthenticator(tokens)], AnonymousAuthenticator())
    assert authenticator.authenticate(context(authorization="Bearer secret1")).name == "alice"
    with pytest.raises(StatusError):
        authenticator.authenticate(context())


@pytest.mark.parametrize("text", ["a,b", ",user,1", "t,,1", 't,u,1,"open'])
def test_a_broken_token_file_is_told_by_line(text: str) -> None:
    with pytest.raises(TokenFileError) as caught:
        parse_token_file(text)
    assert "line 1" in str(caught.value)


class Secrets:
    def __init__(self, **data: str) -> None:
        encoded = {k.replace("_", "-"): base64.b64encode(v.encode()).decode() for k, v in data.items()}
        self.secret: Object = {"metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token", "data": encoded}

    def get(self, group: str, resource: str, namespace: str, name: str) -> Object | None:
        return self.secret if (resource, namespace, name) == ("secrets", "kube-system", "bootstrap-token-abcdef") else None

    def list(self, group: str, resource: str, namespace: str = "") -> list[Object]:
        return [self.secret]


GOOD = {"token_id": "abcdef", "token_secret": "0123456789abcdef", "usage_bootstrap_authentication": "true"}
TOKEN = "abcdef.0123456789abcdef"


def test_a_bootstrap_token_is_a_bootstrapper() -> None:
    secrets = Secrets(**GOOD, auth_extra_groups="system:bootstrappers:worker", expiration="2030-01-01T00:00:00Z")
    found = BootstrapTokenAuthenticator(secrets, lambda: 1.7e9).authenticate_token(TOKEN)
    assert found is not None
    assert found.user == UserInfo(name="system:bootstrap:abcdef", groups=("system:bootstrappers", "system:bootstrappers:worker"))


@pytest.mark.parametrize(
    "change",
    [
        {"token_secret": "0000000000000000"},
        {"usage_bootstrap_authentication": "false"},
        {"expiration": "2020-01-01T00:00:00Z"},
        {"expiration": "soon"},
        {"auth_extra_groups": "system:masters"},
    ],
)
def test_a_bootstrap_token_that_is_not_good_is_refused(change: dict[str, str]) -> None:
    with pytest.raises(AuthenticationError):
        BootstrapTokenAuthenticator(Secrets(**(GOOD | change)), lambda: 1.7e9).authenticate_token(TOKEN)


def test_token_review_tells_who_a_token_is() -> None:
    tokens = TokenUnion([TokenFileAuthenticator(parse_token_file(FILE))])
    status = token_review({"spec": {"token": "secret1"}}, tokens)["status"]
    groups = ["devs", "ops", "system:authenticated"]
    assert status == {"authenticated": True, "user": {"username": "alice", "uid": "1", "groups": groups}}
    assert token_review({"spec": {"token": "no"}}, tokens)["status"] == {"user": {}, "error": "invalid bearer token"}
    with pytest.raises(StatusError) as caught:
        token_review({"spec": {}}, tokens)
    assert caught.value.message == "token is required for TokenReview in authentication"


def test_token_review_of_a_token_without_audiences_is_good_for_the_api_server_only() -> None:
    tokens = TokenUnion([TokenFileAuthenticator(parse_token_file(FILE), ["api"])])
    assert token_review({"spec": {"token": "secret2"}}, tokens)["status"]["audiences"] == ["api"]
    assert token_review({"spec": {"token": "secret2", "audiences": ["vault", "api"]}}, tokens)["status"]["audiences"] == ["api"]
    told = token_review({"spec": {"token": "secret2", "audiences": ["vault"]}}, tokens)["status"]
    assert told == {"user": {}, "error": "invalid bearer token"}


def test_self_subject_review_tells_who_i_am() -> None:
    review = self_subject_review({}, UserInfo(name="ann", groups=("g",), extra={"k": ("v",)}))
    assert review["status"]["userInfo"] == {"username": "ann", "groups": ["g"], "extra": {"k": ["v"]}}
