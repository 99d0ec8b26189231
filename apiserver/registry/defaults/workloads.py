"""Defaults of workloads: apps/v1, batch/v1 and ReplicationControllers."""

from __future__ import annotations

from typing import Any

from apiserver.machinery import release
from apiserver.machinery.objects import Object
from apiserver.registry.defaults.pods import default_claim_spec, default_template

REVISION_HISTORY_LIMIT = 10
PROGRESS_DEADLINE_SECONDS = 600
JOB_BACKOFF_LIMIT = 6
_INT32_MAX = 2**31 - 1


def _fill(holder: Object, **defaults: Any) -> None:
    for field, value in defaults.items():
        if holder.get(field) is None:
            holder[field] = value


def _spec(obj: Object) -> Object:
    spec: Object | None = obj.get("spec")
    if spec is None:
        spec = obj["spec"] = {}
    return spec


def _part(holder: Object, field: str) -> Object:
    found: Object | None = holder.get(field)
    if found is None:
        found = holder[field] = {}
    return found


def default_deployment(obj: Object) -> None:
    spec = _spec(obj)
    default_template(spec)
    _fill(spec, replicas=1, revisionHistoryLimit=REVISION_HISTORY_LIMIT, progressDeadlineSeconds=PROGRESS_DEADLINE_SECONDS)
    strategy = _part(spec, "strategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        _fill(_part(strategy, "rollingUpdate"), maxUnavailable="25%", maxSurge="25%")
    _part(obj, "status")


def default_replica_set(obj: Object) -> None:
    spec = _spec(obj)
    default_template(spec)
    _fill(spec, replicas=1)
    _fill(_part(obj, "status"), replicas=0)


def default_replication_controller(obj: Object) -> None:
    """Selector and labels default to the template's labels."""
    spec = _spec(obj)
    if spec.get("template") is not None:
        default_template(spec)
        found = spec["template"]["metadata"].get("labels")
        if found:
            if not spec.get("selector"):
                spec["selector"] = dict(found)
            metadata = obj.setdefault("metadata", {})
            if not metadata.get("labels"):
                metadata["labels"] = dict(found)
    _fill(spec, replicas=1)
    _fill(_part(obj, "status"), replicas=0)


def default_daemon_set(obj: Object) -> None:
    spec = _spec(obj)
    default_template(spec)
    strategy = _part(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        _fill(_part(strategy, "rollingUpdate"), maxUnavailable=1, maxSurge=0)
    _fill(spec, revisionHistoryLimit=REVISION_HISTORY_LIMIT)
    status = _part(obj, "status")
    _fill(status, currentNumberScheduled=0, numberMisscheduled=0, desiredNumberScheduled=0, numberReady=0)


def default_stateful_set(obj: Object) -> None:
    spec = _spec(obj)
    default_template(spec)
    if not spec.get("podManagementPolicy"):
        spec["podManagementPolicy"] = "OrderedReady"
    strategy = _part(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        _fill(_part(strategy, "rollingUpdate"), partition=0)
    # StatefulSetAutoDeletePVC is on by default since 1.27 (KEP-1847)
    if release.since(27):
        retention = _part(spec, "persistentVolumeClaimRetentionPolicy")
        for field in ("whenDeleted", "whenScaled"):
            if not retention.get(field):
                retention[field] = "Retain"
    _fill(spec, replicas=1, revisionHistoryLimit=REVISION_HISTORY_LIMIT)
    for claim in spec.get("volumeClaimTemplates") or ():
        claim["kind"], claim["apiVersion"] = "PersistentVolumeClaim", "v1"
        default_claim_spec(_part(claim, "spec"))
        status = _part(claim, "status")
        if not status.get("phase"):
            status["phase"] = "Pending"
    _fill(_part(obj, "status"), replicas=0, availableReplicas=0)


def default_job(obj: Object) -> None:
    spec = _spec(obj)
    default_template(spec)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = spec["parallelism"] = 1
    _fill(spec, parallelism=1, backoffLimit=JOB_BACKOFF_LIMIT if spec.get("backoffLimitPerIndex") is None else _INT32_MAX)
    if not spec.get("completionMode"):
        spec["completionMode"] = "NonIndexed"
    _fill(spec, suspend=False)
    # JobPodReplacementPolicy is on by default since 1.29 (KEP-3939)
    if not spec.get("podReplacementPolicy") and release.since(29):
        spec["podReplacementPolicy"] = "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed"
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for condition in rule.get("onPodConditions") or ():
            if not condition.get("status"):
                condition["status"] = "True"
    labels = spec["template"]["metadata"].get("labels")
    metadata = obj.setdefault("metadata", {})
    if labels and not metadata.get("labels"):
        metadata["labels"] = dict(labels)
    _part(obj, "status")


def default_cron_job(obj: Object) -> None:
    spec = _spec(obj)
    template = _part(spec, "jobTemplate")
    _part(template, "metadata")
    default_template(_part(template, "spec"))
    if not spec.get("concurrencyPolicy"):
        spec["concurrencyPolicy"] = "Allow"
    _fill(spec, suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    _part(obj, "status")
