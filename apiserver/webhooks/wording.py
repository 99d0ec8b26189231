"""What goes wrong between this server and a webhook, in the words of Go's HTTP client and of client-go, which operators search for."""

from __future__ import annotations

import asyncio
import errno
import ssl

import aiohttp
import orjson

from apiserver.machinery import status
from apiserver.machinery.status import StatusError
from apiserver.outbound.service_endpoints import UnresolvedError

_UNKNOWN_AUTHORITY = frozenset((2, 7, 18, 19, 20, 21))  # OpenSSL's X509_V_ERR_* about issuers that are not trusted
_EXPIRED = frozenset((9, 10))  # not yet valid, has expired
_WRONG_NAME = frozenset((62, 64))  # of the host, of the address

_SYSCALLS = {
    errno.ECONNREFUSED: "connection refused",
    errno.ECONNRESET: "connection reset by peer",
    errno.EHOSTUNREACH: "no route to host",
    errno.ENETUNREACH: "network is unreachable",
    errno.ETIMEDOUT: "connection timed out",
}


def transport(error: BaseException, host: str) -> str:
    """Why there was no answer. ``host``: whom the certificate had to be of."""
    if isinstance(error, UnresolvedError):
        return str(error)
    if isinstance(error, (asyncio.TimeoutError, TimeoutError)):
        return "context deadline exceeded"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return _certificate(error.certificate_error, host)
    if isinstance(error, aiohttp.ClientConnectorError):
        return _connecting(error, host)
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "unexpected EOF"
    if isinstance(error, OSError) and error.errno in _SYSCALLS:
        return f"read tcp: {_SYSCALLS[error.errno]}"
    return f"net/http: {error or type(error).__name__}"


def _connecting(error: aiohttp.ClientConnectorError, host: str) -> str:
    cause: BaseException = error.os_error
    while cause.__cause__ is not None and not isinstance(cause, UnresolvedError):
        cause = cause.__cause__
    if isinstance(cause, UnresolvedError):
        return str(cause)
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {error.host}: no such host"
    if isinstance(error.os_error, ssl.SSLCertVerificationError):
        return _certificate(error.os_error, host)
    if isinstance(error.os_error, ssl.SSLError):
        reason = error.os_error.reason or ""
        if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
            return "http: server gave HTTP response to HTTPS client"
        return f"remote error: tls: {reason.lower().replace('_', ' ')}"
    code = error.os_error.errno
    why = _SYSCALLS.get(code or 0, error.os_error.strerror or str(error.os_error))
    return f"dial tcp {error.host}:{error.port}: connect: {why}"


def _certificate(error: Exception, host: str) -> str:
    code = getattr(error, "verify_code", 0)
    if code in _UNKNOWN_AUTHORITY:
        why = "certificate signed by unknown authority"
    elif code in _EXPIRED:
        why = "certificate has expired or is not yet valid"
    elif code in _WRONG_NAME:
        why = f"certificate is not valid for {host}"
    else:
        why = getattr(error, "verify_message", "") or str(error)
    return f"tls: failed to verify certificate: x509: {why}"


_BY_CODE = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    409: ("AlreadyExists", "the server reported a conflict"),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "the server was unable to return a response in the time allotted, but may still be processing the request"),
}
#: of a body that is shown in a refusal
SHOWN_CHARACTERS_MAX = 2048


def unsuccessful(code: int, body: bytes, media_type: str) -> StatusError:
    """An HTTP status other than 2xx (apimachinery ``NewGenericServerResponse``), or the failed Status that came with it."""
    told = _failed_status(body)
    if told:
        return StatusError(status.failure(code, "", told, {}))
    said = body[:SHOWN_CHARACTERS_MAX].decode("utf-8", "replace").strip() if media_type.startswith("text/") or not media_type else "unknown"
    known = _BY_CODE.get(code)
    if known is not None:
        reason, message = known
    elif code == 403:
        reason, message = "Forbidden", said
    elif code >= 500:
        from apiserver.machinery import go_json

        reason, message = "InternalError", f"an error on the server ({go_json.quote(said)}) has prevented the request from succeeding"
    else:
        reason, message = "", f"the server responded with the status code {code} but did not return more information"
    return StatusError(status.failure(code, reason, message, {}))


def _failed_status(body: bytes) -> str:
    """What a Status in a body says, "" where it is none."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    if not isinstance(found, dict) or found.get("kind") != "Status" or found.get("apiVersion") != "v1":
        return ""
    message = found.get("message")
    return message if found.get("status") == "Failure" and isinstance(message, str) else ""
