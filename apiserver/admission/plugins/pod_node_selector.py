"""PodNodeSelector: the pods of a namespace get its node selector, and may name no label that is not allowed to them. Off by default."""

from __future__ import annotations

from collections.abc import Mapping

from apiserver.admission.interfaces import AdmissionAttributes, ObjectGetter, Operation
from apiserver.admission.plugin import POD, Plugin, forbidden, new_object, spec_of
from apiserver.machinery import objects, status

ANNOTATION = "scheduler.alpha.kubernetes.io/node-selector"
DEFAULT = "clusterDefaultNodeSelector"


class PodNodeSelector(Plugin):
    name = "PodNodeSelector"
    operations = frozenset((Operation.CREATE,))
    resources = frozenset((POD,))

    def __init__(self, getter: ObjectGetter, selectors: Mapping[str, str]) -> None:
        """``selectors``: by namespace what its pods may name, and under ``DEFAULT`` what namespaces without an annotation give them."""
        self._getter = getter
        self._selectors = selectors

    async def admit(self, attributes: AdmissionAttributes) -> None:
        spec = spec_of(new_object(attributes))
        merged = {**self._of_namespace(attributes), **(spec.get("nodeSelector") or {})}
        await self.validate(attributes)
        if merged:
            spec["nodeSelector"] = merged
        self._check_allowed(attributes, merged)

    async def validate(self, attributes: AdmissionAttributes) -> None:
        own = (new_object(attributes).get("spec") or {}).get("nodeSelector") or {}
        if any(own.get(key, value) != value for key, value in self._of_namespace(attributes).items()):
            raise forbidden(attributes, "pod node label selector conflicts with its namespace node label selector")
        self._check_allowed(attributes, own)

    def _check_allowed(self, attributes: AdmissionAttributes, own: Mapping[str, str]) -> None:
        allowed = _parsed(attributes, self._selectors.get(attributes.namespace, ""))
        if allowed and not own.items() <= allowed.items():
            raise forbidden(attributes, "pod node label selector labels conflict with its namespace whitelist")

    def _of_namespace(self, attributes: AdmissionAttributes) -> dict[str, str]:
        namespace = self._getter.get("", "namespaces", "", attributes.namespace)
        if namespace is None:
            raise status.not_found("", "namespaces", attributes.namespace)
        said = objects.annotations(namespace).get(ANNOTATION)
        return _parsed(attributes, self._selectors.get(DEFAULT, "") if said is None else said)


def _parsed(attributes: AdmissionAttributes, selector: str) -> dict[str, str]:
    """``a=b,c=d``. Raises StatusError 403 for what is none (upstream: 500), since it is not the server that is at fault."""
    found: dict[str, str] = {}
    for part in selector.split(",") if selector else ():
        pair = part.split("=")
        if len(pair) != 2:
            raise forbidden(attributes, f"invalid selector: [{' '.join(pair)}]")
        found[pair[0].strip()] = pair[1].strip()
    return found
