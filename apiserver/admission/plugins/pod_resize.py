"""PodResizeValidator: a running pod asks for no more than its node could ever give, and only Linux resizes. On by default since 1.36."""

from __future__ import annotations

from apiserver.admission.interfaces import AdmissionAttributes, ObjectGetter, Operation
from apiserver.admission.plugin import POD, Plugin, forbidden, new_object
from apiserver.machinery import objects, quantity
from apiserver.machinery.quota.evaluators import pod_amounts

_OS = "kubernetes.io/os"


class PodResizeValidator(Plugin):
    name = "PodResizeValidator"
    operations = frozenset((Operation.UPDATE,))
    resources = frozenset((POD,))
    subresources = frozenset(("resize",))

    def __init__(self, getter: ObjectGetter) -> None:
        self._getter = getter

    async def validate(self, attributes: AdmissionAttributes) -> None:
        pod, old = new_object(attributes), attributes.old_object or {}
        node_name = str(objects.get(pod, "spec", "nodeName", default=""))
        if not node_name or pod.get("spec") == old.get("spec"):
            return
        node = self._getter.get("", "nodes", "", node_name)
        if node is None:
            raise forbidden(attributes, f'node "{node_name}" not found')
        requests, _ = pod_amounts(pod)
        allocatable = objects.get(node, "status", "allocatable", default={})
        has = {name: quantity.of_json(allocatable.get(name, "0")) for name in ("cpu", "memory")}
        wanted = {name: requests.get(name, quantity.Quantity(0)) for name in has}
        told = []
        if (asked := wanted["cpu"].milli_value()) > (there := has["cpu"].milli_value()):
            told.append(f"cpu, requested: {asked}, allocatable: {there}")
        if (asked := wanted["memory"].value()) > (there := has["memory"].value()):
            told.append(f"memory, requested: {asked}, allocatable: {there}")
        if told:
            raise forbidden(attributes, f"Node didn't have enough allocatable resources: {'; '.join(told)}")
        system = objects.labels(node).get(_OS, "")
        if system != "linux":
            raise forbidden(attributes, f'pod resize is only supported on linux nodes, node "{node_name}" is "{system}"')
