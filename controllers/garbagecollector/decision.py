"""What becomes of an object, given what its owners turned out to be. Pure."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.client.interface import Propagation
from controllers.garbagecollector.graph import FOREGROUND, ORPHAN


class OwnerState(enum.Enum):
    SOLID = "solid"
    ABSENT = "absent"
    #: exists, but is being deleted and waits for this dependent
    WAITING = "waiting for dependents"


@dataclass(frozen=True, slots=True)
class Keep:
    pass


@dataclass(frozen=True, slots=True)
class DropReferences:
    """Take these owners' references off."""

    uids: frozenset[str]


@dataclass(frozen=True, slots=True)
class Delete:
    """``unblock_first``: its owners and its dependents wait for each other in a circle; it must stop blocking its owners."""

    propagation: Propagation
    unblock_first: bool = False


Verdict = Keep | DropReferences | Delete


def judge(obj: Object, owners: Sequence[tuple[Object, OwnerState]], *, has_dependents: bool, dependents_wait: bool) -> Verdict:
    """``dependents_wait``: one of its dependents is itself deleting its dependents.

    Example: owners [solid, absent] → the absent one's reference goes; [absent] → it goes itself; [waiting] with dependents of its own →
    it goes in the foreground too, so that the whole tree goes from its leaves.
    """
    solid = [o for o, state in owners if state is OwnerState.SOLID]
    waiting = [o for o, state in owners if state is OwnerState.WAITING]
    others = frozenset(str(o.get("uid")) for o, state in owners if state is not OwnerState.SOLID)
    if not owners:
        return Keep()
    if solid:
        return DropReferences(others) if others else Keep()
    if waiting and has_dependents:
        return Delete(Propagation.FOREGROUND, unblock_first=dependents_wait)
    if ORPHAN in objects.finalizers(obj):
        return Delete(Propagation.ORPHAN)
    if FOREGROUND in objects.finalizers(obj):
        return Delete(Propagation.FOREGROUND)
    return Delete(Propagation.BACKGROUND)
