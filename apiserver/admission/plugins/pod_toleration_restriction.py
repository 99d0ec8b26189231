"""PodTolerationRestriction: pods get the tolerations of their namespace, and may have no others than it allows. Off by default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from apiserver.admission.interfaces import AdmissionAttributes, ObjectGetter, Operation
from apiserver.admission.optional_settings import TolerationConfiguration
from apiserver.admission.plugin import POD, Plugin, forbidden, new_object, spec_of
from apiserver.machinery import objects, status, tolerations
from apiserver.machinery.tolerations import Toleration

DEFAULTS = "scheduler.alpha.kubernetes.io/defaultTolerations"
ALLOWED = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
_MEMORY_PRESSURE = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}
_FIELDS = ("key", "operator", "value", "effect")


class PodTolerationRestriction(Plugin):
    name = "PodTolerationRestriction"
    operations = frozenset((Operation.CREATE, Operation.UPDATE))
    resources = frozenset((POD,))

    def __init__(
        self, getter: ObjectGetter, configuration: TolerationConfiguration, is_best_effort: Callable[[dict[str, Any]], bool]
    ) -> None:
        self._getter = getter
        self._configuration = configuration
        self._is_best_effort = is_best_effort

    async def admit(self, attributes: AdmissionAttributes) -> None:
        spec = spec_of(new_object(attributes))
        more: list[Toleration] = []
        if attributes.operation is Operation.CREATE:
            said = self._said(attributes, DEFAULTS)
            more += self._configuration.defaults if said is None else said
        if not self._is_best_effort(spec):
            more.append(_MEMORY_PRESSURE)
        if more:
            spec["tolerations"] = [dict(one) for one in tolerations.merged(spec.get("tolerations") or (), more)]
        await self.validate(attributes)

    async def validate(self, attributes: AdmissionAttributes) -> None:
        own = (new_object(attributes).get("spec") or {}).get("tolerations") or ()
        if not own:
            return
        said = self._said(attributes, ALLOWED)
        if not tolerations.within(own, self._configuration.allowed if said is None else said):
            why = "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist"
            raise forbidden(attributes, why)

    def _said(self, attributes: AdmissionAttributes, key: str) -> list[Toleration] | None:
        """None where the namespace says nothing. Raises StatusError 403 where it says nonsense (upstream: 500)."""
        namespace = self._getter.get("", "namespaces", "", attributes.namespace)
        if namespace is None:
            raise status.not_found("", "namespaces", attributes.namespace)
        text = objects.annotations(namespace).get(key)
        if text is None:
            return None
        if not text:
            return []
        try:
            found = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise forbidden(attributes, f"{key} of namespace {attributes.namespace} is no list of tolerations") from error
        if found is not None and not is_list_of_tolerations(found):
            raise forbidden(attributes, f"{key} of namespace {attributes.namespace} is no list of tolerations")
        return found or []


def is_list_of_tolerations(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, dict)
        and all(isinstance(one.get(field, ""), str) for field in _FIELDS)
        and isinstance(one.get("tolerationSeconds"), int | None)
        for one in value
    )
