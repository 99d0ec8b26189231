"""PodTopologyLabels: a pod gets the zone and region of the node that it is put on as labels, for whoever reads only the pod (from 1.35)."""

from __future__ import annotations

from apiserver.admission.interfaces import AdmissionAttributes, ObjectGetter, Operation
from apiserver.admission.plugin import POD, Plugin, new_object
from apiserver.machinery import objects

TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
SINCE_MINOR = 35


class PodTopologyLabels(Plugin):
    name = "PodTopologyLabels"
    operations = frozenset((Operation.CREATE,))
    resources = frozenset((POD,))
    subresources = frozenset(("", "binding"))

    def __init__(self, getter: ObjectGetter, minor: int) -> None:
        self._getter = getter
        self._on = minor >= SINCE_MINOR

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """What a binding has as labels becomes the pod's. A node that is not there has none."""
        if not self._on:
            return
        obj = new_object(attributes)
        place = ("target", "name") if attributes.subresource else ("spec", "nodeName")
        name = objects.get(obj, *place, default="")
        node = self._getter.get("", "nodes", "", name) if name else None
        if node is None:
            return
        labels = objects.labels(node)
        if found := {key: labels[key] for key in TOPOLOGY_LABELS if key in labels}:
            metadata = obj.setdefault("metadata", {})
            metadata["labels"] = {**(metadata.get("labels") or {}), **found}
