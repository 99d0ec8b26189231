"""Which resources a server has: the version each group prefers, with verbs (client-go ``ServerPreferredResources``).

A group whose list cannot be read is told in ``failed`` and does not hide the others: a namespace is then not declared empty, and
the garbage collector keeps the monitors that it has.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from controllers.client import errors
from controllers.client.interface import Api
from controllers.client.resources import Resource

#: Group lists read at once.
PARALLEL_READS = 8
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


@dataclass(frozen=True, slots=True)
class DiscoveredResource:
    resource: Resource
    verbs: frozenset[str]


@dataclass(frozen=True, slots=True)
class Discovery:
    """``failed`` maps group/version to what went wrong. Resources are sorted; subresources are left out."""

    resources: tuple[DiscoveredResource, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)

    def with_verbs(self, *verbs: str) -> tuple[Resource, ...]:
        return tuple(r.resource for r in self.resources if r.verbs.issuperset(verbs))


async def discover(api: Api) -> Discovery:
    """One read of ``/api`` and of ``/apis`` in their aggregated form; from a server that has none, a read of each group and version.

    Of a group, the version it prefers counts, and of its other versions what only they have.

    Raises:
        StatusError, ConnectionFailed: the group list itself cannot be read.
    """
    core, groups = await asyncio.gather(api.raw("GET", "/api", accept=AGGREGATED), api.raw("GET", "/apis", accept=AGGREGATED))
    if core.get("kind") == groups.get("kind") == "APIGroupDiscoveryList":
        return _from_aggregated([*(core.get("items") or []), *(groups.get("items") or [])])
    return await _from_each_version(api, core, groups)


def _from_aggregated(items: list[dict[str, Any]]) -> Discovery:
    chosen: dict[tuple[str, str], DiscoveredResource] = {}
    failed: dict[str, str] = {}
    for item in items:
        group = str((item.get("metadata") or {}).get("name") or "")
        for version in item.get("versions") or []:  # the preferred one first
            if version.get("freshness") == "Stale":
                failed[_group_version(group, version["version"])] = "stale GroupVersion discovery"
            for entry in version.get("resources") or []:
                kind = entry.get("responseKind") or {}
                resource = Resource(
                    group, version["version"], entry["resource"], str(kind.get("kind") or ""), entry.get("scope") == "Namespaced"
                )
                chosen.setdefault((group, entry["resource"]), DiscoveredResource(resource, frozenset(entry.get("verbs") or ())))
    return Discovery(tuple(sorted(chosen.values(), key=lambda one: one.resource)), failed)


async def _from_each_version(api: Api, core: dict[str, Any], groups: dict[str, Any]) -> Discovery:
    wanted: list[tuple[str, str, bool]] = [("", v, n == 0) for n, v in enumerate(core.get("versions") or [])]
    for group in groups.get("groups") or []:
        preferred = (group.get("preferredVersion") or {}).get("version") or ""
        for version in group.get("versions") or []:
            wanted.append((group["name"], version["version"], version["version"] == preferred))
    limit = asyncio.Semaphore(PARALLEL_READS)

    async def read(group: str, version: str) -> tuple[list[DiscoveredResource], str]:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        async with limit:
            try:
                answer = await api.raw("GET", path)
            except errors.TRANSIENT as error:
                return [], str(error)
        return _resources_of(group, version, answer), ""

    answers = await asyncio.gather(*(read(group, version) for group, version, _ in wanted))
    chosen: dict[tuple[str, str], DiscoveredResource] = {}
    failed: dict[str, str] = {}
    for preferred_only in (True, False):
        for (group, version, preferred), (found, failure) in zip(wanted, answers, strict=True):
            if failure:
                failed[_group_version(group, version)] = failure
            if preferred is preferred_only:
                for one in found:
                    chosen.setdefault((group, one.resource.plural), one)
    return Discovery(tuple(sorted(chosen.values(), key=lambda one: one.resource)), failed)


def _group_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


def _resources_of(group: str, version: str, answer: object) -> list[DiscoveredResource]:
    entries = answer.get("resources") if isinstance(answer, dict) else None
    return [
        DiscoveredResource(
            Resource(group, version, entry["name"], entry["kind"], bool(entry.get("namespaced"))), frozenset(entry.get("verbs") or ())
        )
        for entry in entries or []
        if "/" not in entry["name"]
    ]
