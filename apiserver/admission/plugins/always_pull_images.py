"""AlwaysPullImages: no pod runs an image that its owner could not pull. Off by default."""

from __future__ import annotations

from apiserver.admission.interfaces import AdmissionAttributes, Operation
from apiserver.admission.plugin import POD, Plugin, new_object
from apiserver.machinery import field_errors, status

_FIELDS = ("initContainers", "containers", "ephemeralContainers")


class AlwaysPullImages(Plugin):
    name = "AlwaysPullImages"
    operations = frozenset((Operation.CREATE, Operation.UPDATE))
    resources = frozenset((POD,))
    subresources = frozenset(("", "ephemeralcontainers"))

    async def admit(self, attributes: AdmissionAttributes) -> None:
        spec = new_object(attributes).get("spec") or {}
        old = (attributes.old_object or {}).get("spec") or {}
        for field in _FIELDS:
            known = {c.get("name"): c.get("image") for c in old.get(field) or ()}
            for container in spec.get(field) or ():
                # an update that keeps an image keeps its policy, which cannot change
                if attributes.operation is Operation.CREATE or known.get(container.get("name")) != container.get("image"):
                    container["imagePullPolicy"] = "Always"

    async def validate(self, attributes: AdmissionAttributes) -> None:
        if attributes.operation is not Operation.CREATE:
            return
        spec = new_object(attributes).get("spec") or {}
        errors = [
            field_errors.not_supported(f"spec.{field}[{position}].imagePullPolicy", container.get("imagePullPolicy"), ["Always"])
            for field in _FIELDS
            for position, container in enumerate(spec.get(field) or ())
            if container.get("imagePullPolicy") != "Always"
        ]
        if errors:
            raise status.invalid("", "Pod", attributes.name, errors)
