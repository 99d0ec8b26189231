"""RBAC policy rules: matching a request, covering another rule, and how a rule is told (rbac.authorization.k8s.io/v1 PolicyRule)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

ALL = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A PolicyRule. ``api_groups`` and ``resources`` go together, as do ``verbs`` with each of them; empty ``resource_names`` means
    every name; ``non_resource_urls`` are for requests that are not for resources."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = ()

    def matches_resource(self, verb: str, group: str, resource: str, subresource: str) -> bool:
        """Whether the rule is about this, whatever the object's name."""
        if ALL not in self.verbs and verb not in self.verbs:
            return False
        if ALL not in self.api_groups and group not in self.api_groups:
            return False
        combined = f"{resource}/{subresource}" if subresource else resource
        if ALL in self.resources or combined in self.resources:
            return True
        return bool(subresource) and f"*/{subresource}" in self.resources

    def matches_path(self, verb: str, path: str) -> bool:
        if ALL not in self.verbs and verb not in self.verbs:
            return False
        return any(url_covers(url, path) for url in self.non_resource_urls)

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"verbs": list(self.verbs)}
        if self.api_groups:
            out["apiGroups"] = list(self.api_groups)
        if self.resources:
            out["resources"] = list(self.resources)
        if self.resource_names:
            out["resourceNames"] = list(self.resource_names)
        if self.non_resource_urls:
            out["nonResourceURLs"] = list(self.non_resource_urls)
        return out

    def text(self) -> str:
        """The rule as refusals tell it: ``{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}``."""
        parts = (
            ("APIGroups", self.api_groups),
            ("Resources", self.resources),
            ("NonResourceURLs", self.non_resource_urls),
            ("ResourceNames", self.resource_names),
            ("Verbs", self.verbs),
        )
        return "{" + ", ".join(f"{name}:{quoted_list(values)}" for name, values in parts if values) + "}"


def quoted_list(values: Iterable[str]) -> str:
    """``["a" "b"]``, the Go way to show a list of strings."""
    return "[" + " ".join(json.dumps(value, ensure_ascii=False) for value in values) + "]"


def url_covers(pattern: str, path: str) -> bool:
    """``*`` at the end of a pattern stands for any rest."""
    return pattern == path or (pattern.endswith(ALL) and path.startswith(pattern.rstrip(ALL)))


def rules_from_json(rules: Sequence[dict[str, Any]] | None) -> tuple[Rule, ...]:
    return tuple(
        Rule(
            verbs=tuple(rule.get("verbs") or ()),
            api_groups=tuple(rule.get("apiGroups") or ()),
            resources=tuple(rule.get("resources") or ()),
            resource_names=tuple(rule.get("resourceNames") or ()),
            non_resource_urls=tuple(rule.get("nonResourceURLs") or ()),
        )
        for rule in rules or ()
    )


def uncovered(owned: Sequence[Rule], wanted: Sequence[Rule]) -> list[Rule]:
    """What ``wanted`` grants beyond ``owned``, as rules of one verb and one resource (and name) or path each.

    Example: owned ``get configmaps``; wanted ``get,list configmaps`` → ``list configmaps``.
    """
    return [part for rule in wanted for part in _parts(rule) if not any(_covers(owner, part) for owner in owned)]


def _parts(rule: Rule) -> list[Rule]:
    parts = [
        Rule(verbs=(verb,), api_groups=(group,), resources=(resource,), resource_names=(name,) if name is not None else ())
        for group in rule.api_groups
        for resource in rule.resources
        for verb in rule.verbs
        for name in (rule.resource_names or (None,))
    ]
    return parts + [Rule(verbs=(verb,), non_resource_urls=(url,)) for url in rule.non_resource_urls for verb in rule.verbs]


def _covers(owner: Rule, part: Rule) -> bool:
    """Whether one owned rule grants a part (which has one value in each field it has)."""
    if ALL not in owner.verbs and part.verbs[0] not in owner.verbs:
        return False
    if part.non_resource_urls:
        return any(url_covers(url, part.non_resource_urls[0]) for url in owner.non_resource_urls)
    if ALL not in owner.api_groups and part.api_groups[0] not in owner.api_groups:
        return False
    if not _resource_covers(owner.resources, part.resources[0]):
        return False
    return not owner.resource_names or (bool(part.resource_names) and part.resource_names[0] in owner.resource_names)


def _resource_covers(owned: tuple[str, ...], resource: str) -> bool:
    if ALL in owned or resource in owned:
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"*/{subresource}" in owned


def compact(parts: Sequence[Rule]) -> list[Rule]:
    """Joins the verbs of parts that are equal in everything else; parts about paths stay as they are."""
    joined: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    out: list[Rule] = []
    for part in parts:
        if part.non_resource_urls:
            out.append(part)
        else:
            joined.setdefault((part.api_groups, part.resources, part.resource_names), []).extend(part.verbs)
    for (api_groups, resources, names), verbs in joined.items():
        out.append(Rule(verbs=tuple(verbs), api_groups=api_groups, resources=resources, resource_names=names))
    return out
