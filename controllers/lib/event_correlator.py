"""Which events to send, and as what: aggregation, counting, and a limit a source (client-go ``events_cache.go``). Pure, but for its cache.

Example: the same event three times → create with count 1, patch count 2, patch count 3. Eleven that differ only in their message within
ten minutes → the eleventh is "(combined from similar events): …" under one name. More than 25 at once from one source about one object →
dropped until its bucket (one each five minutes) fills again.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TypeVar

from apiserver.machinery.objects import Object

V = TypeVar("V")

#: keys remembered a cache; older ones start over, as client-go's LRU
CACHE_SIZE = 4096
SIMILAR_MAX = 10
SIMILAR_WINDOW_SECONDS = 600.0
SPAM_BURST = 25
SPAM_QPS = 1 / 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """What happened, and to what. ``involved`` is an ObjectReference."""

    involved: Object
    type: str
    reason: str
    message: str
    component: str
    host: str = ""

    def source_key(self) -> tuple[str, ...]:
        i = self.involved
        return (
            self.component,
            self.host,
            i.get("kind", ""),
            i.get("namespace", ""),
            i.get("name", ""),
            i.get("uid", ""),
            i.get("apiVersion", ""),
        )

    def similar_key(self) -> tuple[str, ...]:
        return (*self.source_key(), str(self.involved.get("fieldPath", "")), self.type, self.reason)


@dataclass(frozen=True, slots=True)
class Known:
    """An event that was sent: ``name`` on the server, how often it happened."""

    name: str
    count: int
    first: str


@dataclass(frozen=True, slots=True)
class Sending:
    """``known`` is None for a new event; ``key`` is where ``sent`` remembers it."""

    key: tuple[str, ...]
    message: str
    known: Known | None


class EventCorrelator:
    def __init__(self) -> None:
        self._buckets: OrderedDict[tuple[str, ...], tuple[float, float]] = OrderedDict()
        self._similar: OrderedDict[tuple[str, ...], tuple[float, frozenset[str]]] = OrderedDict()
        self._known: OrderedDict[tuple[str, ...], Known] = OrderedDict()

    def correlate(self, occurrence: Occurrence, now: float) -> Sending | None:
        """None where this source says too much. ``now`` in seconds."""
        if self._is_spam(occurrence.source_key(), now):
            return None
        similar = occurrence.similar_key()
        since, messages = self._similar.get(similar, (now, frozenset()))
        if now - since > SIMILAR_WINDOW_SECONDS:
            messages = frozenset()
        messages |= {occurrence.message}
        _remember(self._similar, similar, (now, frozenset(sorted(messages)[: SIMILAR_MAX + 1])))
        if len(messages) > SIMILAR_MAX:
            key, message = similar, f"(combined from similar events): {occurrence.message}"
        else:
            key, message = (*similar, occurrence.message), occurrence.message
        return Sending(key, message, self._known.get(key))

    def sent(self, key: tuple[str, ...], known: Known) -> None:
        _remember(self._known, key, known)

    def forget(self, key: tuple[str, ...]) -> None:
        """The server has it no more (events expire)."""
        self._known.pop(key, None)

    def _is_spam(self, key: tuple[str, ...], now: float) -> bool:
        tokens, then = self._buckets.get(key, (float(SPAM_BURST), now))
        tokens = min(float(SPAM_BURST), tokens + (now - then) * SPAM_QPS)
        spam = tokens < 1
        _remember(self._buckets, key, (tokens if spam else tokens - 1, now))
        return spam


def _remember(cache: OrderedDict[tuple[str, ...], V], key: tuple[str, ...], value: V) -> None:
    cache[key] = value
    cache.move_to_end(key)
    if len(cache) > CACHE_SIZE:
        cache.popitem(last=False)
