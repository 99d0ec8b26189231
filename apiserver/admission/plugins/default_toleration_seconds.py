"""DefaultTolerationSeconds: a pod stays five minutes on a node that is not ready or not reachable, unless it says otherwise."""

from __future__ import annotations

from typing import Any

from apiserver.admission.interfaces import AdmissionAttributes, Operation
from apiserver.admission.plugin import POD, Plugin, new_object, spec_of

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
SECONDS = 300


class DefaultTolerationSeconds(Plugin):
    name = "DefaultTolerationSeconds"
    operations = frozenset((Operation.CREATE, Operation.UPDATE))
    resources = frozenset((POD,))

    async def admit(self, attributes: AdmissionAttributes) -> None:
        spec = spec_of(new_object(attributes))
        tolerations = spec.get("tolerations") or []
        added = [_toleration(key) for key in (NOT_READY, UNREACHABLE) if not any(_tolerates(t, key) for t in tolerations)]
        if added:
            spec["tolerations"] = [*tolerations, *added]


def _tolerates(toleration: dict[str, Any], key: str) -> bool:
    return toleration.get("key") in (key, None, "") and toleration.get("effect") in ("NoExecute", None, "")


def _toleration(key: str) -> dict[str, Any]:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS}
