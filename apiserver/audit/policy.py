"""``--audit-policy-file``: audit.k8s.io/v1 Policy (``pkg/audit/policy``)."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.authentication.user import UserInfo
from apiserver.machinery import config_file, names
from apiserver.machinery.field_errors import FieldError, invalid, not_supported, required
from apiserver.request.request_context import RequestInfo

GROUP_VERSION = "audit.k8s.io/v1"


class Level(enum.IntEnum):
    NONE = 0
    METADATA = 1
    REQUEST = 2
    REQUEST_RESPONSE = 3


class Stage(enum.Enum):
    REQUEST_RECEIVED = "RequestReceived"
    RESPONSE_STARTED = "ResponseStarted"
    RESPONSE_COMPLETE = "ResponseComplete"
    PANIC = "Panic"


LEVEL_NAMES = {Level.NONE: "None", Level.METADATA: "Metadata", Level.REQUEST: "Request", Level.REQUEST_RESPONSE: "RequestResponse"}
_LEVELS = {name: level for level, name in LEVEL_NAMES.items()}
_STAGES = {stage.value: stage for stage in Stage}

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "": ("apiVersion", "kind", "metadata", "rules", "omitStages", "omitManagedFields"),
    "rules": (
        *("level", "users", "userGroups", "verbs", "resources", "namespaces", "nonResourceURLs", "omitStages"),
        "omitManagedFields",
    ),
    "resources": ("group", "resources", "resourceNames"),
}


class PolicyError(ValueError):
    """The file cannot be used; the text is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """How much is noted of a request."""

    level: Level
    omit_stages: frozenset[Stage] = frozenset()
    omit_managed_fields: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resources:
    group: str
    resources: tuple[str, ...]
    names: frozenset[str]

    def match(self, info: RequestInfo) -> bool:
        if self.group not in (info.group, "*"):
            return False
        if not self.resources:
            return True
        if self.names and info.name not in self.names:
            return False
        whole = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
        for wanted in self.resources:
            if wanted in (whole, "*") or (wanted.endswith("/*") and wanted[:-2] == info.resource):
                return True
            if info.subresource and wanted.startswith("*/") and wanted[2:] == info.subresource:
                return True
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    decision: Decision
    users: frozenset[str]
    groups: frozenset[str]
    verbs: frozenset[str]
    namespaces: frozenset[str]
    resources: tuple[_Resources, ...]
    urls: tuple[str, ...]

    def matches(self, user: UserInfo | None, info: RequestInfo) -> bool:
        if self.users and (user is None or user.name not in self.users):
            return False
        if self.groups and (user is None or self.groups.isdisjoint(user.groups)):
            return False
        if self.verbs and info.verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            if not info.is_resource_request or (self.namespaces and info.namespace not in self.namespaces):
                return False
            return not self.resources or any(each.match(info) for each in self.resources)
        if self.urls:
            return not info.is_resource_request and any(_covers(url, info.path) for url in self.urls)
        return True


def _covers(url: str, path: str) -> bool:
    return url in ("*", path) or (url.endswith("*") and path.startswith(url.rstrip("*")))


class Policy:
    def __init__(self, rules: tuple[_Rule, ...], otherwise: Decision) -> None:
        self._rules = rules
        self._otherwise = otherwise

    def decide(self, user: UserInfo | None, info: RequestInfo) -> Decision:
        for rule in self._rules:
            if rule.matches(user, info):
                return rule.decision
        return self._otherwise


def everything() -> Policy:
    """Without a policy file: the end of each request, without bodies."""
    return Policy((), Decision(level=Level.METADATA, omit_stages=frozenset((Stage.REQUEST_RECEIVED, Stage.RESPONSE_STARTED))))


def parse(text: bytes, file: str) -> Policy:
    """Raises PolicyError."""

    def refuse(why: str) -> PolicyError:
        return PolicyError(f"loading audit policy file: failed decoding file {file}: {why}")

    try:
        document = config_file.load_yaml(text)
    except config_file.ConfigFileError as error:
        raise refuse(str(error)) from error
    if not isinstance(document, dict):
        raise refuse("it is no object")
    if document.get("apiVersion") != GROUP_VERSION or document.get("kind") != "Policy":
        raise refuse(f'no kind "{document.get("kind")}" is registered for version "{document.get("apiVersion")}"')
    wrong = _misshapen(document)
    if wrong:
        raise refuse(wrong)
    if not document.get("rules"):
        raise PolicyError(f"loading audit policy file: loaded illegal policy with 0 rules from file {file}")
    errors = list(_problems(document))
    if errors:
        told = errors[0].text() if len(errors) == 1 else f"[{', '.join(error.text() for error in errors)}]"
        raise PolicyError(f"loading audit policy file: {told}")
    stages = frozenset(_STAGES[name] for name in document.get("omitStages") or ())
    fields = bool(document.get("omitManagedFields"))
    rules = tuple(_rule(rule, stages, fields) for rule in document["rules"])
    return Policy(rules, Decision(level=Level.NONE, omit_stages=stages, omit_managed_fields=fields))


def _misshapen(document: Mapping[str, Any]) -> str:
    """What is not of the type that its place asks for, or unknown; "" where all is well."""
    parts: list[tuple[str, Any, str]] = [("", document, "")]
    for path, part, sort in parts:
        if not isinstance(part, dict):
            return f"{path} is not an object"
        for field, value in part.items():
            at = f"{path}.{field}" if path else str(field)
            if field not in _FIELDS[sort]:
                return f'strict decoding error: unknown field "{at}"'
            if value is None or field in ("apiVersion", "kind", "metadata"):
                continue
            if field in ("level", "group"):
                if not isinstance(value, str):
                    return f"json: cannot unmarshal into {at} of type string: {json.dumps(value, default=str)}"
            elif field == "omitManagedFields":
                if not isinstance(value, bool):
                    return f"json: cannot unmarshal into {at} of type bool"
            elif not isinstance(value, list):
                return f"{at} is not a list"
            elif field == "rules" or (field == "resources" and sort == "rules"):
                parts += [(f"{at}[{n}]", entry, field) for n, entry in enumerate(value)]
            elif not all(isinstance(entry, str) for entry in value):
                return f"{at} is not a list of strings"
    return ""


def _problems(document: Mapping[str, Any]) -> Iterator[FieldError]:
    yield from _stage_problems(document.get("omitStages") or (), "omitStages")
    for number, rule in enumerate(document["rules"]):
        path = f"rules[{number}]"
        level = rule.get("level") or ""
        if not level:
            yield required(f"{path}.level")
        elif level not in _LEVELS:
            yield not_supported(f"{path}.level", level, list(_LEVELS))
        urls = list(rule.get("nonResourceURLs") or ())
        for at, url in enumerate(urls):
            if url == "*":
                continue
            where = f"{path}.nonResourceURLs[{at}]"
            if not url.startswith("/"):
                yield invalid(where, url, "non-resource URL rules must begin with a '/' character")
            if "*" in url[:-1]:
                yield invalid(where, url, "non-resource URL wildcards '*' must be the final character of the rule")
        for entry in rule.get("resources") or ():
            group = entry.get("group") or ""
            if group not in ("", "*") and (wrong := names.dns1123_subdomain(group)):
                yield invalid(f"{path}.resources.group", group, ",".join(wrong))
            if entry.get("resourceNames") and not entry.get("resources"):
                words = "using resourceNames requires at least one resource"
                yield invalid(f"{path}.resources.resourceNames", entry["resourceNames"], words)
        yield from _stage_problems(rule.get("omitStages") or (), f"{path}.omitStages")
        if urls and (rule.get("resources") or rule.get("namespaces")):
            yield invalid(f"{path}.nonResourceURLs", urls, "rules cannot apply to both regular resources and non-resource URLs")


def _stage_problems(stages: Any, path: str) -> Iterator[FieldError]:
    for at, stage in enumerate(stages):
        if stage not in _STAGES:
            yield invalid(f"{path}[{at}]", stage, f"allowed stages are {','.join(_STAGES)}")


def _rule(rule: Mapping[str, Any], stages: frozenset[Stage], fields: bool) -> _Rule:
    said = rule.get("omitManagedFields")
    return _Rule(
        decision=Decision(
            level=_LEVELS[rule["level"]],
            # those of the policy hold for every rule
            omit_stages=stages | {_STAGES[name] for name in rule.get("omitStages") or ()},
            omit_managed_fields=fields if said is None else said,
        ),
        users=frozenset(rule.get("users") or ()),
        groups=frozenset(rule.get("userGroups") or ()),
        verbs=frozenset(rule.get("verbs") or ()),
        namespaces=frozenset(rule.get("namespaces") or ()),
        resources=tuple(
            _Resources(
                group=entry.get("group") or "",
                resources=tuple(entry.get("resources") or ()),
                names=frozenset(entry.get("resourceNames") or ()),
            )
            for entry in rule.get("resources") or ()
        ),
        urls=tuple(rule.get("nonResourceURLs") or ()),
    )
