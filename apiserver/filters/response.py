"""The response on its way out: headers that every answer carries, and Status answers of the chain itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from apiserver.filters import warnings
from apiserver.filters.asgi import Message, Send
from apiserver.filters.flow_control import PlainRefusalError
from apiserver.machinery.status import StatusError
from apiserver.request import negotiation
from apiserver.request.rendering import render
from apiserver.request.request_context import RequestContext

if TYPE_CHECKING:
    from apiserver.audit.event import AuditEvent


class Response:
    """Stands in for ``send``: notes the status, adds ``Audit-Id``, ``Cache-Control`` and warnings to the start of the response."""

    __slots__ = ("_context", "_send", "bytes_sent", "complete", "on_start", "started")

    def __init__(self, send: Send, context: RequestContext) -> None:
        self._send = send
        self._context = context
        self.started = False
        self.complete = False
        self.bytes_sent = 0
        #: called when the response starts
        self.on_start: Callable[[], object] | None = None

    async def __call__(self, message: Message) -> None:
        if not self.started and message["type"] == "http.response.start":
            self.started = True
            context = self._context
            context.response_status = message["status"]
            headers = [*message["headers"], (b"audit-id", context.audit_id.encode("ascii")), *context.response_headers]
            if not any(name.lower() == b"cache-control" for name, _ in message["headers"]):
                # answers depend on who asks, so no cache between may keep them
                headers.append((b"cache-control", b"no-cache, private"))
            if context.warnings:
                headers += warnings.headers(context.warnings)
            if self.on_start is not None:
                self.on_start()
            if context.audit is not None:
                self._audit_start(context.audit, message["headers"])
            await self._send({"type": "http.response.start", "status": message["status"], "headers": headers})
            return
        body = message.get("body")
        if body:
            self.bytes_sent += len(body)
            if self._context.audit is not None and self._context.audit.response_body is not None:
                self._context.audit.note_response_bytes(body)
        await self._send(message)
        self.complete = not message.get("more_body")

    async def send_status(self, error: StatusError) -> None:
        """Answer with a Status; the response must not have started."""
        assert not self.started, "the response has started"
        if self._context.audit is not None:
            self._context.audit.failed = error.status
        if isinstance(error, PlainRefusalError):
            await self._send_plain(error)
            return
        negotiated = negotiation.of_status(self._context.headers, self._context.query)
        try:
            body = render(negotiated, error.status)
        except ValueError:  # of a type that protobuf has no place for: what went wrong is told in any case
            negotiated = negotiation.PLAIN
            body = render(negotiated, error.status)
        headers = [
            (b"content-type", negotiated.media_type.encode()),
            (b"content-length", str(len(body)).encode()),
        ]
        headers += _headers_of(error)
        await self({"type": "http.response.start", "status": error.code, "headers": headers})
        await self({"type": "http.response.body", "body": body})

    @staticmethod
    def _audit_start(event: AuditEvent, headers: Iterable[tuple[bytes, bytes]]) -> None:
        event.response_type = next((value for name, value in headers if name.lower() == b"content-type"), b"")
        if event.on_start is not None:
            event.on_start()

    async def _send_plain(self, error: StatusError) -> None:
        body = f"{error.message}\n".encode()
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"x-content-type-options", b"nosniff")]
        headers += [(b"content-length", b"%d" % len(body)), *_headers_of(error)]
        await self({"type": "http.response.start", "status": error.code, "headers": headers})
        await self({"type": "http.response.body", "body": body})


def _headers_of(error: StatusError) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in error.headers.items()]
