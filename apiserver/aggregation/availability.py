"""``AvailabilityController``: the condition ``Available`` of APIServices with a service (kube-aggregator ``remote_available_controller``).

Each is looked at when it, its service or the service's endpoints change, and every ``RESYNC_SECONDS``; one that fails is looked at again
after a pause that doubles. The checks are made side by side: a server that hangs holds up its own only.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from apiserver.aggregation.fetching import Fetcher, FetchError
from apiserver.aggregation.priorities import GROUP, RESOURCE
from apiserver.aggregation.remote import RemoteService, RemoteServices
from apiserver.apiextensions.keeper import server_write
from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.objectstore.interface import ObjectStoreError, StoredObject
from apiserver.outbound import service_endpoints
from apiserver.outbound.service_endpoints import Objects, UnresolvedError
from apiserver.registry.registry import Registry

logger = logging.getLogger(__name__)

RESYNC_SECONDS = 30.0
#: after a failure; the next pause is twice as long, up to the resync's
PAUSE_SECONDS = 0.25
#: different addresses of one service that are tried for one check, at once: one that answers is enough
ATTEMPTS_MAX = 5
#: changes of services and endpoints come in bursts; what they mean is looked at once for all
SETTLE_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    status: str
    reason: str
    message: str


PASSED = Verdict(status="True", reason="Passed", message="all checks passed")


class AvailabilityController:
    def __init__(
        self,
        registry: Registry,
        cached: Objects,
        remotes: RemoteServices,
        fetcher: Fetcher,
        passing: tuple[type[Exception], ...],
        source: random.Random,
    ) -> None:
        """``passing``: errors of the store, which are worth another attempt."""
        self._registry = registry
        self._cached = cached
        self._remotes = remotes
        self._fetcher = fetcher
        self._passing: tuple[type[Exception], ...] = (StatusError, ObjectStoreError, *passing)
        self._source = source
        self._dirty: set[str] = set()
        self._wake = asyncio.Event()
        self._checks: dict[str, asyncio.Task[None]] = {}
        self._pauses: dict[str, float] = {}
        #: name and reason → how often an APIService became unavailable
        self.losses: dict[tuple[str, str], int] = {}
        remotes.listen(self._remote_changed)
        registry.storage("", "services").cache.observe(self._service_changed)
        registry.storage("", "endpoints").cache.observe(self._service_changed)
        registry.storage(*service_endpoints.SLICES).cache.observe(self._slice_changed)

    def _remote_changed(self, name: str, remote: RemoteService | None) -> None:
        if remote is None:
            self._pauses.pop(name, None)
            task = self._checks.pop(name, None)
            if task is not None:
                task.cancel()
        else:
            self._enqueue(name)

    def _service_changed(self, new: StoredObject | None, old: StoredObject | None) -> None:
        found = new or old
        if self._remotes and found is not None:
            self._of_service(found.namespace, found.name)

    def _slice_changed(self, new: StoredObject | None, old: StoredObject | None) -> None:
        found = new or old
        if self._remotes and found is not None:
            self._of_service(found.namespace, objects.labels(found.decode()).get(service_endpoints.SERVICE_LABEL, ""))

    def _of_service(self, namespace: str, service: str) -> None:
        for remote in self._remotes.all():
            if (remote.namespace, remote.service) == (namespace, service):
                self._enqueue(remote.name)

    def _enqueue(self, name: str) -> None:
        self._dirty.add(name)
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                try:
                    async with asyncio.timeout(RESYNC_SECONDS if self._remotes else None):
                        await self._wake.wait()
                    await asyncio.sleep(SETTLE_SECONDS)
                except TimeoutError:
                    self._dirty.update(remote.name for remote in self._remotes.all())
                self._wake.clear()
                for name in sorted(self._dirty):
                    if name not in self._checks:
                        self._dirty.discard(name)
                        task = self._checks[name] = asyncio.create_task(self._attempt(name), name=f"availability of {name}")
                        task.add_done_callback(self._ended(name))
        finally:
            for task in self._checks.values():
                task.cancel()

    def _ended(self, name: str) -> Callable[[asyncio.Task[None]], None]:
        def ended(task: asyncio.Task[None]) -> None:
            if self._checks.get(name) is task:
                del self._checks[name]
            if name in self._dirty:  # it changed while it was looked at
                self._wake.set()
            if not task.cancelled() and (error := task.exception()) is not None:
                logger.error("%s failed", task.get_name(), exc_info=error)

        return ended

    async def _attempt(self, name: str) -> None:
        remote = self._remotes.get(name)
        if remote is None:
            return
        verdict = await self.check(remote)
        try:
            await self._write(remote, verdict)
        except self._passing as error:
            logger.info("the condition of an APIService waits for another attempt: name=%s error=%s", name, error)
        else:
            if verdict.reason != "FailedDiscoveryCheck":
                self._pauses.pop(name, None)
                return
        pause = self._pauses.get(name, PAUSE_SECONDS)
        self._pauses[name] = min(pause * 2, RESYNC_SECONDS)
        asyncio.get_running_loop().call_later(pause * (1 + self._source.random() / 10), self._again, name)

    def _again(self, name: str) -> None:
        if self._remotes.get(name) is not None:
            self._enqueue(name)

    async def check(self, remote: RemoteService) -> Verdict:
        """Whether requests can be passed on now."""
        where = f'service/{remote.service} in "{remote.namespace}"'
        service = self._cached.get("", "services", remote.namespace, remote.service)
        if service is None:
            return _no("ServiceNotFound", f"{where} is not present")
        spec = service["spec"]
        if spec.get("type", "ClusterIP") == "ClusterIP":
            port = service_endpoints.port_of(spec, remote.port)
            if port is None:
                return _no("ServicePortError", f"{where} is not listening on port {remote.port}")
            name = port.get("name") or ""
            slices = service_endpoints.slices_of(self._cached, remote.namespace, remote.service)
            endpoints = self._cached.get("", "endpoints", remote.namespace, remote.service)
            if not slices and endpoints is None:
                return _no("EndpointsNotFound", f"cannot find endpointslices for {where}")
            if not (service_endpoints.has_endpoint(slices, name) or service_endpoints.endpoints_have(endpoints, name)):
                return _no("MissingEndpoints", f'endpointslices for {where} have no addresses with port name "{name}"')
        return await self._ask(remote)

    async def _ask(self, remote: RemoteService) -> Verdict:
        try:
            found = service_endpoints.places(self._cached, remote.namespace, remote.service, remote.port)
        except UnresolvedError as error:
            return _no("FailedDiscoveryCheck", str(error))
        attempts = [
            asyncio.ensure_future(self._ask_at(remote, place)) for place in self._source.sample(found, min(len(found), ATTEMPTS_MAX))
        ]
        problem = ""
        try:
            for done in asyncio.as_completed(attempts):
                problem = await done
                if not problem:
                    return PASSED
        finally:
            for attempt in attempts:
                attempt.cancel()
        return _no("FailedDiscoveryCheck", problem)

    async def _ask_at(self, remote: RemoteService, place: service_endpoints.Place) -> str:
        url = f"https://{place}{remote.path}"
        try:
            answer = await self._fetcher.get_at(remote, place, remote.path)
        except FetchError as error:
            return f"failing or missing response from {url}: {error}"
        if not 200 <= answer.code < 300:
            return f"failing or missing response from {url}: bad status from {url}: {answer.code}"
        return ""

    async def _write(self, remote: RemoteService, verdict: Verdict) -> None:
        now = self._registry.env.clock.text()

        async def build(old: Object) -> Object:
            if objects.uid(old) == remote.uid:  # not of one that was made anew meanwhile
                old["status"] = {**(old.get("status") or {}), "conditions": _with(verdict, now, old)}
            return old

        stored = self._registry.storage(GROUP, RESOURCE).get_now(remote.name)
        if stored is None or stored.decode().get("status", {}).get("conditions") == _with(verdict, now, stored.decode()):
            return
        if remote.available and verdict.status != "True":
            logger.warning("an APIService is unavailable: name=%s reason=%s message=%s", remote.name, verdict.reason, verdict.message)
            key = (remote.name, verdict.reason)
            self.losses[key] = self.losses.get(key, 0) + 1
        try:
            await self._registry.stored(GROUP, RESOURCE).update(server_write(), "", remote.name, build, subresource="status")
        except StatusError as error:
            if error.code != 404:
                raise


def _no(reason: str, message: str) -> Verdict:
    return Verdict(status="False", reason=reason, message=message)


def _with(verdict: Verdict, now: str, old: Object) -> list[dict[str, Any]]:
    """The object's conditions with this one; its time changes with its status only."""
    found = [dict(condition) for condition in objects.get(old, "status", "conditions", default=[]) or []]
    for condition in found:
        if condition.get("type") == "Available":
            if condition.get("status") != verdict.status:
                condition |= {"status": verdict.status, "lastTransitionTime": now}
            condition |= {"reason": verdict.reason, "message": verdict.message}
            return found
    new = {"lastTransitionTime": now, "message": verdict.message, "reason": verdict.reason, "status": verdict.status, "type": "Available"}
    return [*found, new]
