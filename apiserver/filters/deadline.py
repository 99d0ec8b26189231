"""Until when a request must have been answered: ``?timeout=``, at most the server's own limit."""

from __future__ import annotations

import re

from apiserver.machinery import status
from apiserver.request.request_context import RequestContext, RequestInfo

_LONG_RUNNING_VERBS = frozenset(("watch", "proxy"))
_LONG_RUNNING_SUBRESOURCES = frozenset(("attach", "exec", "proxy", "log", "portforward"))

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"\A[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+\Z")
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
#: no sane duration is longer; keeps the pattern's work small
_DURATION_LENGTH_MAX = 64


def is_long_running(info: RequestInfo) -> bool:
    """Watches and streams: they have no deadline, and do not count as requests in flight."""
    return info.verb in _LONG_RUNNING_VERBS or (info.is_resource_request and info.subresource in _LONG_RUNNING_SUBRESOURCES)


def parse_duration(text: str) -> float:
    """Seconds of a Go duration (``1m30s``, ``1.5h``, ``0``). Raises ValueError."""
    if text in ("0", "+0", "-0"):
        return 0.0
    if len(text) > _DURATION_LENGTH_MAX or not _DURATION.match(text):
        raise ValueError(f'time: invalid duration "{text[:_DURATION_LENGTH_MAX]}"')
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    return -seconds if text.startswith("-") else seconds


class Deadline:
    def __init__(self, timeout_seconds_max: float) -> None:
        assert timeout_seconds_max > 0, timeout_seconds_max
        self._timeout_seconds_max = timeout_seconds_max

    def __call__(self, context: RequestContext) -> None:
        """Sets ``context.deadline`` of requests that are not long running. Raises StatusError 400."""
        if is_long_running(context.info):
            return
        timeout = self._timeout_seconds_max
        asked = context.query_value("timeout") if context.query else ""
        if asked:
            try:
                seconds = parse_duration(asked)
            except ValueError as error:
                raise status.bad_request(f"invalid timeout specified in the request URL - {error}") from error
            # 0 says "no limit of mine"
            if 0 < seconds < timeout:
                timeout = seconds
        context.deadline = context.received_at + timeout


def timed_out() -> status.StatusError:
    """504: the handler was stopped; a write that it had begun may have happened."""
    return status.timeout("request did not complete within the allotted timeout")
