"""``Status`` objects and the one exception that carries them (apimachinery ``api/errors``; API conventions, "Response Status Kind").

Raise ``StatusError`` anywhere below a handler; the edge turns it into the answer. The constructors here are the only place where
the wordings of Kubernetes' errors stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apiserver.machinery.field_errors import FieldError


class StatusError(Exception):
    """An answer that is a Status. ``status`` is the whole object in its JSON form; ``code`` its HTTP status."""

    def __init__(self, status: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        super().__init__(status.get("message", ""))
        self.status = status
        self.headers = headers or {}

    @property
    def code(self) -> int:
        return int(self.status["code"])

    @property
    def reason(self) -> str:
        return str(self.status.get("reason", ""))

    @property
    def message(self) -> str:
        return str(self.status.get("message", ""))


def failure(code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> dict[str, Any]:
    status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    if reason:
        status["reason"] = reason
    if details is not None:
        status["details"] = details
    status["code"] = code
    return status


def _details(name: str, group: str, kind: str, **more: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if name:
        out["name"] = name
    if group:
        out["group"] = group
    if kind:
        out["kind"] = kind
    out.update({k: v for k, v in more.items() if v})
    return out


def qualified(group: str, resource: str) -> str:
    """``deployments.apps``; plain ``pods`` in the core group."""
    return f"{resource}.{group}" if group else resource


def bad_request(message: str) -> StatusError:
    return StatusError(failure(400, "BadRequest", message))


def unauthorized(message: str = "Unauthorized") -> StatusError:
    return StatusError(failure(401, "Unauthorized", message))


def forbidden(group: str, resource: str, name: str, why: str) -> StatusError:
    what = qualified(group, resource)
    if not name:
        message = f"{what} is forbidden: {why}" if what else f"forbidden: {why}"
    else:
        message = f'{what} "{name}" is forbidden: {why}'
    return StatusError(failure(403, "Forbidden", message, _details(name, group, resource)))


def not_found(group: str, resource: str, name: str) -> StatusError:
    message = f'{qualified(group, resource)} "{name}" not found'
    return StatusError(failure(404, "NotFound", message, _details(name, group, resource)))


def generic_not_found() -> StatusError:
    """A path that no resource has."""
    message = "the server could not find the requested resource"
    return StatusError(failure(404, "NotFound", message, {}))


def generic_method_not_allowed() -> StatusError:
    message = "the server does not allow this method on the requested resource"
    return StatusError(failure(405, "MethodNotAllowed", message, {}))


def not_acceptable(accepted: Sequence[str]) -> StatusError:
    message = f"only the following media types are accepted: {', '.join(accepted)}"
    return StatusError(failure(406, "NotAcceptable", message))


def wrong_metadata_form(form: str, *, is_list: bool, go_type: str) -> StatusError:
    what = "a list" if is_list else "not a list"
    shown = f" ({go_type})" if go_type else ""
    return StatusError(failure(406, "NotAcceptable", f"you requested {form}, but the requested object is {what}{shown}"))


def not_routed(code: int, types: Sequence[str]) -> StatusError:
    """406 and 415 where upstream's router stands in front. Its own words are "406: Not Acceptable" and "415: Unsupported Media Type";
    here it is told which types there are, in the words of the code behind it, which clients look for."""
    found = {406: not_acceptable, 415: unsupported_media_type}[code](types)
    found.status["details"] = {}
    return found


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return StatusError(failure(415, "UnsupportedMediaType", message))


def already_exists(group: str, resource: str, name: str) -> StatusError:
    message = f'{qualified(group, resource)} "{name}" already exists'
    return StatusError(failure(409, "AlreadyExists", message, _details(name, group, resource)))


def conflict(group: str, resource: str, name: str, why: str) -> StatusError:
    message = f'Operation cannot be fulfilled on {qualified(group, resource)} "{name}": {why}'
    return StatusError(failure(409, "Conflict", message, _details(name, group, resource)))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


#: Field errors that an answer tells. A body of 3 MiB can hold 100 000, whose Status would be larger than itself six times over and
#: hold up all other requests while it is made; nobody reads beyond these.
FIELD_ERRORS_MAX = 1_000


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    """422. One error stands alone in the message, several in brackets; equal texts are said once."""
    errors = errors[:FIELD_ERRORS_MAX]
    lines = list(dict.fromkeys(e.text() for e in errors))
    listed = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]" if lines else ""
    message = f'{qualified(group, kind)} "{name}" is invalid' + (f": {listed}" if listed else "")
    details = _details(name, group, kind, causes=[e.cause() for e in errors])
    return StatusError(failure(422, "Invalid", message, details))


def gone(message: str) -> StatusError:
    """410 Expired: a resourceVersion or continue token that is too old."""
    return StatusError(failure(410, "Expired", message))


def too_large_resource_version(wanted: int, current: int, retry_after_seconds: int = 1) -> StatusError:
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": retry_after_seconds,
    }
    message = f"Timeout: Too large resource version: {wanted}, current: {current}"
    return StatusError(failure(504, "Timeout", message, details), {"Retry-After": str(retry_after_seconds)})


def timeout(message: str) -> StatusError:
    return StatusError(failure(504, "Timeout", f"Timeout: {message}", {}))


def request_entity_too_large(message: str) -> StatusError:
    return StatusError(failure(413, "RequestEntityTooLarge", message))


def too_many_requests(message: str, retry_after_seconds: int = 1) -> StatusError:
    details = {"retryAfterSeconds": retry_after_seconds}
    return StatusError(failure(429, "TooManyRequests", message, details), {"Retry-After": str(retry_after_seconds)})


def internal_error(why: str) -> StatusError:
    details = {"causes": [{"message": why}]}
    return StatusError(failure(500, "InternalError", f"Internal error occurred: {why}", details))


def service_unavailable(message: str) -> StatusError:
    return StatusError(failure(503, "ServiceUnavailable", message))
