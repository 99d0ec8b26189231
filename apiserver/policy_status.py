"""``PolicyStatus``: keeps ``status`` of ValidatingAdmissionPolicies (the controller manager's validatingadmissionpolicy-status controller).

A policy's expressions are checked once for each of its generations. Every API server of a store does it; two that find the same thing
write once, since the second sees the generation that the first has observed.
"""

from __future__ import annotations

from apiserver.admission.expression_texts import check_patience
from apiserver.authentication.user import ALL_AUTHENTICATED, MASTERS, UserInfo
from apiserver.long_runs import patiently
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.machinery.types import Type
from apiserver.objectstore.interface import ObjectStoreError, StoredObject
from apiserver.registry.environment import Write
from apiserver.registry.registry import Registry
from apiserver.schemas.schema_set import SchemaSet
from apiserver.upkeep import Upkeep

GROUP, RESOURCE = "admissionregistration.k8s.io", "validatingadmissionpolicies"
MANAGER = "validatingadmissionpolicy-status"

_USER = UserInfo(name="system:apiserver", groups=(MASTERS, ALL_AUTHENTICATED))


class PolicyStatus:
    """Made before the store is loaded; ``run`` does the work."""

    def __init__(self, registry: Registry, schemas: SchemaSet, passing: tuple[type[Exception], ...]) -> None:
        """``passing``: errors of the store, which are worth another attempt."""
        self._registry = registry
        self._schemas = schemas
        self._upkeep = Upkeep("the status of an admission policy", self._sync, (StatusError, ObjectStoreError, *passing))
        if registry.table.preferred(GROUP, RESOURCE) is not None:
            registry.storage(GROUP, RESOURCE).cache.observe(self._changed)

    async def run(self) -> None:
        """Until cancelled."""
        await self._upkeep.run()

    def _changed(self, new: StoredObject | None, old: StoredObject | None) -> None:
        if new is not None:
            self._upkeep.enqueue(new.name)
        elif old is not None:
            self._upkeep.forget(old.name)

    async def _sync(self, name: str) -> None:
        store = self._registry.stored(GROUP, RESOURCE)
        stored = store.storage.get_now(name)
        if stored is None or (policy := store.decode(stored)) is None or not _is_behind(policy, _generation(policy)):
            return
        generation, warnings = _generation(policy), await self._check(policy)

        async def build(old: Object) -> Object:
            if _is_behind(old, generation):
                checked = {"expressionWarnings": warnings} if warnings else {}
                old["status"] = {**(old.get("status") or {}), "observedGeneration": generation, "typeChecking": checked}
            return old

        try:
            await store.update(Write(user=_USER, manager=MANAGER), "", name, build, subresource="status")
        except StatusError as error:
            if error.code != 404:
                raise

    async def _check(self, policy: Object) -> list[dict[str, str]]:
        from apiserver.admission.policies.type_checking import TypeChecker  # with it comes CEL

        checker = TypeChecker(self._registry.table.minor, self._kind_of, self._type_of)
        spec = policy.get("spec") or {}
        checks = checker.prepared(spec)

        def work(patient: bool) -> list[dict[str, str]]:
            check_patience([spec] * checks.kinds, patient=patient)
            return list(checks.warnings())

        return await patiently(work)

    def _kind_of(self, group: str, version: str, resource: str) -> str | None:
        found = self._registry.table.lookup(group, version, resource)
        return None if found is None else found.kind

    def _type_of(self, group: str, version: str, kind: str) -> Type | None:
        try:
            return self._schemas.type_of(group, version, kind)
        except KeyError:
            return None


def _generation(policy: Object) -> int:
    generation: int = (policy.get("metadata") or {}).get("generation") or 0
    return generation


def _is_behind(policy: Object, generation: int) -> bool:
    return bool(((policy.get("status") or {}).get("observedGeneration") or 0) < generation)
