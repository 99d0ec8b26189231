"""ResourceQuota: a namespace uses no more than its quotas allow; what a request brings is charged before the object is stored.

A charge is a compare-and-swap of the quota's status, so two API servers cannot both take the last place; within one server requests of a
namespace take their turn. If the object is not stored after all (its name is taken, …), the charge stays until the quota controller counts
again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Protocol

from apiserver.admission.configuration import LimitedResource
from apiserver.admission.interfaces import AdmissionAttributes, ObjectGetter, Operation
from apiserver.admission.plugin import Plugin, forbidden
from apiserver.admission.quota.check import Charge, check_request
from apiserver.machinery import objects
from apiserver.machinery.quota.amounts import to_json
from apiserver.machinery.quota.evaluators import evaluator_for
from apiserver.machinery.status import StatusError
from apiserver.resources.resource_info import ResourceInfo

#: how often a lost compare is tried again before the request is refused as conflicting
RETRIES = 3
#: quotas that were just charged and may be newer here than in the cache; the oldest is forgotten first
CHARGED_MAX = 1024

#: what is no object to count: reviews, and events, which would fill any quota
_UNCOUNTED = frozenset(
    (
        ("", "bindings"),
        ("", "events"),
        ("events.k8s.io", "events"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
    )
)


class QuotaStatusWriter(Protocol):
    async def update_used(self, quota: objects.Object, used: dict[str, str]) -> objects.Object:
        """Set ``status.used`` of a quota if it is still at the resourceVersion of ``quota``; the stored object.

        Raises StatusError 409 where it has changed, 404 where it is gone."""


class ResourceQuota(Plugin):
    name = "ResourceQuota"
    operations = frozenset((Operation.CREATE, Operation.UPDATE))

    def __init__(
        self, getter: ObjectGetter, writer: QuotaStatusWriter, now: Callable[[], float], limited: Sequence[LimitedResource] = ()
    ) -> None:
        """``now``: seconds since the epoch."""
        self._getter = getter
        self._writer = writer
        self._now = now
        self._limited = limited
        self._turns: dict[str, _Turn] = {}
        self._charged: OrderedDict[tuple[str, str], objects.Object] = OrderedDict()

    def handles(self, operation: Operation, info: ResourceInfo, subresource: str) -> bool:
        if not info.namespaced or (info.group, info.resource) in _UNCOUNTED:
            return False
        evaluator = evaluator_for(info.group, info.resource)
        return operation in self.operations and evaluator.charges(subresource, update=operation is Operation.UPDATE)

    async def validate(self, attributes: AdmissionAttributes) -> None:
        # nearly all namespaces have no quota: this is all that their requests pay
        if not self._limited and not self._getter.list("", "resourcequotas", attributes.namespace):
            return
        namespace = attributes.namespace
        turn = self._turns.setdefault(namespace, _Turn())
        turn.waiting += 1
        try:
            async with turn.lock:
                await self._charge(attributes)
        finally:
            turn.waiting -= 1
            if not turn.waiting:
                del self._turns[namespace]

    async def _charge(self, attributes: AdmissionAttributes) -> None:
        evaluator = evaluator_for(attributes.info.group, attributes.info.resource)
        names: set[str] | None = None
        for attempt in range(RETRIES + 1):
            quotas = [q for q in self._quotas(attributes.namespace) if names is None or objects.name(q) in names]
            charges = check_request(quotas, attributes, evaluator, self._now(), self._limited)
            if attributes.dry_run or not charges:
                return
            # those that were written stay charged: only the others are looked at again
            lost = [charge for charge in charges if not await self._write(charge, last=attempt == RETRIES)]
            if not lost:
                return
            names = {objects.name(charge.quota) for charge in lost}
        raise forbidden(attributes, "the quota changed too often while it was charged")

    async def _write(self, charge: Charge, *, last: bool) -> bool:
        key = (objects.namespace(charge.quota), objects.name(charge.quota))
        try:
            stored = await self._writer.update_used(charge.quota, to_json(charge.used))
        except StatusError as error:
            self._charged.pop(key, None)
            if error.code == 404:
                return True
            if error.code != 409 or last:
                raise
            return False
        self._charged[key] = stored
        self._charged.move_to_end(key)
        if len(self._charged) > CHARGED_MAX:
            self._charged.popitem(last=False)
        return True

    def _quotas(self, namespace: str) -> list[objects.Object]:
        """As in the cache, or as this server wrote them where that is newer."""
        out: list[objects.Object] = []
        for quota in sorted(self._getter.list("", "resourcequotas", namespace), key=objects.name):
            key = (namespace, objects.name(quota))
            charged = self._charged.get(key)
            if charged is not None:
                if objects.uid(charged) == objects.uid(quota) and _version(charged) > _version(quota):
                    quota = charged
                else:
                    del self._charged[key]
            out.append(quota)
        return out


class _Turn:
    """The lock of a namespace, and how many hold or want it."""

    __slots__ = ("lock", "waiting")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0


def _version(obj: objects.Object) -> int:
    text = objects.resource_version(obj)
    return int(text) if text.isdigit() else 0
