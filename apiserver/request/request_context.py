"""``RequestInfo``: what a path and method mean (apiserver ``endpoints/request``); ``RequestContext``: all facts about one request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from apiserver.authentication.user import UserInfo

if TYPE_CHECKING:
    from apiserver.audit.event import AuditEvent

SCOPE_KEY = "sampan"
#: warnings of one request; far more than the 4 KiB of header that they may fill in the end
WARNINGS_MAX = 500


@dataclass(slots=True)
class RequestInfo:
    """``verb`` is Kubernetes' (get list watch create update patch delete deletecollection), or the lower-case method where
    ``is_resource_request`` is false. ``name`` of a list or watch is set from ``fieldSelector=metadata.name=…``."""

    is_resource_request: bool
    path: str
    verb: str
    api_prefix: str = ""
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    parts: tuple[str, ...] = ()


@dataclass(slots=True)
class RequestContext:
    """Made by the first filter, filled by the later ones, read by the handlers.

    ``received_at`` is of the monotonic clock (``deadline`` too, seconds); ``peer_certificate`` is the client's DER certificate
    of the TLS handshake, unverified; ``warnings`` become ``Warning: 299`` headers; ``annotations`` go to the audit event.
    """

    info: RequestInfo
    method: str
    query: dict[str, list[str]]
    headers: dict[bytes, bytes]
    audit_id: str
    received_at: float
    deadline: float | None = None
    peer_certificate: bytes | None = None
    #: what the client sent along with it, likewise unverified
    peer_intermediates: tuple[bytes, ...] = ()
    user: UserInfo | None = None
    original_user: UserInfo | None = None
    #: the verb of constrained impersonation that let ``original_user`` act as ``user``
    impersonation_constraint: str = ""
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    response_status: int = 0
    #: what is noted of it
    audit: AuditEvent | None = None
    #: of whatever answer it gets
    response_headers: tuple[tuple[bytes, bytes], ...] = ()
    #: all of them, where one name comes several times; names in lower case
    raw_headers: Sequence[tuple[bytes, bytes]] = ()
    extra: dict[str, Any] = field(default_factory=dict)

    def query_value(self, name: str) -> str:
        """The first value of a query parameter, "" where there is none."""
        values = self.query.get(name)
        return values[0] if values else ""

    def annotate(self, key: str, value: str) -> None:
        """For the audit event; what was said first stays."""
        self.annotations.setdefault(key, value)

    def warn(self, text: str) -> None:
        """Texts said twice are sent once. Beyond ``WARNINGS_MAX`` no further one is kept: the headers would not take it."""
        if len(self.warnings) < WARNINGS_MAX and text not in self.warnings:
            self.warnings.append(text)
