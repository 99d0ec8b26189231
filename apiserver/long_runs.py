"""Work that is short nearly always and may be long where somebody wants it so: expressions of users over objects of users.

It is done at once with a small allowance; what goes beyond is done again from its beginning, with all that it may take, in one thread
beside the loop, so that other requests are served meanwhile. Several of them wait for each other.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from apiserver.request.unanswered import settled_work

#: cost units of CEL that one request may take on the loop, about a fiftieth of a second of work
INLINE_COST_MAX = 30_000

T = TypeVar("T")


class LongRunError(Exception):
    """The allowance is used up: the work is to be done again by who has more time."""


@functools.cache
def _beside_the_loop() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "long-runs")


async def patiently(work: Callable[[bool], T]) -> T:
    """What ``work`` answers. Called with False it is to raise LongRunError beyond INLINE_COST_MAX, with True it takes its time. It may run
    several times, also because it needs what another server has to answer (Unanswered), and in another thread."""
    return await settled_work(functools.partial(_once, work))


async def _once(work: Callable[[bool], T]) -> T:
    try:
        return work(False)
    except LongRunError:
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(_beside_the_loop(), context.run, work, True)
