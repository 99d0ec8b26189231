"""Runs many hollow nodes in one process, each with its own identity."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import random
from collections.abc import Callable

from controllers.client import kubeconfig
from controllers.client.rate_limiter import TokenBucket
from controllers.client.rest import Client, Transport, wait_until_ready
from controllers.hollownode.hollow_node import HollowNode
from controllers.hollownode.options import HollowNodeOptions
from controllers.lib.clock import Clock, SystemClock

log = logging.getLogger(__name__)


async def run(
    options: HollowNodeOptions,
    on_started: Callable[[], None] | None = None,
    *,
    clock: Clock | None = None,
    rng: random.Random | None = None,
) -> None:
    """Runs the nodes until cancelled; ``on_started`` is called when the API server has answered.

    Raises:
        ConfigInvalid, ConnectionFailed, StatusError: the API server cannot be reached within the start-up time.
    """
    options.validate()
    clock = clock or SystemClock()
    rng = rng or random.Random()
    async with contextlib.AsyncExitStack() as stack:
        clients = [_client(options, name, clock, rng) for name in options.names]
        for client in clients:
            stack.push_async_callback(client.close)
        await wait_until_ready(clients[0], timeout_seconds=options.startup_timeout, clock=clock)
        version = options.kubelet_version or str((await clients[0].raw("GET", "/version")).get("gitVersion") or "v0.0.0")
        async with asyncio.TaskGroup() as group:
            for name, client in zip(options.names, clients, strict=True):
                node = HollowNode(name, client, options, version=version, clock=clock, rng=rng)
                group.create_task(node.run(), name=f"node {name}")
            log.info("hollow nodes started count=%d", len(clients))
            if on_started is not None:
                on_started()


def _client(options: HollowNodeOptions, name: str, clock: Clock, rng: random.Random) -> Client:
    config = kubeconfig.load(options.kubeconfigs.get(name, options.kubeconfig))
    if options.impersonate:
        config = dataclasses.replace(config, impersonate_user=f"system:node:{name}", impersonate_groups=("system:nodes",))
    limiter = TokenBucket(qps=options.kube_api_qps, burst=options.kube_api_burst, clock=clock)
    return Client(Transport(config), user_agent=f"sampan-node/{name}", limiter=limiter, clock=clock, rng=rng)
