"""``LeaderElector``: holds a Lease while the work runs; gives it back at the end."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from apiserver.machinery.objects import Object
from controllers.client import errors
from controllers.client.interface import Api
from controllers.client.resources import LEASES
from controllers.leaderelection import decision
from controllers.leaderelection.decision import Observation, Step
from controllers.lib.clock import Clock, format_micro_time

log = logging.getLogger(__name__)

#: to give the lease back at the end: a server whose store has no quorum answers later than anybody wants to wait for an end
RELEASE_SECONDS = 2.0


class LostLeadership(Exception):
    """The lease could not be renewed in time, or another took it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionConfig:
    """kube-controller-manager's flags and defaults: --leader-elect-lease-duration, -renew-deadline, -retry-period."""

    namespace: str
    name: str
    identity: str
    lease_seconds: int = 15
    renew_deadline_seconds: float = 10.0
    retry_seconds: float = 2.0

    def validate(self) -> None:
        if not self.lease_seconds > self.renew_deadline_seconds > self.retry_seconds > 0:
            raise ValueError("leader election wants lease duration > renew deadline > retry period > 0")


class LeaderElector:
    def __init__(self, api: Api, config: ElectionConfig, *, clock: Clock, rng: random.Random) -> None:
        config.validate()
        self._api, self._config, self._clock, self._random = api, config, clock, rng
        self._observation: Observation | None = None
        self.is_leader = False

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Waits for the lease, runs ``work`` while it is held, releases it afterwards.

        Raises:
            LostLeadership: ``work`` was cancelled because the lease was lost. What ``work`` raises passes through.
        """
        await self._acquire()
        working = asyncio.ensure_future(work())
        renewing = asyncio.ensure_future(self._renew_until_lost())
        try:
            await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
            else:
                renewing.result()
        finally:
            working.cancel()
            renewing.cancel()
            await asyncio.gather(working, renewing, return_exceptions=True)
            await self._maybe_release()

    async def _acquire(self) -> None:
        while not await self._try_once():
            await self._clock.sleep(self._config.retry_seconds * (1 + self._random.random() * 0.2))
        log.info("became leader lease=%s/%s identity=%s", self._config.namespace, self._config.name, self._config.identity)

    async def _renew_until_lost(self) -> None:
        renewed_at = self._clock.monotonic()
        while True:
            await self._clock.sleep(self._config.retry_seconds)
            if await self._try_once():
                renewed_at = self._clock.monotonic()
            elif self._clock.monotonic() - renewed_at >= self._config.renew_deadline_seconds or not self._still_ours():
                self.is_leader = False
                raise LostLeadership(f"lease {self._config.namespace}/{self._config.name}")

    def _still_ours(self) -> bool:
        return self._observation is None or self._observation.spec.get("holderIdentity") == self._config.identity

    async def _try_once(self) -> bool:
        """True where the lease is ours, freshly written. Trouble with the server and lost races are False."""
        config = self._config
        try:
            lease = await self._read()
            now = self._clock.monotonic()
            self._observation = None if lease is None else decision.observe(self._observation, lease, now)
            step = decision.decide(lease, self._observation, config.identity, now, config.lease_seconds)
            if step is Step.WAIT:
                self.is_leader = False
                return False
            wanted = decision.lease_for(
                lease,
                namespace=config.namespace,
                name=config.name,
                identity=config.identity,
                now_text=format_micro_time(self._clock.now()),
                lease_seconds=config.lease_seconds,
            )
            if step is Step.CREATE:
                written = await self._api.create(LEASES, config.namespace, wanted)
            else:
                written = await self._api.update(LEASES, wanted)
        except errors.TRANSIENT as error:
            log.debug("leader election: %s", error)
            return False
        self._observation = decision.observe(self._observation, written, self._clock.monotonic())
        self.is_leader = True
        return True

    async def _read(self) -> Object | None:
        try:
            return await self._api.get(LEASES, self._config.namespace, self._config.name)
        except errors.StatusError as error:
            if errors.is_not_found(error):
                return None
            raise

    async def _maybe_release(self) -> bool:
        """Gives the lease back with a duration of one second, so that the next candidate need not wait."""
        if not self.is_leader:
            return False
        self.is_leader = False
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                lease = await self._read()
                if lease is None or (lease.get("spec") or {}).get("holderIdentity") != self._config.identity:
                    return False
                moment = format_micro_time(self._clock.now())
                spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": moment, "acquireTime": moment}
                await self._api.update(LEASES, {**lease, "spec": spec})
        except (*errors.TRANSIENT, TimeoutError) as error:
            log.info("the lease could not be given back: %s", str(error) or "no answer in time")
            return False
        return True
