"""What a candidate does with the Lease it sees. Pure."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from apiserver.machinery import objects
from apiserver.machinery.objects import Object


class Step(enum.Enum):
    CREATE = "create"
    TAKE = "take"
    RENEW = "renew"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Observation:
    """The spec last seen and when, by this process's monotonic clock, it was first seen so."""

    spec: Object
    seen_at: float


def observe(previous: Observation | None, lease: Object, now: float) -> Observation:
    spec = lease.get("spec") or {}
    if previous is not None and previous.spec == spec:
        return previous
    return Observation(spec, now)


def decide(lease: Object | None, observation: Observation | None, identity: str, now: float, lease_seconds: float) -> Step:
    """A lease of another holder is left alone until it has not changed, before our eyes, for the time its holder claimed."""
    if lease is None or observation is None:
        return Step.CREATE
    holder = str(observation.spec.get("holderIdentity") or "")
    if holder == identity:
        return Step.RENEW
    if not holder:
        return Step.TAKE
    claimed = float(observation.spec.get("leaseDurationSeconds") or lease_seconds)
    return Step.TAKE if now >= observation.seen_at + max(claimed, lease_seconds) else Step.WAIT


def lease_for(lease: Object | None, *, namespace: str, name: str, identity: str, now_text: str, lease_seconds: int) -> Object:
    """The Lease to write: acquired now, or renewed. A change of holder counts as a transition."""
    old = (lease or {}).get("spec") or {}
    renewing = old.get("holderIdentity") == identity
    transitions = int(old.get("leaseTransitions") or 0)
    if lease is not None and not renewing and old.get("holderIdentity"):
        transitions += 1
    spec = {
        "holderIdentity": identity,
        "leaseDurationSeconds": lease_seconds,
        "acquireTime": old["acquireTime"] if renewing and old.get("acquireTime") else now_text,
        "renewTime": now_text,
        "leaseTransitions": transitions,
    }
    metadata = {"namespace": namespace, "name": name} if lease is None else objects.deep_copy(lease["metadata"])
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
