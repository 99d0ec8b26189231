"""``PodRun``: what a node remembers of a pod and its containers, and how it finds that again in the pod's status."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.lib.clock import parse_time


@dataclass(frozen=True, slots=True)
class Instant:
    """One moment by both clocks: durations by the monotonic one, stamps by the wall."""

    monotonic: float
    wall: datetime.datetime


@dataclass(slots=True)
class ContainerRun:
    """Waiting until ``started``; running until ``finished``; after ``finished`` perhaps waiting for ``restart_at``."""

    name: str
    restarts: int = 0
    started: Instant | None = None
    finished: Instant | None = None
    exit_code: int = 0
    restart_at: float | None = None
    #: the terminated state before the last restart
    last_state: Object | None = None

    @property
    def is_running(self) -> bool:
        return self.started is not None and self.finished is None


@dataclass(slots=True)
class PodRun:
    ip: str
    seen: Instant
    init: dict[str, ContainerRun] = field(default_factory=dict)
    main: dict[str, ContainerRun] = field(default_factory=dict)
    #: of ephemeral containers, which join a pod while it runs
    ephemeral: dict[str, ContainerRun] = field(default_factory=dict)
    #: when containers were told to stop
    killed: Instant | None = None
    deadline_exceeded: bool = False
    #: newer than the cache, where the last write has not come back yet
    latest: Object | None = None
    removed: bool = False

    def everything(self) -> list[ContainerRun]:
        return [*self.init.values(), *self.main.values(), *self.ephemeral.values()]


def begin(pod: Object, ip: str, now: Instant) -> PodRun:
    """A new run; of a pod that ran before (this node was started again) what its status tells."""
    status = pod.get("status") or {}
    run = PodRun(ip=ip, seen=now)
    for field_name, runs, containers in (
        ("initContainerStatuses", run.init, objects.get(pod, "spec", "initContainers", default=[])),
        ("containerStatuses", run.main, objects.get(pod, "spec", "containers", default=[])),
        ("ephemeralContainerStatuses", run.ephemeral, objects.get(pod, "spec", "ephemeralContainers", default=[])),
    ):
        known = {s.get("name"): s for s in status.get(field_name) or []}
        for container in containers:
            name = container["name"]
            runs[name] = _recovered(name, known.get(name), now)
    return run


def _recovered(name: str, status: Object | None, now: Instant) -> ContainerRun:
    out = ContainerRun(name)
    if status is None:
        return out
    out.restarts = int(status.get("restartCount") or 0)
    out.last_state = (status.get("lastState") or {}).get("terminated")
    state = status.get("state") or {}
    if state.get("running"):
        out.started = _instant(state["running"].get("startedAt"), now)
    elif state.get("terminated"):
        out.started = _instant(state["terminated"].get("startedAt"), now)
        out.finished = _instant(state["terminated"].get("finishedAt"), now)
        out.exit_code = int(state["terminated"].get("exitCode") or 0)
    return out


def _instant(stamp: str | None, now: Instant) -> Instant:
    wall = parse_time(stamp) or now.wall
    return Instant(now.monotonic - max(0.0, (now.wall - wall).total_seconds()), wall)
