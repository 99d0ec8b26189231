"""How admission charges a quota: a compare-and-swap of its ``status.used`` (``admission.plugins.resource_quota.QuotaStatusWriter``)."""

from __future__ import annotations

from apiserver.machinery import objects, status
from apiserver.machinery.objects import Object
from apiserver.objectstore.statuses import as_statuses
from apiserver.registry.registry import Registry


class QuotaStatus:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def update_used(self, quota: Object, used: dict[str, str]) -> Object:
        """Raises StatusError 409 where the quota is not at the resourceVersion of ``quota`` any more, 404 where it is gone."""
        store = self._registry.stored("", "resourcequotas")
        name = objects.name(quota)
        path = store.path(objects.namespace(quota), name)
        with as_statuses(store.info, name):
            current = await store.storage.get(path)
            if current is None:
                raise status.not_found("", "resourcequotas", name)
            written = None
            if str(current.revision) == objects.resource_version(quota):
                new = current.decode()
                new["status"] = {**(new.get("status") or {}), "used": used}
                written = await store.storage.update(path, new, current.revision)
            if written is None:
                await store.storage.catch_up()  # another server charged it: the next look at the cache should see that
                raise status.conflict("", "resourcequotas", name, status.MODIFIED)
            return written.decode()
