"""Until when a request must have been answered: ``?timeout=``, at most the server's own limit."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine, Generator
from typing import Any

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


class Limited:
    """``await Limited(coroutine, seconds)``: the coroutine, cancelled and told as 504 where it has not ended in time.

    The clock is started only when the coroutine waits for the first time. Most reads are answered from memory and never do, and then
    no timer is made (``asyncio.timeout`` would be a fifth of such a request).
    """

    __slots__ = ("_coroutine", "_seconds")

    def __init__(self, coroutine: Coroutine[Any, Any, None], seconds: float) -> None:
        self._coroutine = coroutine
        self._seconds = seconds

    def __await__(self) -> Generator[Any, Any, None]:
        steps = self._coroutine.__await__()
        try:
            waiting_for = steps.send(None)
        except StopIteration:
            return
        task = asyncio.current_task()
        assert task is not None, "not in a task"
        timer = _Timer(task)
        handle = asyncio.get_running_loop().call_later(max(0.0, self._seconds), timer.expire)
        try:
            while True:
                try:
                    yield waiting_for
                except BaseException as error:
                    waiting_for = steps.throw(error)
                else:
                    waiting_for = steps.send(None)
        except StopIteration:
            return
        except asyncio.CancelledError:
            # who else cancelled the task wants it to end: only our own cancellation becomes an answer
            if timer.expired and task.uncancel() <= timer.cancelled_before:
                raise timed_out() from None
            raise
        finally:
            handle.cancel()


class _Timer:
    __slots__ = ("_task", "cancelled_before", "expired")

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self._task = task
        self.cancelled_before = task.cancelling()
        self.expired = False

    def expire(self) -> None:
        self.expired = True
        self._task.cancel()


def timed_out() -> status.StatusError:
    """504: the handler was stopped; a write that it had begun may have happened."""
    return status.timeout("request did not complete within the allotted timeout")
