"""kubeconfig files (client-go ``clientcmd/api/v1``): one cluster, one user, one context, everything embedded."""

from __future__ import annotations

import base64
from pathlib import Path

from apiserver.cli.pki import KeyPair, write_private

_TEXT = """\
apiVersion: v1
kind: Config
clusters:
- name: sampan
  cluster:
    server: {server}
    certificate-authority-data: {ca}
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: {user}@sampan
  context:
    cluster: sampan
    user: {user}
current-context: {user}@sampan
"""


def write(path: Path, *, server: str, ca: Path, client: KeyPair, user: str) -> Path:
    """Write ``path`` (0600, since it holds a key) where it does not say this already."""
    text = _TEXT.format(
        server=server, user=user, ca=_encoded(ca), certificate=_encoded(client.certificate), key=_encoded(client.key)
    ).encode()
    if not path.exists() or path.read_bytes() != text:
        write_private(path, text)
    return path


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
