"""The kubeconfig files of webhooks (``--authentication-token-webhook-config-file``, …): where a server is, whom to trust as it, and how
this server says who it is. The current context counts; paths in a file are relative to it."""

from __future__ import annotations

import base64
import binascii
import os
import ssl
import tempfile
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apiserver.machinery import config_file

#: of a kubeconfig file; those of large fleets have some hundred KiB
FILE_BYTES_MAX = 4 * 1024 * 1024


class KubeconfigError(ValueError):
    """The file cannot be used; the text says what is wrong with it, and never tells a credential."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """``authorization``: the header to send, "" for none. ``server_name``: what the certificate is checked against, "" for the URL's."""

    url: str
    ca: bytes = b""
    insecure: bool = False
    server_name: str = ""
    certificate: bytes = b""
    key: bytes = b""
    authorization: str = ""
    token_file: Path | None = None

    def ssl_context(self) -> ssl.SSLContext:
        """Raises KubeconfigError for certificates that cannot be used."""
        try:
            context = ssl.create_default_context(cadata=self.ca.decode("ascii") if self.ca else None)
            # what Go's verifier does not ask of a private authority either
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            if self.insecure:
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            if self.certificate:
                _load_chain(context, self.certificate, self.key)
        except (ssl.SSLError, ValueError) as error:
            raise KubeconfigError(f"its certificates cannot be used: {error}") from error
        return context

    def __repr__(self) -> str:
        return f"Endpoint({self.url})"  # never the credentials


def load(path: Path) -> Endpoint:
    """Raises OSError, KubeconfigError."""
    if path.stat().st_size > FILE_BYTES_MAX:
        raise KubeconfigError(f"the file has more than {FILE_BYTES_MAX} bytes")
    return parse(path.read_text(encoding="utf-8"), path.parent)


def parse(text: str, directory: Path) -> Endpoint:
    """Raises OSError, KubeconfigError."""
    try:
        config = config_file.load_yaml(text)
    except config_file.ConfigFileError as error:
        raise KubeconfigError("it is no YAML") from error
    if not isinstance(config, dict):
        raise KubeconfigError("it is no kubeconfig")
    current = config.get("current-context")
    if current:
        context = _named(config, "contexts", current, "context")
        cluster_name, user_name = context.get("cluster"), context.get("user")
    else:
        raise KubeconfigError("it has no current-context")
    cluster = _named(config, "clusters", cluster_name, "cluster")
    user = _named(config, "users", user_name, "user") if user_name else {}
    for unknown in ("exec", "auth-provider"):
        if user.get(unknown):
            raise KubeconfigError(f"its user has {unknown}, which a server does not run")
    url = str(cluster.get("server") or "")
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise KubeconfigError("its cluster has no server URL")
    token_file = user.get("tokenFile")
    endpoint = Endpoint(
        url=url,
        ca=_content(cluster, "certificate-authority", directory),
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
        server_name=str(cluster.get("tls-server-name") or ""),
        certificate=_content(user, "client-certificate", directory),
        key=_content(user, "client-key", directory),
        authorization=_authorization(user),
        token_file=directory / str(token_file) if token_file else None,
    )
    if endpoint.insecure and endpoint.ca:
        raise KubeconfigError("its cluster has a certificate authority and insecure-skip-tls-verify")
    if bool(endpoint.certificate) != bool(endpoint.key):
        raise KubeconfigError("its user has a client certificate without a key, or a key without one")
    endpoint.ssl_context()
    return endpoint


def _named(config: dict[str, Any], field: str, name: Any, inner: str) -> dict[str, Any]:
    entries = config.get(field)
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get(inner), dict):
            found: dict[str, Any] = entry[inner]
            return found
    raise KubeconfigError(f"it has no {inner} named {name!r}")


def _content(section: dict[str, Any], name: str, directory: Path) -> bytes:
    data = section.get(f"{name}-data")
    if data:
        try:
            return base64.b64decode(str(data), validate=True)
        except binascii.Error as error:
            raise KubeconfigError(f"its {name}-data is not base64") from error
    path = section.get(name)
    return (directory / str(path)).read_bytes() if path else b""


def _authorization(user: dict[str, Any]) -> str:
    if user.get("token"):
        return f"Bearer {user['token']}"
    if user.get("username"):
        pair = f"{user['username']}:{user.get('password') or ''}"
        return "Basic " + base64.b64encode(pair.encode()).decode()
    return ""


def _load_chain(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """``ssl`` reads certificates only from files: one of mode 0600, gone as soon as it is read."""
    handle, path = tempfile.mkstemp(prefix="client-", suffix=".pem")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(certificate + b"\n" + key)
        context.load_cert_chain(path, password=_no_password)
    finally:
        os.unlink(path)


def _no_password() -> str:
    raise ValueError("the key has a password")
