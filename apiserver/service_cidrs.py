"""Keeps ServiceCIDR objects: the default one of the flags, their finalizers and conditions, and the ranges that are allocated from
(upstream's ``defaultservicecidr`` and ``servicecidrs`` controllers, and what its allocators watch)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from apiserver.bootstrap import prepared
from apiserver.machinery import objects, timestamps
from apiserver.machinery.objects import Object
from apiserver.objectstore.interface import StoredObject
from apiserver.registry import service_addresses
from apiserver.registry.registry import Registry
from apiserver.registry.service_addresses import ADDRESSES, CIDRS, DEFAULT_CIDR, FINALIZER, GROUP, Deletion
from apiserver.registry.service_allocators import IpNetwork, MemoryServiceAllocators, canonical, cluster_ips
from apiserver.registry.service_findings import Finding

#: A range that may go stays that long, so that every server knows of it before its addresses are nobody's.
DELETION_GRACE_SECONDS = 10.0
_STAYS = "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR"


class ServiceCidrs:
    """``changed`` is called when ``keep`` has something to do."""

    def __init__(self, registry: Registry, allocators: MemoryServiceAllocators, changed: Callable[[], object]) -> None:
        self._registry = registry
        self._allocators = allocators
        self._flags = [str(network) for network in allocators.configured]
        self._changed = changed
        self._stored_cidrs = registry.storage(GROUP, CIDRS)
        self._stored_addresses = registry.storage(GROUP, ADDRESSES)
        self._services = registry.storage("", "services")
        self._take_networks()
        allocators.addresses.update(found.name for found in self._stored_addresses.cache.values())
        self._stored_cidrs.cache.observe(self._cidr_changed)
        self._stored_addresses.cache.observe(self._address_changed)

    def cidrs(self) -> list[Object]:
        return [found.decode() for found in self._stored_cidrs.cache.values()]

    def addresses(self) -> list[Object]:
        return [found.decode() for found in self._stored_addresses.cache.values()]

    def networks(self) -> list[IpNetwork]:
        """Of all objects, those that are on their way out too."""
        return [network for cidr in self.cidrs() for network in service_addresses.networks_of(cidr)]

    def _take_networks(self) -> None:
        cidrs = self.cidrs()
        self._allocators.several = bool(cidrs)
        self._allocators.networks = service_addresses.ready_networks(cidrs) if cidrs else self._allocators.configured
        self._going = any(objects.is_being_deleted(cidr) for cidr in cidrs)

    def _cidr_changed(self, new: StoredObject | None, old: StoredObject | None) -> None:
        self._take_networks()
        self._changed()

    def _address_changed(self, new: StoredObject | None, old: StoredObject | None) -> None:
        """That services come and go with their addresses is nothing to look at; that one goes alone, or is written by another hand, is."""
        if new is not None:
            self._allocators.addresses.add(new.name)
            if old is not None:
                self._changed()
        elif old is not None:
            self._allocators.addresses.discard(old.name)
            service = self._services.cache.get(service_addresses.service_of(old.decode()))
            if self._going or (service is not None and old.name in map(canonical, cluster_ips(service.decode()))):
                self._changed()

    async def remove(self, deletions: Sequence[Deletion]) -> None:
        for deletion in deletions:
            await self._stored_addresses.delete(deletion.name, deletion.revision)

    async def keep(self) -> tuple[list[Finding], float | None]:
        """Write what is missing; what is to be told, and the seconds until a range that may go goes. Raises StoreError."""
        now = self._registry.env.clock.now()
        cidrs, findings, due = self.cidrs(), [], None
        if not any(objects.name(cidr) == DEFAULT_CIDR for cidr in cidrs):
            default = service_addresses.default_cidr(self._registry, self._flags)
            await self._registry.objects.create_missing([prepared(self._registry, GROUP, CIDRS, default)])
        for cidr in cidrs:
            if objects.is_being_deleted(cidr):
                wait = await self._let_go(cidr, [other for other in cidrs if other is not cidr], now)
                due = wait if due is None else min(due, wait or due)
                continue
            if objects.name(cidr) == DEFAULT_CIDR and objects.get(cidr, "spec", "cidrs") != self._flags:
                findings += await self._differs(cidr)
            await self._settle(cidr)
        return findings, due

    async def _let_go(self, cidr: Object, others: Sequence[Object], now: float) -> float | None:
        if FINALIZER not in objects.finalizers(cidr):
            return None
        if not service_addresses.may_go(cidr, others, self.addresses()):
            await self._set_ready(cidr, _STAYS, status="False", reason="Terminating")
            return None
        since = timestamps.parse_time(cidr["metadata"]["deletionTimestamp"]).timestamp()
        if now < since + DELETION_GRACE_SECONDS:
            return since + DELETION_GRACE_SECONDS - now
        left = [finalizer for finalizer in objects.finalizers(cidr) if finalizer != FINALIZER]
        if left:
            await self._write({**cidr, "metadata": {**cidr["metadata"], "finalizers": left}})
        else:
            await self._stored_cidrs.delete(objects.name(cidr), int(objects.resource_version(cidr)))
        return None

    async def _differs(self, cidr: Object) -> list[Finding]:
        """The flags say otherwise. A second family may come to the first."""
        have = list(objects.get(cidr, "spec", "cidrs", default=()) or ())
        if len(have) == 1 and len(self._flags) == 2 and have[0] == self._flags[0]:
            await self._write({**cidr, "spec": {**cidr["spec"], "cidrs": list(self._flags)}})
            return []
        words = f"The default ServiceCIDR [{' '.join(have)}] does not match the controller flag configurations [{' '.join(self._flags)}]"
        return [
            Finding(
                about=cidr, controller="kubernetes-service-cidr-controller", reason="KubernetesDefaultServiceCIDRInconsistent",
                action="", note=words,
            )
        ]  # fmt: skip

    async def _settle(self, cidr: Object) -> None:
        condition = service_addresses.condition_of(cidr)
        if FINALIZER not in objects.finalizers(cidr):
            finalizers = [*objects.finalizers(cidr), FINALIZER]
            cidr = {**cidr, "metadata": {**cidr["metadata"], "finalizers": finalizers}}
        elif condition is not None and condition.get("status") == "True":
            return
        await self._set_ready(cidr, "Kubernetes Service CIDR is ready")

    async def _set_ready(self, cidr: Object, message: str, *, status: str = "True", reason: str = "") -> None:
        found = service_addresses.condition_of(cidr)
        if found is not None and (found.get("status"), found.get("reason") or "", found.get("message")) == (status, reason, message):
            return
        condition = service_addresses.ready_condition(self._registry.env.clock.text(), message, status=status, reason=reason)
        others = [each for each in objects.get(cidr, "status", "conditions", default=()) or () if each.get("type") != "Ready"]
        await self._write({**cidr, "status": {**(cidr.get("status") or {}), "conditions": [*others, condition]}})

    async def _write(self, cidr: Object) -> None:
        """Where another write comes between, that one's change is looked at next."""
        written = {**cidr, "apiVersion": service_addresses.api_version(self._registry, CIDRS)}
        await self._stored_cidrs.update(objects.name(cidr), written, int(objects.resource_version(cidr)))
