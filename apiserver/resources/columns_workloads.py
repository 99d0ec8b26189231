"""Columns of pods and of what makes pods: the groups ``apps``, ``batch``, ``autoscaling``, ``policy``, and the workloads of the core
group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from apiserver.machinery import release, timestamps
from apiserver.machinery.objects import Object, controller_of, get, metadata
from apiserver.resources import cell_texts as texts
from apiserver.resources.columns import AGE, NAME, Dated, Printer, age, column, name, printer, since
from apiserver.resources.resource_info import Column

_CONTAINERS = column("Containers", priority=1, description="Names of each container in the template.")
_IMAGES = column("Images", priority=1, description="Images referenced by each container in the template.")


def _selector(kind: str) -> Column:
    return column("Selector", priority=1, documented=f"{kind}Spec.selector")


_NODE_LOST = "NodeLost"
_POD_IS_DONE = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSummary:
    """What the first columns of a pod say. ``restarted_at`` is the moment of the last restart, "" if there was none."""

    ready: int
    total: int
    status: str
    restarts: int
    restarted_at: str


def summarize(pod: Object) -> PodSummary:
    """Sums the containers up as ``kubectl get pods`` shows them: init containers count until they are done, then the containers; ones
    that restart always (sidecars) count throughout."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    reason = status.get("reason") or status.get("phase") or ""
    if any(c.get("type") == "PodScheduled" and c.get("reason") == "SchedulingGated" for c in status.get("conditions") or ()):
        reason = "SchedulingGated"
    sidecars = {c.get("name") for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"}
    init = _init_containers(spec, status, sidecars)
    counted = _Counted(restarts=init.restarts, restarted_at=init.restarted_at, ready=init.ready)
    if not init.reason or texts.is_true(pod, "Initialized"):
        reason, counted = _main_containers(pod, status, reason, init)
    else:
        reason = init.reason
    if metadata(pod).get("deletionTimestamp"):
        if status.get("reason") == _NODE_LOST:
            reason = "Unknown"
        elif status.get("phase") not in _POD_IS_DONE:
            reason = "Terminating"
    return PodSummary(
        ready=counted.ready,
        total=len(spec.get("containers") or ()) + len(sidecars),
        status=reason,
        restarts=counted.restarts,
        restarted_at=counted.restarted_at,
    )


@dataclass(slots=True, kw_only=True)
class _Counted:
    restarts: int = 0
    restarted_at: str = ""
    ready: int = 0

    def add(self, container: Object) -> None:
        self.restarts += texts.count(container.get("restartCount"))
        # RFC 3339 in UTC and whole seconds: later is larger
        self.restarted_at = max(self.restarted_at, get(container, "lastState", "terminated", "finishedAt", default=""))


@dataclass(slots=True, kw_only=True)
class _InitCounted(_Counted):
    """``reason`` is what initialization waits for, "" when it is over; ``sidecars`` counts those alone."""

    reason: str
    sidecars: _Counted


def _init_containers(spec: Object, status: Object, sidecars: set[Any]) -> _InitCounted:
    counted = _InitCounted(reason="", sidecars=_Counted())
    for position, container in enumerate(status.get("initContainerStatuses") or ()):
        counted.add(container)
        is_sidecar = container.get("name") in sidecars
        if is_sidecar:
            counted.sidecars.add(container)
        terminated = get(container, "state", "terminated")
        waiting = get(container, "state", "waiting", "reason", default="")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if is_sidecar and container.get("started"):
            counted.ready += bool(container.get("ready"))
            continue
        if terminated is not None:
            counted.reason = "Init:" + (terminated.get("reason") or _exit(terminated))
        elif waiting and waiting != "PodInitializing":
            counted.reason = "Init:" + waiting
        else:
            counted.reason = f"Init:{position}/{len(spec.get('initContainers') or ())}"
        break
    return counted


def _main_containers(pod: Object, status: Object, reason: str, init: _InitCounted) -> tuple[str, _Counted]:
    counted = _Counted(restarts=init.sidecars.restarts, restarted_at=init.sidecars.restarted_at, ready=init.ready)
    running = False
    # the first container that has something to say is the one that is heard
    for container in reversed(status.get("containerStatuses") or ()):
        counted.add(container)
        state = container.get("state") or {}
        waiting, terminated = state.get("waiting") or {}, state.get("terminated")
        if waiting.get("reason"):
            reason = waiting["reason"]
        elif terminated is not None:
            reason = terminated.get("reason") or _exit(terminated)
        elif container.get("ready") and state.get("running") is not None:
            running = True
            counted.ready += 1
    if reason == "Completed" and running:
        reason = "Running" if texts.is_true(pod, "Ready") else "NotReady"
    return reason, counted


def _exit(terminated: Object) -> str:
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{texts.count(terminated.get('exitCode'))}"


def _pod(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    summary = summarize(obj)
    restarts = str(summary.restarts)
    if summary.restarts and summary.restarted_at:
        restarts += f" ({since(summary.restarted_at, now)} ago)"
    ips = status.get("podIPs") or ()
    gates = spec.get("readinessGates") or ()
    passed = sum(texts.is_true(obj, gate.get("conditionType", "")) for gate in gates)
    return [
        name(obj),
        f"{summary.ready}/{summary.total}",
        summary.status,
        restarts,
        age(obj, now),
        (ips[0].get("ip") if ips else status.get("podIP")) or texts.NONE,
        spec.get("nodeName") or texts.NONE,
        status.get("nominatedNodeName") or texts.NONE,
        f"{passed}/{len(gates)}" if gates else texts.NONE,
    ]


def _pod_conditions(obj: Object) -> list[Object]:
    phase = get(obj, "status", "phase")
    if phase not in _POD_IS_DONE:
        return []
    message = "The pod has completed successfully." if phase == "Succeeded" else "The pod failed."
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


def _template(obj: Object, *path: str) -> list[Any]:
    containers = get(obj, *path, "spec", "containers")
    return [texts.container_names(containers), texts.container_images(containers)]


def _pod_template(obj: Object, now: float) -> list[Any]:
    return [name(obj), *_template(obj, "template"), texts.label_map(get(obj, "template", "metadata", "labels"))]


def _replica_set(obj: Object, now: float) -> list[Any]:
    return _replicas(obj, now, texts.label_selector(get(obj, "spec", "selector")))


def _replication_controller(obj: Object, now: float) -> list[Any]:
    return _replicas(obj, now, texts.label_map(get(obj, "spec", "selector")))


def _replicas(obj: Object, now: float, selector: str) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    counts = [texts.count(spec.get("replicas")), texts.count(status.get("replicas")), texts.count(status.get("readyReplicas"))]
    return [name(obj), *counts, age(obj, now), *_template(obj, "spec", "template"), selector]


def _deployment(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    selector = texts.label_selector(spec.get("selector"))
    return [
        name(obj),
        f"{texts.count(status.get('readyReplicas'))}/{texts.count(spec.get('replicas'))}",
        texts.count(status.get("updatedReplicas")),
        texts.count(status.get("availableReplicas")),
        age(obj, now),
        *_template(obj, "spec", "template"),
        "" if selector == texts.NONE else selector,
    ]


def _stateful_set(obj: Object, now: float) -> list[Any]:
    ready, wanted = get(obj, "status", "readyReplicas", default=0), get(obj, "spec", "replicas", default=0)
    return [name(obj), f"{ready}/{wanted}", age(obj, now), *_template(obj, "spec", "template")]


def _daemon_set(obj: Object, now: float) -> list[Any]:
    status = obj.get("status") or {}
    fields = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable")
    return [
        name(obj),
        *(texts.count(status.get(field)) for field in fields),
        texts.label_map(get(obj, "spec", "template", "spec", "nodeSelector")),
        age(obj, now),
        *_template(obj, "spec", "template"),
        texts.label_selector(get(obj, "spec", "selector")),
    ]


def _controller_revision(obj: Object, now: float) -> list[Any]:
    owner = controller_of(obj)
    shown = texts.NONE
    if owner is not None:
        group = str(owner.get("apiVersion", "")).rpartition("/")[0]
        kind = str(owner.get("kind", "")).lower()
        shown = f"{kind}.{group}/{owner.get('name')}" if group else f"{kind}/{owner.get('name')}"
    return [name(obj), shown, texts.count(obj.get("revision")), age(obj, now)]


def _job_status(obj: Object) -> str:
    for type_, shown in (("Complete", "Complete"), ("Failed", "Failed")):
        if texts.is_true(obj, type_):
            return shown
    if metadata(obj).get("deletionTimestamp"):
        return "Terminating"
    for type_ in ("Suspended", "FailureTarget"):
        if texts.is_true(obj, type_):
            return type_
    return "Running"


def _job(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    succeeded, parallelism = texts.count(status.get("succeeded")), texts.count(spec.get("parallelism"))
    if spec.get("completions") is not None:
        completions = f"{succeeded}/{spec['completions']}"
    else:
        completions = f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"
    duration = ""
    if status.get("startTime"):
        done = status.get("completionTime")
        end = timestamps.parse_time(done).timestamp() if done else now
        duration = timestamps.human_duration(end - timestamps.parse_time(status["startTime"]).timestamp())
    selector = texts.label_selector(spec.get("selector"))
    return [name(obj), _job_status(obj), completions, duration, age(obj, now), *_template(obj, "spec", "template"), selector]


def _cron_job(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    last = status.get("lastScheduleTime")
    return [
        name(obj),
        spec.get("schedule", ""),
        spec.get("timeZone") or texts.NONE,
        texts.boolean(spec.get("suspend")),
        len(status.get("active") or ()),
        since(last, now) if last else texts.NONE,
        age(obj, now),
        *_template(obj, "spec", "jobTemplate", "spec", "template"),
        texts.label_selector(get(obj, "spec", "jobTemplate", "spec", "selector")),
    ]


def _horizontal_pod_autoscaler(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    target = spec.get("scaleTargetRef") or {}
    lowest = spec.get("minReplicas")
    return [
        name(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _targets(spec, status),
        texts.UNSET if lowest is None else str(lowest),
        texts.count(spec.get("maxReplicas")),
        texts.count(status.get("currentReplicas")),
        age(obj, now),
    ]


#: metrics shown of an autoscaler
_TARGETS_MAX = 2


def _targets(spec: Object, status: Object) -> str:
    metrics, current = spec.get("metrics") or [], status.get("currentMetrics") or []
    if not metrics and spec.get("targetCPUUtilizationPercentage") is not None:
        # the first version knows this metric alone
        now = status.get("currentCPUUtilizationPercentage")
        return f"{_metric_label('cpu')}{texts.UNKNOWN if now is None else f'{now}%'}/{spec['targetCPUUtilizationPercentage']}%"
    if not metrics:
        return texts.NONE
    parts = [_target(metric, current[i] if i < len(current) else {}) for i, metric in enumerate(metrics)]
    text = ", ".join(parts[:_TARGETS_MAX])
    return f"{text} + {len(parts) - _TARGETS_MAX} more..." if len(parts) > _TARGETS_MAX else text


def _metric_label(name: str) -> str:
    """Which resource a target is about: told since 1.30 (kubernetes/kubernetes#122804)."""
    return f"{name}: " if release.since(30) else ""


def _target(metric: Object, current: Object) -> str:
    type_ = str(metric.get("type", ""))
    field = type_[:1].lower() + type_[1:]
    if type_ not in ("External", "Pods", "Object", "Resource", "ContainerResource"):
        return "<unknown type>"
    wanted = get(metric, field, "target", default={})
    found = get(current, field, "current", default={})
    if type_ in ("Resource", "ContainerResource"):
        label = _metric_label(get(metric, field, "name", default=""))
        if wanted.get("averageValue") is not None:
            return f"{label}{found.get('averageValue') or texts.UNKNOWN}/{wanted['averageValue']}"
        used, utilization = found.get("averageUtilization"), wanted.get("averageUtilization")
        return f"{label}{texts.UNKNOWN if used is None else f'{used}%'}/{'<auto>' if utilization is None else f'{utilization}%'}"
    if type_ == "Pods":
        return f"{found.get('averageValue') or texts.UNKNOWN}/{wanted.get('averageValue', '0')}"
    if wanted.get("averageValue") is not None:
        return f"{found.get('averageValue') or texts.UNKNOWN}/{wanted['averageValue']} (avg)"
    return f"{found.get('value') or texts.UNKNOWN}/{wanted.get('value', '0')}"


def _scale(obj: Object, now: float) -> list[Any]:
    counts = [texts.count(get(obj, part, "replicas")) for part in ("spec", "status")]
    return [name(obj), *counts, age(obj, now)]


def _pod_disruption_budget(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec") or {}
    bounds = [str(spec[field]) if spec.get(field) is not None else "N/A" for field in ("minAvailable", "maxUnavailable")]
    return [name(obj), *bounds, texts.count(get(obj, "status", "disruptionsAllowed")), age(obj, now)]


def _replica_columns(kind: str) -> tuple[Column, ...]:
    return (
        NAME,
        column("Desired", "integer", documented=f"{kind}Spec.replicas"),
        column("Current", "integer", documented=f"{kind}Status.replicas"),
        column("Ready", "integer", documented=f"{kind}Status.readyReplicas"),
        AGE,
        _CONTAINERS,
        _IMAGES,
        _selector(kind),
    )


PRINTERS: dict[tuple[str, str], Callable[[int], Printer]] = {
    ("", "Pod"): printer(
        NAME,
        column("Ready", description="The aggregate readiness state of this pod for accepting traffic."),
        column("Status", description="The aggregate status of the containers in this pod."),
        column(
            "Restarts",
            description="The number of times the containers in this pod have been restarted and when the last container in this pod has "
            "restarted.",
        ),
        AGE,
        column("IP", priority=1, documented="core.v1.PodStatus.podIP"),
        column("Node", priority=1, documented="core.v1.PodSpec.nodeName"),
        column("Nominated Node", priority=1, documented="core.v1.PodStatus.nominatedNodeName"),
        column("Readiness Gates", priority=1, documented="core.v1.PodSpec.readinessGates"),
        cells=_pod,
        conditions=_pod_conditions,
    ),
    ("", "PodTemplate"): printer(
        NAME,
        column("Containers", description="Names of each container in the template."),
        column("Images", description="Images referenced by each container in the template."),
        column("Pod Labels", description="The labels for the pod template."),
        cells=_pod_template,
    ),
    ("", "ReplicationController"): printer(*_replica_columns("core.v1.ReplicationController"), cells=_replication_controller),
    ("apps", "ReplicaSet"): printer(*_replica_columns("apps.v1.ReplicaSet"), cells=_replica_set),
    ("apps", "Deployment"): printer(
        NAME,
        column("Ready", description="Number of the pod with ready state"),
        column("Up-to-date", documented="apps.v1.DeploymentStatus.updatedReplicas"),
        column("Available", documented="apps.v1.DeploymentStatus.availableReplicas"),
        AGE,
        _CONTAINERS,
        _IMAGES,
        _selector("apps.v1.Deployment"),
        cells=_deployment,
    ),
    ("apps", "StatefulSet"): printer(
        NAME, column("Ready", description="Number of the pod with ready state"), AGE, _CONTAINERS, _IMAGES, cells=_stateful_set
    ),
    ("apps", "DaemonSet"): printer(
        NAME,
        column("Desired", "integer", documented="apps.v1.DaemonSetStatus.desiredNumberScheduled"),
        column("Current", "integer", documented="apps.v1.DaemonSetStatus.currentNumberScheduled"),
        column("Ready", "integer", documented="apps.v1.DaemonSetStatus.numberReady"),
        column("Up-to-date", "integer", documented="apps.v1.DaemonSetStatus.updatedNumberScheduled"),
        column("Available", "integer", documented="apps.v1.DaemonSetStatus.numberAvailable"),
        column("Node Selector", documented="core.v1.PodSpec.nodeSelector"),
        AGE,
        _CONTAINERS,
        _IMAGES,
        _selector("apps.v1.DaemonSet"),
        cells=_daemon_set,
    ),
    ("apps", "ControllerRevision"): printer(
        NAME,
        column("Controller", description="Controller of the object"),
        column("Revision", documented="apps.v1.ControllerRevision.revision"),
        AGE,
        cells=_controller_revision,
    ),
    ("batch", "Job"): printer(
        NAME,
        Dated(column=column("Status", description="Status of the job."), since=31),
        column("Completions", documented="batch.v1.JobStatus.succeeded"),
        column("Duration", description="Time required to complete the job."),
        AGE,
        _CONTAINERS,
        _IMAGES,
        _selector("batch.v1.Job"),
        cells=_job,
    ),
    ("batch", "CronJob"): printer(
        NAME,
        column("Schedule", documented="batch.v1.CronJobSpec.schedule"),
        Dated(column=column("Timezone", documented="batch.v1.CronJobSpec.timeZone"), since=29),
        column("Suspend", "boolean", documented="batch.v1.CronJobSpec.suspend"),
        column("Active", "integer", documented="batch.v1.CronJobStatus.active"),
        column("Last Schedule", documented="batch.v1.CronJobStatus.lastScheduleTime"),
        AGE,
        _CONTAINERS,
        _IMAGES,
        _selector("batch.v1.Job"),
        cells=_cron_job,
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): printer(
        NAME,
        column("Reference", documented="autoscaling.v2.HorizontalPodAutoscalerSpec.scaleTargetRef"),
        column("Targets", documented="autoscaling.v2.HorizontalPodAutoscalerSpec.metrics"),
        column("MinPods", documented="autoscaling.v2.HorizontalPodAutoscalerSpec.minReplicas"),
        column("MaxPods", documented="autoscaling.v2.HorizontalPodAutoscalerSpec.maxReplicas"),
        column("Replicas", documented="autoscaling.v2.HorizontalPodAutoscalerStatus.currentReplicas"),
        AGE,
        cells=_horizontal_pod_autoscaler,
    ),
    ("autoscaling", "Scale"): printer(
        replace(NAME, format=""),
        column("Desired", "integer", documented="autoscaling.v1.ScaleSpec.replicas"),
        column("Available", "integer", documented="autoscaling.v1.ScaleStatus.replicas"),
        AGE,
        cells=_scale,
    ),
    ("policy", "PodDisruptionBudget"): printer(
        NAME,
        column("Min Available", description="The minimum number of pods that must be available."),
        column("Max Unavailable", description="The maximum number of pods that may be unavailable."),
        column("Allowed Disruptions", "integer", description="Calculated number of pods that may be disrupted at this time."),
        AGE,
        cells=_pod_disruption_budget,
    ),
}
