"""Configuration changes as functions, against a twin that knows only what role each member shall have."""

from __future__ import annotations

import contextlib
import functools
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.raft import confchange
from storage.raft.confchange import ConfChangeError
from storage.raft.messages import ConfChangeSingle, ConfChangeTransition, ConfChangeType, ConfChangeV2, ConfState
from storage.raft.quorum import JointQuorum, MajorityQuorum, VoteResult

ADD, REMOVE, UPDATE, LEARN = (
    ConfChangeType.ADD_NODE,
    ConfChangeType.REMOVE_NODE,
    ConfChangeType.UPDATE_NODE,
    ConfChangeType.ADD_LEARNER_NODE,
)
VOTER, LEARNER = "voter", "learner"
Roles = dict[int, str]


def twin_roles(roles: Roles, changes: tuple[ConfChangeSingle, ...]) -> Roles:
    """What each member shall be when all is over."""
    roles = dict(roles)
    for change in changes:
        if change.type is ADD:
            roles[change.member] = VOTER
        elif change.type is LEARN:
            roles[change.member] = LEARNER
        elif change.type is REMOVE:
            roles.pop(change.member, None)
    return roles


def having(roles: Roles, role: str) -> set[int]:
    return {member for member, its in roles.items() if its == role}


def state(voters: set[int], learners: set[int], outgoing: set[int] | None = None, auto_leave: bool = False) -> ConfState:
    """Members that shall learn but still vote in the outgoing half wait."""
    outgoing = outgoing or set()
    groups = (voters, learners - outgoing, outgoing, learners & outgoing)
    its_voters, its_learners, voters_outgoing, learners_next = (tuple(sorted(group)) for group in groups)
    return ConfState(its_voters, its_learners, voters_outgoing, learners_next, auto_leave)


def plain(roles: Roles) -> ConfState:
    return state(having(roles, VOTER), having(roles, LEARNER))


SINGLE_CHANGES = [ConfChangeSingle(kind, member) for kind in (ADD, REMOVE, LEARN) for member in (1, 2, 3)]
ALL_ROLES: list[Roles] = [
    {member: role for member, role in zip((1, 2, 3), roles, strict=True) if role}
    for roles in itertools.product((None, VOTER, LEARNER), repeat=3)
    if VOTER in roles
]


@pytest.mark.parametrize("count", [1, 2])
def test_all_small_changes_agree_with_the_twin(count: int) -> None:
    for roles, changes in itertools.product(ALL_ROLES, itertools.product(SINGLE_CHANGES, repeat=count)):
        old, new = having(roles, VOTER), having(twin_roles(roles, changes), VOTER)
        wanted = twin_roles(roles, changes)
        if not new:
            with pytest.raises(ConfChangeError, match="no voter"):
                confchange.simple(plain(roles), changes)
            with pytest.raises(ConfChangeError, match="no voter"):
                confchange.enter_joint(plain(roles), changes, auto_leave=True)
            continue
        if len(old ^ new) > 1:
            with pytest.raises(ConfChangeError, match="needs a joint"):
                confchange.simple(plain(roles), changes)
        else:
            assert confchange.simple(plain(roles), changes) == plain(wanted)
        joint = confchange.enter_joint(plain(roles), changes, auto_leave=True)
        assert joint == state(new, having(wanted, LEARNER), old, auto_leave=True)
        assert confchange.leave_joint(joint) == plain(wanted)


@functools.cache
def winners(config: ConfState) -> list[set[int]]:
    """All sets of members that decide."""
    quorum = JointQuorum(MajorityQuorum(config.voters), MajorityQuorum(config.voters_outgoing))
    return [
        set(subset)
        for size in range(1, 5)
        for subset in itertools.combinations(range(1, 5), size)
        if quorum.vote_result(dict.fromkeys(subset, True)) is VoteResult.WON
    ]


def test_raft_6_deciding_sets_before_and_after_each_step_share_a_member() -> None:
    """That is why no two leaders can be elected side by side during a change (Raft figure 10, thesis figure 4.3)."""
    changes = [ConfChangeSingle(kind, member) for kind in (ADD, REMOVE, LEARN) for member in range(1, 5)]
    for voters in itertools.chain.from_iterable(itertools.combinations(range(1, 5), size) for size in (1, 2, 3, 4)):
        old = ConfState(voters)
        for pair in itertools.product(changes, repeat=2):
            try:
                joint = confchange.enter_joint(old, pair, auto_leave=False)
            except ConfChangeError:
                continue
            steps = [(old, joint), (joint, confchange.leave_joint(joint))]
            with contextlib.suppress(ConfChangeError):
                steps.append((old, confchange.simple(old, pair[:1])))
            for before, after in steps:
                assert all(one & two for one, two in itertools.product(winners(before), winners(after))), (before, after)


singles = st.builds(ConfChangeSingle, st.sampled_from(list(ConfChangeType)), st.integers(0, 7))


@given(steps=st.lists(st.tuples(st.lists(singles, max_size=5).map(tuple), st.booleans(), st.booleans()), max_size=8))
def test_sequences_of_changes_agree_with_the_twin(steps: list[tuple[tuple[ConfChangeSingle, ...], bool, bool]]) -> None:
    roles: Roles = {1: VOTER}
    config = plain(roles)
    for changes, auto_leave, joint in steps:
        wanted = twin_roles(roles, tuple(change for change in changes if change.member))
        old, new = having(roles, VOTER), having(wanted, VOTER)
        if joint:
            if not new:
                with pytest.raises(ConfChangeError):
                    confchange.enter_joint(config, changes, auto_leave=auto_leave)
                continue
            entered = confchange.enter_joint(config, changes, auto_leave=auto_leave)
            assert entered == state(new, having(wanted, LEARNER), old, auto_leave)
            with pytest.raises(ConfChangeError):
                confchange.simple(entered, ())
            with pytest.raises(ConfChangeError):
                confchange.enter_joint(entered, (), auto_leave=True)
            config = confchange.leave_joint(entered)
        elif not new or len(old ^ new) > 1:
            with pytest.raises(ConfChangeError):
                confchange.simple(config, changes)
            continue
        else:
            config = confchange.simple(config, changes)
        roles = wanted
        assert config == plain(roles)
        assert confchange.normalized(config) == config


def test_which_changes_are_joint() -> None:
    """As etcd's ConfChangeV2 decides: one change goes directly unless asked otherwise."""
    one, two = (ConfChangeSingle(ADD, 4),), (ConfChangeSingle(ADD, 4), ConfChangeSingle(REMOVE, 1))
    auto, implicit, explicit = ConfChangeTransition
    three = ConfState((1, 2, 3))
    assert confchange.changed(three, ConfChangeV2(one)) == ConfState((1, 2, 3, 4))
    assert confchange.changed(three, ConfChangeV2(two, auto)) == ConfState((2, 3, 4), (), (1, 2, 3), (), auto_leave=True)
    assert confchange.changed(three, ConfChangeV2(one, implicit)) == ConfState((1, 2, 3, 4), (), (1, 2, 3), (), auto_leave=True)
    joint = confchange.changed(three, ConfChangeV2(two, explicit))
    assert joint == ConfState((2, 3, 4), (), (1, 2, 3), (), auto_leave=False)
    assert confchange.changed(joint, ConfChangeV2(context=b"any")) == ConfState((2, 3, 4))
    with pytest.raises(ConfChangeError, match="not joint"):
        confchange.changed(three, ConfChangeV2())


@pytest.mark.parametrize(
    "config",
    [
        ConfState((1, 2), (2,)),
        ConfState((1,), (2,), (2,)),
        ConfState((1,), (), (1, 2), (3,)),
        ConfState((1, 2), (), (1, 2), (2,)),
        ConfState((1,), auto_leave=True),
    ],
)
def test_a_configuration_that_no_change_leads_to_is_refused(config: ConfState) -> None:
    with pytest.raises(ConfChangeError):
        confchange.normalized(config)


def test_a_configuration_from_outside_is_put_in_order() -> None:
    assert confchange.normalized(ConfState((3, 1, 2), (5, 4))) == ConfState((1, 2, 3), (4, 5))
