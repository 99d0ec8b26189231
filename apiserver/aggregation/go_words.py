"""What went wrong between two servers, as Go's ``net``, ``crypto/tls`` and ``net/http`` would have said it: operators search for these."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl

_DIALS = {
    errno.ECONNREFUSED: "connection refused",
    errno.EHOSTUNREACH: "no route to host",
    errno.ENETUNREACH: "network is unreachable",
    errno.ETIMEDOUT: "connection timed out",
    errno.ECONNRESET: "connection reset by peer",
}
#: OpenSSL's X509_V_ERR_… numbers
_VERIFICATIONS = {
    2: "certificate signed by unknown authority",
    9: "certificate has expired or is not yet valid",
    10: "certificate has expired or is not yet valid",
    18: "certificate signed by unknown authority",
    19: "certificate signed by unknown authority",
    20: "certificate signed by unknown authority",
    21: "certificate signed by unknown authority",
}
_HOSTNAME_MISMATCH = 62


def of_connection(error: BaseException, place: object, server_name: str) -> str:
    """``place``: host and port, as they stand in an address."""
    if isinstance(error, TimeoutError | asyncio.TimeoutError):
        return "context deadline exceeded"
    certificate = _caused_by(error, ssl.SSLCertVerificationError, having="verify_code")
    if isinstance(certificate, ssl.SSLCertVerificationError):
        if certificate.verify_code == _HOSTNAME_MISMATCH:
            return f"tls: failed to verify certificate: x509: certificate is not valid for {server_name}"
        words = _VERIFICATIONS.get(certificate.verify_code, certificate.verify_message)
        return f"tls: failed to verify certificate: x509: {words}"
    if isinstance(_caused_by(error, ssl.SSLError), ssl.SSLError):
        return "tls: first record does not look like a TLS handshake"
    found = _caused_by(error, socket.gaierror)
    if found is not None:
        return f"dial tcp: lookup {str(place).rpartition(':')[0]}: no such host"
    found = _caused_by(error, OSError, having="errno")
    if isinstance(found, OSError) and found.errno in _DIALS:
        verb = "read tcp" if found.errno == errno.ECONNRESET else "dial tcp"
        return f"{verb} {place}: connect: {_DIALS[found.errno]}" if verb == "dial tcp" else f"{verb} {place}: {_DIALS[found.errno]}"
    text = str(error)
    if "disconnected" in text.lower() or isinstance(error, EOFError | asyncio.IncompleteReadError):
        return "EOF"
    return f"net/http: HTTP/1.x transport connection broken: {text or type(error).__name__}"


def _caused_by(error: BaseException | None, kind: type[BaseException], having: str = "") -> BaseException | None:
    """The error itself or one that it comes from, of this kind, with this attribute: aiohttp's are of the kinds that they wrap."""
    while error is not None:
        if isinstance(error, kind) and (not having or getattr(error, having, None) is not None):
            return error
        inner = getattr(error, "os_error", None)
        error = inner if isinstance(inner, BaseException) and inner is not error else error.__cause__ or error.__context__
    return None
