"""EventRateLimit: buckets of tokens bound how many Events come in: of the server, of a namespace, of a user, of a source and object.
Off by default; without limits in its configuration it does nothing."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

from apiserver.admission.interfaces import AdmissionAttributes, Operation
from apiserver.admission.optional_settings import NAMESPACE, SOURCE_AND_OBJECT, USER, EventLimit
from apiserver.admission.plugin import Plugin
from apiserver.machinery import status


class _Buckets:
    """Of one limit: by key, how many tokens it had and when."""

    def __init__(self, limit: EventLimit) -> None:
        self.limit = limit
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str, now: float) -> bool:
        tokens, then = self._buckets.pop(key, (float(self.limit.burst), now))
        tokens = min(float(self.limit.burst), tokens + max(0.0, now - then) * self.limit.per_second)
        taken = tokens >= 1
        self._buckets[key] = (tokens - 1 if taken else tokens, now)
        if len(self._buckets) > self.limit.buckets_max:
            self._buckets.popitem(last=False)
        return taken


class EventRateLimit(Plugin):
    name = "EventRateLimit"
    operations = frozenset((Operation.CREATE, Operation.UPDATE))
    resources = frozenset((("", "events"), ("events.k8s.io", "events")))
    subresources = None

    def __init__(self, limits: Sequence[EventLimit], now: Callable[[], float]) -> None:
        """``now``: seconds of a clock that does not go back."""
        self._limits = [_Buckets(limit) for limit in limits]
        self._now = now

    async def validate(self, attributes: AdmissionAttributes) -> None:
        now, refused = self._now(), ""
        # every limit counts the event, and the last that refuses is told
        for buckets in self._limits:
            key = _key(buckets.limit.type, attributes)
            if not buckets.take(key, now):
                refused = f"limit reached on type {buckets.limit.type} for key {key}"
        if refused:
            raise status.too_many_requests(f"Too many requests: {refused}")


def _key(kind: str, attributes: AdmissionAttributes) -> str:
    if kind == NAMESPACE:
        return attributes.namespace
    if kind == USER:
        return attributes.user.name
    if kind == SOURCE_AND_OBJECT:
        event = attributes.object or {}
        source = event.get("source") or event.get("deprecatedSource") or {}
        about = event.get("involvedObject") or event.get("regarding") or {}
        parts = [source.get("component"), source.get("host")]
        parts += [about.get(field) for field in ("kind", "namespace", "name", "uid", "apiVersion")]
        return "".join(str(part or "") for part in parts)
    return ""
