"""``RemoteDocuments``: what extension API servers serve, for the discovery and OpenAPI documents of this one (kube-aggregator
``handler_discovery``, ``openapi``).

Read when an APIService changes, and every ``REFRESH_SECONDS``; after a failure sooner. What cannot be read is told as stale, with the last
that is known.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

import orjson

from apiserver.aggregation.fetching import Fetcher, FetchError
from apiserver.aggregation.remote import RemoteService, RemoteServices

logger = logging.getLogger(__name__)

REFRESH_SECONDS = 60.0
#: after a failure; the next pause is twice as long, up to the refresh's
PAUSE_SECONDS = 0.5
#: changes come in bursts (a condition right after its APIService): documents are read once for all
SETTLE_SECONDS = 0.02

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_ACCEPT = f"{_AGGREGATED},application/json"
_SWAGGER = "application/json"

Document = dict[str, Any]


@dataclass(slots=True)
class VersionDocuments:
    """Of one APIService. ``resources`` as in the aggregated form; ``openapi_v3``: where its document of version 3 is on the extension
    server ("" for none), ``swagger``: its whole document of version 2 (empty for none)."""

    resources: list[Document] = field(default_factory=list)
    stale: bool = True
    openapi_v3: str = ""
    swagger: bytes = b""


class RemoteDocuments:
    """``generation`` is raised by every change of what ``of`` answers."""

    def __init__(self, remotes: RemoteServices, fetcher: Fetcher) -> None:
        self._remotes = remotes
        self._fetcher = fetcher
        self._known: dict[str, VersionDocuments] = {}
        self._refreshing: dict[str, asyncio.Task[None]] = {}
        self._changed: dict[str, asyncio.Event] = {}
        self._started = False
        self._swagger_etags: dict[str, str] = {}
        self._generation = 0
        remotes.listen(self._remote_changed)

    @property
    def generation(self) -> int:
        return self._generation + self._remotes.generation

    def of(self, remote: RemoteService) -> VersionDocuments:
        found = self._known.get(remote.name)
        return found if found is not None else VersionDocuments()

    def _remote_changed(self, name: str, remote: RemoteService | None) -> None:
        if remote is None:
            self._known.pop(name, None)
            self._changed.pop(name, None)
            self._swagger_etags.pop(name, None)
            task = self._refreshing.pop(name, None)
            if task is not None:
                task.cancel()
            return
        self._changed.setdefault(name, asyncio.Event()).set()
        if self._started:
            self._follow(name)

    def _follow(self, name: str) -> None:
        if name not in self._refreshing:
            task = self._refreshing[name] = asyncio.create_task(self._keep(name), name=f"documents of {name}")
            task.add_done_callback(_report)

    async def run(self) -> None:
        """Until cancelled."""
        self._started = True
        for remote in self._remotes.all():
            self._follow(remote.name)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            for task in self._refreshing.values():
                task.cancel()

    async def _keep(self, name: str) -> None:
        pause = PAUSE_SECONDS
        changed = self._changed[name]
        while True:
            await asyncio.sleep(SETTLE_SECONDS)
            changed.clear()
            remote = self._remotes.get(name)
            if remote is None:
                return
            ok = await self._refresh(remote)
            pause = PAUSE_SECONDS if ok else min(pause * 2, REFRESH_SECONDS)
            try:
                async with asyncio.timeout(REFRESH_SECONDS if ok else pause):
                    await changed.wait()
            except TimeoutError:
                pass

    async def _refresh(self, remote: RemoteService) -> bool:
        """Whether all could be read."""
        before = self._known.get(remote.name)
        after = VersionDocuments(*(() if before is None else (before.resources, True, before.openapi_v3, before.swagger)))
        try:
            if not remote.available:
                raise FetchError("it is not available")
            after.resources = await self._resources(remote)
            after.stale = False
            after.openapi_v3 = await self._openapi_v3(remote)
            after.swagger = await self._swagger(remote, after.swagger)
        except FetchError as error:
            logger.info("documents of an extension API server could not be read: apiservice=%s error=%s", remote.name, error)
        if self._remotes.get(remote.name) is not None and after != before:
            self._known[remote.name] = after
            self._generation += 1
        return not after.stale

    async def _resources(self, remote: RemoteService) -> list[Document]:
        if remote.group:
            answer = await self._fetcher.get(remote, "/apis", _ACCEPT)
            if answer.code == 200 and "apidiscovery.k8s.io" in answer.media_type and "v=v2;" in answer.media_type.replace(" ", "") + ";":
                found = _of_aggregated(_object(answer.body), remote)
                if found is not None:
                    return found
        answer = await self._fetcher.get(remote, remote.path)
        if answer.code != 200:
            raise FetchError(f"{remote.path}: {answer.code}")
        return _of_list(_object(answer.body))

    async def _openapi_v3(self, remote: RemoteService) -> str:
        answer = await self._fetcher.get(remote, "/openapi/v3")
        if answer.code != 200:
            return ""
        paths = _object(answer.body).get("paths")
        entry = paths.get(remote.path.lstrip("/")) if isinstance(paths, dict) else None
        url = entry.get("serverRelativeURL") if isinstance(entry, dict) else None
        return url if isinstance(url, str) and url.startswith("/openapi/v3/") else ""

    async def _swagger(self, remote: RemoteService, known: bytes) -> bytes:
        answer = await self._fetcher.get(remote, "/openapi/v2", _SWAGGER, self._swagger_etags.get(remote.name, "") if known else "")
        if answer.code == 304:
            return known
        if answer.code != 200:
            return b""
        self._swagger_etags[remote.name] = answer.etag
        return answer.body

    async def openapi_v3_document(self, remote: RemoteService) -> bytes:
        """Raises FetchError."""
        answer = await self._fetcher.get(remote, self.of(remote).openapi_v3)
        if answer.code != 200:
            raise FetchError(f"{remote.name}: {answer.code}")
        _object(answer.body)
        return answer.body


def _object(raw: bytes) -> Document:
    """Raises FetchError for what is no JSON object."""
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise FetchError(f"the answer is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise FetchError("the answer is no object")
    return found


def _of_aggregated(document: Document, remote: RemoteService) -> list[Document] | None:
    """None where the group and version are not in it."""
    try:
        for group in document.get("items") or ():
            if group["metadata"]["name"] == remote.group:
                for version in group.get("versions") or ():
                    if version["version"] == remote.version:
                        return [_checked(resource) for resource in version.get("resources") or ()]
    except (KeyError, TypeError, AttributeError) as error:
        raise FetchError(f"the discovery document cannot be understood: {error!r}") from error
    return None


def _checked(resource: Document) -> Document:
    """A resource of the aggregated form, of which only what belongs there is kept: it is rendered with this server's own."""
    found: Document = {
        "resource": str(resource["resource"]),
        "responseKind": _kind(resource.get("responseKind")),
        "scope": str(resource.get("scope") or ""),
        "singularResource": str(resource.get("singularResource") or ""),
        "verbs": _texts(resource.get("verbs")),
    }
    for name in ("shortNames", "categories"):
        if resource.get(name):
            found[name] = _texts(resource[name])
    if resource.get("subresources"):
        found["subresources"] = [
            {
                "subresource": str(sub["subresource"]),
                "responseKind": _kind(sub.get("responseKind")),
                "verbs": _texts(sub.get("verbs")),
            }
            for sub in resource["subresources"]
        ]
    return found


def _kind(value: Any) -> Document:
    """Clients take it for granted."""
    return {name: str((value or {}).get(name) or "") for name in ("group", "version", "kind")}


def _texts(value: Any) -> list[str]:
    return [str(text) for text in value or ()]


def _of_list(document: Document) -> list[Document]:
    """An ``APIResourceList`` in the aggregated form."""
    found: dict[str, Document] = {}
    try:
        for entry in document.get("resources") or ():
            name, slash, sub = entry["name"].partition("/")
            kind = _kind(entry)
            if slash:
                parent = found.get(name)
                if parent is not None:
                    parent.setdefault("subresources", []).append(
                        {"subresource": sub, "responseKind": kind, "verbs": _texts(entry.get("verbs"))}
                    )
                continue
            found[name] = one = {
                "resource": name,
                "responseKind": kind,
                "scope": "Namespaced" if entry.get("namespaced") else "Cluster",
                "singularResource": str(entry.get("singularName") or ""),
                "verbs": _texts(entry.get("verbs")),
            }
            for field_ in ("shortNames", "categories"):
                if entry.get(field_):
                    one[field_] = _texts(entry[field_])
    except (KeyError, TypeError, AttributeError) as error:
        raise FetchError(f"the list of resources cannot be understood: {error!r}") from error
    return list(found.values())


def _report(task: asyncio.Task[None]) -> None:
    """A fault of this program, which must not pass unseen."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("%s failed", task.get_name(), exc_info=error)
