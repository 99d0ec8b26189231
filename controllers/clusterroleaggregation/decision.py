"""What an aggregating cluster role's rules should be. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.lib import selectors


def aggregates(role: Object) -> bool:
    return role.get("aggregationRule") is not None


def aggregated_rules(role: Object, roles: Iterable[Object]) -> list[dict[str, Any]]:
    """The rules of all roles that its selectors choose, by selector and then by name, each once."""
    others = sorted((r for r in roles if objects.name(r) != objects.name(role)), key=objects.name)
    found: list[dict[str, Any]] = []
    for selector in objects.get(role, "aggregationRule", "clusterRoleSelectors", default=()):
        for other in others:
            if selectors.matches(selector, objects.labels(other)):
                found += [rule for rule in other.get("rules") or () if rule not in found]
    return found


def with_rules(role: Object, roles: Iterable[Object]) -> Object | None:
    """The role as it should be, None where it is."""
    rules = aggregated_rules(role, roles)
    return None if rules == (role.get("rules") or []) else {**role, "rules": rules}
