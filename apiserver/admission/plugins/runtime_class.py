"""RuntimeClass: a pod gets the overhead, the node selector and the tolerations of its runtime class."""

from __future__ import annotations

from typing import Any

from apiserver.admission.interfaces import AdmissionAttributes, ObjectGetter, Operation
from apiserver.admission.plugin import POD, Plugin, forbidden, new_object, spec_of
from apiserver.machinery import objects, quantity, tolerations


class RuntimeClass(Plugin):
    name = "RuntimeClass"
    operations = frozenset((Operation.CREATE,))
    resources = frozenset((POD,))

    def __init__(self, getter: ObjectGetter) -> None:
        self._getter = getter

    async def admit(self, attributes: AdmissionAttributes) -> None:
        spec = spec_of(new_object(attributes))
        found = self._class_of(attributes, spec)
        if found is None:
            return
        if (overhead := _overhead(found)) is not None:
            if spec.get("overhead") and not _equal(spec["overhead"], overhead):
                raise forbidden(attributes, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
            if overhead:
                spec["overhead"] = dict(overhead)
        if found.get("scheduling") is not None:
            _set_scheduling(attributes, spec, found["scheduling"])

    async def validate(self, attributes: AdmissionAttributes) -> None:
        spec = new_object(attributes).get("spec") or {}
        found = self._class_of(attributes, spec)
        overhead = _overhead(found)
        if overhead is None and spec.get("overhead"):
            raise forbidden(attributes, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
        if overhead is not None and not _equal(spec.get("overhead") or {}, overhead):
            raise forbidden(attributes, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")

    def _class_of(self, attributes: AdmissionAttributes, spec: dict[str, Any]) -> objects.Object | None:
        name = spec.get("runtimeClassName")
        if not name:
            return None
        found = self._getter.get("node.k8s.io", "runtimeclasses", "", name)
        if found is None:
            raise forbidden(attributes, f'pod rejected: RuntimeClass "{name}" not found')
        return found


def _overhead(found: objects.Object | None) -> dict[str, Any] | None:
    """None where a class says nothing of it; a class may also say that there is none."""
    said = (found or {}).get("overhead")
    return None if said is None else said.get("podFixed") or {}


def _equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """As amounts: 1000m is 1."""
    return one.keys() == other.keys() and all(quantity.of_json(one[key]) == quantity.of_json(other[key]) for key in one)


def _set_scheduling(attributes: AdmissionAttributes, spec: dict[str, Any], scheduling: dict[str, Any]) -> None:
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in sorted((scheduling.get("nodeSelector") or {}).items()):
        if selector.get(key, value) != value:
            theirs = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}"
            raise forbidden(attributes, f"conflict: {theirs}; pod.spec.nodeSelector[{key}] = {selector[key]}")
        selector[key] = value
    if selector:
        spec["nodeSelector"] = selector
    if wanted := scheduling.get("tolerations"):
        spec["tolerations"] = [dict(one) for one in tolerations.merged(spec.get("tolerations") or (), wanted)]
