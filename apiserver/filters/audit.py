"""The audit log (``--audit-log-path``): one JSON line for each request, at the Metadata level (audit.k8s.io/v1 Event): who did what to
which object and how it was answered, no bodies."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from apiserver.authentication.reviews import user_to_json
from apiserver.request.request_context import RequestContext

#: of a user agent in the log, in characters
USER_AGENT_LENGTH_MAX = 1024


class AuditLog:
    def __init__(self, write: Callable[[bytes], object], now: Callable[[], float], close: Callable[[], object] = lambda: None) -> None:
        """``write`` takes one whole line; ``now``: seconds since the epoch; ``close`` ends the log."""
        self._write = write
        self._now = now
        self.close = close

    @classmethod
    def to_file(cls, path: Path, now: Callable[[], float]) -> AuditLog:
        """Appends to ``path``, made with mode 0600 if need be; each line is one write, so lines of two servers do not mix."""
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return cls(lambda line: os.write(descriptor, line), now, lambda: os.close(descriptor))

    def log(self, context: RequestContext, request_uri: str, source: str, seconds: float) -> None:
        """After the response. ``seconds``: how long the request took."""
        end = self._now()
        info = context.info
        user = context.original_user or context.user
        event: dict[str, Any] = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": context.audit_id,
            "stage": "ResponseComplete",
            "requestURI": request_uri,
            "verb": info.verb,
            "user": user_to_json(user) if user is not None else {},
        }
        if context.original_user is not None and context.user is not None:
            event["impersonatedUser"] = user_to_json(context.user)
        if source:
            event["sourceIPs"] = [source]
        agent = context.headers.get(b"user-agent")
        if agent:
            event["userAgent"] = agent.decode("latin-1")[:USER_AGENT_LENGTH_MAX]
        if info.is_resource_request:
            reference = {
                "resource": info.resource,
                "namespace": info.namespace,
                "name": info.name,
                "apiGroup": info.group,
                "apiVersion": info.version,
                "subresource": info.subresource,
            }
            event["objectRef"] = {key: value for key, value in reference.items() if value}
        event["responseStatus"] = {"metadata": {}, "code": context.response_status}
        event["requestReceivedTimestamp"] = _rfc3339(end - seconds)
        event["stageTimestamp"] = _rfc3339(end)
        if context.annotations:
            event["annotations"] = context.annotations
        self._write(orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE))


def _rfc3339(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
