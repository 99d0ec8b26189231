"""Admission over caches that may be a moment behind other servers' writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from apiserver.admission.interfaces import AdmissionAttributes
from apiserver.machinery.status import StatusError
from apiserver.request.unanswered import settled_work

#: Refusals for what is not there, or not yet.
_CODES = frozenset((403, 404))


class _Chain(Protocol):
    async def admit(self, attributes: AdmissionAttributes) -> None: ...

    async def validate(self, attributes: AdmissionAttributes) -> None: ...


class LookingAgain:
    """A refusal is final only when the caches have what was written before it: a namespace, an account, a class that was made through
    another server a moment ago is found. What is refused runs through the chain again, which plugins bear as they bear an update's
    further attempts. ``catch_up`` answers whether there was any news. The same where a plugin asks an authorizer whose answer another
    server has: it is fetched, and the chain begins again."""

    def __init__(self, chain: _Chain, catch_up: Callable[[], Awaitable[bool]]) -> None:
        self._chain = chain
        self._catch_up = catch_up

    async def admit(self, attributes: AdmissionAttributes) -> None:
        await self._run(self._chain.admit, attributes)

    async def validate(self, attributes: AdmissionAttributes) -> None:
        await self._run(self._chain.validate, attributes)

    async def _run(self, chain: Callable[[AdmissionAttributes], Awaitable[None]], attributes: AdmissionAttributes) -> None:
        try:
            await settled_work(lambda: chain(attributes))
        except StatusError as error:
            if error.code not in _CODES or not await self._catch_up():
                raise
            await settled_work(lambda: chain(attributes))
