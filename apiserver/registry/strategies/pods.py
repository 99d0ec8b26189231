"""Pods, and the PodTemplates that nobody uses."""

from __future__ import annotations

from typing import Any

from apiserver.machinery import objects
from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.objects import Object
from apiserver.registry.defaults import pods as defaults
from apiserver.registry.strategies import pod_warnings
from apiserver.registry.strategies.parts import keep, text
from apiserver.registry.strategy import Strategy, StrategyContext
from apiserver.registry.validation import pods
from apiserver.registry.validation.common import Errors
from apiserver.registry.validation.quality_of_service import qos_class


class PodStrategy(Strategy):
    selectable_field_names = frozenset((
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork", "status.phase",
        "status.podIP", "status.podIPs", "status.nominatedNodeName",
    ))  # fmt: skip
    has_generation = True
    default_grace_period_seconds = defaults.DEFAULT_GRACE_SECONDS

    def default(self, obj: Object) -> None:
        defaults.default_pod(obj)

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        """A new pod is Pending, in the class that its requests and limits give it."""
        spec = obj["spec"]
        defaults.same_service_account(spec)
        defaults.merge_label_keys(spec, objects.labels(obj))
        status: Object = {"phase": "Pending", "qosClass": qos_class(spec)}
        if spec.get("schedulingGates"):
            status["conditions"] = [_gated()]
        obj["status"] = status

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return pods.create(obj)

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        keep(new, old, "status")
        defaults.same_service_account(new["spec"])

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return pods.update(new, old)

    def prepare_for_status_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        """The spec stays, and with it what follows from it; a deletion mark may not be taken back."""
        super().prepare_for_status_update(context, new, old)
        status = new.setdefault("status", {})
        had = old.get("status") or {}
        if not status.get("qosClass") and had.get("qosClass"):
            status["qosClass"] = had["qosClass"]
        if status.get("podIP") and not status.get("podIPs"):
            status["podIPs"] = [{"ip": status["podIP"]}]
        elif status.get("podIPs") and not status.get("podIP"):
            status["podIP"] = status["podIPs"][0].get("ip")
        if status.get("hostIP") and not status.get("hostIPs"):
            status["hostIPs"] = [{"ip": status["hostIP"]}]

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return pods.status_update(new, old)

    def subresource(self, name: str) -> Strategy | None:
        if name == "ephemeralcontainers":
            return _EphemeralContainersStrategy()
        return _ResizeStrategy() if name == "resize" else None

    def warnings(self, new: Object, old: Object | None) -> list[str]:
        return pod_warnings.of_pod(new, old)

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        ips = status.get("podIPs") or ()
        ip = text(status.get("podIP")) or (text(ips[0].get("ip")) if ips else "")
        return {
            "spec.nodeName": text(spec.get("nodeName")),
            "spec.restartPolicy": text(spec.get("restartPolicy")),
            "spec.schedulerName": text(spec.get("schedulerName")),
            "spec.serviceAccountName": text(spec.get("serviceAccountName")),
            "spec.hostNetwork": text(bool(spec.get("hostNetwork"))),
            "status.phase": text(status.get("phase")),
            "status.podIP": ip,
            "status.podIPs": ip,
            "status.nominatedNodeName": text(status.get("nominatedNodeName")),
        }


def _gated() -> dict[str, Any]:
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


class _EphemeralContainersStrategy(Strategy):
    """``pods/ephemeralcontainers``: only that list changes."""

    has_generation = True

    def default(self, obj: Object) -> None:
        defaults.default_pod(obj)

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        added = (new.get("spec") or {}).get("ephemeralContainers")
        new["spec"] = dict(old["spec"])
        new["spec"].pop("ephemeralContainers", None)
        if added:
            new["spec"]["ephemeralContainers"] = added
        keep(new, old, "status")

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return pods.ephemeral_containers_update(new, old)


class _ResizeStrategy(Strategy):
    """``pods/resize``: containers' resources, and how they take a change."""

    has_generation = True

    def default(self, obj: Object) -> None:
        defaults.default_pod(obj)

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        spec = dict(old["spec"])
        for kind in ("containers", "initContainers"):
            wanted = {c.get("name"): c for c in (new.get("spec") or {}).get(kind) or ()}
            if had := spec.get(kind):
                spec[kind] = [_resized(c, wanted.get(c.get("name"))) for c in had]
        new["spec"] = spec
        keep(new, old, "status")

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return pods.resize_update(new, old)


def _resized(container: Object, wanted: Object | None) -> Object:
    if wanted is None:
        return container
    return {**container, "resources": wanted.get("resources") or {}, **{k: v for k, v in wanted.items() if k == "resizePolicy"}}


class PodTemplateStrategy(Strategy):
    has_generation = True

    def default(self, obj: Object) -> None:
        defaults.default_template(obj)

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        out: Errors = []
        pods.template(out, "template", obj.get("template"))
        return out

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return self.validate(context, new)

    def spec_changed(self, new: Object, old: Object) -> bool:
        return bool(new.get("template") != old.get("template"))


STRATEGIES: dict[tuple[str, str], type[Strategy]] = {
    ("", "Pod"): PodStrategy,
    ("", "PodTemplate"): PodTemplateStrategy,
}
