"""Errors of the client.

StatusError (apiserver.machinery.status)   the server answered with a Status
ClientError
  ConfigInvalid                            a kubeconfig that cannot be used
  ConnectionFailed                         no answer: refused, broken, timed out; a write may or may not have happened
  DecodeFailed                             an answer that is no JSON object
"""

from __future__ import annotations

from apiserver.machinery.status import StatusError, failure

__all__ = [
    "TRANSIENT",
    "ClientError",
    "ConfigInvalid",
    "ConnectionFailed",
    "DecodeFailed",
    "StatusError",
    "is_already_exists",
    "is_conflict",
    "is_expired",
    "is_invalid",
    "is_namespace_terminating",
    "is_not_found",
    "is_too_large_resource_version",
    "status_error",
]


class ClientError(Exception):
    pass


class ConfigInvalid(ClientError):
    pass


class ConnectionFailed(ClientError):
    pass


class DecodeFailed(ClientError):
    pass


#: What a worker expects to meet now and then, and answers by trying again.
TRANSIENT = (StatusError, ClientError)

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Gone",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def status_error(code: int, body: object, headers: dict[str, str]) -> StatusError:
    """The error of an answer; a body that is no Status (a proxy's, a plain 404) gets one made from its code."""
    if isinstance(body, dict) and body.get("kind") == "Status":
        status = dict(body)
        status.setdefault("code", code)
        return StatusError(status, headers)
    text = body.decode("utf-8", "replace")[:1000] if isinstance(body, bytes) else str(body)[:1000]
    return StatusError(failure(code, REASONS.get(code, ""), text.strip() or f"the server answered {code}"), headers)


def is_not_found(error: BaseException) -> bool:
    return isinstance(error, StatusError) and error.code == 404


def is_conflict(error: BaseException) -> bool:
    return isinstance(error, StatusError) and error.code == 409 and error.reason == "Conflict"


def is_already_exists(error: BaseException) -> bool:
    return isinstance(error, StatusError) and error.reason == "AlreadyExists"


def is_expired(error: BaseException) -> bool:
    """410: the resourceVersion or continue token is too old; list again."""
    return isinstance(error, StatusError) and (error.code == 410 or error.reason in ("Expired", "Gone"))


def is_invalid(error: BaseException) -> bool:
    return isinstance(error, StatusError) and error.code == 422


def is_too_large_resource_version(error: BaseException) -> bool:
    """504 with cause ResourceVersionTooLarge: the server has not (or, after a restore, never will have) seen that revision."""
    if not isinstance(error, StatusError):
        return False
    causes = (error.status.get("details") or {}).get("causes") or []
    return any(c.get("reason") == "ResourceVersionTooLarge" for c in causes) or "Too large resource version" in error.message


def is_namespace_terminating(error: BaseException) -> bool:
    """A create refused because its namespace is going away: there is no use in trying again."""
    if not isinstance(error, StatusError) or error.code != 403:
        return False
    causes = (error.status.get("details") or {}).get("causes") or []
    return any(c.get("reason") == "NamespaceTerminating" for c in causes) or "because it is being terminated" in error.message
