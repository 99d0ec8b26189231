"""The store's client port, as far as the command line is concerned: bound before anything slow, and how etcdctl reaches it."""

from __future__ import annotations

import argparse
import errno
import socket
import sys
from urllib.parse import urlsplit

from apiserver.cli.errors import CommandError
from apiserver.cli.pki import Pki
from apiserver.config import StoreConfig
from apiserver.store_door import ClientListener

LISTEN_BACKLOG = 1024


def bind_all(flags: argparse.Namespace, store: StoreConfig) -> tuple[ClientListener, ...]:
    """A socket for each URL. Raises CommandError where one that was asked for cannot be had; where the default one is in use, as by
    another server or an etcd, that is said in one line, and this server has no client port."""
    listeners: list[ClientListener] = []
    for url in store.listen_client_urls:
        try:
            listeners.append(bind(url))
        except OSError as error:
            for listener in listeners:
                listener.socket.close()
            reason = "the address is in use" if error.errno == errno.EADDRINUSE else str(error.strerror or error)
            if flags.listen_client_urls is not None:
                raise CommandError(f"--listen-client-urls {url}: {reason}") from error
            sys.stderr.write(
                f'sampan: warning: no client port for etcdctl: {url}: {reason}; choose another with --listen-client-urls, or "" for none\n'
            )
            return ()
    return tuple(listeners)


def bind(url: str) -> ClientListener:
    parts = urlsplit(url)
    host = {"localhost": "127.0.0.1"}.get(parts.hostname or "", parts.hostname or "")
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, parts.port))
        made.listen(LISTEN_BACKLOG)
    except OSError:
        made.close()
        raise
    made.setblocking(False)
    return ClientListener(made, url)


def etcdctl_lines(listeners: tuple[ClientListener, ...], pki: Pki) -> str:
    """What lets etcdctl reach the port from another shell; nothing where there is none."""
    if not listeners:
        return ""
    line = f"export ETCDCTL_API=3 ETCDCTL_ENDPOINTS={','.join(reachable(listener) for listener in listeners)}"
    if any(listener.with_tls for listener in listeners):
        client = pki.etcd_client()
        line += f" ETCDCTL_CACERT={pki.etcd_ca().certificate} ETCDCTL_CERT={client.certificate} ETCDCTL_KEY={client.key}"
    return f"  {line}\n  etcdctl endpoint status\n\n"


def reachable(listener: ClientListener) -> str:
    """The URL as a client on this machine uses it."""
    host, port = listener.socket.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"{'https' if listener.with_tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
