"""Deployments, ReplicaSets, ReplicationControllers, DaemonSets, StatefulSets, ControllerRevisions, Jobs, CronJobs."""

from __future__ import annotations

from apiserver.machinery import objects
from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.objects import Object
from apiserver.registry.defaults import workloads as defaults
from apiserver.registry.strategies import pod_warnings
from apiserver.registry.strategies.parts import keep, text
from apiserver.registry.strategy import Strategy, StrategyContext
from apiserver.registry.validation import batch, job_status, workloads

_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


class WorkloadStrategy(Strategy):
    """A kind with a pod template, a generation and a status of its own."""

    has_generation = True

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        obj.pop("status", None)
        self.default(obj)

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        keep(new, old, "status")

    def warnings(self, new: Object, old: Object | None) -> list[str]:
        before = None if old is None else objects.get(old, "spec", "template")
        return pod_warnings.of_template("spec.template", objects.get(new, "spec", "template"), before)


class DeploymentStrategy(WorkloadStrategy):
    def default(self, obj: Object) -> None:
        defaults.default_deployment(obj)

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return workloads.deployment(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return workloads.deployment_update(new, old)

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return workloads.deployment_status(new, old)

    def spec_changed(self, new: Object, old: Object) -> bool:
        """The annotations count too: the deployment controller copies them to its ReplicaSets."""
        return bool(new.get("spec") != old.get("spec")) or objects.annotations(new) != objects.annotations(old)


class ReplicaSetStrategy(WorkloadStrategy):
    def default(self, obj: Object) -> None:
        defaults.default_replica_set(obj)

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return workloads.replica_set(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return workloads.replica_set_update(new, old)

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return workloads.replica_set_status(new, old)


class ReplicationControllerStrategy(ReplicaSetStrategy):
    """Of old: its dependents are orphaned where a delete says nothing."""

    default_garbage_collection = "orphan"
    selectable_field_names = frozenset(("status.replicas",))

    def default(self, obj: Object) -> None:
        defaults.default_replication_controller(obj)

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return workloads.replication_controller(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return workloads.replication_controller(new)

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        return {"status.replicas": text(objects.get(obj, "status", "replicas", default=0))}


class DaemonSetStrategy(WorkloadStrategy):
    """The template has a generation of its own, kept in an annotation since apps/v1 has no field for it."""

    def default(self, obj: Object) -> None:
        defaults.default_daemon_set(obj)

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        super().prepare_for_create(context, obj)
        _set_template_generation(obj, 1)

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        super().prepare_for_update(context, new, old)
        found = objects.annotations(old).get(_TEMPLATE_GENERATION, "1")
        generation = int(found) if found.isascii() and found.isdigit() else 1
        changed = objects.get(new, "spec", "template") != objects.get(old, "spec", "template")
        _set_template_generation(new, generation + 1 if changed else generation)

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return workloads.daemon_set(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return workloads.daemon_set_update(new, old)

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return workloads.daemon_set_status(new, old)


def _set_template_generation(obj: Object, generation: int) -> None:
    metadata = obj["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), _TEMPLATE_GENERATION: str(generation)}


class StatefulSetStrategy(WorkloadStrategy):
    def default(self, obj: Object) -> None:
        defaults.default_stateful_set(obj)

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return workloads.stateful_set(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return workloads.stateful_set_update(new, old)

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return workloads.stateful_set_status(new, old)


class ControllerRevisionStrategy(Strategy):
    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return workloads.controller_revision(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return workloads.controller_revision_update(new, old)


class JobStrategy(WorkloadStrategy):
    """A job selects its pods by labels that the server generates, unless it says that it brings its own."""

    selectable_field_names = frozenset(("status.successful",))

    def default(self, obj: Object) -> None:
        defaults.default_job(obj)

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        if not obj["spec"].get("manualSelector"):
            _generate_selector(obj)
        super().prepare_for_create(context, obj)

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return batch.job(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return batch.job_update(new, old)

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return job_status.job_status(new, old)

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        return {"status.successful": text(objects.get(obj, "status", "succeeded", default=0))}


def _generate_selector(obj: Object) -> None:
    """Labels that the client set itself stay; validation refuses them where they differ."""
    spec, metadata = obj["spec"], obj["metadata"]
    template = spec["template"]
    uid, name = metadata.get("uid") or "", metadata.get("name") or ""
    labels = {
        batch.LEGACY_CONTROLLER_UID_LABEL: uid,
        batch.CONTROLLER_UID_LABEL: uid,
        batch.LEGACY_JOB_NAME_LABEL: name,
        batch.JOB_NAME_LABEL: name,
    }
    template["metadata"] = {**(template.get("metadata") or {})}
    template["metadata"]["labels"] = {**labels, **(template["metadata"].get("labels") or {})}
    selector = dict(spec.get("selector") or {})
    selector["matchLabels"] = {batch.CONTROLLER_UID_LABEL: uid, **(selector.get("matchLabels") or {})}
    spec["selector"] = selector


class CronJobStrategy(WorkloadStrategy):
    def default(self, obj: Object) -> None:
        defaults.default_cron_job(obj)

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return batch.cron_job(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return batch.cron_job_update(new, old)

    def warnings(self, new: Object, old: Object | None) -> list[str]:
        found = []
        if old is None or objects.get(old, "spec", "schedule") != objects.get(new, "spec", "schedule"):
            if "TZ" in objects.get(new, "spec", "schedule", default=""):
                words = "spec.schedule: CRON_TZ or TZ used in spec.schedule is not officially supported"
                found.append(f"{words}, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details")
        template = ("spec", "jobTemplate", "spec", "template")
        before = None if old is None else objects.get(old, *template)
        return found + pod_warnings.of_template(".".join(template), objects.get(new, *template), before)


STRATEGIES: dict[tuple[str, str], type[Strategy]] = {
    ("apps", "Deployment"): DeploymentStrategy,
    ("apps", "ReplicaSet"): ReplicaSetStrategy,
    ("apps", "DaemonSet"): DaemonSetStrategy,
    ("apps", "StatefulSet"): StatefulSetStrategy,
    ("apps", "ControllerRevision"): ControllerRevisionStrategy,
    ("", "ReplicationController"): ReplicationControllerStrategy,
    ("batch", "Job"): JobStrategy,
    ("batch", "CronJob"): CronJobStrategy,
}
