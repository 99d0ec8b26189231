"""Deployments, ReplicaSets, ReplicationControllers, DaemonSets, StatefulSets, ControllerRevisions (apps ``validation``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.machinery import names
from apiserver.machinery.field_errors import FieldError, forbidden, invalid, not_supported, required
from apiserver.registry.validation import formats, pods
from apiserver.registry.validation.common import (
    Errors,
    checked,
    each,
    equal,
    immutable,
    label_selector,
    labels,
    nonnegative,
    selector_is_empty,
    selector_is_valid,
    selector_matches,
)

Part = Mapping[str, Any]

_NOTHING: Part = {}
_TOO_MANY = "cannot be greater than status.replicas"
_MISMATCH = "`selector` does not match template `labels`"
_STATEFUL_FIELDS = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
    "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def int_or_percent(out: Errors, path: str, value: int | str | None) -> None:
    if isinstance(value, str):
        for message in names.percent(value):
            out.append(invalid(path, value, message))
    else:
        nonnegative(out, path, value)


def percent_value(value: int | str | None) -> int:
    """The number, also one that is written as a text, or the number before the percent sign; 0 for what is neither."""
    if isinstance(value, str):
        digits = value.removesuffix("%")
        return int(digits) if digits.isascii() and digits.isdigit() else 0
    return value or 0


def not_more_than_100_percent(out: Errors, path: str, value: int | str | None) -> None:
    if isinstance(value, str) and value.endswith("%") and percent_value(value) > 100:
        out.append(invalid(path, value, "must not be greater than 100%"))


def _selector_and_template(out: Errors, spec: Part, kind: str) -> None:
    """Of Deployments and ReplicaSets."""
    selector = spec.get("selector")
    if selector is None:
        out.append(required("spec.selector"))
    else:
        label_selector(out, "spec.selector", selector)
        if selector_is_empty(selector):
            out.append(invalid("spec.selector", dict(selector), f"empty selector is invalid for {kind}"))
    if selector is not None and not selector_is_valid(selector):
        out.append(invalid("spec.selector", dict(selector), "invalid label selector"))
        return
    template = spec.get("template")
    # no selector selects nothing, so it does not match either
    if selector is None or not selector_is_empty(selector):
        _matching_labels(out, selector, template)
    pods.template(out, "spec.template", template)
    if (spec.get("replicas") or 0) > 1:
        _read_only_disks(out, template)
    _forever_running(out, template, "ReplicaSet")


def _matching_labels(out: Errors, selector: Part | None, template: Part | None) -> None:
    found = ((template or _NOTHING).get("metadata") or _NOTHING).get("labels") or {}
    if selector is None or not selector_matches(selector, found):
        out.append(invalid("spec.template.metadata.labels", found or None, _MISMATCH))


def _forever_running(out: Errors, template: Part | None, kind: str) -> None:
    spec = (template or _NOTHING).get("spec") or _NOTHING
    policy = spec.get("restartPolicy") or ""
    if policy != "Always":
        out.append(not_supported("spec.template.spec.restartPolicy", policy, ["Always"]))
    if spec.get("activeDeadlineSeconds") is not None:
        words = f"activeDeadlineSeconds in {kind} is not Supported"
        out.append(forbidden("spec.template.spec.activeDeadlineSeconds", words))


def _read_only_disks(out: Errors, template: Part | None) -> None:
    for i, volume in each(out, ((template or _NOTHING).get("spec") or _NOTHING).get("volumes") or ()):
        disk = volume.get("gcePersistentDisk")
        if disk is not None and not disk.get("readOnly"):
            words = "must be true for replicated pods > 1; GCE PD can only be mounted on multiple machines if it is read-only"
            out.append(invalid(f"spec.template.spec.volumes[{i}].gcePersistentDisk.readOnly", False, words))


def deployment(obj: Part) -> list[FieldError]:
    out: Errors = []
    spec = obj.get("spec") or _NOTHING
    nonnegative(out, "spec.replicas", spec.get("replicas"))
    _selector_and_template(out, spec, "deployment")
    _deployment_strategy(out, spec.get("strategy") or _NOTHING)
    ready_seconds = spec.get("minReadySeconds") or 0
    nonnegative(out, "spec.minReadySeconds", ready_seconds)
    nonnegative(out, "spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        nonnegative(out, "spec.progressDeadlineSeconds", deadline)
        if deadline <= ready_seconds:
            out.append(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
    return out


def _deployment_strategy(out: Errors, strategy: Part) -> None:
    kind, rolling = strategy.get("type") or "", strategy.get("rollingUpdate")
    path = "spec.strategy"
    if kind == "Recreate":
        if rolling is not None:
            out.append(forbidden(f"{path}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'"))
    elif kind == "RollingUpdate":
        if rolling is None:
            out.append(required(f"{path}.rollingUpdate", "this should be defaulted and never be nil"))
            return
        unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
        path += ".rollingUpdate"
        int_or_percent(out, f"{path}.maxUnavailable", unavailable)
        int_or_percent(out, f"{path}.maxSurge", surge)
        if percent_value(unavailable) == 0 and percent_value(surge) == 0:
            out.append(invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0"))
        not_more_than_100_percent(out, f"{path}.maxUnavailable", unavailable)
    else:
        out.append(not_supported(path, dict(strategy), ["Recreate", "RollingUpdate"]))


def deployment_update(new: Part, old: Part) -> list[FieldError]:
    return _fixed_selector(deployment(new), new, old)


def _fixed_selector(out: Errors, new: Part, old: Part) -> Errors:
    have, had = new.get("spec") or _NOTHING, old.get("spec") or _NOTHING
    immutable(out, "spec.selector", have.get("selector"), had.get("selector"))
    return out


def _replica_counts(out: Errors, status: Part, counts: tuple[str, ...], all_pods: str = "replicas") -> None:
    """Each not below 0; each of ``counts`` no more than all."""
    for field in (all_pods, *counts):
        nonnegative(out, f"status.{field}", status.get(field))
    total = status.get(all_pods) or 0
    for field in counts:
        if (status.get(field) or 0) > total:
            out.append(invalid(f"status.{field}", status.get(field), _TOO_MANY))


def _collisions(out: Errors, status: Part, old_status: Part) -> None:
    nonnegative(out, "status.collisionCount", status.get("collisionCount"))
    count, old_count = status.get("collisionCount"), old_status.get("collisionCount")
    if old_count is not None and (count is None or count < old_count):
        out.append(invalid("status.collisionCount", count or 0, "cannot be decremented"))


def deployment_status(new: Part, old: Part) -> list[FieldError]:
    out: Errors = []
    status = new.get("status") or _NOTHING
    nonnegative(out, "status.observedGeneration", status.get("observedGeneration"))
    nonnegative(out, "status.unavailableReplicas", status.get("unavailableReplicas"))
    nonnegative(out, "status.terminatingReplicas", status.get("terminatingReplicas"))
    _replica_counts(out, status, ("updatedReplicas", "readyReplicas", "availableReplicas"))
    if (status.get("availableReplicas") or 0) > (status.get("readyReplicas") or 0):
        out.append(invalid("status.availableReplicas", status.get("availableReplicas"), "cannot be greater than readyReplicas"))
    _collisions(out, status, old.get("status") or _NOTHING)
    return out


def replica_set(obj: Part) -> list[FieldError]:
    out: Errors = []
    spec = obj.get("spec") or _NOTHING
    nonnegative(out, "spec.replicas", spec.get("replicas"))
    nonnegative(out, "spec.minReadySeconds", spec.get("minReadySeconds"))
    # the kind is the one of which Kubernetes speaks here
    _selector_and_template(out, spec, "deployment")
    return out


def replica_set_update(new: Part, old: Part) -> list[FieldError]:
    return _fixed_selector(replica_set(new), new, old)


def replica_set_status(new: Part, old: Part) -> list[FieldError]:
    """Of ReplicationControllers too."""
    out: Errors = []
    status = new.get("status") or _NOTHING
    nonnegative(out, "status.observedGeneration", status.get("observedGeneration"))
    nonnegative(out, "status.terminatingReplicas", status.get("terminatingReplicas"))
    _replica_counts(out, status, ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"))
    if (status.get("availableReplicas") or 0) > (status.get("readyReplicas") or 0):
        out.append(invalid("status.availableReplicas", status.get("availableReplicas"), "cannot be greater than readyReplicas"))
    return out


def replication_controller(obj: Part) -> list[FieldError]:
    """Its selector is a plain map of labels."""
    out: Errors = []
    spec = obj.get("spec") or _NOTHING
    nonnegative(out, "spec.minReadySeconds", spec.get("minReadySeconds"))
    selector, template = spec.get("selector") or {}, spec.get("template")
    if not selector:
        out.append(required("spec.selector"))
    nonnegative(out, "spec.replicas", spec.get("replicas"))
    if template is None:
        out.append(required("spec.template"))
        return out
    found = (template.get("metadata") or _NOTHING).get("labels") or {}
    if selector and not selector.items() <= found.items():
        out.append(invalid("spec.template.metadata.labels", found, _MISMATCH))
    pods.template(out, "spec.template", template)
    if (spec.get("replicas") or 0) > 1:
        _read_only_disks(out, template)
    _forever_running(out, template, "ReplicationController")
    return out


def daemon_set(obj: Part) -> list[FieldError]:
    out: Errors = []
    spec = obj.get("spec") or _NOTHING
    selector, template = spec.get("selector"), spec.get("template")
    label_selector(out, "spec.selector", selector)
    if selector is None or (selector_is_valid(selector) and not selector_is_empty(selector)):
        _matching_labels(out, selector, template)
    if selector is not None and selector_is_empty(selector):
        out.append(invalid("spec.selector", dict(selector), "empty selector is invalid for daemonset"))
    pods.template(out, "spec.template", template)
    _read_only_disks(out, template)
    _forever_running(out, template, "DaemonSet")
    nonnegative(out, "spec.minReadySeconds", spec.get("minReadySeconds"))
    _daemon_update_strategy(out, spec.get("updateStrategy") or _NOTHING)
    nonnegative(out, "spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))
    return out


def _daemon_update_strategy(out: Errors, strategy: Part) -> None:
    kind, rolling, path = strategy.get("type") or "", strategy.get("rollingUpdate"), "spec.updateStrategy"
    if kind == "OnDelete":
        return
    if kind != "RollingUpdate":
        out.append(not_supported(path, dict(strategy), ["RollingUpdate", "OnDelete"]))
        return
    if rolling is None:
        out.append(required(f"{path}.rollingUpdate"))
        return
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    path += ".rollingUpdate"
    int_or_percent(out, f"{path}.maxUnavailable", unavailable)
    int_or_percent(out, f"{path}.maxSurge", surge)
    has_unavailable, has_surge = percent_value(unavailable) != 0, percent_value(surge) != 0
    if has_unavailable and has_surge:
        out.append(invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    elif not has_unavailable and not has_surge:
        out.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    not_more_than_100_percent(out, f"{path}.maxUnavailable", unavailable)
    not_more_than_100_percent(out, f"{path}.maxSurge", surge)


def daemon_set_update(new: Part, old: Part) -> list[FieldError]:
    return _fixed_selector(daemon_set(new), new, old)


def daemon_set_status(new: Part, old: Part) -> list[FieldError]:
    out: Errors = []
    status = new.get("status") or _NOTHING
    for field in (
        "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
        "updatedNumberScheduled", "numberAvailable", "numberUnavailable",
    ):  # fmt: skip
        nonnegative(out, f"status.{field}", status.get(field))
    _collisions(out, status, old.get("status") or _NOTHING)
    return out


def stateful_set(obj: Part) -> list[FieldError]:
    out: Errors = []
    spec = obj.get("spec") or _NOTHING
    policy = spec.get("podManagementPolicy") or ""
    if not policy:
        out.append(required("spec.podManagementPolicy"))
    elif policy not in ("OrderedReady", "Parallel"):
        out.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
    _stateful_update_strategy(out, spec.get("updateStrategy") or _NOTHING)
    retention = spec.get("persistentVolumeClaimRetentionPolicy")
    if retention is not None:
        for field in ("whenDeleted", "whenScaled"):
            value = retention.get(field) or ""
            if value not in ("Retain", "Delete"):
                at = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
                out.append(not_supported(at, value, ["Retain", "Delete"]))
    nonnegative(out, "spec.replicas", spec.get("replicas"))
    nonnegative(out, "spec.minReadySeconds", spec.get("minReadySeconds"))
    nonnegative(out, "spec.ordinals.start", (spec.get("ordinals") or _NOTHING).get("start"))
    selector = spec.get("selector")
    if selector is None:
        out.append(required("spec.selector"))
    else:
        label_selector(out, "spec.selector", selector)
        if selector_is_empty(selector):
            out.append(invalid("spec.selector", dict(selector), "empty selector is invalid for statefulset"))
    template = spec.get("template")
    if selector is not None and not selector_is_valid(selector):
        out.append(invalid("spec.selector", dict(selector), ""))
    else:
        if selector is None or not selector_is_empty(selector):
            _matching_labels(out, selector, template)
        _stateful_template(out, template)
    _forever_running(out, template, "StatefulSet")
    return out


def _stateful_template(out: Errors, template: Part | None) -> None:
    """Only labels and annotations: the spec's mounts refer to claims, and old objects with bad specs must stay updatable."""
    metadata = (template or _NOTHING).get("metadata") or _NOTHING
    labels(out, "spec.template.labels", metadata.get("labels"))
    for key in metadata.get("annotations") or ():
        checked(out, "spec.template.annotations", key, lambda k: formats.qualified_name(k.lower()))


def _stateful_update_strategy(out: Errors, strategy: Part) -> None:
    kind, rolling, path = strategy.get("type") or "", strategy.get("rollingUpdate"), "spec.updateStrategy"
    if not kind:
        out.append(required(path))
    elif kind == "OnDelete":
        if rolling is not None:
            out.append(invalid(f"{path}.rollingUpdate", dict(rolling), "only allowed for updateStrategy 'RollingUpdate'"))
    elif kind == "RollingUpdate":
        if rolling is not None:
            nonnegative(out, f"{path}.rollingUpdate.partition", rolling.get("partition"))
            unavailable = rolling.get("maxUnavailable")
            if unavailable is not None:
                at = f"{path}.rollingUpdate.maxUnavailable"
                int_or_percent(out, at, unavailable)
                if percent_value(unavailable) == 0:
                    out.append(invalid(at, unavailable, "cannot be 0"))
                not_more_than_100_percent(out, at, unavailable)
    else:
        out.append(invalid(path, dict(strategy), "must be 'RollingUpdate' or 'OnDelete'"))


_STATEFUL_CHANGEABLE = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)  # fmt: skip


def stateful_set_update(new: Part, old: Part) -> list[FieldError]:
    out = stateful_set(new)
    have, had = new.get("spec") or _NOTHING, old.get("spec") or _NOTHING
    fixed, old_fixed = ({k: v for k, v in spec.items() if k not in _STATEFUL_CHANGEABLE} for spec in (have, had))
    if not equal(fixed, old_fixed):
        out.append(forbidden("spec", _STATEFUL_FIELDS))
    return out


def stateful_set_status(new: Part, old: Part) -> list[FieldError]:
    out: Errors = []
    status = new.get("status") or _NOTHING
    nonnegative(out, "status.observedGeneration", status.get("observedGeneration"))
    _replica_counts(out, status, ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"))
    if (status.get("availableReplicas") or 0) > (status.get("readyReplicas") or 0):
        out.append(invalid("status.availableReplicas", status.get("availableReplicas"), "cannot be greater than status.readyReplicas"))
    _collisions(out, status, old.get("status") or _NOTHING)
    return out


def controller_revision(obj: Part) -> list[FieldError]:
    out: Errors = []
    if obj.get("data") is None:
        out.append(required("data", "data is mandatory"))
    nonnegative(out, "revision", obj.get("revision"))
    return out


def controller_revision_update(new: Part, old: Part) -> list[FieldError]:
    out = controller_revision(new)
    immutable(out, "data", new.get("data"), old.get("data"))
    return out
