"""Discovery documents with what extension API servers serve: their groups and versions among this server's own, by priority."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from apiserver.aggregation import priorities
from apiserver.aggregation.openapi import RemoteOpenApi
from apiserver.aggregation.remote import RemoteService
from apiserver.resources.table import ResourceTable

Document = dict[str, Any]


class VersionDocuments(Protocol):
    resources: list[Document]
    stale: bool
    openapi_v3: str
    swagger: bytes


class Documents(Protocol):
    """``aggregation.documents.RemoteDocuments``."""

    @property
    def generation(self) -> int: ...

    def of(self, remote: RemoteService) -> VersionDocuments: ...

    async def openapi_v3_document(self, remote: RemoteService) -> bytes: ...


class Remotes(Protocol):
    def __bool__(self) -> bool: ...

    def all(self) -> list[RemoteService]: ...

    def of_version(self, group: str, version: str) -> RemoteService | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Extensions:
    """What other servers add to this one's documents."""

    remotes: Remotes
    documents: Documents


@dataclass(frozen=True, slots=True)
class _Ranked:
    group_rank: int
    version_rank: int
    group: str
    version: str


def _ranked(table: ResourceTable, remotes: Iterable[RemoteService]) -> list[_Ranked]:
    """Each group and version that is served, here or elsewhere."""
    found: dict[tuple[str, str], _Ranked] = {}
    for group in table.groups():
        for version in table.versions(group):
            builtin = any(info.builtin for info in table.resources(group, version))
            ranks = priorities.local_rank(group, version, is_builtin=builtin)
            found[(group, version)] = _Ranked(*ranks, group, version)
    for remote in remotes:
        key = (remote.group, remote.version)
        found[key] = _Ranked(remote.group_priority, remote.version_priority, *key)
    return list(found.values())


def group_order(table: ResourceTable, remotes: Iterable[RemoteService]) -> list[str]:
    """All groups, by the highest rank among each one's versions, then as this server orders its own, the others by name."""
    own = {group: position for position, group in enumerate(table.groups())}
    best: dict[str, int] = {}
    for entry in _ranked(table, remotes):
        best[entry.group] = max(best.get(entry.group, 0), entry.group_rank)

    def key(group: str) -> tuple[int, int, int, str]:
        builtin = group in own and table.is_builtin(group)
        return -best[group], not builtin, own[group] if builtin else 0, group

    return sorted(best, key=key)


def version_order(table: ResourceTable, remotes: Iterable[RemoteService], group: str) -> list[str]:
    """The versions of one group, the preferred one first."""
    found = [entry for entry in _ranked(table, [r for r in remotes if r.group == group]) if entry.group == group]
    return [entry.version for entry in sorted(found, key=lambda e: priorities.version_order(e.version, e.version_rank))]


def _group(table: ResourceTable, remotes: list[RemoteService], group: str) -> Document:
    versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in version_order(table, remotes, group)]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def api_group_list(table: ResourceTable, extensions: Extensions) -> Document:
    """``/apis``."""
    remotes = extensions.remotes.all()
    groups = [_group(table, remotes, group) for group in group_order(table, remotes) if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(table: ResourceTable, extensions: Extensions, group: str) -> Document:
    """``/apis/<group>``. Raises KeyError for a group that is not served."""
    remotes = [remote for remote in extensions.remotes.all() if remote.group == group]
    if not group or not (table.versions(group) or remotes):
        raise KeyError(group)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(table, remotes, group)}


def aggregated(table: ResourceTable, extensions: Extensions, local: Document) -> Document:
    """``local``: the document of all groups of this server but the core one."""
    remotes = extensions.remotes.all()
    own = {item["metadata"].get("name", ""): item for item in local["items"]}
    items = []
    for group in group_order(table, remotes):
        if not group:
            continue
        known = {version["version"]: version for version in own.get(group, {}).get("versions", ())}
        versions = []
        for version in version_order(table, remotes, group):
            remote = extensions.remotes.of_version(group, version)
            versions.append(known[version] if remote is None else _of_remote(extensions, remote))
        items.append({"metadata": {"name": group}, "versions": versions})
    return {**local, "items": items}


def openapi(extensions: Extensions | None) -> list[RemoteOpenApi]:
    """What OpenAPI's documents are merged from, for another thread."""
    if extensions is None or not extensions.remotes:
        return []
    found = [(remote, extensions.documents.of(remote)) for remote in extensions.remotes.all()]
    return [RemoteOpenApi(path=remote.path, v3_url=known.openapi_v3, swagger=known.swagger) for remote, known in found]


def _of_remote(extensions: Extensions, remote: RemoteService) -> Document:
    found = extensions.documents.of(remote)
    document: Document = {"version": remote.version}
    if found.resources:
        document["resources"] = found.resources
    return {**document, "freshness": "Stale" if found.stale else "Current"}
