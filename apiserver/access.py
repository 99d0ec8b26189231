"""Authentication and authorization put together: from the configuration and the watch caches to the objects that the chain asks."""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from apiserver import tls
from apiserver.authentication import service_account, token_request
from apiserver.authentication.anonymous import AnonymousAuthenticator
from apiserver.authentication.bearer import BearerTokenAuthenticator, TokenUnion
from apiserver.authentication.bootstrap_token import BootstrapTokenAuthenticator
from apiserver.authentication.interfaces import RequestAuthenticator, TokenAuthenticator
from apiserver.authentication.service_account import ServiceAccountAuthenticator, TokenIssuer
from apiserver.authentication.token_file import TokenFileAuthenticator
from apiserver.authentication.union import UnionAuthenticator
from apiserver.authentication.websocket import WebSocketTokenAuthenticator
from apiserver.authentication.x509 import X509Authenticator
from apiserver.authorization import bootstrap, node_graph, rbac_data
from apiserver.authorization.authorizer import Authorizer
from apiserver.authorization.node import NodeAuthorizer
from apiserver.authorization.node_graph import NodeGraph
from apiserver.authorization.rbac import RbacAuthorizer
from apiserver.authorization.rbac_data import RbacData
from apiserver.authorization.static import AlwaysAllow, AlwaysDeny
from apiserver.authorization.union import build_authorizer
from apiserver.config import RequestHeaderConfig, ServerConfig
from apiserver.identity_metrics import IdentityMetrics
from apiserver.legacy_tokens import TRACKING_MINOR, LegacyTokenTracking
from apiserver.machinery import names
from apiserver.machinery.objects import Object
from apiserver.objectstore import unread
from apiserver.objectstore.interface import ObjectStoreError, StoredObject
from apiserver.registry.registry import CachedObjects, Registry
from apiserver.request.request_context import RequestContext

Close = Callable[[], Awaitable[None]]

_RBAC_GROUP = "rbac.authorization.k8s.io"
#: of Kubernetes 1.NN, the first in which nodes must say which pods they list (AuthorizeNodeWithSelectors)
NODE_SELECTORS_MINOR = 32
#: in which a certificate may tell the uid of its user (AllowParsingUserUIDFromCertAuth)
CERTIFICATE_UID_MINOR = 33
#: in which impersonation may be allowed for some requests only (ConstrainedImpersonation)
CONSTRAINED_IMPERSONATION_MINOR = 36


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    authenticator: UnionAuthenticator
    tokens: TokenAuthenticator
    authorizer: Authorizer
    #: authorization modes in their order, which a file may change
    modes: Callable[[], Sequence[str]]
    rbac: RbacData
    issuer: TokenIssuer
    audiences: tuple[str, ...]
    cached: CachedObjects
    #: those that verify ServiceAccount tokens
    public_keys: tuple[service_account.PublicKey, ...]
    #: of ServiceAccount tokens, 0 for no limit; whether automatically mounted ones work for longer than they say
    token_expiration_seconds_max: int = 0
    extends_tokens: bool = True
    #: ends the connections to servers that are asked
    closing: tuple[Close, ...] = ()
    metrics: IdentityMetrics
    #: where their uses are noted
    legacy_tokens: LegacyTokenTracking | None = None

    async def close(self) -> None:
        for close in self.closing:
            await close()

    async def issue_token(self, body: Object, account: Object, context: RequestContext) -> Object:
        return token_request.create_token(
            body,
            account,
            self.issuer,
            self.cached,
            self.audiences,
            expiration_seconds_max=self.token_expiration_seconds_max,
            extends=self.extends_tokens,
            warn=context.warn,
        )


def build_access(config: ServerConfig, registry: Registry, passing: tuple[type[Exception], ...] = ()) -> Access:
    """Before the object store starts, so that what observes the caches sees every object. ``passing``: errors of a store that is away for
    a while. Raises OSError, ValueError for unusable files and modes."""
    cached = CachedObjects(registry)
    audiences = config.api_audiences or config.service_account_issuer[:1]
    keys = service_account_keys(config.service_account_key_file)
    closing: list[Close] = []
    metrics = IdentityMetrics(registry.table.minor)
    tokens: list[TokenAuthenticator] = []
    if config.token_auth_file is not None:
        tokens.append(TokenFileAuthenticator.from_file(config.token_auth_file, audiences))
    issuers, lookup = config.service_account_issuer, config.service_account_lookup
    tracks = registry.table.minor >= TRACKING_MINOR and not config.read_only
    legacy_tokens = LegacyTokenTracking(registry, time.time, (ObjectStoreError, OSError, *passing)) if tracks else None
    service_accounts = ServiceAccountAuthenticator(
        keys,
        issuers,
        audiences,
        cached,
        time.time,
        looks_up_legacy=lookup,
        metrics=metrics,
        note_legacy_use=legacy_tokens.used if legacy_tokens is not None else lambda secret: None,
    )
    tokens.append(service_accounts)
    if config.enable_bootstrap_token_auth:
        tokens.append(BootstrapTokenAuthenticator(cached, time.time, audiences))
    anonymous: RequestAuthenticator | None = AnonymousAuthenticator() if config.anonymous_auth else None
    # what asks other servers is loaded where there is one to ask
    if config.oidc is not None or config.authentication_config is not None:
        from apiserver.access_tokens import JwtIssuers

        anonymous = jwt_issuers = JwtIssuers(config, audiences, metrics)
        tokens.append(jwt_issuers)
        closing.append(jwt_issuers.close)
    if config.authentication_token_webhook is not None:
        from apiserver.access_tokens import webhook_authenticator

        webhook, close = webhook_authenticator(config.authentication_token_webhook, audiences, metrics)
        tokens.append(webhook)
        closing.append(close)
    union = TokenUnion(tokens)
    requests: list[RequestAuthenticator] = []
    if config.request_header is not None:
        requests.append(_request_header(config.request_header))
    if config.client_ca_file is not None:
        requests.append(
            _certificates(
                config.client_ca_file, with_uid=registry.table.minor >= CERTIFICATE_UID_MINOR, note_remaining=metrics.certificate_remaining
            )
        )
    requests += [BearerTokenAuthenticator(union), WebSocketTokenAuthenticator(union)]
    rbac = RbacData()
    authorizer, modes = _authorizer(config, registry, rbac, closing, metrics)
    source = random.SystemRandom()
    issuer = TokenIssuer(
        key=service_account.load_private_key(config.service_account_signing_key_file.read_bytes()),
        issuer=config.service_account_issuer[0],
        now=time.time,
        new_id=lambda: names.new_uid(source),
    )
    return Access(
        authenticator=UnionAuthenticator(requests, anonymous, metrics),
        tokens=union,
        authorizer=authorizer,
        modes=modes,
        rbac=rbac,
        issuer=issuer,
        audiences=audiences,
        cached=cached,
        public_keys=tuple(keys),
        token_expiration_seconds_max=config.service_account_max_token_expiration_seconds,
        extends_tokens=config.service_account_extend_token_expiration,
        closing=tuple(closing),
        metrics=metrics,
        legacy_tokens=legacy_tokens,
    )


def service_account_keys(paths: Sequence[Path]) -> list[service_account.PublicKey]:
    """All keys of all files. Raises OSError, ValueError."""
    return [key for path in paths for key in service_account.load_public_keys(path.read_bytes())]


def _certificates(path: Path, *, with_uid: bool = False, note_remaining: Callable[[float], None] | None = None) -> X509Authenticator:
    authorities = tls.client_authorities(path)
    return X509Authenticator(authorities.current(), time.time, authorities.current, with_uid=with_uid, note_remaining=note_remaining)


def _request_header(config: RequestHeaderConfig) -> RequestAuthenticator:
    from apiserver.authentication.request_header import HeaderNames, RequestHeaderAuthenticator

    verify = _certificates(config.client_ca_file).authenticate_certificate
    header_names = HeaderNames(
        user=config.username_headers, uid=config.uid_headers, group=config.group_headers, extra_prefix=config.extra_headers_prefix
    )
    return RequestHeaderAuthenticator(verify, config.allowed_names, header_names)


def _authorizer(
    config: ServerConfig, registry: Registry, rbac: RbacData, closing: list[Close], metrics: IdentityMetrics
) -> tuple[Authorizer, Callable[[], Sequence[str]]]:
    """The authorizer, and what tells its modes."""
    for resource in sorted(rbac_data.RESOURCES):
        _observe(registry, _RBAC_GROUP, resource, _rbac_observer(rbac, resource))
    graph = NodeGraph()
    with_selectors = registry.table.minor >= NODE_SELECTORS_MINOR
    local: dict[str, Authorizer] = {
        "RBAC": RbacAuthorizer(rbac),
        "AlwaysAllow": AlwaysAllow(),
        "AlwaysDeny": AlwaysDeny(),
        "Node": NodeAuthorizer(graph, bootstrap.node_rules(bootstrap.load_policy()), with_selectors=with_selectors),
    }
    authorizer: Authorizer
    modes: Callable[[], Sequence[str]]
    if config.authorization_config is None and config.authorization_webhook is None:
        authorizer, modes = build_authorizer(config.authorization_mode, local, metrics.decisions), lambda: config.authorization_mode
    else:
        from apiserver.access_authorizers import ConfiguredAuthorizer

        authorizer = configured = ConfiguredAuthorizer(config, local, metrics)
        modes = configured.modes
        closing.append(configured.close)
    if "Node" in modes():
        for group, resource in sorted(node_graph.RESOURCES):
            # a pod that is on no node gives no node a right
            needed = b'"nodeName":' if resource == "pods" else b""
            waits = functools.partial(graph.object_waits, group, resource)
            _observe(registry, group, resource, _graph_observer(graph, group, resource), needed, waits)
    return authorizer, modes


Changed = Callable[[str, str, Object | None], None]
Waits = Callable[[str, str, bytes, Callable[[], Object]], None]


def _observe(registry: Registry, group: str, resource: str, changed: Changed, only_with: bytes = b"", waits: Waits | None = None) -> None:
    """``only_with``: objects without these bytes are as good as none, and need not be decoded. ``waits`` takes what nobody has decoded."""

    def observer(new: StoredObject | None, old: StoredObject | None) -> None:
        found = new or old
        assert found is not None
        if waits is not None and new is not None and (stored := unread.stored_value(new)) is not None:
            waits(new.namespace, new.name, stored, new.decode)
            return
        if only_with and (new is None or only_with not in new.raw) and (old is None or only_with not in old.raw):
            return
        changed(found.namespace, found.name, None if new is None else new.decode())

    registry.storage(group, resource).cache.observe(observer)


def _rbac_observer(rbac: RbacData, resource: str) -> Changed:
    return lambda namespace, name, obj: rbac.object_changed(resource, namespace, name, obj)


def _graph_observer(graph: NodeGraph, group: str, resource: str) -> Changed:
    return lambda namespace, name, obj: graph.object_changed(group, resource, namespace, name, obj)
