"""TLS of the API server: client certificates are asked for but not judged by the handshake.

A certificate that has expired or that an unknown authority signed must end in a 401 Status, which a client can show, and not in a TLS
alert. Python's ``ssl`` knows no such mode, OpenSSL does: a verify callback that accepts everything. So it is set on the context by
ctypes. The authentication (``authentication.x509``) verifies the certificate in full.
"""

from __future__ import annotations

import ctypes
import logging
import ssl
from collections.abc import Callable
from pathlib import Path

from cryptography import x509

from apiserver.config import ServerConfig
from apiserver.machinery import timestamps
from apiserver.tls_settings import TlsSettings, choose
from storage import tls

_log = logging.getLogger(__name__)

_USUAL = TlsSettings()
_VERIFY_PEER = 1
_VERIFY_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p)


#: kept for the life of the process, as OpenSSL holds the pointer
_ACCEPT = _VERIFY_CALLBACK(lambda preverified, store_context: 1)


class _SslContextHead(ctypes.Structure):
    """How CPython's ``_ssl._SSLContext`` begins: an object header, then the ``SSL_CTX *``."""

    _fields_ = [("refcount", ctypes.c_ssize_t), ("type", ctypes.c_void_p), ("ctx", ctypes.c_void_p)]


def client_authorities(path: Path) -> tls.Reloaded[tuple[x509.Certificate, ...]]:
    """The authorities of client certificates, as the file has them at each moment. Raises OSError, ValueError where it holds none."""
    return tls.Reloaded((path,), lambda: tuple(x509.load_pem_x509_certificates(path.read_bytes())), purpose="client CA")


def certificate_expiry(config: ServerConfig) -> tls.CertificateExpiry:
    """Of every certificate that this server uses."""
    expiry = tls.CertificateExpiry()
    store = config.store
    for purpose, path in (
        ("apiserver", config.tls_cert_file),
        ("client-ca", config.client_ca_file),
        ("front-proxy-client", config.proxy_client_cert_file),
        ("etcd-peer", store.peer_cert_file),
        ("etcd-peer-ca", store.peer_trusted_ca_file),
        ("etcd-server", store.cert_file),
        ("etcd-ca", store.trusted_ca_file),
    ):
        if path is not None:
            expiry.add(purpose, path)
    return expiry


def warn_of_expired_certificates(config: ServerConfig, now: float) -> None:
    """Clients will refuse such a one, or it them, and the server itself would not notice. ``now``: seconds since the epoch."""
    for path, purpose, ends in certificate_expiry(config).samples():
        if ends <= now:
            since = timestamps.format_time(int(ends))
            _log.warning("a certificate has expired: purpose=%s file=%s since=%s", purpose, path, since)


def server_context(certificate: Path, key: Path, client_ca: Path | None, settings: TlsSettings = _USUAL) -> ssl.SSLContext:
    """A context for the listener, which takes new files for new connections. Raises OSError and ssl.SSLError for files that cannot be
    used."""

    def reloaded(certificate: Path, key: Path) -> tls.Reloaded[ssl.SSLContext]:
        files = [certificate, key] if client_ca is None else [certificate, key, client_ca]
        return tls.Reloaded(files, lambda: _build(certificate, key, client_ca, settings), purpose="API server")

    usual = reloaded(certificate, key)
    named = [reloaded(pair.certificate, pair.key) for pair in settings.sni]
    patterns = [(pattern, number) for number, pair in enumerate(settings.sni) for pattern in pair.patterns()]
    first = usual.current()

    def use_current(connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _context: ssl.SSLContext) -> None:
        number = choose(name, patterns) if patterns else None
        connection.context = (usual if number is None else named[number]).current()

    # Called in each handshake, whether the client names a server or not.
    first.sni_callback = use_current
    return first


def _build(certificate: Path, key: Path, client_ca: Path | None, settings: TlsSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    settings.apply(context)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["http/1.1"])
    if client_ca is None:
        return context
    context.verify_mode = ssl.CERT_OPTIONAL
    if not _accept_any_certificate(context):
        _log.warning("client certificates are verified by the TLS handshake: a bad one ends the connection instead of a 401")
        context.load_verify_locations(client_ca)
    return context


def _accept_any_certificate(context: ssl.SSLContext) -> bool:
    """Whether the callback could be set: it cannot where OpenSSL is linked into the interpreter with its symbols hidden."""
    import _ssl

    try:
        library = ctypes.CDLL(getattr(_ssl, "__file__", None))
        set_verify: Callable[..., None] = library.SSL_CTX_set_verify
        get_mode = library.SSL_CTX_get_verify_mode
    except (OSError, AttributeError):
        return False
    get_mode.argtypes, get_mode.restype = [ctypes.c_void_p], ctypes.c_int
    set_verify.argtypes, set_verify.restype = [ctypes.c_void_p, ctypes.c_int, _VERIFY_CALLBACK], None  # type: ignore[attr-defined]
    pointer = _SslContextHead.from_address(id(context)).ctx
    # the pointer is the right one only if it tells the mode that was just set
    if not pointer or get_mode(pointer) != _VERIFY_PEER:
        return False
    set_verify(pointer, _VERIFY_PEER, _ACCEPT)
    return True
