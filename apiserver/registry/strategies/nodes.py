"""Nodes, their leases, and RuntimeClasses' neighbours in scheduling: what nodes report and what administrators set."""

from __future__ import annotations

from apiserver.machinery import objects
from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.objects import Object
from apiserver.registry.defaults.pods import round_up_to_milli
from apiserver.registry.strategies.parts import keep, text
from apiserver.registry.strategy import Strategy, StrategyContext
from apiserver.registry.validation import coordination, core


class NodeStrategy(Strategy):
    """A node may say its status when it registers; later its status goes through ``/status``."""

    selectable_field_names = frozenset(("spec.unschedulable",))

    def default(self, obj: Object) -> None:
        status = obj.setdefault("status", {})
        for side in ("capacity", "allocatable"):
            round_up_to_milli(status.get(side))
        if status.get("allocatable") is None and status.get("capacity") is not None:
            status["allocatable"] = dict(status["capacity"])
        if status.get("daemonEndpoints") is None:
            status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": 0}}
        if status.get("nodeInfo") is None:
            status["nodeInfo"] = dict.fromkeys(_NODE_INFO, "")
        spec = obj.setdefault("spec", {})
        if spec.get("podCIDRs") and not spec.get("podCIDR"):
            spec["podCIDR"] = spec["podCIDRs"][0]
        elif spec.get("podCIDR"):
            # the older field wins where they differ
            spec["podCIDRs"] = [spec["podCIDR"], *(spec.get("podCIDRs") or ())[1:]]

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        """Status included: the kubelet registers with it."""

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return core.node(obj)

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        keep(new, old, "status")

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return [*core.node(new), *core.node_update(new, old)]

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return core.node_update(new, old)

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        return {"spec.unschedulable": text(bool(objects.get(obj, "spec", "unschedulable")))}


_NODE_INFO = (
    "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion", "kubeProxyVersion",
    "operatingSystem", "architecture",
)  # fmt: skip


class LeaseStrategy(Strategy):
    allow_create_on_update = True
    allow_unconditional_update = False
    standard_finalizers = False

    def default(self, obj: Object) -> None:
        obj.setdefault("spec", {})

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return coordination.lease(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return coordination.lease(new)


STRATEGIES: dict[tuple[str, str], type[Strategy]] = {
    ("", "Node"): NodeStrategy,
    ("coordination.k8s.io", "Lease"): LeaseStrategy,
}
