"""``Auditor``: asks the policy about each request, and tells the sinks its event at each stage."""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import orjson

from apiserver.audit.event import AuditEvent, legacy_line, truncated
from apiserver.audit.policy import Decision, Level, Policy, Stage
from apiserver.audit.sinks import Losses, Sink
from apiserver.authentication.user import UserInfo
from apiserver.filters.deadline import is_long_running
from apiserver.machinery import status
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.request.request_context import RequestContext, RequestInfo

if TYPE_CHECKING:
    from apiserver.metrics import Exposition

logger = logging.getLogger(__name__)

#: decisions remembered; beyond it the memory starts anew
KNOWN_MAX = 8192


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A sink, and how it has its events: as JSON, or as lines for people; of how many bytes at most (0: any)."""

    sink: Sink
    legacy: bool = False
    event_bytes_max: int = 0
    #: a request whose coming cannot be noted is refused
    strict: bool = False
    plugin: str = "log"


class Auditor:
    """``now``: seconds since the epoch."""

    def __init__(self, policy: Policy, outputs: Sequence[Output], losses: Losses, now: Callable[[], float]) -> None:
        self._policy = policy
        self._outputs = tuple(outputs)
        self._losses = losses
        self._now = now
        self._known: dict[tuple[int, int], tuple[UserInfo, RequestInfo, Decision]] = {}
        self._events = 0

    def begin(self, context: RequestContext, uri: str, source: str, age_seconds: float) -> AuditEvent | None:
        """The event of a request of which it is known who asks, told to have come; None where nothing is to be noted. ``age_seconds``:
        since it came. Raises StatusError where a strict output did not take it."""
        event = self._event(context, uri, source, age_seconds)
        if event is not None:
            if not self.tell(event, Stage.REQUEST_RECEIVED):
                raise status.internal_error("failed to store audit event")
            if is_long_running(context.info):
                event.response_body = None
                event.on_start = functools.partial(self.tell, event, Stage.RESPONSE_STARTED)
        return event

    def _event(self, context: RequestContext, uri: str, source: str, age_seconds: float) -> AuditEvent | None:
        decision = self._decision(context)
        if decision.level is Level.NONE:
            return None
        return AuditEvent(context, decision, uri, source, self._now() - age_seconds)

    def _decision(self, context: RequestContext) -> Decision:
        user, info = context.original_user or context.user, context.info
        if user is None:
            return self._policy.decide(None, info)
        key = (id(user), id(info))
        known = self._known.get(key)
        # the entry holds both objects, so their identities cannot have passed to others
        if known is not None:
            return known[2]
        decision = self._policy.decide(user, info)
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[key] = (user, info, decision)
        return decision

    def refuse(self, context: RequestContext, uri: str, source: str, age_seconds: float, error: StatusError) -> None:
        """A request that is answered before it is known who asks."""
        event = self._event(context, uri, source, age_seconds)
        if event is not None:
            event.failed = error.status
            if event.response_body is not None:
                event.refused_with = error.status
            event.request_body = event.response_body = None
            event.code = error.code
            self.tell(event, Stage.RESPONSE_STARTED)

    def end(self, event: AuditEvent) -> None:
        """The answer is out, or will not come."""
        self.tell(event, Stage.PANIC if event.panic else Stage.RESPONSE_COMPLETE)

    def tell(self, event: AuditEvent, stage: Stage) -> bool:
        """Whether all strict outputs took it. Never raises: what cannot be told is counted."""
        if stage in event.decision.omit_stages:
            return True
        taken = True
        try:
            told = event.to_json(stage, self._now())
            line = orjson.dumps(told, option=orjson.OPT_APPEND_NEWLINE)
            for output in self._outputs:
                taken = (self._put(output, told, line) or not output.strict) and taken
            self._events += 1
        except Exception:
            self._losses.add("event", 1, "an event could not be made")
            logger.exception("an audit event could not be made: audit_id=%s", event.context.audit_id)
            taken = not any(output.strict for output in self._outputs)
        return taken

    def _put(self, output: Output, told: Object, line: bytes) -> bool:
        if output.event_bytes_max and len(line) > output.event_bytes_max:
            told = truncated(told)
            line = orjson.dumps(told, option=orjson.OPT_APPEND_NEWLINE)
            if len(line) > output.event_bytes_max:
                self._losses.add(output.plugin, 1, "an event is too large even without its objects")
                return True
        return output.sink.put(f"{legacy_line(told)}\n".encode() if output.legacy else line)

    def close(self) -> None:
        for output in self._outputs:
            output.sink.close()

    def expose(self, out: Exposition) -> None:
        words = "Counter of audit events generated and sent to the audit backend."
        out.counter("apiserver_audit_event_total", words, (((), self._events),))
        out.counter(
            "apiserver_audit_error_total",
            "Counter of audit events that failed to be audited properly. Plugin identifies the plugin affected by the error.",
            (((("plugin", plugin),), count) for plugin, count in sorted(self._losses.by_plugin.items())),
        )


def annotate(context: RequestContext, key: str, value: str) -> None:
    """Add an annotation to the request's event, if there is one. The first value of a key stays, as upstream."""
    if key in context.annotations:
        if context.annotations[key] != value:
            logger.warning("an audit annotation is there already: key=%s", key)
        return
    context.annotations[key] = value
