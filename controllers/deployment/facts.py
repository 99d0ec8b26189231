"""What a Deployment and its ReplicaSets say of themselves. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.lib import int_or_percent

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
ROLLBACK_TO = "deprecated.deployment.rollback.to"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
#: of a Deployment's annotations, those that its ReplicaSets do not get
NOT_COPIED = frozenset({LAST_APPLIED, REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, ROLLBACK_TO})
HASH_LABEL = "pod-template-hash"
#: progressDeadlineSeconds and revisionHistoryLimit of this value mean "none"
UNLIMITED = 2**31 - 1


def replicas(obj: Object) -> int:
    return int(objects.get(obj, "spec", "replicas", default=1))


def status_count(obj: Object, field: str) -> int:
    return int(objects.get(obj, "status", field, default=0))


def available(obj: Object) -> int:
    return status_count(obj, "availableReplicas")


def total_replicas(sets: Iterable[Object]) -> int:
    return sum(replicas(s) for s in sets)


def is_rolling(deployment: Object) -> bool:
    return bool(objects.get(deployment, "spec", "strategy", "type", default="RollingUpdate") == "RollingUpdate")


def fenceposts(deployment: Object) -> tuple[int, int]:
    """(surge, unavailable) as numbers: surge rounds up, unavailable down, and both zero become one unavailable, else nothing could move."""
    wanted = replicas(deployment)
    rolling = objects.get(deployment, "spec", "strategy", "rollingUpdate", default={})
    surge = int_or_percent.scaled(rolling.get("maxSurge"), wanted, round_up=True)
    unavailable = int_or_percent.scaled(rolling.get("maxUnavailable"), wanted, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return surge, unavailable


def max_surge(deployment: Object) -> int:
    return fenceposts(deployment)[0] if is_rolling(deployment) else 0


def max_unavailable(deployment: Object) -> int:
    wanted = replicas(deployment)
    if not is_rolling(deployment) or wanted == 0:
        return 0
    return min(fenceposts(deployment)[1], wanted)


def by_creation(sets: Iterable[Object]) -> list[Object]:
    """Oldest first; names decide among those of one second."""
    return sorted(sets, key=lambda s: (str(objects.metadata(s).get("creationTimestamp") or ""), objects.name(s)))


def active(sets: Iterable[Object | None]) -> list[Object]:
    return [s for s in sets if s is not None and replicas(s) > 0]


def annotation_int(obj: Object, name: str) -> int | None:
    text = objects.annotations(obj).get(name, "")
    return int(text) if text.isdigit() else None


def revision(obj: Object) -> int:
    return annotation_int(obj, REVISION) or 0


def progress_deadline(deployment: Object) -> int | None:
    found = objects.get(deployment, "spec", "progressDeadlineSeconds")
    return None if found is None or int(found) == UNLIMITED else int(found)


def is_paused(deployment: Object) -> bool:
    return bool(objects.get(deployment, "spec", "paused", default=False))


def is_complete(deployment: Object, status: Object) -> bool:
    """Every pod is of the new template and available, and nothing newer was asked for."""
    wanted = replicas(deployment)
    return (
        int(status.get("updatedReplicas") or 0) == wanted
        and int(status.get("replicas") or 0) == wanted
        and int(status.get("availableReplicas") or 0) == wanted
        and int(status.get("observedGeneration") or 0) >= int(objects.metadata(deployment).get("generation") or 0)
    )


def any_pods_running(pods: Sequence[Object]) -> bool:
    return any(objects.get(p, "status", "phase") not in ("Succeeded", "Failed") for p in pods)
