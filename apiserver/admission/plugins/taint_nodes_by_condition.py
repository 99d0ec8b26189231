"""TaintNodesByCondition: a new node takes no pods until the node controller has seen it ready."""

from __future__ import annotations

from apiserver.admission.interfaces import AdmissionAttributes, Operation
from apiserver.admission.plugin import Plugin, new_object, spec_of

NOT_READY = "node.kubernetes.io/not-ready"
_EFFECT = "NoSchedule"


class TaintNodesByCondition(Plugin):
    name = "TaintNodesByCondition"
    operations = frozenset((Operation.CREATE,))
    resources = frozenset((("", "nodes"),))

    async def admit(self, attributes: AdmissionAttributes) -> None:
        spec = spec_of(new_object(attributes))
        taints = spec.get("taints") or []
        if not any(taint.get("key") == NOT_READY and taint.get("effect") == _EFFECT for taint in taints):
            spec["taints"] = [*taints, {"key": NOT_READY, "effect": _EFFECT}]
