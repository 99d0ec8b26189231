"""LimitPodHardAntiAffinityTopology: no pod keeps others off more than its node. Off by default."""

from __future__ import annotations

from apiserver.admission.interfaces import AdmissionAttributes, Operation
from apiserver.admission.plugin import POD, Plugin, forbidden, new_object
from apiserver.machinery import objects

_HOST = "kubernetes.io/hostname"


class LimitPodHardAntiAffinityTopology(Plugin):
    name = "LimitPodHardAntiAffinityTopology"
    operations = frozenset((Operation.CREATE, Operation.UPDATE))
    resources = frozenset((POD,))

    async def validate(self, attributes: AdmissionAttributes) -> None:
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        for term in objects.get(new_object(attributes), "spec", "affinity", "podAntiAffinity", required, default=()):
            key = term.get("topologyKey") or ""
            if key != _HOST:
                what = f"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key}"
                raise forbidden(attributes, f"{what} but only key {_HOST} is allowed")
