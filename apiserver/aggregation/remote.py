"""``RemoteServices``: the APIServices that name a service, and which requests are theirs."""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Callable
from dataclasses import dataclass

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from apiserver.objectstore.interface import StoredObject

logger = logging.getLogger(__name__)

HTTPS_PORT = 443


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteService:
    """One APIService with a service. ``ca_bundle`` is PEM, empty where the system's authorities count; ``available`` its condition."""

    name: str
    uid: str
    group: str
    version: str
    group_priority: int
    version_priority: int
    namespace: str
    service: str
    port: int
    ca_bundle: bytes
    insecure: bool
    available: bool

    @property
    def server_name(self) -> str:
        """What the service's certificate must be for."""
        return f"{self.service}.{self.namespace}.svc"

    @property
    def path(self) -> str:
        """Where its API is."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @property
    def server(self) -> tuple[str, str, int]:
        """Of two with the same one all documents are read once."""
        return self.namespace, self.service, self.port


def read(api_service: Object) -> RemoteService | None:
    """None for one without a service: it is served here."""
    spec = api_service["spec"]
    service = spec.get("service")
    if service is None:
        return None
    try:
        bundle = base64.b64decode(spec.get("caBundle") or "", validate=True)
    except (ValueError, binascii.Error):
        bundle = b"not base64"  # stored by another server: no certificate is good for it
    conditions = objects.get(api_service, "status", "conditions", default=[]) or []
    return RemoteService(
        name=objects.name(api_service),
        uid=objects.uid(api_service),
        group=spec.get("group") or "",
        version=spec.get("version") or "",
        group_priority=spec.get("groupPriorityMinimum") or 0,
        version_priority=spec.get("versionPriority") or 0,
        namespace=service.get("namespace") or "",
        service=service.get("name") or "",
        port=service.get("port") or HTTPS_PORT,
        ca_bundle=bundle,
        insecure=bool(spec.get("insecureSkipTLSVerify")),
        available=any(c.get("type") == "Available" and c.get("status") == "True" for c in conditions),
    )


Listener = Callable[[str, RemoteService | None], None]


class RemoteServices:
    """Follows the cache of APIServices: ``changed`` is its observer. ``listen``: told of each change, None: it is gone (or local now)."""

    def __init__(self) -> None:
        self._by_version: dict[tuple[str, str], RemoteService] = {}
        self._by_name: dict[str, RemoteService] = {}
        self._listeners: list[Listener] = []
        #: raised by every change
        self.generation = 0

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def changed(self, new: StoredObject | None, old: StoredObject | None) -> None:
        found = new or old
        assert found is not None
        name = found.name
        after = None
        if new is not None and b'"service":' in new.raw:
            try:
                after = read(new.decode())
            except (KeyError, TypeError, AttributeError) as error:
                logger.warning("a stored APIService cannot be used: name=%s error=%r", name, error)
        before = self._by_name.get(name)
        if before is None and after is None:
            return
        self.generation += 1
        if before is not None:
            self._by_version.pop((before.group, before.version), None)
            del self._by_name[name]
        if after is not None:
            self._by_name[name] = after
            self._by_version[(after.group, after.version)] = after
        for listener in self._listeners:
            listener(name, after)

    def get(self, name: str) -> RemoteService | None:
        return self._by_name.get(name)

    def all(self) -> list[RemoteService]:
        """By name."""
        return [self._by_name[name] for name in sorted(self._by_name)]

    def of_version(self, group: str, version: str) -> RemoteService | None:
        return self._by_version.get((group, version))

    def of_path(self, path: str) -> RemoteService | None:
        """Whose a request's path is: everything below ``/apis/GROUP/VERSION`` (``/api/v1`` for the core group's)."""
        if not self._by_name or not path.startswith("/api"):
            return None
        parts = path.split("/", 4)
        if parts[1] == "apis":
            return self._by_version.get((parts[2], parts[3])) if len(parts) > 3 else None
        return self._by_version.get(("", parts[2])) if parts[1] == "api" and len(parts) > 2 else None
