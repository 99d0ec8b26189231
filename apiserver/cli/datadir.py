"""The data directory: one process at a time, keys and kubeconfigs inside, found again at the next start.

::

    <data-dir>/
      sampan.lock                 held while a server runs on the directory; its process id and the URLs of its client port
      pki/                        CA, serving certificate, ServiceAccount key, client certificates; ``shared`` names the
                                  directory of what members share, where --pki-dir gave one
      admin.kubeconfig …          one per identity, 0600
      member/                     the store
"""

from __future__ import annotations

import datetime
import fcntl
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from apiserver.cli import kubeconfig
from apiserver.cli.errors import CommandError
from apiserver.cli.pki import KeyPair, Pki, PkiError, Subject

ADMIN = Subject("kubernetes-admin", ("system:masters",))
CONTROLLER_MANAGER = Subject("system:kube-controller-manager")
SCHEDULER = Subject("system:kube-scheduler")


class DataDirError(CommandError):
    """The directory cannot be used; the message is one line that says what and how to mend it."""


@dataclass(frozen=True, slots=True)
class Serving:
    """What the API server serves with."""

    ca: Path
    certificate: Path
    key: Path
    service_account: KeyPair
    front_proxy_client: KeyPair
    front_proxy_ca: Path


class DataDir:
    """An opened data directory; ``close`` releases its lock."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(self.path / "sampan.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DataDirError(
                f"cannot use the data directory {self.path}: {error.strerror}; give another with --data-dir or mend its permissions"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(self._lock, 20).decode("ascii", "replace").partition("\n")[0]
            os.close(self._lock)
            raise DataDirError(
                f"the data directory {self.path} is in use by process {holder or 'unknown'}; stop that one or give another with --data-dir"
            ) from error
        os.ftruncate(self._lock, 0)
        os.write(self._lock, f"{os.getpid()}\n".encode())

    def note_endpoints(self, urls: Sequence[str]) -> None:
        """Where the store's client port is, for who finds the directory in use (``endpoints_in``)."""
        os.write(self._lock, "".join(f"{url}\n" for url in urls).encode())

    def close(self) -> None:
        os.close(self._lock)

    def serving(self, bind_address: str, service_cluster_ip_range: str, advertise_address: str = "") -> Serving:
        """The serving certificate and the ServiceAccount key, made where they are missing."""
        pki = open_pki(self.path)
        pair = pki.serving("apiserver", bind_address, first_service_ip(service_cluster_ip_range), advertise_address)
        front = pki.front_proxy_client()
        return Serving(pki.ca.certificate, pair.certificate, pair.key, pki.service_account_key(), front, pki.front_proxy_ca().certificate)


def endpoints_in(data_dir: Path) -> tuple[str, ...]:
    """The client ports of the server that has the directory, or had it last; empty where it has none, or tells none."""
    try:
        _, *urls = (data_dir / "sampan.lock").read_text(encoding="ascii", errors="replace").split()
    except (OSError, ValueError):
        return ()
    return tuple(urls)


def share_pki(data_dir: Path, shared: Path) -> None:
    """From now on the authorities and the ServiceAccount key of this data directory are those in ``shared``."""
    note = data_dir / "pki" / "shared"
    try:
        note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        note.write_text(f"{shared.absolute()}\n", encoding="utf-8")
    except OSError as error:
        raise PkiError(f"cannot use {note}: {error.strerror}; mend its permissions") from error


def make_shared_pki(directory: Path) -> None:
    """All that the members of a cluster share."""
    try:
        pki = Pki(directory, datetime.datetime.now(datetime.UTC))
        pki.service_account_key()
        pki.etcd_ca()
        pki.front_proxy_ca()
    except OSError as error:
        raise PkiError(f"cannot use {error.filename or directory}: {error.strerror}; mend its permissions") from error


def has_authorities(data_dir: Path) -> bool:
    return any((data_dir / "pki" / name).exists() for name in ("ca.crt", "shared"))


def open_pki(data_dir: Path) -> Pki:
    directory = data_dir / "pki"
    shared: Path | None = None
    try:
        note = directory / "shared"
        if note.exists():
            shared = Path(note.read_text(encoding="utf-8").strip())
        return Pki(directory, datetime.datetime.now(datetime.UTC), shared)
    except OSError as error:
        raise PkiError(f"cannot use {error.filename or directory}: {error.strerror}; mend its permissions") from error


def first_service_ip(cidr: str) -> str:
    """The address of the ``kubernetes`` service, in the first of the ranges. Raises DataDirError on one that is none."""
    try:
        network = ipaddress.ip_network(cidr.split(",")[0])
    except ValueError as error:
        raise DataDirError(f"--service-cluster-ip-range {cidr}: {error}") from error
    return str(network[1])


def write_kubeconfig(data_dir: Path, server: str, name: str, subject: Subject) -> Path:
    """``<name>.kubeconfig`` for an identity, with a client certificate of its own."""
    pki = open_pki(data_dir)
    pair = pki.client(name, subject)
    return kubeconfig.write(data_dir / f"{name}.kubeconfig", server=server, ca=pki.ca.certificate, client=pair, user=subject.common_name)


def write_node_kubeconfig(data_dir: Path, server: str, node: str) -> Path:
    """A kubelet's identity: user ``system:node:NAME`` in the group ``system:nodes``."""
    return write_kubeconfig(data_dir, server, f"node-{node}", Subject(f"system:node:{node}", ("system:nodes",)))
