"""The life of a pod on a hollow node: what has become due by now, and when to look again.

Nothing here waits or writes; ``advance`` changes the ``PodRun`` it is given (the shell owns it) and tells the events of the transitions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.hollownode.options import HollowNodeOptions
from controllers.hollownode.pod_run import ContainerRun, Instant, PodRun
from controllers.hollownode.workload import Workload, annotation_flag, annotation_number, workload_of
from controllers.lib.clock import format_time
from controllers.lib.pods import is_sidecar

#: kubelet's back-off of a container that ends again and again: first restart at once, then these seconds, doubling up to the maximum.
CRASH_BACKOFF_SECONDS = 10.0
CRASH_BACKOFF_SECONDS_MAX = 300.0
#: exit code of a process that SIGTERM ended
TERMINATED = 143


@dataclass(frozen=True, slots=True)
class PodEvent:
    type: str
    reason: str
    message: str
    field_path: str = ""


@dataclass(slots=True)
class Progress:
    """``due`` is the monotonic time of the next transition; None: only a change of the pod brings one. ``gone``: all containers of a
    pod in deletion have stopped."""

    events: list[PodEvent] = field(default_factory=list)
    due: float | None = None
    gone: bool = False

    def at(self, due: float) -> None:
        self.due = due if self.due is None else min(self.due, due)


def advance(pod: Object, run: PodRun, now: Instant, options: HollowNodeOptions) -> Progress:
    progress = Progress()
    if objects.is_being_deleted(pod):
        _stop(pod, run, now, options, progress)
        return progress
    if _check_deadline(pod, run, now, progress):
        return progress
    delay = annotation_number(pod, "start-seconds")
    begin_at = run.seen.monotonic + (options.start_seconds if delay is None else delay)
    if annotation_flag(pod, "pull-error"):
        if now.monotonic < begin_at:
            progress.at(begin_at)
        return progress
    if not _advance_init(pod, run, now, begin_at, options, progress):
        return progress
    for container in containers_of(pod):
        one = run.main[container["name"]]
        _advance_container(pod, container, one, now, begin_at, options.run_seconds, progress, policy_of(pod), "containers")
        _await_readiness(pod, container, one, now, progress)
    _advance_ephemeral(pod, run, now, begin_at, progress)
    return progress


def containers_of(pod: Object) -> list[Object]:
    found: list[Object] = objects.get(pod, "spec", "containers", default=[])
    return found


def init_containers_of(pod: Object) -> list[Object]:
    found: list[Object] = objects.get(pod, "spec", "initContainers", default=[])
    return found


def ephemeral_containers_of(pod: Object) -> list[Object]:
    found: list[Object] = objects.get(pod, "spec", "ephemeralContainers", default=[])
    return found


def policy_of(pod: Object) -> str:
    return str(objects.get(pod, "spec", "restartPolicy", default="Always"))


def init_is_done(pod: Object, run: PodRun) -> bool:
    """Every init container has succeeded, or runs as a sidecar."""
    for container in init_containers_of(pod):
        one = run.init[container["name"]]
        if is_sidecar(container):
            if one.started is None:
                return False
        elif one.finished is None or one.exit_code != 0:
            return False
    return True


def init_has_failed(pod: Object, run: PodRun) -> bool:
    """For good: with restartPolicy Never a failed init container fails the pod."""
    plain = [run.init[c["name"]] for c in init_containers_of(pod) if not is_sidecar(c)]
    return policy_of(pod) == "Never" and any(one.finished is not None and one.exit_code != 0 for one in plain)


def is_ready(pod: Object, container: Object, one: ContainerRun, now: Instant) -> bool:
    """Running, and past its probe's initial delay; the startup probe's comes before the readiness probe's."""
    if not one.is_running or annotation_flag(pod, "never-ready"):
        return False
    return now.monotonic >= _ready_at(container, one)


def _ready_at(container: Object, one: ContainerRun) -> float:
    assert one.started is not None
    delay = sum(float((container.get(probe) or {}).get("initialDelaySeconds") or 0) for probe in ("startupProbe", "readinessProbe"))
    return one.started.monotonic + delay


def _await_readiness(pod: Object, container: Object, one: ContainerRun, now: Instant, progress: Progress) -> None:
    if one.is_running and not annotation_flag(pod, "never-ready") and _ready_at(container, one) > now.monotonic:
        progress.at(_ready_at(container, one))


def _advance_init(pod: Object, run: PodRun, now: Instant, begin_at: float, options: HollowNodeOptions, progress: Progress) -> bool:
    """One after another; true once the main containers may start."""
    for container in init_containers_of(pod):
        one = run.init[container["name"]]
        policy = "Always" if is_sidecar(container) else ("OnFailure" if policy_of(pod) != "Never" else "Never")
        seconds = options.init_seconds
        _advance_container(pod, container, one, now, begin_at, seconds, progress, policy, "initContainers")
        if is_sidecar(container):
            if one.started is None:
                return False
        elif one.finished is None or one.exit_code != 0 or one.restart_at is not None:
            return False
    return True


def _advance_container(
    pod: Object,
    container: Object,
    one: ContainerRun,
    now: Instant,
    begin_at: float,
    run_seconds: float,
    progress: Progress,
    policy: str,
    group: str,
) -> None:
    path = f"spec.{group}{{{container['name']}}}"
    if one.restart_at is not None and one.finished is not None:
        if now.monotonic < one.restart_at:
            progress.at(one.restart_at)
            return
        one.last_state = terminated_state(one)
        one.restarts += 1
        one.started = one.finished = one.restart_at = None
        begin_at = now.monotonic
    if one.started is None:
        if now.monotonic < begin_at:
            progress.at(begin_at)
            return
        one.started = now
        name = container["name"]
        progress.events += [
            PodEvent("Normal", "Pulled", f'Container image "{container.get("image", "")}" already present on machine', path),
            PodEvent("Normal", "Created", f"Created container: {name}", path),
            PodEvent("Normal", "Started", f"Started container {name}", path),
        ]
    if one.finished is not None:
        return
    workload = _workload(pod, container, group, policy, run_seconds)
    if workload.seconds is None:
        return
    ends = one.started.monotonic + workload.seconds
    if now.monotonic < ends:
        progress.at(ends)
        return
    one.finished, one.exit_code = now, workload.exit_code
    if policy == "Always" or (policy == "OnFailure" and workload.exit_code != 0):
        backoff = 0.0 if one.restarts == 0 else min(CRASH_BACKOFF_SECONDS * 2.0 ** min(one.restarts - 1, 10), CRASH_BACKOFF_SECONDS_MAX)
        one.restart_at = now.monotonic + backoff
        if backoff:
            progress.events.append(
                PodEvent(
                    "Warning",
                    "BackOff",
                    f"Back-off restarting failed container {container['name']} in pod "
                    f"{objects.name(pod)}_{objects.namespace(pod)}({objects.uid(pod)})",
                    path,
                )
            )
        progress.at(one.restart_at)


def _advance_ephemeral(pod: Object, run: PodRun, now: Instant, begin_at: float, progress: Progress) -> None:
    """Those of ``kubectl debug``: started once, never again, and stopped with the pod's main containers."""
    for container in ephemeral_containers_of(pod):
        one = run.ephemeral.setdefault(container["name"], ContainerRun(container["name"]))
        _advance_container(pod, container, one, now, begin_at, 0.0, progress, "Never", "ephemeralContainers")
    if is_terminal(pod, run):
        for one in run.ephemeral.values():
            if one.is_running:
                one.finished, one.exit_code = now, TERMINATED


def _workload(pod: Object, container: Object, group: str, policy: str, run_seconds: float) -> Workload:
    if group == "containers" or policy == "Always":
        return workload_of(pod, container, default_seconds=run_seconds)
    if group == "ephemeralContainers":
        # a shell waits for its user: it ends when its command says so, else with the pod
        return workload_of({"spec": {"restartPolicy": "Always"}}, container, default_seconds=run_seconds)
    # init containers complete whatever the pod's policy and annotations say of its main containers
    plain = {"spec": {"restartPolicy": "Never"}}
    return workload_of(plain, container, default_seconds=run_seconds)


def _stop(pod: Object, run: PodRun, now: Instant, options: HollowNodeOptions, progress: Progress) -> None:
    running = [one for one in run.everything() if one.is_running]
    if not running:
        progress.gone = True
        return
    if run.killed is None:
        run.killed = now
        for group, runs in (("containers", run.main), ("initContainers", run.init), ("ephemeralContainers", run.ephemeral)):
            progress.events += [
                PodEvent("Normal", "Killing", f"Stopping container {one.name}", f"spec.{group}{{{one.name}}}")
                for one in runs.values()
                if one.is_running
            ]
    grace = float(objects.metadata(pod).get("deletionGracePeriodSeconds") or 0)
    wanted = annotation_number(pod, "stop-seconds")
    stopped_at = run.killed.monotonic + min(grace, options.stop_seconds if wanted is None else wanted)
    if now.monotonic < stopped_at:
        progress.at(stopped_at)
        return
    for one in running:
        one.finished, one.restart_at = now, None
        one.exit_code = 0
    progress.gone = True


def _check_deadline(pod: Object, run: PodRun, now: Instant, progress: Progress) -> bool:
    """``activeDeadlineSeconds``: past it, everything is stopped and the pod has failed."""
    deadline = objects.get(pod, "spec", "activeDeadlineSeconds")
    if run.deadline_exceeded:
        return True
    if deadline is None or is_terminal(pod, run):
        return False
    due = run.seen.monotonic + float(deadline)
    if now.monotonic < due:
        progress.at(due)
        return False
    run.deadline_exceeded = True
    for one in run.everything():
        if one.is_running:
            one.finished, one.exit_code = now, TERMINATED
        one.restart_at = None
    progress.events.append(PodEvent("Normal", "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"))
    return True


def is_terminal(pod: Object, run: PodRun) -> bool:
    """No container will run again."""
    if run.deadline_exceeded or init_has_failed(pod, run):
        return True
    return bool(run.main) and all(one.finished is not None and one.restart_at is None for one in run.main.values())


def terminated_state(one: ContainerRun) -> Object:
    assert one.started is not None and one.finished is not None
    return {
        "exitCode": one.exit_code,
        "reason": "Completed" if one.exit_code == 0 else "Error",
        "startedAt": format_time(one.started.wall),
        "finishedAt": format_time(one.finished.wall),
        "containerID": container_id(one),
    }


def container_id(one: ContainerRun) -> str:
    assert one.started is not None
    return f"hollow://{one.name}-{one.restarts}-{int(one.started.wall.timestamp())}"
