"""``sampan up --from-snapshot FILE``: what ``sampan snapshot restore`` does, and the server on it, in one step; and ``--read-only``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from apiserver.cli import flags
from apiserver.cli.errors import CommandError, UsageError

if TYPE_CHECKING:
    from apiserver.config import ServerConfig

#: hollow nodes where nothing is said
NODES = 2
#: What may be in a data directory into which a snapshot is restored: all but the store.
BESIDE_THE_STORE = ("pki", "sampan.lock", "member.restoring-")


def settle(parsed: argparse.Namespace) -> None:
    """Fill in what ``--from-snapshot`` and ``--read-only`` imply. Raises UsageError where they contradict other flags."""
    if parsed.skip_hash_check and parsed.from_snapshot is None:
        raise UsageError("--skip-hash-check is of use only with --from-snapshot")
    if parsed.from_snapshot is not None:
        if parsed.etcd_servers:
            raise UsageError("--from-snapshot fills the embedded store, and --etcd-servers takes another in its place")
        if parsed.initial_cluster_state == "existing":
            raise UsageError("--from-snapshot begins a new cluster, and --initial-cluster-state existing joins another")
        if parsed.read_only and parsed.data_dir is flags.DEFAULT_DATA_DIR:
            parsed.ephemeral = True  # whoever only looks wants nothing left behind
    if parsed.read_only:
        if parsed.initial_cluster or parsed.listen_peer_urls:
            raise UsageError("--read-only is for a server that is alone: the other members would write")
        if parsed.listen_client_urls:
            raise UsageError("--read-only has no client port: etcdctl would write past it")
        if parsed.nodes:
            raise UsageError("--read-only runs no nodes: their kubelets would write")
        parsed.no_controllers, parsed.nodes, parsed.listen_client_urls = True, 0, None if parsed.etcd_servers else ()
    if parsed.nodes is None:
        # the cluster in a snapshot has nodes of its own
        parsed.nodes = 0 if parsed.from_snapshot is not None else NODES


def check_new(path: Path) -> None:
    """Raises CommandError where a directory holds more than keys: a snapshot is never restored over anything."""
    try:
        found = sorted(each.name for each in path.iterdir()) if path.exists() else []
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    for name in found:
        if not name.startswith(BESIDE_THE_STORE) and not name.endswith(".kubeconfig"):
            raise CommandError(f"{path} exists and holds {name}: restore into a new directory, or one with nothing in it but pki/")


def restore(parsed: argparse.Namespace, config: ServerConfig) -> None:
    """The member that the server will run, made of the snapshot. The file is only read. Raises CommandError."""
    from apiserver.embedded_store import member_config
    from storage import errors
    from storage.snapshot import restore as snapshots

    options = snapshots.RestoreOptions(config=member_config(config.store), skip_hash_check=parsed.skip_hash_check)
    try:
        snapshots.restore(parsed.from_snapshot, options)
    except errors.StoreError as error:
        raise CommandError(str(error)) from error
    except ValueError as error:
        raise UsageError(str(error)) from error
