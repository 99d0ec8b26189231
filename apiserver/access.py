"""Authentication and authorization put together: from the configuration and the watch caches to the objects that the chain asks."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from apiserver import tls
from apiserver.authentication import service_account, token_request
from apiserver.authentication.anonymous import AnonymousAuthenticator
from apiserver.authentication.bearer import BearerTokenAuthenticator, TokenUnion
from apiserver.authentication.bootstrap_token import BootstrapTokenAuthenticator
from apiserver.authentication.interfaces import RequestAuthenticator, TokenAuthenticator
from apiserver.authentication.service_account import ServiceAccountAuthenticator, TokenIssuer
from apiserver.authentication.token_file import TokenFileAuthenticator
from apiserver.authentication.union import UnionAuthenticator
from apiserver.authentication.x509 import X509Authenticator
from apiserver.authorization import bootstrap, node_graph, rbac_data
from apiserver.authorization.authorizer import Authorizer
from apiserver.authorization.node import NodeAuthorizer
from apiserver.authorization.node_graph import NodeGraph
from apiserver.authorization.rbac import RbacAuthorizer
from apiserver.authorization.rbac_data import RbacData
from apiserver.authorization.static import AlwaysAllow, AlwaysDeny
from apiserver.authorization.union import build_authorizer
from apiserver.config import ServerConfig
from apiserver.machinery import names
from apiserver.machinery.objects import Object
from apiserver.objectstore.interface import StoredObject
from apiserver.registry.registry import CachedObjects, Registry
from apiserver.request.request_context import RequestContext

_RBAC_GROUP = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    authenticator: UnionAuthenticator
    tokens: TokenAuthenticator
    authorizer: Authorizer
    rbac: RbacData
    issuer: TokenIssuer
    audiences: tuple[str, ...]
    cached: CachedObjects
    #: those that verify ServiceAccount tokens
    public_keys: tuple[service_account.PublicKey, ...]

    async def issue_token(self, body: Object, account: Object, context: RequestContext) -> Object:
        return token_request.create_token(body, account, self.issuer, self.cached, self.audiences)


def build_access(config: ServerConfig, registry: Registry) -> Access:
    """Before the object store starts, so that what observes the caches sees every object. Raises OSError, ValueError for unusable
    files and modes."""
    cached = CachedObjects(registry)
    audiences = config.api_audiences or (config.service_account_issuer,)
    keys = service_account.load_public_keys(config.service_account_key_file.read_bytes())
    tokens: list[TokenAuthenticator] = []
    if config.token_auth_file is not None:
        tokens.append(TokenFileAuthenticator.from_file(config.token_auth_file, audiences))
    tokens.append(ServiceAccountAuthenticator(keys, (config.service_account_issuer,), audiences, cached, time.time))
    tokens.append(BootstrapTokenAuthenticator(cached, time.time, audiences))
    union = TokenUnion(tokens)
    requests: list[RequestAuthenticator] = []
    if config.client_ca_file is not None:
        authorities = tls.client_authorities(config.client_ca_file)
        requests.append(X509Authenticator(authorities.current(), time.time, authorities.current))
    requests.append(BearerTokenAuthenticator(union))
    rbac = RbacData()
    source = random.SystemRandom()
    issuer = TokenIssuer(
        key=service_account.load_private_key(config.service_account_signing_key_file.read_bytes()),
        issuer=config.service_account_issuer,
        now=time.time,
        new_id=lambda: names.new_uid(source),
    )
    return Access(
        authenticator=UnionAuthenticator(requests, AnonymousAuthenticator() if config.anonymous_auth else None),
        tokens=union,
        authorizer=_authorizer(config, registry, rbac),
        rbac=rbac,
        issuer=issuer,
        audiences=audiences,
        cached=cached,
        public_keys=tuple(keys),
    )


def _authorizer(config: ServerConfig, registry: Registry, rbac: RbacData) -> Authorizer:
    for resource in sorted(rbac_data.RESOURCES):
        _observe(registry, _RBAC_GROUP, resource, _rbac_observer(rbac, resource))
    available: dict[str, Authorizer] = {
        "RBAC": RbacAuthorizer(rbac),
        "AlwaysAllow": AlwaysAllow(),
        "AlwaysDeny": AlwaysDeny(),
    }
    graph = NodeGraph()
    if "Node" in config.authorization_mode:
        for group, resource in sorted(node_graph.RESOURCES):
            # a pod that is on no node gives no node a right
            needed = b'"nodeName":' if resource == "pods" else b""
            _observe(registry, group, resource, _graph_observer(graph, group, resource), needed)
    available["Node"] = NodeAuthorizer(graph, bootstrap.node_rules(bootstrap.load_policy()))
    return build_authorizer(config.authorization_mode, available)


Changed = Callable[[str, str, Object | None], None]


def _observe(registry: Registry, group: str, resource: str, changed: Changed, only_with: bytes = b"") -> None:
    """``only_with``: objects without these bytes are as good as none, and need not be decoded."""

    def observer(new: StoredObject | None, old: StoredObject | None) -> None:
        found = new or old
        assert found is not None
        if only_with and (new is None or only_with not in new.raw) and (old is None or only_with not in old.raw):
            return
        changed(found.namespace, found.name, None if new is None else new.decode())

    registry.storage(group, resource).cache.observe(observer)


def _rbac_observer(rbac: RbacData, resource: str) -> Changed:
    return lambda namespace, name, obj: rbac.object_changed(resource, namespace, name, obj)


def _graph_observer(graph: NodeGraph, group: str, resource: str) -> Changed:
    return lambda namespace, name, obj: graph.object_changed(group, resource, namespace, name, obj)
