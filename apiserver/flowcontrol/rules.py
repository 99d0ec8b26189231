"""FlowSchemas as they are asked for each request (flowcontrol v1 ``FlowSchemaSpec``; apiserver ``util/flowcontrol/rule.go`` says how)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.authentication.user import SERVICE_ACCOUNT_PREFIX, UserInfo, service_account_name
from apiserver.request.request_context import RequestInfo

ANY = "*"
BY_USER = "ByUser"
BY_NAMESPACE = "ByNamespace"

_Part = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """Who, and what of theirs. Service accounts of a whole namespace are told by how their names begin."""

    users: frozenset[str]
    user_prefixes: tuple[str, ...]
    groups: frozenset[str]
    resources: tuple[_ResourceRule, ...]
    urls: tuple[_UrlRule, ...]

    def matches(self, user: UserInfo, info: RequestInfo) -> bool:
        if not self._is_of(user):
            return False
        if info.is_resource_request:
            return any(rule.matches(info) for rule in self.resources)
        return any(rule.matches(info) for rule in self.urls)

    def _is_of(self, user: UserInfo) -> bool:
        if user.name in self.users or ANY in self.users or ANY in self.groups:
            return True
        return not self.groups.isdisjoint(user.groups) or bool(self.user_prefixes and user.name.startswith(self.user_prefixes))


@dataclass(frozen=True, slots=True, kw_only=True)
class _ResourceRule:
    verbs: frozenset[str]
    groups: frozenset[str]
    resources: frozenset[str]
    namespaces: frozenset[str]
    cluster_scope: bool

    def matches(self, info: RequestInfo) -> bool:
        resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
        if not (_has(self.verbs, info.verb) and _has(self.resources, resource) and _has(self.groups, info.group)):
            return False
        return _has(self.namespaces, info.namespace) if info.namespace else self.cluster_scope


@dataclass(frozen=True, slots=True, kw_only=True)
class _UrlRule:
    verbs: frozenset[str]
    urls: tuple[str, ...]

    def matches(self, info: RequestInfo) -> bool:
        return _has(self.verbs, info.verb) and any(_covers(url, info.path) for url in self.urls)


def _has(wanted: frozenset[str], value: str) -> bool:
    return value in wanted or ANY in wanted


def _covers(url: str, path: str) -> bool:
    """``/healthz`` covers ``/healthz/etcd`` too, and ``/healthz/*`` is another way to say it."""
    if url in (ANY, path):
        return True
    prefix = url.removesuffix(ANY)
    return path.startswith(prefix if prefix.endswith("/") else f"{prefix}/")


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSchema:
    name: str
    uid: str
    level: str
    precedence: int
    distinguisher: str
    rules: tuple[_Rule, ...]

    def matches(self, user: UserInfo, info: RequestInfo) -> bool:
        return any(rule.matches(user, info) for rule in self.rules)

    def distinguish(self, user: UserInfo, info: RequestInfo) -> str:
        """What tells this schema's flows from one another."""
        if self.distinguisher == BY_USER:
            return user.name
        return info.namespace if self.distinguisher == BY_NAMESPACE else ""


def flow_schema(obj: _Part) -> FlowSchema:
    """From a valid object of any version."""
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    return FlowSchema(
        name=metadata["name"],
        uid=metadata.get("uid") or "",
        level=(spec.get("priorityLevelConfiguration") or {}).get("name") or "",
        precedence=spec.get("matchingPrecedence") or 0,
        distinguisher=(spec.get("distinguisherMethod") or {}).get("type") or "",
        rules=tuple(_rule(rule) for rule in spec.get("rules") or ()),
    )


def _rule(rule: _Part) -> _Rule:
    users: set[str] = set()
    groups: set[str] = set()
    prefixes: list[str] = []
    for subject in rule.get("subjects") or ():
        kind = subject.get("kind")
        if kind == "User":
            users.add((subject.get("user") or {}).get("name") or "")
        elif kind == "Group":
            groups.add((subject.get("group") or {}).get("name") or "")
        elif kind == "ServiceAccount":
            account = subject.get("serviceAccount") or {}
            namespace, name = account.get("namespace") or "", account.get("name") or ""
            if name == ANY:
                prefixes.append(f"{SERVICE_ACCOUNT_PREFIX}{namespace}:")
            else:
                users.add(service_account_name(namespace, name))
    return _Rule(
        users=frozenset(users),
        user_prefixes=tuple(prefixes),
        groups=frozenset(groups),
        resources=tuple(_resource_rule(part) for part in rule.get("resourceRules") or ()),
        urls=tuple(
            _UrlRule(verbs=_names(part, "verbs"), urls=tuple(part.get("nonResourceURLs") or ()))
            for part in rule.get("nonResourceRules") or ()
        ),
    )


def _resource_rule(part: _Part) -> _ResourceRule:
    return _ResourceRule(
        verbs=_names(part, "verbs"),
        groups=_names(part, "apiGroups"),
        resources=_names(part, "resources"),
        namespaces=_names(part, "namespaces"),
        cluster_scope=bool(part.get("clusterScope")),
    )


def _names(part: _Part, field: str) -> frozenset[str]:
    return frozenset(part.get(field) or ())
