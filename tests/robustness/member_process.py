"""One member with its peers and its etcd door, in a process of its own.

It says ``ready`` on a pipe once it listens, and ends on SIGTERM after an orderly stop, or with status 3 and the reason on stderr when the
member stopped by itself. Its peers are reached through the proxies that the spec names, so that a test can cut each direction of each
link.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import socket
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from storage import errors, failpoints
from storage.config import MemberConfig
from storage.etcdserver.door import Door, DoorConfig
from storage.member.environment import Environment
from storage.member.member import Member
from storage.member.peer_transport import PeerTransport
from storage.member.peer_urls import PeerUrl
from tests.robustness.log_archive import LogArchive

DEATH_EXIT_CODE = 9
FAILURE_EXIT_CODE = 3


@dataclass(frozen=True)
class Spec:
    """``routes``: a peer's URL → the URL of the proxy that leads there from here. With a ``point`` the process dies at its n-th hit."""

    name: str
    data_dir: Path
    archive_dir: Path
    client_port: int
    initial_cluster: dict[str, tuple[str, ...]]
    routes: dict[str, str]
    settings: dict[str, Any] = field(default_factory=dict)
    point: str = ""
    hits: int = 1


class RoutedTransport(PeerTransport):
    def __init__(self, routes: Mapping[str, str], **options: Any) -> None:
        super().__init__(**options)
        self._routes = routes

    def _usable(self, member_id: int, urls: tuple[str, ...]) -> tuple[PeerUrl, ...]:
        return super()._usable(member_id, tuple(self._routes.get(url, url) for url in urls))

    async def call_url(self, url: str, method: str, body: bytes, *, timeout_seconds: float) -> bytes:
        return await super().call_url(self._routes.get(url, url), method, body, timeout_seconds=timeout_seconds)


def arm(spec: Spec) -> None:
    archive = LogArchive(spec.data_dir / "member" / "wal", spec.archive_dir)
    left = spec.hits

    def at_the_point() -> None:
        nonlocal left
        archive.keep()
        left -= 1
        if left <= 0:
            os._exit(DEATH_EXIT_CODE)

    failpoints.arm("wal.before_release", archive.keep)
    if spec.point:
        failpoints.arm(spec.point, at_the_point)


async def run(spec: Spec, pipe: Connection) -> int:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    urls = spec.initial_cluster[spec.name]
    config = MemberConfig(
        data_dir=spec.data_dir,
        name=spec.name,
        initial_cluster=spec.initial_cluster,
        advertise_client_urls=(f"http://127.0.0.1:{spec.client_port}",),
        **spec.settings,
    )
    transport = RoutedTransport(spec.routes, listen_urls=urls, advertise_urls=urls, contexts=None, rng=random.SystemRandom())
    member = Member(config, environment=Environment(transport=transport))
    await member.start()
    door_config = DoorConfig(
        max_request_bytes=config.max_request_bytes,
        quota_backend_bytes=config.quota_backend_bytes,
        election_timeout_seconds=config.election_timeout_ms / 1000,
        watch_progress_notify_seconds=0.5,
    )
    door = Door(member, door_config)
    listener = socket.create_server(("127.0.0.1", spec.client_port))
    await door.port.start(listener, None)
    upkeep = asyncio.create_task(door.run())
    pipe.send("ready")
    while not stop.is_set() and member.failure is None:
        await asyncio.wait([asyncio.ensure_future(stop.wait())], timeout=0.1)
    upkeep.cancel()
    await door.port.stop()
    await member.stop()
    if member.failure is not None:
        print(f"{type(member.failure).__name__}: {member.failure}", file=sys.stderr, flush=True)
        return FAILURE_EXIT_CODE
    return 0


def main(spec: Spec, pipe: Connection) -> None:
    """The process."""
    log = os.open(spec.archive_dir.parent / "stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    arm(spec)
    try:
        status = asyncio.run(run(spec, pipe))
    except errors.StoreError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        status = FAILURE_EXIT_CODE
    except BaseException:
        traceback.print_exc()
        status = 1
    # Without the rites of an interpreter that was forked from another.
    os._exit(status)
