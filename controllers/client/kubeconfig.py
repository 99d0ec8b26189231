"""Reads kubeconfig files (client-go ``clientcmd``): the current context's server, CA and credentials.

Known credentials: client certificate (file or data), bearer token (text or file). Exec plugins and auth providers are refused.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from controllers.client.errors import ConfigInvalid


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """PEM texts as bytes. ``impersonate_*`` become the Impersonate headers of each request."""

    server: str
    ca: bytes = b""
    insecure_skip_tls_verify: bool = False
    client_certificate: bytes = b""
    client_key: bytes = b""
    token: str = ""
    tls_server_name: str = ""
    impersonate_user: str = ""
    impersonate_groups: tuple[str, ...] = ()

    def anonymous(self) -> ClientConfig:
        """The same server without any credentials: base for clients that bring a token (a certificate would win over it)."""
        return replace(self, client_certificate=b"", client_key=b"", token="", impersonate_user="", impersonate_groups=())

    def ssl_context(self) -> ssl.SSLContext | None:
        if not self.server.startswith("https:"):
            return None
        context = ssl.create_default_context(cadata=self.ca.decode() if self.ca else None)
        if self.insecure_skip_tls_verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        # A CA of one's own cluster may lack what strict checking wants (key identifiers), as Go's verifier does not ask for it.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if self.client_certificate:
            _load_certificate(context, self.client_certificate, self.client_key)
        return context


def _load_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """``ssl`` reads certificates only from files: one of mode 0600, gone as soon as it is read."""
    handle, path = tempfile.mkstemp(prefix="client-", suffix=".pem")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(certificate + b"\n" + key)
        context.load_cert_chain(path)
    except ssl.SSLError as error:
        raise ConfigInvalid(f"the client certificate cannot be used: {error}") from error
    finally:
        os.unlink(path)


def load(path: Path, context_name: str = "") -> ClientConfig:
    """The config of ``context_name``, or of the file's current context.

    Raises:
        ConfigInvalid: the file is missing, no kubeconfig, or names something that is not in it.
    """
    try:
        document = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ConfigInvalid(f"cannot read kubeconfig {path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise ConfigInvalid(f"kubeconfig {path} is not YAML: {error}") from error
    if not isinstance(document, dict):
        raise ConfigInvalid(f"kubeconfig {path} is empty")
    wanted = context_name or str(document.get("current-context") or "")
    context = _entry(document, "contexts", wanted, "context", path)
    cluster = _entry(document, "clusters", str(context.get("cluster") or ""), "cluster", path)
    user = _entry(document, "users", str(context["user"]), "user", path) if context.get("user") else {}
    for unsupported in ("exec", "auth-provider", "username"):
        if user.get(unsupported):
            raise ConfigInvalid(f"kubeconfig {path}: user credentials of sort {unsupported!r} are not supported")
    if not cluster.get("server"):
        raise ConfigInvalid(f"kubeconfig {path}: cluster of context {wanted!r} has no server")
    token = str(user.get("token") or "")
    if not token and user.get("tokenFile"):
        token = (path.parent / str(user["tokenFile"])).read_text().strip()
    return ClientConfig(
        server=str(cluster["server"]).rstrip("/"),
        ca=_material(cluster, "certificate-authority", path),
        insecure_skip_tls_verify=bool(cluster.get("insecure-skip-tls-verify")),
        tls_server_name=str(cluster.get("tls-server-name") or ""),
        client_certificate=_material(user, "client-certificate", path),
        client_key=_material(user, "client-key", path),
        token=token,
        impersonate_user=str(user.get("as") or ""),
        impersonate_groups=tuple(user.get("as-groups") or ()),
    )


def _entry(document: dict[str, Any], section: str, name: str, key: str, path: Path) -> dict[str, Any]:
    for entry in document.get(section) or []:
        if entry.get("name") == name:
            return entry.get(key) or {}
    raise ConfigInvalid(f"kubeconfig {path}: no entry {name!r} in {section}")


def _material(entry: dict[str, Any], key: str, path: Path) -> bytes:
    """PEM from ``<key>-data`` (base64) or the file at ``<key>``, relative to the kubeconfig."""
    if entry.get(f"{key}-data"):
        try:
            return base64.b64decode(entry[f"{key}-data"], validate=True)
        except binascii.Error as error:
            raise ConfigInvalid(f"kubeconfig {path}: {key}-data is not base64") from error
    if entry.get(key):
        file = path.parent / str(entry[key])
        try:
            return file.read_bytes()
        except OSError as error:
            raise ConfigInvalid(f"kubeconfig {path}: cannot read {file}: {error.strerror}") from error
    return b""
