"""``sampan cluster``: several members on one machine, each a ``sampan up`` of its own, as they would run on several.

Member number i (from 0) serves the API at ``base + 10·i``, talks to the others at the next port and to etcdctl at the one after. A member
that ends is not started again unless ``--restart`` says so, so that what a cluster does without one can be seen.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apiserver.cli import kubeconfig
from apiserver.cli.datadir import ADMIN, open_pki
from apiserver.cli.errors import CommandError, UsageError
from apiserver.cli.pki import Pki
from apiserver.cli.up import import_root, say

PORTS_OF_MEMBER = 10
#: All members, with their API servers, controllers and clients, share one machine's cores: at the 150 ms of a member that has a machine
#: for itself, every busy moment would be an election. The end of a leader is still noticed within a second.
ELECTION_FLAGS = ("--heartbeat-interval", "50", "--election-timeout", "500")
#: what members get to end; each has its controllers, watches and log to finish
STOP_SECONDS = 20.0
RESTART_PAUSE_SECONDS = 1.0
#: a line of a member's output; longer ones are cut
LINE_BYTES_MAX = 64 * 1024
_READY = b"Sampan serves "


@dataclass(frozen=True, slots=True)
class Plan:
    """One member: where it is and how it is started."""

    name: str
    data_dir: Path
    api_port: int
    peer_url: str
    client_url: str

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.api_port}"


def plans(count: int, base_port: int, directory: Path) -> list[Plan]:
    """Raises UsageError where the ports end."""
    last = base_port + PORTS_OF_MEMBER * (count - 1) + 2
    if not 0 < base_port <= last <= 65535:
        raise UsageError(f"--base-port {base_port}: {count} members need ports up to {last}")
    found = []
    for number in range(count):
        port, name = base_port + PORTS_OF_MEMBER * number, f"m{number + 1}"
        found.append(Plan(name, directory / name, port, f"https://127.0.0.1:{port + 1}", f"https://127.0.0.1:{port + 2}"))
    return found


def command(plan: Plan, everyone: Sequence[Plan], pki_dir: Path, further: Sequence[str]) -> list[str]:
    """The command line of one member."""
    return [
        *(sys.executable, "-P", "-m", "apiserver.cli.main", "up", "--name", plan.name, "--data-dir", str(plan.data_dir)),
        *("--pki-dir", str(pki_dir), "--initial-cluster", ",".join(f"{other.name}={other.peer_url}" for other in everyone)),
        *("--secure-port", str(plan.api_port), "--listen-client-urls", plan.client_url),
        *ELECTION_FLAGS,
        *further,
    ]


def run(flags: argparse.Namespace, directory: Path) -> int:
    members = plans(flags.members, flags.base_port, directory)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"cannot use {error.filename}: {error.strerror}") from error
    pki = open_pki(directory)  # the members share it
    admin = kubeconfig.write_several(
        directory / "admin.kubeconfig",
        servers={plan.name: plan.server for plan in members},
        ca=pki.ca.certificate,
        client=pki.client("admin", ADMIN),
        user=ADMIN.common_name,
    )
    further = ["--nodes", str(flags.nodes), *(["--unsafe-no-fsync"] if flags.ephemeral else []), *flags.up_flags]
    commands = {plan.name: command(plan, members, pki.directory, further) for plan in members}

    def announce(processes: dict[str, int]) -> None:
        say(announcement(members, processes, admin, etcdctl_line(members, pki), directory))

    return asyncio.run(_run(commands, restart=flags.restart, announce=announce))


def etcdctl_line(members: Sequence[Plan], pki: Pki) -> str:
    """What lets etcdctl reach the members from another shell."""
    client, ca = pki.etcd_client(), pki.etcd_ca()
    endpoints = ",".join(plan.client_url for plan in members)
    return (
        f"export ETCDCTL_ENDPOINTS={endpoints} ETCDCTL_CACERT={ca.certificate} ETCDCTL_CERT={client.certificate} ETCDCTL_KEY={client.key}"
    )


def announcement(members: Sequence[Plan], processes: dict[str, int], admin: Path, etcdctl: str, directory: Path) -> str:
    lines = [f"{len(members)} members serve one cluster:" if len(members) > 1 else "One member serves:", ""]
    lines += [
        f"  {plan.name}  {plan.server}  peers {plan.peer_url}  etcd {plan.client_url}  process {processes[plan.name]}" for plan in members
    ]
    return "\n".join(
        [
            *lines,
            "",
            f"  export KUBECONFIG={admin}",
            f"  kubectl get nodes                  # or --context {members[-1].name}, any of them",
            f"  {etcdctl}",
            "",
            f"Data is in {directory}. Stop with Ctrl-C.",
            "",
        ]
    )


class _Child:
    """One member's process, with its output passed on."""

    def __init__(self, name: str, command: list[str]) -> None:
        self.name = name
        self.ready = asyncio.Event()
        #: it ended before it was ready for the first time
        self.has_not_started = False
        self._command = command
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "started"
        return self._process.pid

    async def run(self) -> int:
        """From its start to its end; its exit status."""
        environment = dict(os.environ, PYTHONPATH=import_root(), PYTHONUNBUFFERED="1")
        process = self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
            start_new_session=True,
            preexec_fn=_end_with_parent,
            limit=LINE_BYTES_MAX,
        )
        assert process.stdout is not None and process.stderr is not None
        await asyncio.gather(self._read(process.stdout, self._said), self._read(process.stderr, self._complained))
        return await process.wait()

    async def stop(self) -> None:
        if self._process is None or self._process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), STOP_SECONDS)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def _read(self, stream: asyncio.StreamReader, take: Callable[[bytes], None]) -> None:
        while True:
            try:
                line = await stream.readline()
            except ValueError:  # longer than the limit: what was read of it is gone
                continue
            if not line:
                return
            take(line)

    def _said(self, line: bytes) -> None:
        # The rest of it is about this one alone; the cluster's own words come when all are ready.
        if line.startswith(_READY):
            self.ready.set()

    def _complained(self, line: bytes) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"{self.name}: {line.decode('utf-8', 'replace')}")
            sys.stderr.flush()


def _end_with_parent() -> None:
    """In the child: its end is asked for when this process is gone, however it went (Linux; elsewhere it goes on)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


async def _run(commands: dict[str, list[str]], *, restart: bool, announce: Callable[[dict[str, int]], None]) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    children = [_Child(name, line) for name, line in commands.items()]
    members = [asyncio.create_task(_keep(child, stop, restart=restart)) for child in children]
    all_ready = asyncio.create_task(_all_ready(children))
    stopping = asyncio.create_task(stop.wait())
    ended: asyncio.Future[list[int]] = asyncio.gather(*members)
    ends: set[asyncio.Future[Any]] = {stopping, ended}
    await asyncio.wait({all_ready, *ends}, return_when=asyncio.FIRST_COMPLETED)
    if all_ready.done():
        announce({child.name: child.pid for child in children})
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    all_ready.cancel()
    asked = stop.is_set()
    stop.set()
    await asyncio.gather(*(child.stop() for child in children))
    statuses = await ended
    for child in children:
        if child.has_not_started:
            raise CommandError(f"{child.name} ended before it was ready, and the others with it")
    if not asked:
        raise CommandError("all members have ended")
    return max(statuses)  # of those that were there to be ended


async def _all_ready(children: Sequence[_Child]) -> None:
    for child in children:
        await child.ready.wait()


async def _keep(child: _Child, stop: asyncio.Event, *, restart: bool) -> int:
    """Until ``stop``, or its own end where it is not started again; sets ``stop`` when it never got ready. The exit status with which it
    ended when it was asked to, else 0."""
    while True:
        status = await child.run()
        if stop.is_set():
            return abs(status)
        if not child.ready.is_set():
            # What keeps it from starting (a port that is taken, a damaged file) will do so again.
            child.has_not_started = True
            stop.set()
            return 0
        ended = f"ended with status {status}" if status >= 0 else f"was killed by signal {-status}"
        sys.stderr.write(f"sampan: {child.name} {ended}; {'it is started again' if restart else 'the others go on'}\n")
        sys.stderr.flush()
        if not restart:
            return 0
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), RESTART_PAUSE_SECONDS)
        if stop.is_set():
            return 0
