"""Runs the controllers of one process: waits for the API server, wins the leader election, starts informers and controllers.

    await manager.run(options)     # until cancelled; then every task ends and the lease is given back

Each controller speaks as itself (``use_service_account_credentials``); informers are shared and read as the kubeconfig's user.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass

from controllers.cache.informer_factory import InformerFactory
from controllers.client import kubeconfig
from controllers.client.discovery import discover
from controllers.client.interface import Api
from controllers.client.rate_limiter import TokenBucket
from controllers.client.rest import Client, Transport, wait_until_ready
from controllers.leaderelection.leader_elector import ElectionConfig, LeaderElector
from controllers.lib.clock import Clock, SystemClock
from controllers.lib.context import Controller, ControllerContext
from controllers.lib.events import EventBroadcaster
from controllers.lib.identity import ServiceAccountTokens
from controllers.options import ManagerOptions
from controllers.registry import CONTROLLERS, Registration, selected

log = logging.getLogger(__name__)

USER_AGENT = "sampan-controllers"
#: Seconds between looks at whether the informers of a controller have synced, before it starts.
SYNC_WARNING_SECONDS = 30.0


@dataclass(slots=True)
class Health:
    """What ``/healthz`` of the process would say: which controllers run, whether this process leads."""

    leading: bool = False
    running: tuple[str, ...] = ()
    synced: bool = False


class Manager:
    """One process's controllers over one API server; ``run`` once."""

    def __init__(self, options: ManagerOptions, *, clock: Clock | None = None, rng: random.Random | None = None) -> None:
        options.validate()
        self._options = options
        self._clock = clock or SystemClock()
        self._random = rng or random.Random()
        self.health = Health()
        self._config = kubeconfig.load(options.kubeconfig)
        self._limiter = TokenBucket(qps=options.kube_api_qps, burst=options.kube_api_burst, clock=self._clock)

    async def run(self, on_started: Callable[[], None] | None = None) -> None:
        """Runs until cancelled. ``on_started`` is called when this process leads and all its informers have synced.

        Raises:
            ConfigInvalid, ConnectionFailed, StatusError: the API server cannot be reached within the start-up time.
            LostLeadership: another process leads; this one must end, since its writes may race with the other's.
        """
        async with contextlib.AsyncExitStack() as stack:
            transport = Transport(self._config)
            stack.push_async_callback(transport.close)
            tokens = Transport(self._config.anonymous())
            stack.push_async_callback(tokens.close)
            client = self._client(transport, USER_AGENT)
            await wait_until_ready(client, timeout_seconds=self._options.startup_timeout, clock=self._clock)
            if not self._options.leader_elect:
                await self._work(client, transport, tokens, on_started)
                return
            config = ElectionConfig(
                namespace=self._options.leader_elect_resource_namespace,
                name=self._options.leader_elect_resource_name,
                identity=self._options.identity,
                lease_seconds=self._options.leader_elect_lease_duration,
                renew_deadline_seconds=self._options.leader_elect_renew_deadline,
                retry_seconds=self._options.leader_elect_retry_period,
            )
            elector = LeaderElector(
                self._client(transport, f"{USER_AGENT}/leader-election", limited=False), config, clock=self._clock, rng=self._random
            )
            await elector.run(lambda: self._work(client, transport, tokens, on_started))

    def _client(self, transport: Transport, user_agent: str, *, tokens: ServiceAccountTokens | None = None, limited: bool = True) -> Client:
        return Client(
            transport,
            user_agent=user_agent,
            token_source=tokens.token if tokens is not None else None,
            limiter=self._limiter if limited else None,
            clock=self._clock,
            rng=self._random,
        )

    async def _work(self, client: Client, transport: Transport, tokens: Transport, on_started: Callable[[], None] | None) -> None:
        self.health.leading = True
        informers = InformerFactory(client, clock=self._clock, rng=self._random, resync_seconds=self._options.min_resync_period)
        served = {one.resource for one in (await discover(client)).resources}
        async with contextlib.AsyncExitStack() as stack, asyncio.TaskGroup() as group:
            running: list[tuple[Registration, ControllerContext, Controller]] = []
            for registration in selected(CONTROLLERS, self._options.controllers):
                if registration.requires is not None and registration.requires not in served:
                    log.info("controller %s is left out: the server has no %s", registration.name, registration.requires.qualified)
                    continue
                if not registration.configured(self._options):
                    log.info("controller %s is left out: it is not configured", registration.name)
                    continue
                api = self._api_of(registration, client, transport, tokens, stack)
                broadcaster = EventBroadcaster(api, clock=self._clock, rng=self._random)
                context = ControllerContext(
                    api=api,
                    informers=informers.view(),
                    recorder=broadcaster.recorder(registration.component),
                    clock=self._clock,
                    rng=self._random,
                )
                running.append((registration, context, registration.build(context, self._options)))
                group.create_task(broadcaster.run(), name=f"{registration.name} events")
            group.create_task(informers.run(), name="informers")
            for registration, context, controller in running:
                group.create_task(self._run_one(context, controller), name=registration.name)
            self.health.running = tuple(registration.name for registration, _, _ in running)
            await self._wait_until_synced(informers)
            self.health.synced = True
            log.info("controllers started count=%d", len(running))
            if on_started is not None:
                on_started()

    @staticmethod
    async def _run_one(context: ControllerContext, controller: Controller) -> None:
        """A controller works as soon as its own informers have seen everything."""
        await context.informers.wait_until_synced()
        await controller.run()

    def _api_of(
        self, registration: Registration, client: Client, transport: Transport, tokens: Transport, stack: contextlib.AsyncExitStack
    ) -> Api:
        agent = f"{USER_AGENT}/{registration.service_account or registration.name}"
        own = registration.own_kubeconfig(self._options)
        if own is not None:
            its = Transport(kubeconfig.load(own))
            stack.push_async_callback(its.close)
            return self._client(its, agent)
        if not self._options.use_service_account_credentials or not registration.service_account:
            return self._client(transport, agent)
        source = ServiceAccountTokens(client, registration.service_account, clock=self._clock)
        return self._client(tokens, agent, tokens=source)

    async def _wait_until_synced(self, informers: InformerFactory) -> None:
        waiting = asyncio.ensure_future(informers.wait_until_synced())
        try:
            while not (await asyncio.wait({waiting}, timeout=SYNC_WARNING_SECONDS))[0]:
                log.warning("informers have not synced yet: %s", ", ".join(informers.not_synced()))
        finally:
            waiting.cancel()


async def run(options: ManagerOptions, on_started: Callable[[], None] | None = None) -> None:
    """Runs the controllers until cancelled; see ``Manager.run``."""
    await Manager(options).run(on_started)
