"""The status a kubelet would report of a pod (``pkg/kubelet/status``, ``kubelet_pods.go``). Pure."""

from __future__ import annotations

import re

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.hollownode import pod_lifecycle as lifecycle
from controllers.hollownode.pod_run import ContainerRun, Instant, PodRun
from controllers.hollownode.workload import annotation_flag
from controllers.lib import pods as pod_facts
from controllers.lib.clock import format_time

#: fields that kubelets report from this minor version on: an older API server refuses to patch a list or map it does not know
SINCE_MINOR = {"hostIPs": 28}
_MINOR = re.compile(r"v?1\.(\d+)").match


def known_to(version: str, status: Object) -> Object:
    """What a kubelet of that version (``v1.25.3``) reports of a status; all of it where the version tells nothing."""
    found = _MINOR(version)
    if found is None:
        return status
    minor = int(found[1])
    return {field: value for field, value in status.items() if SINCE_MINOR.get(field, 0) <= minor}


def status_of(pod: Object, run: PodRun, now: Instant, host_ip: str) -> Object:
    """Only the fields a kubelet owns; others of the status stay as they are."""
    phase = _phase(pod, run)
    old = pod.get("status") or {}
    status: Object = {
        "phase": phase,
        "startTime": old.get("startTime") or format_time(run.seen.wall),
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
    }
    waiting = _waiting(pod, run)
    status["containerStatuses"] = [_container(pod, c, run.main[c["name"]], now, waiting=waiting) for c in lifecycle.containers_of(pod)]
    init = lifecycle.init_containers_of(pod)
    if init:
        status["initContainerStatuses"] = [_container(pod, c, run.init[c["name"]], now, waiting="PodInitializing", init=True) for c in init]
    ephemeral = [c for c in lifecycle.ephemeral_containers_of(pod) if c["name"] in run.ephemeral]
    if ephemeral:
        status["ephemeralContainerStatuses"] = [
            {**_container(pod, c, run.ephemeral[c["name"]], now, waiting=waiting, init=True), "ready": False} for c in ephemeral
        ]
    host_network = bool(objects.get(pod, "spec", "hostNetwork", default=False))
    if any(one.started is not None for one in [*run.init.values(), *run.main.values()]):
        ip = host_ip if host_network else run.ip
        status["podIP"], status["podIPs"] = ip, [{"ip": ip}]
    if run.deadline_exceeded:
        status["reason"] = "DeadlineExceeded"
        status["message"] = "Pod was active on the node longer than the specified deadline"
    status["conditions"] = _conditions(pod, run, phase, status, now)
    return status


def differs(status: Object, current: Object) -> bool:
    """Whether the status must be written: a field of it is not what the server has. Nulls count as nothing."""
    for name, value in status.items():
        if name == "conditions":
            known = {c.get("type"): _bare(c) for c in current.get("conditions") or []}
            if any(known.get(c["type"]) != _bare(c) for c in value):
                return True
        elif _bare(current.get(name)) != _bare(value):
            return True
    return False


def _bare(value: object) -> object:
    if isinstance(value, dict):
        return {k: _bare(v) for k, v in value.items() if v is not None and v != {}}
    if isinstance(value, list):
        return [_bare(v) for v in value]
    return value


def _phase(pod: Object, run: PodRun) -> str:
    if run.deadline_exceeded or lifecycle.init_has_failed(pod, run):
        return "Failed"
    mains = list(run.main.values())
    if lifecycle.is_terminal(pod, run):
        return "Succeeded" if all(one.exit_code == 0 for one in mains) else "Failed"
    if not lifecycle.init_is_done(pod, run):
        return "Pending"
    if any(one.started is None and one.restarts == 0 for one in mains):
        return "Pending"
    return "Running"


def _waiting(pod: Object, run: PodRun) -> str:
    if annotation_flag(pod, "pull-error"):
        return "ImagePullBackOff"
    return "ContainerCreating" if lifecycle.init_is_done(pod, run) else "PodInitializing"


def _container(pod: Object, container: Object, one: ContainerRun, now: Instant, *, waiting: str, init: bool = False) -> Object:
    image = str(container.get("image") or "")
    out: Object = {
        "name": container["name"],
        "image": image,
        "imageID": "",
        "restartCount": one.restarts,
        "ready": False,
        "started": False,
        "lastState": {"terminated": one.last_state} if one.last_state else {},
        "state": {},
    }
    if one.started is None:
        out["state"] = {"waiting": {"reason": waiting}}
        if waiting == "ImagePullBackOff":
            out["state"]["waiting"]["message"] = f'Back-off pulling image "{image}"'
        return out
    out["imageID"] = f"hollow://{image}"
    out["containerID"] = lifecycle.container_id(one)
    if one.finished is None:
        out["state"] = {"running": {"startedAt": format_time(one.started.wall)}}
        out["started"] = True
        out["ready"] = lifecycle.is_ready(pod, container, one, now) if not init or pod_facts.is_sidecar(container) else False
    elif one.restart_at is not None and one.restarts > 0:
        out["lastState"] = {"terminated": lifecycle.terminated_state(one)}
        out["state"] = {"waiting": {"reason": "CrashLoopBackOff", "message": f"back-off restarting failed container={container['name']}"}}
    else:
        out["state"] = {"terminated": lifecycle.terminated_state(one)}
        out["ready"] = init and one.exit_code == 0
    return out


def _conditions(pod: Object, run: PodRun, phase: str, status: Object, now: Instant) -> list[Object]:
    current = objects.get(pod, "status", "conditions", default=[])
    unready = [s["name"] for s in status["containerStatuses"] if not s["ready"]]
    initialized = lifecycle.init_is_done(pod, run)
    incomplete = [s["name"] for s in status.get("initContainerStatuses", []) if not s["ready"]]

    def new(type_: str, truth: bool, reason: str = "", message: str = "") -> Object:
        return pod_facts.new_condition(type_, truth, now.wall, "" if truth else reason, "" if truth else message)

    finished = phase in ("Succeeded", "Failed")
    reason = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "ContainersNotReady")
    message = "" if finished else f"containers with unready status: [{' '.join(unready)}]"
    containers_ready = not unready and not finished
    gates = [
        g
        for g in objects.get(pod, "spec", "readinessGates", default=[])
        if (pod_facts.condition(pod, g["conditionType"]) or {}).get("status") != "True"
    ]
    if containers_ready and gates:
        names = " ".join(
            f'corresponding condition of pod readiness gate "{g["conditionType"]}" does not exist.'
            if pod_facts.condition(pod, g["conditionType"]) is None
            else f'the status of pod readiness gate "{g["conditionType"]}" is not "True"'
            for g in gates
        )
        ready = new("Ready", False, "ReadinessGatesNotReady", names)
    else:
        ready = new("Ready", containers_ready, reason, message)
    started = any(one.started is not None for one in [*run.init.values(), *run.main.values()])
    found = [
        new("PodReadyToStartContainers", started and not finished),
        new("Initialized", initialized, "ContainersNotInitialized", f"containers with incomplete status: [{' '.join(incomplete)}]"),
        ready,
        new("ContainersReady", containers_ready, reason, message),
        new("PodScheduled", True),
    ]
    return [pod_facts.with_condition([c for c in current if c.get("type") == one["type"]], one)[0] for one in found]
