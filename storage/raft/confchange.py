"""How a configuration changes, as functions of values (thesis §4.1 one at a time, §4.3 and Raft §6 by a joint configuration).

A configuration is a ``ConfState`` whose members are ascending. A voter that becomes a learner while it still votes in the outgoing
half is kept in ``learners_next`` and learns once that half is gone, so that no member is both voter and learner.

Example: (1 2 3), then ``enter_joint`` with add 4, remove 1, demote 2:

    voters (3 4) && voters_outgoing (1 2 3), learners_next (2)      majorities of both decide
    leave_joint: voters (3 4), learners (2)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from storage.raft.messages import NO_MEMBER, ConfChangeSingle, ConfChangeType, ConfChangeV2, ConfState


class ConfChangeError(Exception):
    """The change cannot be made to this configuration."""


def changed(config: ConfState, change: ConfChangeV2) -> ConfState:
    """The configuration after ``change``. Raises ConfChangeError."""
    if change.leaves_joint():
        return leave_joint(config)
    if change.enters_joint():
        return enter_joint(config, change.changes, auto_leave=change.leaves_automatically())
    return simple(config, change.changes)


def simple(config: ConfState, changes: Sequence[ConfChangeSingle]) -> ConfState:
    """Changes that move at most one voter: majorities before and after then overlap (thesis §4.1)."""
    if config.voters_outgoing:
        raise ConfChangeError("the joint configuration must be left first")
    new = _apply(config, changes)
    moved = {*config.voters} ^ {*new.voters}
    if len(moved) > 1:
        raise ConfChangeError(f"{len(moved)} voters change at a time, which needs a joint configuration")
    return new


def enter_joint(config: ConfState, changes: Sequence[ConfChangeSingle], *, auto_leave: bool) -> ConfState:
    if config.voters_outgoing:
        raise ConfChangeError("the configuration is joint already")
    if not config.voters:
        raise ConfChangeError("a configuration without voters cannot become joint")
    joint = ConfState(config.voters, config.learners, config.voters, (), auto_leave)
    return _apply(joint, changes)


def leave_joint(config: ConfState) -> ConfState:
    """The incoming half remains."""
    if not config.voters_outgoing:
        raise ConfChangeError("the configuration is not joint")
    return checked(ConfState(config.voters, _ascending((*config.learners, *config.learners_next))))


def normalized(config: ConfState) -> ConfState:
    """A configuration from outside (a snapshot, the disk), ascending and checked. Raises ConfChangeError."""
    return checked(
        ConfState(
            _ascending(config.voters),
            _ascending(config.learners),
            _ascending(config.voters_outgoing),
            _ascending(config.learners_next),
            config.auto_leave,
        )
    )


def checked(config: ConfState) -> ConfState:
    """``config``, if it is one that changes can lead to. Raises ConfChangeError."""
    voters, outgoing = {*config.voters}, {*config.voters_outgoing}
    learners, learners_next = {*config.learners}, {*config.learners_next}
    if learners & (voters | outgoing):
        raise ConfChangeError(f"learners {sorted(learners & (voters | outgoing))} also vote")
    if not learners_next <= outgoing or learners_next & voters:
        raise ConfChangeError(f"{sorted(learners_next)} wait to learn, but do not vote in the outgoing half alone")
    if not outgoing and config.auto_leave:
        raise ConfChangeError("a configuration that is not joint cannot be left")
    return config


def _apply(config: ConfState, changes: Sequence[ConfChangeSingle]) -> ConfState:
    voters, outgoing = {*config.voters}, {*config.voters_outgoing}
    learners, learners_next = {*config.learners}, {*config.learners_next}
    for change in changes:
        member = change.member
        if member == NO_MEMBER or change.type is ConfChangeType.UPDATE_NODE:
            continue
        voters.discard(member)
        learners.discard(member)
        learners_next.discard(member)
        if change.type is ConfChangeType.ADD_NODE:
            voters.add(member)
        elif change.type is ConfChangeType.ADD_LEARNER_NODE:
            (learners_next if member in outgoing else learners).add(member)
    if not voters:
        raise ConfChangeError("no voter would be left")
    return checked(
        ConfState(_ascending(voters), _ascending(learners), config.voters_outgoing, _ascending(learners_next), config.auto_leave)
    )


def _ascending(members: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted({*members}))
