"""Answers that another server has to give, for code that never waits.

Authenticators and authorizers answer from memory. Where the answer is a webhook's, or needs an issuer's keys, memory may not have it yet:
then they raise ``Unanswered``, whoever may wait awaits what it carries, and the same step is done again, which now finds the answer.
``settled`` is that loop. Steps that are done again must bear it: they ask, and change nothing before they have all answers.

Example: a SubjectAccessReview whose webhook was not asked yet → ``Unanswered`` → ``ask()`` posts to the webhook and keeps what it said →
the review is made again from memory.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

T = TypeVar("T")
V = TypeVar("V")

#: answers that one step may lack one after another: a chain of webhooks, asked about a user, each group and each extra of it
ROUNDS_MAX = 512
#: questions under way at once to one server; further ones are answered as if it could not be reached, so that a server that hangs does not
#: gather requests without end
PENDING_MAX = 512


class Unanswered(Exception):
    """Memory does not hold the answer yet; await ``ask`` and do the step again."""

    def __init__(self, ask: Callable[[], Awaitable[None]]) -> None:
        super().__init__("the answer of another server is needed first")
        self.ask = ask


#: answers that hold for this step alone, since their time to live is nothing
_of_step: ContextVar[dict[Hashable, Any] | None] = ContextVar("answers of this step", default=None)


async def settled(step: Callable[[], T]) -> T:
    """What ``step`` answers once others have answered what it asks. Raises what it raises."""
    try:
        return step()
    except Unanswered as first:
        missing = first
    token = _of_step.set({})
    try:
        for _ in range(ROUNDS_MAX):
            await missing.ask()
            try:
                return step()
            except Unanswered as further:
                missing = further
    finally:
        _of_step.reset(token)
    raise RuntimeError(f"a step still lacks an answer after {ROUNDS_MAX} questions")


async def settled_work(step: Callable[[], Awaitable[T]]) -> T:
    """The same for a step that itself waits. It is begun anew after each answer."""
    try:
        return await step()
    except Unanswered as first:
        missing = first
    token = _of_step.set({})
    try:
        for _ in range(ROUNDS_MAX):
            await missing.ask()
            try:
                return await step()
            except Unanswered as further:
                missing = further
    finally:
        _of_step.reset(token)
    raise RuntimeError(f"a step still lacks an answer after {ROUNDS_MAX} questions")


def note_asked(asked: Hashable) -> None:
    """That this step has asked, for questions whose answer may be that there is nothing new."""
    of_step = _of_step.get()
    if of_step is not None:
        of_step[asked] = True


def was_asked(asked: Hashable) -> bool:
    of_step = _of_step.get()
    return of_step is not None and asked in of_step


class RemoteAnswers(Generic[V]):
    """What a server answered, for as long as each answer holds; the longest unused goes first. Equal questions at one time are asked
    once."""

    def __init__(
        self, *, now: Callable[[], float], entries_max: int, ttl_seconds: Callable[[V], float], overloaded: Callable[[], V]
    ) -> None:
        """``now``: a monotonic clock in seconds; ``ttl_seconds`` of an answer; ``overloaded``: the answer in place of a further question
        while ``PENDING_MAX`` are under way."""
        self._now = now
        self._entries_max = entries_max
        self._ttl_seconds = ttl_seconds
        self._overloaded = overloaded
        self._known: OrderedDict[Hashable, tuple[float, V]] = OrderedDict()
        self._pending: dict[Hashable, asyncio.Task[V]] = {}
        #: requests that wait for an answer
        self.waiting = 0

    def __len__(self) -> int:
        return len(self._known)

    def forget(self) -> None:
        self._known.clear()

    @property
    def pending(self) -> int:
        """Questions under way."""
        return len(self._pending)

    def get(self, key: Hashable, ask: Callable[[], Awaitable[V]], note_known: Callable[[], None] | None = None) -> V:
        """The answer to the question ``key``, which ``ask`` puts and which must not raise; ``note_known`` is told where it was remembered.
        Raises Unanswered."""
        of_step = _of_step.get()
        if of_step is not None and (id(self), key) in of_step:
            answer: V = of_step[(id(self), key)]
            return answer
        found = self._known.get(key)
        if found is not None:
            if self._now() < found[0]:
                self._known.move_to_end(key)
                if note_known is not None:
                    note_known()
                return found[1]
            del self._known[key]
        raise Unanswered(lambda: self._bring(key, ask))

    async def _bring(self, key: Hashable, ask: Callable[[], Awaitable[V]]) -> None:
        task = self._pending.get(key)
        if task is None:
            if len(self._pending) >= PENDING_MAX:
                self._note_for_step(key, self._overloaded())
                return
            task = self._pending[key] = asyncio.ensure_future(self._ask(key, ask))
        # a client that goes away does not take the answer from the others that wait for it
        self.waiting += 1
        try:
            self._note_for_step(key, await asyncio.shield(task))
        finally:
            self.waiting -= 1

    async def _ask(self, key: Hashable, ask: Callable[[], Awaitable[V]]) -> V:
        try:
            answer = await ask()
        finally:
            del self._pending[key]
        ttl = self._ttl_seconds(answer)
        if ttl > 0:
            self._known[key] = (self._now() + ttl, answer)
            self._known.move_to_end(key)
            if len(self._known) > self._entries_max:
                self._known.popitem(last=False)
        return answer

    def _note_for_step(self, key: Hashable, answer: V) -> None:
        of_step = _of_step.get()
        if of_step is not None:
            of_step[(id(self), key)] = answer
