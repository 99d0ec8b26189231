"""The pods that wait: those to try now, by priority and age, and those that did not fit, each with its back-off (``scheduling_queue.go``).

add → active → pop → (does not fit) → unschedulable → something changed → back-off over? → active
"""

from __future__ import annotations

import asyncio
import heapq
import itertools

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.lib.clock import Clock

BACKOFF_SECONDS = 1.0
BACKOFF_SECONDS_MAX = 10.0
#: a pod that nothing wakes is tried again after so long (kube-scheduler's flush of unschedulable pods)
UNSCHEDULABLE_SECONDS_MAX = 300.0


class SchedulingQueue:
    """Keys are uids. ``run`` wakes pods whose time has come."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[str, Object] = {}
        self._active: list[tuple[int, str, int, str]] = []
        self._in_active: set[str] = set()
        self._attempts: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        self._waiting: dict[str, float] = {}  # unschedulable or backing off: when to try whatever happens
        self._count = itertools.count()
        self._ready = asyncio.Event()
        self._timer = asyncio.Event()
        #: rises with each change of the cluster; a pod that was tried on an older picture is tried again
        self._moves = 0

    def __len__(self) -> int:
        return len(self._pods)

    @property
    def moves(self) -> int:
        return self._moves

    def add(self, pod: Object) -> None:
        """A pod that waits for a node; or its new state. A changed spec or metadata is a reason to try again at once."""
        uid = objects.uid(pod)
        known = self._pods.get(uid)
        self._pods[uid] = pod
        if known is None:
            self._activate(uid)
        elif uid in self._waiting and _changed(known, pod):
            self._wake(uid)

    def remove(self, uid: str) -> None:
        self._pods.pop(uid, None)
        self._in_active.discard(uid)
        for known in (self._attempts, self._not_before, self._waiting):
            known.pop(uid, None)

    async def pop(self) -> Object:
        while True:
            while self._active:
                _, _, _, uid = heapq.heappop(self._active)
                if uid in self._in_active:
                    self._in_active.discard(uid)
                    self._attempts[uid] = self._attempts.get(uid, 0) + 1
                    return self._pods[uid]
            self._ready.clear()
            await self._ready.wait()

    def did_not_fit(self, uid: str, moves: int) -> None:
        """Puts a popped pod aside. ``moves`` is what it was when the pod was tried."""
        if uid not in self._pods:
            return
        now = self._clock.monotonic()
        backoff = min(BACKOFF_SECONDS * 2.0 ** min(self._attempts.get(uid, 1) - 1, 10), BACKOFF_SECONDS_MAX)
        self._not_before[uid] = now + backoff
        self._waiting[uid] = now + (backoff if moves != self._moves else UNSCHEDULABLE_SECONDS_MAX)
        self._timer.set()

    def move_all(self) -> None:
        """Nodes or pods changed: what did not fit may fit now."""
        self._moves += 1
        for uid in list(self._waiting):
            self._wake(uid)

    async def run(self) -> None:
        while True:
            self._timer.clear()
            now = self._clock.monotonic()
            for uid in [u for u, due in self._waiting.items() if due <= now]:
                self._activate(uid)
            if not self._waiting:
                await self._timer.wait()
                continue
            sleeping = asyncio.ensure_future(self._clock.sleep(min(self._waiting.values()) - now))
            changing = asyncio.ensure_future(self._timer.wait())
            try:
                await asyncio.wait({sleeping, changing}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (sleeping, changing):
                    task.cancel()
                await asyncio.gather(sleeping, changing, return_exceptions=True)

    def _wake(self, uid: str) -> None:
        due = self._not_before.get(uid, 0.0)
        if due <= self._clock.monotonic():
            self._activate(uid)
        elif due < self._waiting[uid]:
            self._waiting[uid] = due
            self._timer.set()

    def _activate(self, uid: str) -> None:
        self._waiting.pop(uid, None)
        if uid in self._in_active:
            return
        pod = self._pods[uid]
        self._in_active.add(uid)
        priority = int(objects.get(pod, "spec", "priority", default=0))
        heapq.heappush(self._active, (-priority, str(objects.metadata(pod).get("creationTimestamp") or ""), next(self._count), uid))
        self._ready.set()


def _changed(old: Object, new: Object) -> bool:
    """Other than in status, which the scheduler writes itself."""

    def rest(pod: Object) -> Object:
        metadata = {k: v for k, v in objects.metadata(pod).items() if k not in ("resourceVersion", "managedFields", "generation")}
        return {"metadata": metadata, "spec": pod.get("spec")}

    return rest(old) != rest(new)
