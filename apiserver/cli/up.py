"""``sampan up``: the API server in this process, the controllers and hollow nodes in a second one that never outlives it."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from apiserver import garbage_collection
from apiserver.cli import census as census_text
from apiserver.cli import client_port, from_snapshot
from apiserver.cli.datadir import ADMIN, CONTROLLER_MANAGER, SCHEDULER, DataDir, open_pki, write_kubeconfig, write_node_kubeconfig
from apiserver.cli.errors import CommandError
from apiserver.cli.settings import server_config
from apiserver.config import ServerConfig, StoreConfig
from apiserver.objectstore.object_store import Census
from apiserver.store_door import ClientListener

LISTEN_BACKLOG = 2048
#: how long the second process may take to end its watches before it is killed
CONTROLLERS_STOP_SECONDS = 5.0
#: a second process that ends more often than this within RESTART_WINDOW_SECONDS is not started again
RESTARTS_MAX = 5
RESTART_WINDOW_SECONDS = 60.0


def run(flags: argparse.Namespace, data_dir: DataDir) -> int:
    started = time.monotonic()
    allow_open_files()
    garbage_collection.pause()
    progress = Progress()
    progress.show("keys and certificates")
    config = server_config(flags, data_dir)
    if flags.from_snapshot is not None:
        progress.show(f"reading {flags.from_snapshot}")
        from_snapshot.restore(flags, config)
    listener = bind(config.bind_address, config.secure_port)
    server = url(listener, config.bind_address)
    client_listeners = () if config.etcd is not None else client_port.bind_all(flags, config.store)
    data_dir.note_endpoints([client_port.reachable(each) for each in client_listeners])
    admin = write_kubeconfig(data_dir.path, server, "admin", ADMIN)
    command: list[str] | None = None
    if not flags.no_controllers:
        command = controllers_command(flags, data_dir.path, server)
    progress.show("store and API server")

    found: list[str] = []

    def loaded(census: Census) -> None:
        found.append(census_text.of(census, each_kind=flags.from_snapshot is not None or flags.read_only, prefix=flags.etcd_prefix))

    def ready() -> None:
        progress.done()
        etcdctl = client_port.etcdctl_lines(client_listeners, open_pki(data_dir.path))
        announce(config, server, admin, etcdctl, data_dir.path, time.monotonic() - started, "".join(found))

    # Among others it may wait for a leader, and controllers would have nobody to talk to.
    early = not config.store.listen_peer_urls
    stdin = flags.stop_with_stdin
    serving = _up(config, listener, client_listeners, command, ready, loaded, progress, controllers_early=early, stop_with_stdin=stdin)
    return run_loop(serving)


def allow_open_files() -> None:
    """As many connections as the system lets a process have: the usual soft limit of 1024 is for programs that use select()."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def run_loop(main: Coroutine[Any, Any, int]) -> int:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


async def _up(
    config: ServerConfig,
    listener: socket.socket,
    client_listeners: Sequence[ClientListener],
    command: list[str] | None,
    ready: Callable[[], None],
    loaded: Callable[[Census], None],
    progress: Progress,
    *,
    controllers_early: bool,
    stop_with_stdin: bool,
) -> int:
    stop = asyncio.Event()
    serves = asyncio.Event()
    loop = asyncio.get_running_loop()
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup leaves it
        numbers.append(signal.SIGHUP)  # the terminal was closed
    for number in numbers:
        loop.add_signal_handler(number, stop.set)
    if stop_with_stdin:
        _set_at_end_of_stdin(stop)
    second = SecondProcess(command) if command else None
    if second and controllers_early:
        await second.start()

    def on_ready() -> None:
        ready()
        serves.set()

    from apiserver import server as api_server
    from storage.errors import CorruptError, StoreError

    end_server = asyncio.Event()
    try:
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(
                api_server.serve(
                    config,
                    listener,
                    client_listeners=client_listeners,
                    stop=end_server,
                    on_ready=on_ready,
                    on_loaded=loaded,
                    on_reading=progress.reading,
                    on_progress=progress.wait_for_leader,
                )
            )
            supervising = group.create_task(second.supervise(stop, serves)) if second else None
            stopped = group.create_task(stop.wait())
            await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
            stop.set()
            if supervising:
                await supervising
            end_server.set()
    except ExceptionGroup as group:
        error = _first(group)
        if isinstance(error, CorruptError):
            raise CommandError(f"{_line(error)}{how_to_mend(_line(error), config.store)}") from error
        if isinstance(error, (StoreError, OSError)):
            raise CommandError(_line(error)) from error
        if isinstance(error, CommandError):
            raise error from None
        raise
    return 0


def _set_at_end_of_stdin(stop: asyncio.Event) -> None:
    """Raises CommandError where standard input is nothing that could be waited for."""
    loop, stdin = asyncio.get_running_loop(), 0

    def readable() -> None:
        if not os.read(stdin, 4096):
            loop.remove_reader(stdin)
            stop.set()

    try:
        loop.add_reader(stdin, readable)
    except OSError as error:
        raise CommandError("--stop-with-stdin needs a pipe or a terminal as standard input") from error


def how_to_mend(damage: str, store: StoreConfig) -> str:
    """What to do about a store that contradicts itself. One of several members never goes back to a backup: what it acknowledged after
    that the others count on."""
    if "add it again" in damage:
        return ""
    if store.listen_peer_urls:
        return "; remove this member and add it again with an empty --data-dir (etcdctl member remove, member add)"
    return "; restore the data directory from a backup, or start with another --data-dir"


def _line(error: BaseException) -> str:
    """The first line of what an error says; of the operating system's errors without their number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error).partition("\n")[0]


def _first(error: BaseException) -> BaseException:
    """What a group of exceptions began with."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class SecondProcess:
    """The controllers' process. It ends when its standard input does, so it cannot outlive this one, however this one ends."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        environment = dict(os.environ, PYTHONPATH=import_root())
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.PIPE, env=environment, start_new_session=True
        )

    async def supervise(self, stop: asyncio.Event, serves: asyncio.Event) -> None:
        """Keep it running until ``stop``; then end it. One that was not started is, once ``serves`` is set. Raises CommandError where it
        keeps ending by itself."""
        ends: list[float] = []
        stopping = asyncio.create_task(stop.wait())
        try:
            if self._process is None:
                serving = asyncio.create_task(serves.wait())
                await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
                serving.cancel()
                if not stop.is_set():
                    await self.start()
            while not stop.is_set():
                assert self._process is not None
                waiting = asyncio.create_task(self._process.wait())
                await asyncio.wait({waiting, stopping}, return_when=asyncio.FIRST_COMPLETED)
                if stop.is_set():
                    break
                now = time.monotonic()
                ends = [*(t for t in ends if now - t < RESTART_WINDOW_SECONDS), now]
                if len(ends) > RESTARTS_MAX:
                    raise CommandError(f"the controllers ended {len(ends)} times within a minute, the last time with {waiting.result()}")
                sys.stderr.write(f"sampan: the controllers ended with status {waiting.result()}; starting them again\n")
                await self.start()
        finally:
            stopping.cancel()
            await self._end()

    async def _end(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), CONTROLLERS_STOP_SECONDS)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def controllers_command(flags: argparse.Namespace, data_dir: Path, server: str) -> list[str]:
    """The second process's command line, with a kubeconfig for each identity it has."""
    command = [sys.executable, "-P", "-m", "controllers"]
    command += ["--manager-kubeconfig", str(write_kubeconfig(data_dir, server, "controller-manager", CONTROLLER_MANAGER))]
    command += ["--scheduler-kubeconfig", str(write_kubeconfig(data_dir, server, "scheduler", SCHEDULER))]
    command += ["--node-monitor-grace-period", str(flags.node_monitor_grace_period)]
    command += ["--node-monitor-period", str(flags.node_monitor_period), "--leader-elect", flags.leader_elect]
    # The lock on the data directory lets only one such process be, so a restart need not wait for the lease of the one before.
    command.append(f"--controllers={','.join(flags.controllers)}")
    authority = open_pki(data_dir).ca
    command += ["--cluster-signing-cert-file", str(authority.certificate), "--cluster-signing-key-file", str(authority.key)]
    signing_key = flags.service_account_signing_key_file or open_pki(data_dir).service_account_key().key
    command += ["--service-account-private-key-file", str(signing_key)]
    command += ["--cluster-signing-duration", str(flags.cluster_signing_duration)]
    # On an external etcd servers of one name may run on several machines: only one of them has this address.
    where = f"-{socket.gethostname()}-{server.rpartition(':')[2]}" if flags.etcd_servers else ""
    command += ["--identity", f"sampan-{flags.name}{where}"]
    # The members of a cluster have nodes of their own: a node is of one process.
    prefix = f"{flags.name}-" if flags.initial_cluster else ""
    for number in range(1, flags.nodes + 1):
        name = f"{prefix}node-{number}"
        command += ["--node", f"{name}={write_node_kubeconfig(data_dir, server, name)}"]
    return command


def import_root() -> str:
    """The folder that our packages are imported from; ``-P`` keeps the working directory's out."""
    import apiserver

    return str(Path(apiserver.__file__).resolve().parent.parent)


def bind(address: str, port: int) -> socket.socket:
    """A listening socket, bound before anything slow, so that a busy port is known at once."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
        listener.listen(LISTEN_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            message = f"port {port} on {address} is in use; stop what uses it, or pick another with --secure-port (0 picks a free one)"
        else:
            message = f"cannot listen on {address} port {port}: {error.strerror or error}; see --bind-address and --secure-port"
        raise CommandError(message) from error
    listener.setblocking(False)
    return listener


def url(listener: socket.socket, address: str) -> str:
    """Where clients on this machine reach the listener."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)
    return f"https://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


#: between two words on a long load where no terminal shows it
QUIET_SECONDS = 10.0


class Progress:
    """One line on a terminal, rewritten at each step; nothing elsewhere, but for a wait on others."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._waited_for = ""
        self._told_at = 0.0

    def show(self, step: str) -> None:
        if self._shown:
            sys.stderr.write(f"\r\x1b[Kstarting: {step} …")
            sys.stderr.flush()

    def wait_for_leader(self, peers: str) -> None:
        """The start waits for other members, possibly for long: it is said also where nobody looks at a terminal, once for each state."""
        step = f"waiting for a leader of the store ({peers})"
        if self._shown:
            self.show(step)
        elif step != self._waited_for:
            self._waited_for = step
            sys.stderr.write(f"sampan: {step}\n")
            sys.stderr.flush()

    def reading(self, keys: int) -> None:
        """Only said where it takes long: of a large store that another server has written."""
        now = time.monotonic()
        if self._shown:
            self.show(f"{keys:,} keys read")
        elif not self._told_at:
            self._told_at = now
        elif now - self._told_at > QUIET_SECONDS:
            self._told_at = now
            sys.stderr.write(f"sampan: {keys:,} keys read\n")
            sys.stderr.flush()

    def done(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def say(text: str) -> None:
    """Write to standard output, if somebody takes it: a server does not end because nobody listens to what it says of itself."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError):
            # what stays in the buffer would fail again at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def announce(config: ServerConfig, server: str, admin: Path, etcdctl: str, data_dir: Path, seconds: float, found: str) -> None:
    where = f"Data is in {data_dir}."
    if config.etcd is not None:
        where = f"Objects are in etcd at {', '.join(config.etcd.servers)} under {config.etcd_prefix}; keys and kubeconfigs in {data_dir}."
    say(
        f"Sampan serves Kubernetes {config.kubernetes_version} on {server} (ready after {seconds:.1f} s)\n"
        f"\n"
        f"  export KUBECONFIG={admin}\n"
        f"  kubectl get nodes\n"
        f"\n"
        f"{etcdctl}"
        f"{found}"
        f"{where} Stop with Ctrl-C.\n"
    )
