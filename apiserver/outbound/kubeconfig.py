"""The kubeconfig files of webhooks (``--authentication-token-webhook-config-file``, …): where a server is, whom to trust as it, and how
this server says who it is. The current context counts; paths in a file are relative to it."""

from __future__ import annotations

import base64
import binascii
import os
import ssl
import tempfile
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apiserver.machinery import config_file

#: of a kubeconfig file; those of large fleets have some hundred KiB
FILE_BYTES_MAX = 4 * 1024 * 1024
HTTPS_PORT = 443


class KubeconfigError(ValueError):
    """The file cannot be used; the text says what is wrong with it, and never tells a credential."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """How this server says who it is. ``authorization``: the header to send, "" for none."""

    certificate: bytes = b""
    key: bytes = b""
    authorization: str = ""
    token_file: Path | None = None

    def headers(self) -> dict[str, str]:
        """The file of a token is read each time: tokens rotate. Raises KubeconfigError where it cannot be."""
        if self.authorization:
            return {"Authorization": self.authorization}
        if self.token_file is None:
            return {}
        try:
            return {"Authorization": f"Bearer {self.token_file.read_text(encoding='utf-8').strip()}"}
        except OSError as error:
            raise KubeconfigError(f"the token file of its user cannot be read: {error.strerror}") from error

    def present(self, context: ssl.SSLContext) -> None:
        """Let ``context`` show the certificate, if there is one. Raises KubeconfigError."""
        if not self.certificate:
            return
        try:
            _load_chain(context, self.certificate, self.key)
        except (ssl.SSLError, ValueError) as error:
            raise KubeconfigError(f"its certificates cannot be used: {error}") from error

    def __repr__(self) -> str:
        return "Credentials()"  # never what is in them


NO_CREDENTIALS = Credentials()


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """``server_name``: what the certificate is checked against, "" for the URL's."""

    url: str
    ca: bytes = b""
    insecure: bool = False
    server_name: str = ""
    credentials: Credentials = NO_CREDENTIALS

    def ssl_context(self) -> ssl.SSLContext:
        """Raises KubeconfigError for certificates that cannot be used."""
        try:
            context = ssl.create_default_context(cadata=self.ca.decode("ascii") if self.ca else None)
            # what Go's verifier does not ask of a private authority either
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            if self.insecure:
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        except (ssl.SSLError, ValueError) as error:
            raise KubeconfigError(f"its certificates cannot be used: {error}") from error
        self.credentials.present(context)
        return context


@dataclass(frozen=True, slots=True)
class Users:
    """Credentials by the servers that they are for: users of a kubeconfig whose names are ``HOST:PORT``, ``HOST`` (of port 443),
    ``*.DOMAIN`` with or without a port, or ``*``; else those of the current context (as ``kubeConfigFile`` of WebhookAdmissionConfiguration
    says them)."""

    by_name: Mapping[str, Credentials]
    otherwise: Credentials = NO_CREDENTIALS

    def of(self, host: str, port: int) -> Credentials:
        targets = [f"{host}:{port}", host] if port == HTTPS_PORT else [f"{host}:{port}"]
        for target in targets:
            parts = target.split(".")
            for name in (target, *("*." + ".".join(parts[cut:]) for cut in range(1, len(parts)))):
                if name in self.by_name:
                    return self.by_name[name]
        return self.by_name.get("*", self.otherwise)


NO_USERS = Users({})


def load(path: Path) -> Endpoint:
    """Raises OSError, KubeconfigError."""
    return parse(_read(path), path.parent)


def load_users(path: Path) -> Users:
    """Raises OSError, KubeconfigError."""
    config = _config(_read(path))
    users = config.get("users")
    names = [user.get("name") for user in users if isinstance(user, dict)] if isinstance(users, list) else []
    by_name = {str(name): _credentials(_named(config, "users", name, "user"), path.parent) for name in names}
    current = config.get("current-context")
    user_name = _named(config, "contexts", current, "context").get("user") if current else None
    return Users(by_name, by_name.get(str(user_name), NO_CREDENTIALS))


def parse(text: str, directory: Path) -> Endpoint:
    """Raises OSError, KubeconfigError."""
    config = _config(text)
    current = config.get("current-context")
    if current:
        context = _named(config, "contexts", current, "context")
        cluster_name, user_name = context.get("cluster"), context.get("user")
    else:
        raise KubeconfigError("it has no current-context")
    cluster = _named(config, "clusters", cluster_name, "cluster")
    url = str(cluster.get("server") or "")
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise KubeconfigError("its cluster has no server URL")
    endpoint = Endpoint(
        url=url,
        ca=_content(cluster, "certificate-authority", directory),
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
        server_name=str(cluster.get("tls-server-name") or ""),
        credentials=_credentials(_named(config, "users", user_name, "user"), directory) if user_name else NO_CREDENTIALS,
    )
    if endpoint.insecure and endpoint.ca:
        raise KubeconfigError("its cluster has a certificate authority and insecure-skip-tls-verify")
    endpoint.ssl_context()
    return endpoint


def _read(path: Path) -> str:
    if path.stat().st_size > FILE_BYTES_MAX:
        raise KubeconfigError(f"the file has more than {FILE_BYTES_MAX} bytes")
    return path.read_text(encoding="utf-8")


def _config(text: str) -> dict[str, Any]:
    try:
        config = config_file.load_yaml(text)
    except config_file.ConfigFileError as error:
        raise KubeconfigError("it is no YAML") from error
    if not isinstance(config, dict):
        raise KubeconfigError("it is no kubeconfig")
    return config


def _credentials(user: dict[str, Any], directory: Path) -> Credentials:
    for unknown in ("exec", "auth-provider"):
        if user.get(unknown):
            raise KubeconfigError(f"its user has {unknown}, which a server does not run")
    token_file = user.get("tokenFile")
    found = Credentials(
        certificate=_content(user, "client-certificate", directory),
        key=_content(user, "client-key", directory),
        authorization=_authorization(user),
        token_file=directory / str(token_file) if token_file else None,
    )
    if bool(found.certificate) != bool(found.key):
        raise KubeconfigError("its user has a client certificate without a key, or a key without one")
    found.present(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    return found


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
