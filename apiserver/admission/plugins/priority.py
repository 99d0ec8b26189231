"""Priority: the number behind a pod's ``priorityClassName``; and only one class is the default."""

from __future__ import annotations

from typing import Any

from apiserver.admission.interfaces import AdmissionAttributes, ObjectGetter, Operation
from apiserver.admission.plugin import POD, Plugin, forbidden, new_object, spec_of
from apiserver.machinery import objects

_GROUP = "scheduling.k8s.io"
_CLASSES = (_GROUP, "priorityclasses")
PREEMPT = "PreemptLowerPriority"


def _system_class(name: str, value: int, description: str) -> objects.Object:
    return {
        "kind": "PriorityClass",
        "apiVersion": f"{_GROUP}/v1",
        "metadata": {"name": name},
        "value": value,
        "description": description,
        "preemptionPolicy": PREEMPT,
    }


#: the classes that every cluster has; made at start like the default roles, and known here also before they are there
SYSTEM_PRIORITY_CLASSES = (
    _system_class(
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    _system_class(
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
)


class Priority(Plugin):
    name = "Priority"
    operations = frozenset((Operation.CREATE, Operation.UPDATE))
    resources = frozenset((POD, _CLASSES))

    def __init__(self, getter: ObjectGetter) -> None:
        self._getter = getter
        self._system = {objects.name(c): c for c in SYSTEM_PRIORITY_CLASSES}

    async def admit(self, attributes: AdmissionAttributes) -> None:
        if attributes.info.resource != "pods":
            return
        spec = spec_of(new_object(attributes))
        if attributes.operation is Operation.UPDATE:
            _keep(spec, (attributes.old_object or {}).get("spec") or {})
            return
        self._set_priority(attributes, spec)

    async def validate(self, attributes: AdmissionAttributes) -> None:
        if attributes.info.resource != "priorityclasses":
            return
        new = new_object(attributes)
        if not new.get("globalDefault"):
            return
        default = self._default_class()
        if default is None:
            return
        name = objects.name(default)
        if attributes.operation is Operation.CREATE or name != objects.name(new):
            raise forbidden(attributes, f"PriorityClass {name} is already marked as default. Only one default can exist")

    def _set_priority(self, attributes: AdmissionAttributes, spec: dict[str, Any]) -> None:
        class_name = spec.get("priorityClassName")
        if class_name:
            found = self._getter.get(*_CLASSES, "", class_name) or self._system.get(class_name)
            if found is None:
                raise forbidden(attributes, f"no PriorityClass with name {class_name} was found")
        else:
            found = self._default_class()
            if found is not None:
                spec["priorityClassName"] = objects.name(found)
        value = int((found or {}).get("value") or 0)
        policy = (found or {"preemptionPolicy": PREEMPT}).get("preemptionPolicy")
        computed = "priority admission controller computed {} from the given PriorityClass name"
        given = spec.get("priority")
        if given is not None and given != value:
            what = f"the integer value of priority ({given}) must not be provided in pod spec; "
            raise forbidden(attributes, what + computed.format(value))
        spec["priority"] = value
        if policy:
            given = spec.get("preemptionPolicy")
            if given is not None and given != policy:
                what = f"the string value of PreemptionPolicy ({given}) must not be provided in pod spec; "
                raise forbidden(attributes, what + computed.format(policy))
            spec["preemptionPolicy"] = policy

    def _default_class(self) -> objects.Object | None:
        """Of several by a race, the lowest."""
        defaults = [c for c in self._getter.list(*_CLASSES) if c.get("globalDefault")]
        return min(defaults, key=lambda c: (int(c.get("value") or 0), objects.name(c))) if defaults else None


def _keep(spec: dict[str, Any], old: dict[str, Any]) -> None:
    """An update that leaves out what was filled in here keeps it; changing it is the pod's validation to refuse."""
    for field in ("priority", "preemptionPolicy"):
        if spec.get(field) is None and old.get(field) is not None:
            spec[field] = old[field]
