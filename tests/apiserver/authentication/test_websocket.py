"""A browser's token, among the subprotocols of its WebSocket."""

from __future__ import annotations

import base64

import pytest

from apiserver.authentication.bearer import TokenUnion
from apiserver.authentication.interfaces import AuthenticationError
from apiserver.authentication.token_file import TokenFileAuthenticator, parse_token_file
from apiserver.authentication.websocket import PREFIX, WebSocketTokenAuthenticator
from apiserver.request.request_context import RequestContext, RequestInfo

AUTHENTICATOR = WebSocketTokenAuthenticator(TokenUnion([TokenFileAuthenticator(parse_token_file("secret-ü,ann,1\n"))]))


def encoded(token: str) -> str:
    return PREFIX + base64.urlsafe_b64encode(token.encode()).rstrip(b"=").decode()


def request(*protocols: str, upgrade: str = "websocket") -> RequestContext:
    raw = [(b"connection", b"keep-alive, Upgrade"), (b"upgrade", upgrade.encode())]
    raw += [(b"sec-websocket-protocol", value.encode()) for value in protocols]
    info = RequestInfo(is_resource_request=False, path="/", verb="get")
    return RequestContext(info=info, method="GET", query={}, headers=dict(raw), audit_id="", received_at=0, raw_headers=raw)


@pytest.mark.parametrize("protocols", [(encoded("secret-ü"), "v4.channel.k8s.io"), (f"v4.channel.k8s.io , {encoded('secret-ü')}",)])
def test_a_token_names_its_user_and_is_gone_from_the_headers(protocols: tuple[str, ...]) -> None:
    context = request(*protocols)
    user = AUTHENTICATOR.authenticate(context)
    assert user is not None and user.name == "ann"
    assert context.headers[b"sec-websocket-protocol"] == b"v4.channel.k8s.io"
    assert [value for name, value in context.raw_headers if name == b"sec-websocket-protocol"] == [b"v4.channel.k8s.io"]


@pytest.mark.parametrize(
    ("protocols", "told"),
    [
        ((encoded("wrong"), "v4"), "invalid bearer token"),
        ((encoded("secret-ü"),), "missing additional subprotocol"),
        ((encoded("secret-ü"), encoded("secret-ü"), "v4"), "multiple"),
        ((PREFIX + "a", "v4"), "encoding"),
        ((PREFIX + "YQ==", "v4"), "encoding"),
        ((PREFIX + "_w", "v4"), "invalid base64.bearer.authorization token"),
    ],
)
def test_wrong_ones_are_wrong_credentials(protocols: tuple[str, ...], told: str) -> None:
    with pytest.raises(AuthenticationError, match=told):
        AUTHENTICATOR.authenticate(request(*protocols))


@pytest.mark.parametrize(
    "context", [request("v4.channel.k8s.io"), request(PREFIX, "v4"), request(encoded("secret-ü"), "v4", upgrade="h2c")]
)
def test_other_requests_carry_no_such_credential(context: RequestContext) -> None:
    assert AUTHENTICATOR.authenticate(context) is None
