"""Keeps what services have and what is remembered of it alike, as kube-apiserver's repair controllers do.

An address or a port is in use because a service says so. The claims in the store and the sets in memory follow: those of services that
were written another way (by hand, by a restored backup) are made, those of services that are gone are freed. What cannot be put right
without taking something from a service (two with one address, an address outside every range) is told in Events and left as it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket

from apiserver.bootstrap import prepared
from apiserver.machinery import objects, timestamps
from apiserver.machinery.objects import Object
from apiserver.objectstore.interface import KeyExistsError, ObjectStoreError
from apiserver.registry import service_addresses, service_findings
from apiserver.registry.registry import Registry
from apiserver.registry.service_allocators import IP_CLAIMS, MemoryServiceAllocators, ip_claim
from apiserver.registry.service_findings import Finding, Ranges
from apiserver.service_cidrs import ServiceCidrs

logger = logging.getLogger(__name__)

#: kube-apiserver's, between two looks
PERIOD_SECONDS = 180.0
#: after a look that the store did not answer
RETRY_SECONDS = 10.0
#: a burst of changes is looked at once
SETTLE_SECONDS = 0.05
#: Events of one look: a change of the range would otherwise write one for every service. The others are told at later looks.
EVENTS_MAX = 200


class ServiceRepair:
    """``run`` as long as the server serves. ``passing``: errors of the store that are gone over."""

    def __init__(self, registry: Registry, allocators: MemoryServiceAllocators, passing: tuple[type[Exception], ...] = ()) -> None:
        self._registry = registry
        self._services = registry.storage("", "services")
        self._allocators = allocators
        self._passing: tuple[type[Exception], ...] = (ObjectStoreError, *passing)
        self._events = _Events(registry)
        self._changed = asyncio.Event()
        #: None: before 1.33 the ranges are those of the flags alone, and no objects
        self._cidrs: ServiceCidrs | None = None
        if service_addresses.are_objects(registry):
            self._cidrs = ServiceCidrs(registry, allocators, self._changed.set)

    async def run(self) -> None:
        """Until cancelled, at once, at each change that calls for it, and every few minutes."""
        while True:
            self._changed.clear()
            wait = RETRY_SECONDS
            try:
                wait = await self.look()
            except self._passing as error:
                logger.warning("the addresses of services could not be looked at: error=%s", error)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._changed.wait()
                await asyncio.sleep(SETTLE_SECONDS)

    async def look(self) -> float:
        """Put right what can be and tell of the rest; the seconds until the next look. Raises StoreError."""
        # the claims first: services that are newer than them have theirs, which are not among these
        claims = await self._services.claims()
        await self._services.catch_up()
        services = [found.shared() for found in self._services.cache.values()]
        owners = {claim: self._services.owner_of(kv) for claim, kv in claims.by_name.items()}
        networks, deletions, findings, due = self._allocators.networks, [], [], None
        if self._cidrs is not None:
            addresses = self._cidrs.addresses()
            networks = tuple(self._cidrs.networks())
            by_path = {f"{objects.namespace(service)}/{objects.name(service)}": service for service in services}
            deletions = service_addresses.plan(addresses, by_path, self._registry.env.clock.now())
            # the objects say who has which address
            ours = {ip_claim(objects.name(address)): service_addresses.service_of(address) for address in addresses}
            owners = {claim: owner for claim, owner in owners.items() if not claim.startswith(IP_CLAIMS)} | ours
        ranges = Ranges(networks=networks, ports=self._allocators.ports, several=self._cidrs is not None)
        findings = service_findings.find(services, owners, ranges, claims.revision)
        findings += [deletion.finding for deletion in deletions if deletion.finding is not None]
        if self._cidrs is not None:
            await self._cidrs.remove(deletions)
            told, due = await self._cidrs.keep()
            findings += told
        self._allocators.reconcile(services)
        await self._services.restore_claims(await self._services.claims() if deletions else claims)
        await self._events.tell(findings)
        return PERIOD_SECONDS if due is None else min(due, PERIOD_SECONDS)


class _Events:
    """One Event for each finding; as long as it is found at every look, that one counts how often."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._host = socket.gethostname()
        #: the paths of the events of the last look, by what they say
        self._told: dict[tuple[str, str, str], str] = {}

    async def tell(self, findings: list[Finding]) -> None:
        told: dict[tuple[str, str, str], str] = {}
        events = 0
        for finding in findings:
            key = (objects.uid(finding.about), finding.reason, finding.note)
            path = self._told.get(key)
            if path is None and events == EVENTS_MAX:
                continue
            events += path is None
            logger.warning("%s: service=%s/%s", finding.note, objects.namespace(finding.about), objects.name(finding.about))
            told[key] = path if path is not None and await self._counted(path) else await self._written(finding)
        self._told = told

    async def _counted(self, path: str) -> bool:
        """False where the event is gone: they live for an hour only."""
        storage = self._registry.storage("", "events")
        found = await storage.get(path)
        if found is None:
            return False
        event = found.decode()
        count = (event.get("series") or {}).get("count", 1) + 1
        return (
            await storage.update(path, {**event, "series": {"count": count, "lastObservedTime": self._now()}}, found.revision) is not None
        )

    async def _written(self, finding: Finding) -> str:
        event = self._event(finding)
        _, path, obj = prepared(self._registry, "", "events", event)
        with contextlib.suppress(KeyExistsError):  # of the same moment, by another server
            await self._registry.storage("", "events").create(path, obj)
        return path

    def _event(self, finding: Finding) -> Object:
        about = finding.about
        namespace = objects.namespace(about) or "default"
        nanoseconds = int(self._registry.env.clock.now() * 1e9) + self._registry.env.random.randrange(1000)
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{objects.name(about)}.{nanoseconds:x}", "namespace": namespace},
            "involvedObject": {
                "kind": about["kind"],
                **({"namespace": objects.namespace(about)} if objects.namespace(about) else {}),
                "name": objects.name(about),
                "uid": objects.uid(about),
                "apiVersion": about["apiVersion"],
                "resourceVersion": objects.resource_version(about),
            },
            "reason": finding.reason,
            "message": finding.note,
            "source": {},
            "firstTimestamp": None,
            "lastTimestamp": None,
            "type": "Warning",
            "eventTime": self._now(),
            "action": finding.action,
            "reportingComponent": finding.controller,
            "reportingInstance": f"{finding.controller}-{self._host}",
        }

    def _now(self) -> str:
        return timestamps.format_micro_time(self._registry.env.clock.now())
