"""kubeconfig files (client-go ``clientcmd/api/v1``): one user, everything embedded, a context for each server."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

from apiserver.cli.pki import KeyPair, write_private

_TEXT = """\
apiVersion: v1
kind: Config
clusters:
{clusters}users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
{contexts}current-context: {current}
"""
_CLUSTER = """\
- name: {name}
  cluster:
    server: {server}
    certificate-authority-data: {ca}
"""
_CONTEXT = """\
- name: {name}
  context:
    cluster: {cluster}
    user: {user}
"""


def write(path: Path, *, server: str, ca: Path, client: KeyPair, user: str) -> Path:
    """Write ``path`` (0600, since it holds a key) where it does not say this already."""
    return _write(path, {f"{user}@sampan": ("sampan", server)}, ca, client, user)


def write_several(path: Path, *, servers: Mapping[str, str], ca: Path, client: KeyPair, user: str) -> Path:
    """The same with a context for each server (name → URL); the first is the current one."""
    return _write(path, {name: (name, server) for name, server in servers.items()}, ca, client, user)


def _write(path: Path, contexts: Mapping[str, tuple[str, str]], ca: Path, client: KeyPair, user: str) -> Path:
    authority = _encoded(ca)
    text = _TEXT.format(
        clusters="".join(_CLUSTER.format(name=name, server=server, ca=authority) for name, server in contexts.values()),
        contexts="".join(_CONTEXT.format(name=name, cluster=cluster, user=user) for name, (cluster, _) in contexts.items()),
        user=user,
        certificate=_encoded(client.certificate),
        key=_encoded(client.key),
        current=next(iter(contexts)),
    ).encode()
    if not path.exists() or path.read_bytes() != text:
        write_private(path, text)
    return path


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
