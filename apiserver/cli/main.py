"""Entry point of ``sampan``: picks the command and turns expected failures into one line and an exit status.

What a command needs is imported by it, inside ``main``: then Ctrl-C ends quietly also while modules load.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from apiserver.cli import flags, from_snapshot, snapshot, upstream_flags
from apiserver.cli.errors import CommandError, UsageError
from apiserver.kubernetes_versions import KUBERNETES_VERSIONS

if TYPE_CHECKING:
    from apiserver.cli.datadir import DataDir

FAILED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    _open_standard_streams()
    parsed = _parser().parse_args(arguments)
    try:
        return int(parsed.run(parsed))
    except CommandError as error:
        sys.stderr.write(f"sampan: {error}\n")
        return flags.USAGE_ERROR if isinstance(error, UsageError) else FAILED
    except KeyboardInterrupt:
        return 0


def _open_standard_streams() -> None:
    """Streams that were closed before the start become /dev/null: else the next files opened would take their numbers, and be written to
    by whatever writes to standard output."""
    for number, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115 - for the life of the process


def _parser() -> argparse.ArgumentParser:
    parser = flags.Parser(prog="sampan", description="A Kubernetes control plane that is up in a second.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=flags.Parser)

    up = commands.add_parser("up", help="API server, store, controllers, scheduler and hollow nodes")
    flags.add_server_flags(up)
    flags.add_controller_flags(up)
    up.add_argument("--nodes", type=flags.node_count, help="hollow nodes to run (default 2; none with --from-snapshot)")
    up.add_argument("--no-controllers", action="store_true", help="no controllers, scheduler and nodes")
    up.add_argument("--stop-with-stdin", action="store_true", help="stop when standard input ends, so as not to outlive what holds it")
    up.set_defaults(run=_up)

    apiserver = commands.add_parser("apiserver", help="the API server and its store alone")
    flags.add_server_flags(apiserver)
    apiserver.set_defaults(run=_up, nodes=0, no_controllers=True, stop_with_stdin=False)

    cluster = commands.add_parser("cluster", help="several members on this machine, each as 'up' would start it")
    cluster.add_argument("--members", type=flags.member_count, default=3, help="how many (default 3)")
    cluster.add_argument(
        "--data-dir", type=Path, default=Path("sampan-cluster"), help="has a directory for each (default ./sampan-cluster)"
    )
    cluster.add_argument("--ephemeral", action="store_true", help="use a temporary directory, removed at the end")
    cluster.add_argument("--base-port", type=flags.port, default=6443, help="of the first; each has the next ten (default 6443)")
    cluster.add_argument("--nodes", type=flags.node_count, default=1, help="hollow nodes of each member (default 1)")
    cluster.add_argument("--restart", action="store_true", help="start a member again that ends by itself")
    cluster.add_argument("up_flags", nargs="*", metavar="-- FLAG", help="further flags of 'sampan up', for each")
    cluster.set_defaults(run=_cluster)

    pki = commands.add_parser("pki", help="make what the members of a cluster share: CAs and the ServiceAccount key")
    pki.add_argument("directory", metavar="DIR", type=Path, help="for --pki-dir, copied to each machine")
    pki.set_defaults(run=_pki)

    controllers = commands.add_parser("controllers", help="controllers and scheduler, against a running API server")
    flags.add_data_flags(controllers)
    flags.add_controller_flags(controllers)
    controllers.add_argument("--kubeconfig", type=Path, help="whom to be and where the server is (default: in the data directory)")
    controllers.set_defaults(run=_controllers)

    node = commands.add_parser("node", help="one more hollow node, in the foreground")
    node.add_argument("name", metavar="NAME", type=flags.node_name)
    flags.add_data_flags(node)
    node.add_argument("--kubeconfig", type=Path, help="whom to be and where the server is (default: made from the data directory)")
    node.set_defaults(run=_node)

    kubeconfig = commands.add_parser("kubeconfig", help="print the administrator's kubeconfig")
    flags.add_data_flags(kubeconfig)
    kubeconfig.add_argument("--path", action="store_true", help="print where it is instead")
    kubeconfig.set_defaults(run=_kubeconfig)

    snapshot.add_parser(commands)

    version = commands.add_parser("version", help="print versions")
    version.set_defaults(run=_version)
    return parser


@contextlib.contextmanager
def _open_data_dir(parsed: argparse.Namespace) -> Iterator[DataDir]:
    """The data directory of a server, held; a temporary one with ``--ephemeral``."""
    from apiserver.cli.datadir import DataDir

    with contextlib.ExitStack() as stack:
        path = parsed.data_dir
        if parsed.cert_dir is not None and path == flags.DEFAULT_DATA_DIR:
            path = parsed.cert_dir
        if parsed.from_snapshot is not None and not parsed.ephemeral:
            from_snapshot.check_new(path)
        if parsed.ephemeral:
            import tempfile

            path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sampan-", ignore_cleanup_errors=True)))
        data_dir = DataDir(path)
        stack.callback(data_dir.close)
        yield data_dir


def _up(parsed: argparse.Namespace) -> int:
    from apiserver.cli import up

    from_snapshot.settle(parsed)
    for warning in upstream_flags.warnings(parsed):
        sys.stderr.write(f"sampan: {warning}\n")
    if not parsed.no_controllers:
        check_controllers(parsed)
    with _open_data_dir(parsed) as data_dir:
        return up.run(parsed, data_dir)


def _cluster(parsed: argparse.Namespace) -> int:
    from apiserver.cli import cluster

    if not parsed.ephemeral:
        return cluster.run(parsed, parsed.data_dir.absolute())
    import tempfile

    with tempfile.TemporaryDirectory(prefix="sampan-cluster-", ignore_cleanup_errors=True) as directory:
        return cluster.run(parsed, Path(directory))


def _pki(parsed: argparse.Namespace) -> int:
    from apiserver.cli.datadir import make_shared_pki

    make_shared_pki(parsed.directory.absolute())
    _say(f"what members share is in {parsed.directory.absolute()}: copy it to each machine and give it with --pki-dir")
    return 0


def _controllers(parsed: argparse.Namespace) -> int:
    from apiserver.cli.datadir import open_pki
    from controllers import main as controllers_main

    check_controllers(parsed)
    manager = parsed.kubeconfig or _existing(parsed.data_dir, "controller-manager", _OR_KUBECONFIG)
    scheduler = parsed.kubeconfig or _existing(parsed.data_dir, "scheduler", _OR_KUBECONFIG)
    authority = None if parsed.kubeconfig else open_pki(parsed.data_dir.absolute()).ca
    _say(f"controllers connect to {server_of(manager)}; they work while they hold the lease kube-system/kube-controller-manager")
    return controllers_main.run_controllers(
        controllers_main.Options(
            manager_kubeconfig=manager,
            scheduler_kubeconfig=scheduler,
            node_kubeconfigs={},
            node_monitor_grace_period_seconds=parsed.node_monitor_grace_period,
            node_monitor_period_seconds=parsed.node_monitor_period,
            leader_elect=parsed.leader_elect == "true",
            controllers=parsed.controllers,
            cluster_signing_cert_file=authority.certificate if authority else None,
            cluster_signing_key_file=authority.key if authority else None,
            cluster_signing_duration_seconds=parsed.cluster_signing_duration,
            service_account_private_key_file=None if parsed.kubeconfig else open_pki(parsed.data_dir.absolute()).service_account_key().key,
        ),
        lambda: _say("controllers run. Stop with Ctrl-C."),
    )


def _node(parsed: argparse.Namespace) -> int:
    from apiserver.cli.datadir import write_node_kubeconfig
    from controllers import main as controllers_main

    kubeconfig = parsed.kubeconfig
    if kubeconfig is None:
        _existing(parsed.data_dir, "admin", _OR_KUBECONFIG)
        kubeconfig = write_node_kubeconfig(parsed.data_dir.absolute(), server_of(parsed.data_dir / "admin.kubeconfig"), parsed.name)
    _say(f"node {parsed.name} connects to {server_of(kubeconfig)}")
    return controllers_main.run_node(parsed.name, kubeconfig, lambda: _say(f"node {parsed.name} runs. Stop with Ctrl-C."))


def _say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def check_controllers(parsed: argparse.Namespace) -> None:
    """Raises UsageError on flags that the controllers' process would refuse."""
    if parsed.node_monitor_grace_period <= parsed.node_monitor_period:
        raise UsageError("--node-monitor-grace-period must be longer than --node-monitor-period")
    if parsed.controllers != ("*",):
        from controllers.registry import CONTROLLERS, selected

        try:
            selected(CONTROLLERS, parsed.controllers)
        except ValueError as error:
            raise UsageError(str(error)) from error


def _kubeconfig(parsed: argparse.Namespace) -> int:
    path = _existing(parsed.data_dir, "admin")
    print(path) if parsed.path else sys.stdout.write(path.read_text())
    return 0


def _version(_: argparse.Namespace) -> int:
    from importlib.metadata import PackageNotFoundError, version

    try:
        own = version("sampan")
    except PackageNotFoundError:
        own = "(not installed)"
    print(f"sampan {own}, serves Kubernetes {KUBERNETES_VERSIONS[0]} to {KUBERNETES_VERSIONS[-1]}")
    return 0


_OR_KUBECONFIG = ", or give --kubeconfig"


def _existing(data_dir: Path, name: str, otherwise: str = "") -> Path:
    path = data_dir.absolute() / f"{name}.kubeconfig"
    if not path.exists():
        raise CommandError(f"{path} does not exist; start a server with 'sampan up --data-dir {data_dir}' first{otherwise}")
    return path


def server_of(kubeconfig: Path) -> str:
    """The server's URL in a kubeconfig."""
    import yaml

    try:
        return str(yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"])
    except OSError as error:
        raise CommandError(f"cannot read the kubeconfig {kubeconfig}: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError, KeyError, IndexError, TypeError) as error:
        raise CommandError(f"{kubeconfig} is not a kubeconfig: it names no server") from error


if __name__ == "__main__":
    sys.exit(main())
