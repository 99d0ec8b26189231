"""ExtendedResourceToleration: a pod that asks for a device tolerates the taint of the nodes that have it. Off by default."""

from __future__ import annotations

from apiserver.admission.interfaces import AdmissionAttributes, Operation
from apiserver.admission.plugin import POD, Plugin, containers_of, new_object, spec_of
from apiserver.machinery import objects


class ExtendedResourceToleration(Plugin):
    name = "ExtendedResourceToleration"
    operations = frozenset((Operation.CREATE, Operation.UPDATE))
    resources = frozenset((POD,))

    async def admit(self, attributes: AdmissionAttributes) -> None:
        pod = new_object(attributes)
        asked = {name for c in containers_of(pod) for name in objects.get(c, "resources", "requests", default={})}
        spec = spec_of(pod)
        tolerations = list(spec.get("tolerations") or ())
        for name in sorted(filter(is_extended_resource, asked)):
            toleration = {"key": name, "operator": "Exists", "effect": "NoSchedule"}
            if not any({k: v for k, v in t.items() if v} == toleration for t in tolerations):
                tolerations.append(toleration)
        if tolerations:
            spec["tolerations"] = tolerations


def is_native_resource(name: str) -> bool:
    """Kubernetes' own resources have no domain, or one under kubernetes.io."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended_resource(name: str) -> bool:
    return not is_native_resource(name) and not name.startswith("requests.")
