"""``Plugin``: what admission plugins have in common, and how they refuse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from apiserver.admission.interfaces import AdmissionAttributes, Operation
from apiserver.machinery import objects, status
from apiserver.resources.resource_info import ResourceInfo

POD = ("", "pods")


class Plugin:
    """Says by class attributes what it is about: ``operations``; ``resources`` as (group, resource) pairs, None for all;
    ``subresources``, with "" for the object itself, None for all. ``admit`` changes the new object or refuses, ``validate`` refuses."""

    name: str = ""
    operations: ClassVar[frozenset[Operation]] = frozenset()
    resources: ClassVar[frozenset[tuple[str, str]] | None] = None
    subresources: ClassVar[frozenset[str] | None] = frozenset(("",))

    def handles(self, operation: Operation, info: ResourceInfo, subresource: str) -> bool:
        if operation not in self.operations:
            return False
        if self.resources is not None and (info.group, info.resource) not in self.resources:
            return False
        return self.subresources is None or subresource in self.subresources

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """Nothing to change."""

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Nothing to refuse."""


def resource_name(attributes: AdmissionAttributes) -> str:
    """The object's name as refusals tell it: a name that will be generated is told by its beginning."""
    if attributes.name:
        return attributes.name
    if attributes.object is not None:
        return objects.name(attributes.object) or str(objects.metadata(attributes.object).get("generateName") or "") or "Unknown"
    return "Unknown"


def forbidden(attributes: AdmissionAttributes, why: str) -> status.StatusError:
    """403 ``pods "a" is forbidden: why``."""
    return status.forbidden(attributes.info.group, attributes.info.resource, resource_name(attributes), why)


def joined(errors: Sequence[str]) -> str:
    """One text stands alone, several in brackets, equal ones once."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def new_object(attributes: AdmissionAttributes) -> dict[str, Any]:
    assert attributes.object is not None, (attributes.operation, attributes.info.resource)
    return attributes.object


def is_mirror_pod(pod: objects.Object) -> bool:
    """A node's own account of a pod that it runs from a file: no plugin may change it."""
    return "kubernetes.io/config.mirror" in objects.annotations(pod)


def spec_of(obj: objects.Object) -> dict[str, Any]:
    """The spec to be changed in place, made where it is missing."""
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        spec = obj["spec"] = {}
    return spec


def containers_of(pod: objects.Object) -> list[dict[str, Any]]:
    """Init containers first, then containers."""
    spec = pod.get("spec") or {}
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
