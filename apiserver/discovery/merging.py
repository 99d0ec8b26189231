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


class Local(Protocol):
    """``aggregation.local.LocalServices``."""

    @property
    def generation(self) -> int: ...

    def __bool__(self) -> bool: ...

    def ranks(self, group: str, version: str) -> tuple[int, int] | None: ...

    def about(self, group: str) -> bool: ...


class Remotes(Protocol):
    def __bool__(self) -> bool: ...

    def all(self) -> list[RemoteService]: ...

    def of_version(self, group: str, version: str) -> RemoteService | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Extensions:
    """What APIServices change in this server's documents."""

    remotes: Remotes
    documents: Documents
    local: Local

    @property
    def generation(self) -> int:
        """Rises with every change."""
        return self.documents.generation + self.local.generation


@dataclass(frozen=True, slots=True)
class _Ranked:
    group_rank: int
    version_rank: int
    group: str
    version: str


def _ranked(table: ResourceTable, extensions: Extensions, groups: Iterable[str]) -> list[_Ranked]:
    """Each group and version that is served, here or elsewhere, and listed; of ``groups`` alone."""
    found: dict[tuple[str, str], _Ranked] = {}
    for group in groups:
        for version in table.versions(group):
            ranks = extensions.local.ranks(group, version)
            if ranks is not None:
                found[(group, version)] = _Ranked(*ranks, group, version)
    for remote in extensions.remotes.all():
        if remote.group not in groups:
            continue
        key = (remote.group, remote.version)
        found[key] = _Ranked(remote.group_priority, remote.version_priority, *key)
    return list(found.values())


class _Listing:
    """All groups and versions in their order, for one document."""

    def __init__(self, table: ResourceTable, extensions: Extensions, group: str | None = None) -> None:
        """``group``: of this one alone."""
        remotes = {remote.group for remote in extensions.remotes.all()}
        own = list(table.groups())
        wanted = {*own, *remotes} if group is None else {group}
        ranked: dict[str, list[_Ranked]] = {}
        for entry in _ranked(table, extensions, wanted):
            ranked.setdefault(entry.group, []).append(entry)
        self._ranked = ranked
        self._position = {name: position for position, name in enumerate(own)}
        self._builtin = {name for name in ranked if name in self._position and table.is_builtin(name)}

    def groups(self) -> list[str]:
        """By the highest rank among each one's versions, then as this server orders its own, the others by name."""

        def key(group: str) -> tuple[int, bool, int, str]:
            builtin = group in self._builtin
            best = max(entry.group_rank for entry in self._ranked[group])
            return -best, not builtin, self._position[group] if builtin else 0, group

        return sorted(self._ranked, key=key)

    def versions(self, group: str) -> list[str]:
        """The preferred one first."""
        found = self._ranked.get(group, ())
        return [entry.version for entry in sorted(found, key=lambda e: priorities.version_order(e.version, e.version_rank))]

    def document(self, group: str) -> Document:
        versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in self.versions(group)]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def changes(table: ResourceTable, extensions: Extensions, group: str) -> bool:
    """Whether ``/apis/<group>`` is to say something else than this server would. Where all of its versions are hidden it does not: then the
    server's own answer comes through."""
    remote = any(remote.group == group for remote in extensions.remotes.all())
    return remote or (extensions.local.about(group) and bool(_Listing(table, extensions, group).versions(group)))


def api_group_list(table: ResourceTable, extensions: Extensions) -> Document:
    """``/apis``."""
    listing = _Listing(table, extensions)
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [listing.document(group) for group in listing.groups() if group]}


def api_group(table: ResourceTable, extensions: Extensions, group: str) -> Document:
    """``/apis/<group>``, of one that ``changes``."""
    return {"kind": "APIGroup", "apiVersion": "v1", **_Listing(table, extensions, group).document(group)}


def aggregated(table: ResourceTable, extensions: Extensions, local: Document) -> Document:
    """``local``: the document of all groups of this server but the core one."""
    listing = _Listing(table, extensions)
    own = {item["metadata"].get("name", ""): item for item in local["items"]}
    items = []
    for group in listing.groups():
        if not group:
            continue
        known = {version["version"]: version for version in own.get(group, {}).get("versions", ())}
        versions = []
        for version in listing.versions(group):
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
