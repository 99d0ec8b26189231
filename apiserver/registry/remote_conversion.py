"""Runs what needs conversion webhooks: a function that stops where an object was not converted yet is run again once it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from apiserver.apiextensions.conversion_webhook import BATCH_OBJECTS_MAX, NeedsConversionError, failed
from apiserver.machinery import names
from apiserver.objectstore.interface import StoredObject
from apiserver.registry.environment import Environment

if TYPE_CHECKING:
    from apiserver.registry.store import Store

T = TypeVar("T")

#: Objects that one function may need beyond those that were converted ahead of it: an object, in the versions of its managers.
CONVERSIONS_MAX = 64


async def settled(env: Environment, work: Callable[[], T]) -> T:
    """What ``work`` answers, which bears being run several times. Raises StatusError."""
    for _ in range(CONVERSIONS_MAX):
        try:
            return work()
        except NeedsConversionError as need:
            await _convert(env, [need])
    return work()


async def pin(store: Store, objects: Sequence[StoredObject]) -> None:
    """Have objects converted, many with one call, and what is served kept with each. Raises StatusError."""
    for first in range(0, len(objects), BATCH_OBJECTS_MAX):
        needs: list[NeedsConversionError] = []
        waiting: list[StoredObject] = []
        for stored in objects[first : first + BATCH_OBJECTS_MAX]:
            try:
                store.served(stored)
            except NeedsConversionError as need:
                needs.append(need)
                waiting.append(stored)
        if needs:
            await _convert(store.env, needs)
        for stored in waiting:
            store.served(stored)


async def _convert(env: Environment, needs: Sequence[NeedsConversionError]) -> None:
    """All are of one definition and wanted in one version."""
    first = needs[0]
    if env.call_webhook is None:
        raise failed(first.obj, "failed: this server does not call conversion webhooks")
    await first.converted.convert(
        [need.obj for need in needs],
        first.api_version,
        env.call_webhook,
        lambda: names.new_uid(env.random),
        env.conversion_metrics.called,
    )
