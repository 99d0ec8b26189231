"""``sampan snapshot``: save, status and restore, with the flags of ``etcdctl`` and ``etcdutl``."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apiserver.cli import flags, from_snapshot
from apiserver.cli.errors import CommandError, UsageError

if TYPE_CHECKING:
    from storage.etcdclient.config import ClientConfig
    from storage.snapshot.snapshot_file import SnapshotStatus

#: Where a server's client port is unless it was told otherwise.
DEFAULT_ENDPOINT = "https://127.0.0.1:2379"


def add_parser(commands: argparse._SubParsersAction[flags.Parser]) -> None:
    snapshot = commands.add_parser("snapshot", help="take the store into a file, look at one, start from one (etcd's format)")
    actions = snapshot.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=flags.Parser)

    save = actions.add_parser("save", help="save a running member's store, or a stopped one's")
    save.add_argument("file", metavar="FILE", type=Path)
    save.add_argument("--data-dir", type=Path, default=Path("sampan-data"), help="the server's; it may run or not (default ./sampan-data)")
    save.add_argument("--wal-dir", type=Path, help="where that server's log is, if not in the data directory")
    save.add_argument(
        "--endpoints",
        type=flags.names,
        help="client ports of running servers, also of an etcd, with commas between (default that of the data directory)",
    )
    save.add_argument("--cacert", type=Path, metavar="FILE", help="certificate authority of the endpoints")
    save.add_argument("--cert", type=Path, metavar="FILE", help="certificate to show to the endpoints")
    save.add_argument("--key", type=Path, metavar="FILE", help="key of the certificate")
    _add_output(save)
    save.set_defaults(run=_save)

    status = actions.add_parser("status", help="check a snapshot and say what is in it")
    status.add_argument("file", metavar="FILE", type=Path)
    _add_output(status)
    status.set_defaults(run=_status)

    restore = actions.add_parser("restore", help="make the data directory of a new cluster's member")
    restore.add_argument("file", metavar="FILE", type=Path)
    restore.add_argument("--data-dir", type=Path, required=True, help="new, empty, or with nothing in it but pki/")
    restore.add_argument("--wal-dir", type=Path, help="where the log is to be (default: in the data directory)")
    restore.add_argument("--name", default="default", help="of this member (default: default)")
    restore.add_argument("--initial-cluster", type=_cluster, default={}, help="every member: NAME=URL,NAME=URL (default: this one alone)")
    restore.add_argument("--initial-cluster-token", help="part of the new ids (default: made of the file, so equal for all members)")
    restore.add_argument("--initial-advertise-peer-urls", type=flags.names, default=(), help="this member's (default: as in the cluster)")
    restore.add_argument("--bump-revision", type=flags.count, default=0, metavar="N", help="raise the revision by N; with --mark-compacted")
    restore.add_argument("--mark-compacted", action="store_true", help="forget all older revisions: whoever watched them lists anew")
    restore.add_argument("--skip-hash-check", action="store_true", help="take a file without a hash, or with a wrong one")
    restore.set_defaults(run=_restore)


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-w", "--write-out", choices=("simple", "table", "json"), default="table", help="form of the answer (default table)"
    )


def _cluster(text: str) -> dict[str, tuple[str, ...]]:
    """``m1=URL,m1=URL,m2=URL`` as name → URLs."""
    cluster: dict[str, list[str]] = {}
    for part in flags.names(text):
        name, separator, url = part.partition("=")
        if not separator or not name or not url:
            raise argparse.ArgumentTypeError(f"invalid member {part!r}: write NAME=URL")
        cluster.setdefault(name, []).append(url)
    return {name: tuple(urls) for name, urls in cluster.items()}


def _save(parsed: argparse.Namespace) -> int:
    from apiserver.cli.datadir import endpoints_in
    from storage.config import MemberConfig
    from storage.errors import DataDirLockedError
    from storage.snapshot import save

    if parsed.endpoints is None:
        config = MemberConfig(data_dir=parsed.data_dir, wal_dir=parsed.wal_dir)
        try:
            found = _run(save.save_from_data_dir(config, parsed.file))
        except DataDirLockedError as locked:
            try:
                endpoints = endpoints_in(parsed.data_dir) or (DEFAULT_ENDPOINT,)
                found = _run(save.save_from_endpoint(_client(parsed, endpoints), parsed.file))
            except CommandError as error:
                raise CommandError(f"{locked}, and {error}; name its client port with --endpoints") from error
    else:
        found = _run(save.save_from_endpoint(_client(parsed, parsed.endpoints), parsed.file))
    _print(found, parsed.write_out)
    return 0


def _client(parsed: argparse.Namespace, endpoints: tuple[str, ...]) -> ClientConfig:
    """With the certificates of the data directory where none are given. Raises CommandError."""
    from apiserver.cli.datadir import open_pki
    from storage.etcdclient.config import ClientConfig

    files = {"ca_file": parsed.cacert, "cert_file": parsed.cert, "key_file": parsed.key}
    has_client = (parsed.data_dir / "pki" / "etcd" / "client.crt").exists()
    if not any(files.values()) and has_client and any(each.startswith("https://") for each in endpoints):
        pki = open_pki(parsed.data_dir)  # its authorities may be elsewhere, shared with other members
        client = pki.etcd_client()
        files = {"ca_file": pki.etcd_ca().certificate, "cert_file": client.certificate, "key_file": client.key}
    config = ClientConfig(endpoints=endpoints, **files)
    try:
        config.validate()
    except ValueError as error:
        raise UsageError(str(error)) from error
    return config


def _status(parsed: argparse.Namespace) -> int:
    from storage import errors
    from storage.snapshot.snapshot_file import status

    try:
        found = status(parsed.file)
    except errors.StoreError as error:
        raise CommandError(str(error)) from error
    _print(found, parsed.write_out)
    return 0


def _restore(parsed: argparse.Namespace) -> int:
    from storage import errors
    from storage.config import MemberConfig
    from storage.snapshot.restore import RestoreOptions, restore

    if parsed.initial_advertise_peer_urls:
        cluster = parsed.initial_cluster or {parsed.name: parsed.initial_advertise_peer_urls}
        if sorted(cluster.get(parsed.name, ())) != sorted(parsed.initial_advertise_peer_urls):
            raise UsageError(f"--initial-advertise-peer-urls differ from those of {parsed.name} in --initial-cluster")
        parsed.initial_cluster = cluster
    options = RestoreOptions(
        config=MemberConfig(data_dir=parsed.data_dir, wal_dir=parsed.wal_dir, name=parsed.name, initial_cluster=parsed.initial_cluster),
        token=parsed.initial_cluster_token,
        bump_revision=parsed.bump_revision,
        mark_compacted=parsed.mark_compacted,
        skip_hash_check=parsed.skip_hash_check,
    )
    try:
        options.validate()
    except ValueError as error:
        raise UsageError(str(error)) from error
    from_snapshot.check_new(parsed.data_dir)
    try:
        restored = restore(parsed.file, options)
    except errors.StoreError as error:
        raise CommandError(str(error)) from error
    sys.stdout.write(
        f"restored revision {restored.revision} to {parsed.data_dir}: member {restored.member_id:x} of cluster {restored.cluster_id:x}\n"
    )
    if restored.auth_enabled:
        sys.stderr.write("sampan: the snapshot's etcd users and roles are kept but not enforced: access is by client certificate\n")
    return 0


def _run(work: Awaitable[SnapshotStatus]) -> SnapshotStatus:
    from storage import errors

    async def main() -> SnapshotStatus:
        return await work

    try:
        return asyncio.run(main())
    except errors.DataDirLockedError:
        raise
    except errors.StoreError as error:
        raise CommandError(str(error)) from error


def _print(found: SnapshotStatus, form: str) -> None:
    if form == "json":
        fields: dict[str, Any] = {
            "hash": found.hash,
            "revision": found.revision,
            "totalKey": found.total_keys,
            "totalSize": found.total_size,
            "version": found.version,
        }
        sys.stdout.write(json.dumps(fields, separators=(",", ":")) + "\n")
        return
    cells = (f"{found.hash:x}", str(found.revision), str(found.total_keys), _size(found.total_size), found.version)
    if form == "simple":
        sys.stdout.write(", ".join(cells) + "\n")
        return
    heads = ("HASH", "REVISION", "TOTAL KEYS", "TOTAL SIZE", "VERSION")
    widths = [max(len(head), len(cell)) for head, cell in zip(heads, cells, strict=True)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+\n"
    line = "|" + "|".join(f" {cell:>{width}} " for cell, width in zip(cells, widths, strict=True)) + "|\n"
    head = "|" + "|".join(f" {each:^{width}} " for each, width in zip(heads, widths, strict=True)) + "|\n"
    sys.stdout.write(rule + head + rule + line + rule)


def _size(count: int) -> str:
    """As etcd's tools write sizes: thousands, two digits."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            break
        size /= 1000
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}" if size < 10 else f"{size:.0f} {unit}"
