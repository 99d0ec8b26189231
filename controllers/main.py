"""Entry points of the controllers' process, for the command line: controllers and scheduler, hollow nodes, or both.

``python -m controllers`` is what ``sampan up`` starts. It ends on SIGTERM, on SIGINT, and when its standard input ends: the other end
of that pipe is the process that started it, which it must not outlive.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import faulthandler
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controllers import hollownode, manager
from controllers.client.errors import ClientError, StatusError
from controllers.hollownode import HollowNodeOptions
from controllers.leaderelection.leader_elector import LostLeadership
from controllers.options import ManagerOptions, default_identity

FAILED = 1
#: What is told to end does so within this; past it the process shows where it hangs and is gone. Less than the parent waits for it.
END_SECONDS_MAX = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Times in seconds. ``node_kubeconfigs`` gives each hollow node its identity."""

    manager_kubeconfig: Path
    scheduler_kubeconfig: Path
    node_kubeconfigs: dict[str, Path]
    node_monitor_grace_period_seconds: float
    node_monitor_period_seconds: float
    leader_elect: bool
    controllers: tuple[str, ...] = ("*",)
    identity: str = ""
    cluster_signing_cert_file: Path | None = None
    cluster_signing_key_file: Path | None = None
    cluster_signing_duration_seconds: float = 365 * 86_400.0
    service_account_private_key_file: Path | None = None


def run_controllers(options: Options, on_started: Callable[[], None] | None = None) -> int:
    """Run until a signal; the exit status. ``on_started`` is called when they lead and have seen everything."""
    return _run(_controllers(options, on_started), ends_with_stdin=False)


def run_node(name: str, kubeconfig: Path, on_started: Callable[[], None] | None = None) -> int:
    """Run one hollow node until a signal; the exit status. ``on_started`` is called when the server has answered."""
    return _run(hollownode.run(HollowNodeOptions(names=(name,), kubeconfig=kubeconfig), on_started), ends_with_stdin=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Of the second process of ``sampan up``."""
    parser = argparse.ArgumentParser(prog="python -m controllers", description=__doc__, allow_abbrev=False)
    parser.add_argument("--manager-kubeconfig", type=Path, required=True)
    parser.add_argument("--scheduler-kubeconfig", type=Path, required=True)
    parser.add_argument("--node", action="append", default=[], metavar="NAME=KUBECONFIG")
    parser.add_argument("--node-monitor-grace-period", type=float, default=40.0, help="seconds")
    parser.add_argument("--node-monitor-period", type=float, default=5.0, help="seconds")
    parser.add_argument("--controllers", default="*", help="names, comma-separated")
    parser.add_argument("--leader-elect", choices=("true", "false"), default="true")
    parser.add_argument("--cluster-signing-cert-file", type=Path)
    parser.add_argument("--cluster-signing-key-file", type=Path)
    parser.add_argument("--cluster-signing-duration", type=float, default=365 * 86_400.0, help="seconds")
    parser.add_argument("--service-account-private-key-file", type=Path)
    parser.add_argument("--identity", default="", help="in the leader election; a restarted process with the same one goes on at once")
    flags = parser.parse_args(arguments)
    options = Options(
        manager_kubeconfig=flags.manager_kubeconfig,
        scheduler_kubeconfig=flags.scheduler_kubeconfig,
        node_kubeconfigs={name: Path(path) for name, _, path in (node.partition("=") for node in flags.node)},
        node_monitor_grace_period_seconds=flags.node_monitor_grace_period,
        node_monitor_period_seconds=flags.node_monitor_period,
        leader_elect=flags.leader_elect == "true",
        controllers=tuple(flags.controllers.split(",")),
        identity=flags.identity,
        cluster_signing_cert_file=flags.cluster_signing_cert_file,
        cluster_signing_key_file=flags.cluster_signing_key_file,
        cluster_signing_duration_seconds=flags.cluster_signing_duration,
        service_account_private_key_file=flags.service_account_private_key_file,
    )
    return _run(_controllers(options), ends_with_stdin=True)


async def _controllers(options: Options, on_started: Callable[[], None] | None = None) -> None:
    manager_options = ManagerOptions(
        kubeconfig=options.manager_kubeconfig,
        scheduler_kubeconfig=options.scheduler_kubeconfig,
        leader_elect=options.leader_elect,
        controllers=options.controllers,
        node_monitor_period=options.node_monitor_period_seconds,
        node_monitor_grace_period=options.node_monitor_grace_period_seconds,
        identity=options.identity or default_identity(),
        cluster_signing_cert_file=options.cluster_signing_cert_file,
        cluster_signing_key_file=options.cluster_signing_key_file,
        cluster_signing_duration=options.cluster_signing_duration_seconds,
        service_account_private_key_file=options.service_account_private_key_file,
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(manager.run(manager_options, on_started), name="controllers")
        if options.node_kubeconfigs:
            names = tuple(options.node_kubeconfigs)
            nodes = HollowNodeOptions(names=names, kubeconfig=options.manager_kubeconfig, kubeconfigs=options.node_kubeconfigs)
            group.create_task(hollownode.run(nodes), name="hollow nodes")


def _run(work: Coroutine[Any, Any, None], *, ends_with_stdin: bool) -> int:
    logging.basicConfig(level=logging.WARNING, format="%(levelname).1s %(name)s: %(message)s", stream=sys.stderr)
    try:
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_until_told(work, ends_with_stdin))
    except (ClientError, StatusError, LostLeadership, ExceptionGroup) as raised:
        error = _first(raised)
        if not isinstance(error, (ClientError, StatusError, LostLeadership)):
            raise
        sys.stderr.write(f"sampan: {error}\n")
        return FAILED
    finally:
        faulthandler.cancel_dump_traceback_later()
    return 0


async def _until_told(work: Coroutine[Any, Any, None], ends_with_stdin: bool) -> None:
    """Run ``work``; cancel it at the first signal. End at once where standard input ends."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    if ends_with_stdin:
        loop.add_reader(sys.stdin.fileno(), _exit_at_end)
    working = asyncio.ensure_future(work)
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
        faulthandler.dump_traceback_later(END_SECONDS_MAX, exit=True)
        if working.done():
            working.result()
    finally:
        stopped.cancel()
        working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(working)


def _exit_at_end() -> None:
    """The process that started this one is gone, and the API server with it: there is nobody to take leave of, so no time is lost on
    trying."""
    if not os.read(sys.stdin.fileno(), 4096):
        os._exit(0)


def _first(error: BaseException) -> BaseException:
    """What a group of exceptions began with."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
