"""When tokens of Secrets were last used ("legacy ServiceAccount token tracking" of Kubernetes' documentation): the day stands in a label of
the Secret, and a ConfigMap says since when days are noted, so that a controller may take away those that nobody uses.

A day is written once: whoever asks with such a token a million times causes one write.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from apiserver.bootstrap import prepared
from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from apiserver.objectstore.interface import KeyNotFoundError
from apiserver.registry.registry import Registry
from apiserver.upkeep import Upkeep

logger = logging.getLogger(__name__)

NAMESPACE, NAME, SINCE = "kube-system", "kube-apiserver-legacy-service-account-token-tracking", "since"
LAST_USED = "kubernetes.io/legacy-token-last-used"
#: of Kubernetes 1.NN, the first that notes uses unless told not to
TRACKING_MINOR = 27


class LegacyTokenTracking:
    def __init__(self, registry: Registry, now: Callable[[], float], passing: tuple[type[Exception], ...]) -> None:
        """``now``: seconds since the epoch. ``passing``: errors of a store that is away for a while."""
        self._registry = registry
        self._now = now
        self._upkeep = Upkeep("the last use of a service account token", self._write, passing)
        self.run: Callable[[], Awaitable[None]] = self._upkeep.run

    def used(self, secret: Object) -> None:
        """A token of ``secret`` was used just now."""
        if not _is_noted(secret, self._now()):
            self._upkeep.enqueue(f"{objects.namespace(secret)}/{objects.name(secret)}/{objects.uid(secret)}")

    async def _write(self, key: str) -> None:
        namespace, name, uid = key.split("/")
        store = self._registry.stored("", "secrets")
        now = self._now()

        async def change(found: Any) -> Object | None:
            secret: Object = found.decode()
            if objects.uid(secret) != uid or _is_noted(secret, now):
                return None
            labels = {**objects.labels(secret), LAST_USED: _day(now)}
            return {**secret, "metadata": {**secret["metadata"], "labels": labels}}

        with contextlib.suppress(KeyNotFoundError):
            await store.storage.guaranteed_update(store.path(namespace, name), change)
        self._upkeep.forget(key)

    async def keep(self) -> None:
        """Make sure that the ConfigMap says since when uses are noted."""
        store = self._registry.stored("", "configmaps")
        data = {SINCE: _day(self._now())}

        async def change(found: Any) -> Object | None:
            there: Object = found.decode()
            return None if _is_day(objects.get(there, "data", SINCE)) else {**there, "data": {**(there.get("data") or {}), **data}}

        try:
            await store.storage.guaranteed_update(store.path(NAMESPACE, NAME), change)
        except KeyNotFoundError:
            made: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": NAMESPACE}, "data": data}
            await self._registry.objects.create_missing([prepared(self._registry, "", "configmaps", made)])


def _day(moment: float) -> str:
    return datetime.datetime.fromtimestamp(moment, datetime.UTC).strftime("%Y-%m-%d")


def _is_noted(secret: Object, now: float) -> bool:
    """Of today, or of tomorrow by the clock of another server."""
    return objects.labels(secret).get(LAST_USED) in (_day(now), _day(now + 86400))


def _is_day(text: object) -> bool:
    try:
        datetime.datetime.strptime(str(text), "%Y-%m-%d")
    except ValueError:
        return False
    return True
