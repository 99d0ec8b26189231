"""``Aggregator``: the parts of the aggregation put together, for the composition root."""

from __future__ import annotations

import asyncio
import random

from apiserver.aggregation.availability import AvailabilityController
from apiserver.aggregation.connections import Connections
from apiserver.aggregation.documents import RemoteDocuments
from apiserver.aggregation.fetching import Fetcher
from apiserver.aggregation.forwarding import Forwarder
from apiserver.aggregation.local import LocalServices
from apiserver.aggregation.priorities import GROUP, RESOURCE
from apiserver.aggregation.remote import RemoteService, RemoteServices
from apiserver.aggregation.tunnel import TunnelOpener
from apiserver.config import ServerConfig
from apiserver.discovery.merging import Extensions
from apiserver.filters.asgi import ASGIApp
from apiserver.metrics import Exposition
from apiserver.registry.registry import CachedObjects, Registry


class Aggregator:
    """Made before the caches are loaded; ``run`` as long as the server serves."""

    def __init__(
        self, config: ServerConfig, registry: Registry, cached: CachedObjects, passing: tuple[type[Exception], ...], source: random.Random
    ) -> None:
        """``passing``: errors of the store, which are worth another attempt."""
        self._source = source
        self._cached = cached
        self._remotes = RemoteServices()
        self._connections = Connections(config.proxy_client_cert_file, config.proxy_client_key_file)
        fetcher = Fetcher(self._connections, cached)
        self._documents = RemoteDocuments(self._remotes, fetcher)
        self._availability = AvailabilityController(registry, cached, self._remotes, fetcher, passing, source)
        local = LocalServices(lambda group, version: any(info.builtin for info in registry.table.resources(group, version)))
        self.extensions = Extensions(remotes=self._remotes, documents=self._documents, local=local)
        self._remotes.listen(self._remote_changed)
        registry.storage(GROUP, RESOURCE).cache.observe(self._remotes.changed)
        registry.storage(GROUP, RESOURCE).cache.observe(local.changed)

    def _remote_changed(self, name: str, remote: RemoteService | None) -> None:
        if remote is None:
            self._connections.forget(name)

    def in_front_of(self, fallback: ASGIApp) -> Forwarder:
        return Forwarder(fallback, self._remotes, self._connections, self._cached, TunnelOpener(self._connections), self._source)

    def expose(self, out: Exposition) -> None:
        out.gauge(
            "aggregator_unavailable_apiservice",
            "Gauge of APIServices which are marked as unavailable broken down by APIService name.",
            [((("name", remote.name),), 0.0 if remote.available else 1.0) for remote in self._remotes.all()],
        )
        out.counter(
            "aggregator_unavailable_apiservice_total",
            "Counter of APIServices which are marked as unavailable broken down by APIService name and reason.",
            [((("name", name), ("reason", reason)), float(count)) for (name, reason), count in sorted(self._availability.losses.items())],
        )

    async def run(self) -> None:
        """Until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._availability.run())
                group.create_task(self._documents.run())
        finally:
            await self._connections.close()
