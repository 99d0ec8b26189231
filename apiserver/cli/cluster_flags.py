"""Flags of a member among others, as etcd names them: who the members are, where they listen, whom they trust."""

from __future__ import annotations

import argparse
import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from apiserver.cli import pem_files
from apiserver.cli.errors import UsageError
from apiserver.cli.pki import KeyPair, Pki

DEFAULT_CLIENT_URLS = ("https://127.0.0.1:2379",)
#: etcd's bound of --election-timeout, milliseconds
ELECTION_TIMEOUT_MAX = 50_000


def urls(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def initial_cluster(text: str) -> dict[str, tuple[str, ...]]:
    """``m1=https://a:2380,m2=https://b:2380``; a name may come several times, with a URL each."""
    found: dict[str, tuple[str, ...]] = {}
    for part in urls(text):
        name, equals, url = part.partition("=")
        if not equals or not name or not url:
            raise argparse.ArgumentTypeError(f"invalid member {part!r}: write for example m1=https://127.0.0.1:12380,m2=…")
        found[name] = (*found.get(name, ()), url)
    return found


def add_cluster_flags(parser: argparse.ArgumentParser) -> None:
    cluster = parser.add_argument_group("members of the store")
    cluster.add_argument(
        "--initial-cluster", type=initial_cluster, default={}, metavar="NAME=URL,…",
        help="all members and their peer URLs at the first start (default: this one alone)",
    )  # fmt: skip
    cluster.add_argument(
        "--initial-cluster-state", choices=("new", "existing"), default="new", help="existing: join a cluster that runs (default new)"
    )
    cluster.add_argument("--initial-cluster-token", default="etcd-cluster", help="part of the ids of the cluster and its members")
    cluster.add_argument(
        "--listen-peer-urls", type=urls, default=(), metavar="URL,…", help="where other members connect (default: as in --initial-cluster)"
    )
    cluster.add_argument(
        "--initial-advertise-peer-urls", type=urls, default=(), metavar="URL,…", help="the same, as the other members see it"
    )
    cluster.add_argument("--peer-cert-file", type=Path, help="certificate for both directions between members (default: made)")
    cluster.add_argument("--peer-key-file", type=Path, help="its key")
    cluster.add_argument("--peer-trusted-ca-file", type=Path, help="CA of the other members' certificates")
    cluster.add_argument(
        "--pki-dir", type=Path, help="CAs and ServiceAccount key that members share, made where missing (default: in the data directory)"
    )
    port = parser.add_argument_group("the store's client port")
    port.add_argument(
        "--listen-client-urls", type=urls, default=None, metavar="URL,…",
        help=f'where etcdctl connects (default {DEFAULT_CLIENT_URLS[0]}; "" closes it)',
    )  # fmt: skip
    port.add_argument("--advertise-client-urls", type=urls, default=(), metavar="URL,…", help="the same, as clients see it")
    port.add_argument("--cert-file", type=Path, help="certificate of the client port (default: made)")
    port.add_argument("--key-file", type=Path, help="its key")
    port.add_argument("--trusted-ca-file", type=Path, help="CA of the clients' certificates")
    port.add_argument("--client-cert-auth", choices=("true", "false"), default="true", help="demand a client certificate (default true)")


def is_clustered(flags: argparse.Namespace) -> bool:
    """Whether this member talks to others, or may have some later. One that was not told where to listen stays alone."""
    return bool(flags.initial_cluster or flags.listen_peer_urls)


def members_count(flags: argparse.Namespace) -> int:
    return max(len(flags.initial_cluster), 1)


def check_shared_pki(flags: argparse.Namespace, authorities_exist: bool) -> None:
    """Members with authorities of their own would refuse each other, and each other's users. Raises UsageError."""
    if members_count(flags) > 1 and flags.pki_dir is None and not authorities_exist:
        raise UsageError(
            "the members of a cluster share their authorities and ServiceAccount key: give each --pki-dir, the same directory or a copy "
            "of one that 'sampan pki DIR' has made"
        )


def store_settings(flags: argparse.Namespace, pki: Pki, *, has_member: bool = False) -> dict[str, Any]:
    """Fields of ``StoreConfig``. ``has_member``: there is a member already, which knows the others better than the flags do, so that those
    of the first start are not held against it (as etcd ignores them). Raises UsageError that names the flag, CommandError for a file."""
    if flags.election_timeout > ELECTION_TIMEOUT_MAX:
        raise UsageError(f"--election-timeout ({flags.election_timeout} ms) is too long, at most {ELECTION_TIMEOUT_MAX} ms")
    listen_client = flags.listen_client_urls
    if listen_client is None:
        # several ephemeral servers run side by side
        listen_client = () if flags.ephemeral else DEFAULT_CLIENT_URLS
    advertise_client = flags.advertise_client_urls or listen_client
    settings: dict[str, Any] = {
        "initial_cluster": flags.initial_cluster,
        "initial_cluster_state": flags.initial_cluster_state,
        "initial_cluster_token": flags.initial_cluster_token,
        "listen_client_urls": _bindable("--listen-client-urls", listen_client),
        "advertise_client_urls": advertise_client,
        "client_cert_auth": flags.client_cert_auth == "true",
        "max_concurrent_streams": flags.max_concurrent_streams,
        "watch_progress_notify_seconds": flags.watch_progress_notify_interval,
    }
    client_hosts = [host_of(url) for url in (*listen_client, *advertise_client)]
    if any(url.startswith("https:") for url in listen_client):
        pair = _given("--cert-file", flags.cert_file, "--key-file", flags.key_file) or pki.etcd_server(flags.name, client_hosts)
        authority = pem_files.readable("--trusted-ca-file", flags.trusted_ca_file) or pki.etcd_ca().certificate
        settings |= {"cert_file": pair.certificate, "key_file": pair.key, "trusted_ca_file": authority}
        pki.etcd_client()
    if is_clustered(flags):
        settings |= _peer_settings(flags, pki, has_member)
    elif flags.initial_cluster_state == "existing" and not has_member:
        raise UsageError("--initial-cluster-state existing needs --initial-cluster, with this member and those that run")
    return settings


def _peer_settings(flags: argparse.Namespace, pki: Pki, has_member: bool) -> dict[str, Any]:
    name, cluster = flags.name, flags.initial_cluster
    if has_member and name not in cluster and (flags.listen_peer_urls or flags.initial_advertise_peer_urls):
        cluster = {}
    if cluster and name not in cluster:
        raise UsageError(f"--initial-cluster names {', '.join(cluster)}, but not this member: --name {name}")
    own = cluster.get(name, ())
    advertise = flags.initial_advertise_peer_urls or own or flags.listen_peer_urls
    if own and sorted(advertise) != sorted(own) and not has_member:
        raise UsageError(
            f"--initial-cluster has {name}={','.join(own)}, but --initial-advertise-peer-urls is {','.join(advertise)}: "
            "they must be the same"
        )
    listen = flags.listen_peer_urls or advertise
    every = [*listen, *advertise, *(url for member in cluster.values() for url in member)]
    for url in every:
        _check_peer_url(url)
    _bindable("--listen-peer-urls", listen)
    settings: dict[str, Any] = {
        "initial_cluster": cluster or {name: advertise},
        "listen_peer_urls": listen,
        "initial_advertise_peer_urls": advertise,
    }
    if any(url.startswith("https:") for url in every):
        given = _given("--peer-cert-file", flags.peer_cert_file, "--peer-key-file", flags.peer_key_file)
        if given and flags.peer_trusted_ca_file is None:
            raise UsageError("--peer-cert-file needs --peer-trusted-ca-file: whose certificates the other members show")
        pair = given or pki.etcd_peer(name, [host_of(url) for url in (*listen, *advertise)])
        authority = pem_files.readable("--peer-trusted-ca-file", flags.peer_trusted_ca_file) or pki.etcd_ca().certificate
        settings |= {"peer_cert_file": pair.certificate, "peer_key_file": pair.key, "peer_trusted_ca_file": authority}
    return settings


def host_of(url: str) -> str:
    return urlsplit(url).hostname or ""


def _check_peer_url(url: str) -> None:
    from storage.member import peer_urls

    try:
        peer_urls.parse(url)
    except ValueError as error:
        raise UsageError(f"peer URLs: {error}") from error


def _bindable(flag: str, listen: Sequence[str]) -> tuple[str, ...]:
    """A name may have many addresses, or another's: what is listened on is said by address (etcd's rule)."""
    for url in listen:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise UsageError(f"{flag} {url}: {error}") from error
        if parts.scheme not in ("http", "https"):
            raise UsageError(f"{flag} {url}: URL scheme must be http or https")
        if not host or port is None:
            raise UsageError(f'{flag} {url}: URL address does not have the form "host:port"')
        if host == "localhost":
            continue
        try:
            loopback = ipaddress.ip_address(host).is_loopback
        except ValueError:
            raise UsageError(f"{flag} {url}: expected IP in URL for binding") from None
        if parts.scheme == "http" and not loopback:
            raise UsageError(f"{flag} {url}: http:// is for loopback addresses only")
    return tuple(listen)


def _given(certificate_flag: str, certificate: Path | None, key_flag: str, key: Path | None) -> KeyPair | None:
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise UsageError(f"{certificate_flag} and {key_flag} go together")
    for flag, path in ((certificate_flag, certificate), (key_flag, key)):
        pem_files.readable(flag, path)
    pem_files.check_pair(certificate_flag, certificate, key_flag, key)
    return KeyPair(certificate, key)
