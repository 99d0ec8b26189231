"""Smaller kinds of the core group: ConfigMap, Secret, ServiceAccount, Namespace, Event, LimitRange."""

from __future__ import annotations

import base64

from apiserver.machinery import names, objects
from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.objects import Object
from apiserver.registry.defaults.pods import round_up_to_milli
from apiserver.registry.strategies.parts import keep, text
from apiserver.registry.strategy import Strategy, StrategyContext
from apiserver.registry.validation import core, events, quotas


class ConfigMapStrategy(Strategy):
    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return core.config_map(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return core.config_map_update(new, old)


class SecretStrategy(Strategy):
    selectable_field_names = frozenset(("type",))

    def default(self, obj: Object) -> None:
        """``stringData`` is write-only: it goes into ``data``, over what is there."""
        if not obj.get("type"):
            obj["type"] = "Opaque"
        plain = obj.pop("stringData", None)
        if plain:
            data = obj.get("data")
            data = obj["data"] = {} if data is None else data
            for key, value in plain.items():
                data[key] = base64.b64encode((value or "").encode()).decode()

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return core.secret(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return core.secret_update(new, old)

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        return {"type": text(obj.get("type"))}


class ServiceAccountStrategy(Strategy):
    """Tokens in ``secrets`` are the controllers' business; nothing but the name is checked."""


class NamespaceStrategy(Strategy):
    """A namespace is Active until it is deleted; it stays until its finalizers, in ``spec``, are gone."""

    name_rule = "dns_label"
    selectable_field_names = frozenset(("status.phase",))

    def default(self, obj: Object) -> None:
        metadata = obj.setdefault("metadata", {})
        # Every namespace carries its name as a label, so that selectors can name namespaces; a bad name is refused as a name alone.
        name = metadata.get("name")
        if name and not names.label_value(name):
            metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": name}
        status = obj.setdefault("status", {})
        if not status.get("phase"):
            status["phase"] = "Active"

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        spec = obj.get("spec") or {}
        finalizers = list(spec.get("finalizers") or ())
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")
        obj["spec"] = {**spec, "finalizers": finalizers}
        obj["status"] = {"phase": "Active"}
        self.default(obj)

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return core.namespace(obj)

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        keep(new, old, "status")
        if "finalizers" in (old.get("spec") or {}):
            new["spec"] = {**(new.get("spec") or {}), "finalizers": old["spec"]["finalizers"]}
        else:
            (new.get("spec") or {}).pop("finalizers", None)

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return core.namespace_status_update(new, old)

    def subresource(self, name: str) -> Strategy | None:
        return _FinalizeStrategy() if name == "finalize" else None

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        return {"status.phase": text(objects.get(obj, "status", "phase"))}


class _FinalizeStrategy(Strategy):
    """``namespaces/finalize``: how the namespace controller takes finalizers out of ``spec``; status stays."""

    def default(self, obj: Object) -> None:
        NamespaceStrategy().default(obj)

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        keep(new, old, "status")

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return core.namespace_finalize(new)


class EventStrategy(Strategy):
    """Events of core/v1 and events.k8s.io/v1 are one stored type; the checks of each version are its own."""

    allow_create_on_update = True
    name_rule = "path_segment"
    standard_finalizers = False
    default_garbage_collection = "unsupported"
    selectable_field_names = frozenset((
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid", "involvedObject.apiVersion",
        "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type",
        "regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid", "regarding.apiVersion",
        "regarding.resourceVersion", "regarding.fieldPath", "reportingController",
    ))  # fmt: skip

    def default(self, obj: Object) -> None:
        """Go writes these even though they are empty."""
        if obj.get("apiVersion") == "v1":
            for field in ("involvedObject", "source"):
                if obj.get(field) is None:
                    obj[field] = {}
            for field in ("reportingComponent", "reportingInstance"):
                obj.setdefault(field, "")

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return events.create(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return events.update(new, old)

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        """Under the names of both versions, whichever the object is in."""
        about = obj.get("involvedObject") or obj.get("regarding") or {}
        source = obj.get("source") or obj.get("deprecatedSource") or {}
        controller = text(obj.get("reportingComponent") or obj.get("reportingController"))
        fields = {
            "reason": text(obj.get("reason")),
            "reportingComponent": controller,
            "reportingController": controller,
            "source": text(source.get("component")) or controller,
            "type": text(obj.get("type")),
        }
        for part in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"):
            fields[f"involvedObject.{part}"] = fields[f"regarding.{part}"] = text(about.get(part))
        return fields


class LimitRangeStrategy(Strategy):
    """One without a name gets a UID for it."""

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        metadata = obj["metadata"]
        if not metadata.get("name"):
            metadata["name"] = metadata.get("uid") or ""

    def default(self, obj: Object) -> None:
        """For containers: the limit defaults to the maximum, the request to the limit, or to the minimum."""
        for limit in objects.get(obj, "spec", "limits", default=()):
            for side in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
                round_up_to_milli(limit.get(side))
            if limit.get("type") != "Container":
                continue
            default = dict(limit.get("default") or {})
            request = dict(limit.get("defaultRequest") or {})
            for name, value in (limit.get("max") or {}).items():
                default.setdefault(name, value)
            for name, value in {**(limit.get("min") or {}), **default}.items():
                request.setdefault(name, value)
            for field, found in (("default", default), ("defaultRequest", request)):
                if found:
                    limit[field] = found

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return core.limit_range(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return core.limit_range(new)


class ResourceQuotaStrategy(Strategy):
    def default(self, obj: Object) -> None:
        round_up_to_milli(objects.get(obj, "spec", "hard"))
        obj.setdefault("status", {})

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return quotas.quota(obj)

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        keep(new, old, "status")

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return quotas.update(new, old)

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return quotas.status(new.get("status") or {})


STRATEGIES: dict[tuple[str, str], type[Strategy]] = {
    ("", "ConfigMap"): ConfigMapStrategy,
    ("", "Secret"): SecretStrategy,
    ("", "ServiceAccount"): ServiceAccountStrategy,
    ("", "Namespace"): NamespaceStrategy,
    ("", "Event"): EventStrategy,
    ("events.k8s.io", "Event"): EventStrategy,
    ("", "LimitRange"): LimitRangeStrategy,
    ("", "ResourceQuota"): ResourceQuotaStrategy,
}
