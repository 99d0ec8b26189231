"""A cluster under random faults keeps what Raft promises (figure 3, thesis §4 and §6.4), then heals and goes on.

One seed is one run. ``python -m tests.storage.raft.test_random_cluster 1000`` runs as many fresh seeds and names those that fail.
"""

from __future__ import annotations

import contextlib
import random
import sys

import pytest

from storage.raft.messages import (
    ConfChangeSingle,
    ConfChangeTransition,
    ConfChangeType,
    ConfChangeV2,
    ConfState,
    Entry,
    EntryType,
    MessageType,
)
from storage.raft.rawnode import ProposalDroppedError, ReadIndexDroppedError
from tests.storage.raft.cluster import Cluster

SEEDS = range(40)
STEPS = 1000
HEAL_ROUNDS_MAX = 400
"""Ticks after which a healed cluster must have a leader and equal logs. An election takes fewer than 20; where all three voters must
agree and only one of them has the longest log, each has a chance of one in three."""


class Run:
    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        voters = rng.choice([(1,), (1, 2, 3), (1, 2, 3), (1, 2, 3, 4, 5)])
        self.cluster = Cluster(
            5,
            voters=voters,
            pre_vote=rng.random() < 0.5,
            check_quorum=rng.random() < 0.5,
            in_flight_max=rng.choice([1, 3, 256]),
            message_bytes_max=rng.choice([1, 12, 1 << 20]),
            in_flight_bytes_max=rng.choice([0, 1 << 20]),
            committed_bytes_max=rng.choice([1, 20, 1 << 20]),
        )
        # The seed also draws which faults there are at all.
        self.loses = rng.choice([0.0, 0.05, 0.3])
        self.doubles = rng.choice([0.0, 0.1])
        self.reorders = rng.random() < 0.7
        self.crashes = rng.choice([0.0, 0.02])
        self.changes = rng.choice([0.0, 0.03])
        self.partitions = rng.choice([0.0, 0.02])
        self.leaders: dict[int, int] = {}
        self.committed: list[Entry] = []
        self.configurations: dict[int, ConfState] = {}
        self.reads: dict[bytes, int] = {}
        self.reads_served = 0

    def run(self) -> None:
        for step in range(STEPS):
            self.step(step)
            self.check()
        self.heal()

    def step(self, step: int) -> None:
        rng, cluster = self.rng, self.cluster
        member = rng.randrange(1, 6)
        one = cluster.members[member]
        action = rng.random()
        with contextlib.suppress(ProposalDroppedError, ReadIndexDroppedError):
            if action < 0.4:
                one.node.tick()
            elif action < 0.7:
                one.node.propose(b"%d" % step)
            elif action < 0.85:
                context = b"%d" % step
                self.reads[context] = len(self.committed)
                one.node.read_index(context)
            elif action < 0.86:
                one.node.transfer_leader(rng.randrange(1, 6))
            elif action < 0.87:
                one.node.campaign()
            elif action < 0.9:
                one.snapshot(keep=rng.choice([0, 3]))
            if rng.random() < self.crashes:
                one.crash()
            if rng.random() < self.changes:
                one.node.propose_conf_change(self.draw_change())
        if rng.random() < self.partitions:
            cluster.blocked = {(rng.randrange(1, 6), rng.randrange(1, 6)) for _ in range(rng.randrange(10))}
        for member in rng.sample(range(1, 6), k=3):
            one = cluster.members[member]
            if rng.random() < 0.8 and one.node.has_ready():
                cluster.post(one.take_ready().messages)
            if rng.random() < 0.7 and one.at_disk:
                cluster.post(one.persist_one().messages_after_append)
        for _ in range(4):
            self.deliver()

    def draw_change(self) -> ConfChangeV2:
        rng = self.rng
        kinds = (ConfChangeType.ADD_NODE, ConfChangeType.ADD_NODE, ConfChangeType.REMOVE_NODE, ConfChangeType.ADD_LEARNER_NODE)
        changes = tuple(ConfChangeSingle(rng.choice(kinds), rng.randrange(1, 6)) for _ in range(rng.choice([0, 1, 1, 2, 3])))
        return ConfChangeV2(changes, rng.choice(list(ConfChangeTransition)) if changes else ConfChangeTransition.AUTO)

    def deliver(self) -> None:
        rng, cluster = self.rng, self.cluster
        if not cluster.network or rng.random() < 0.2:
            return
        index = rng.randrange(len(cluster.network)) if self.reorders else 0
        message = cluster.network[index]
        if rng.random() >= self.doubles:
            del cluster.network[index]
        if rng.random() < self.loses:
            if message.type is MessageType.SNAPSHOT:
                cluster.node(message.sender).report_snapshot(message.to, False)
        else:
            cluster.deliver_one(message)

    def check(self) -> None:
        committed = self.committed
        for term, members in self.cluster.leaders().items():
            for member in members:
                assert self.leaders.setdefault(term, member) == member, f"election safety: two leaders in term {term}"
        for member, one in self.cluster.members.items():
            applied = one.applied
            committed += applied[len(committed) :]
            count = len(applied)
            assert applied[-20:] == committed[max(0, count - 20) : count], f"state machine safety: member {member} differs"
            assert all(entry.index == count - offset for offset, entry in enumerate(reversed(applied[-20:])))
            if applied and one.node.raft.log.unstable.snapshot is None:  # else the snapshot's is in force before it is applied
                config = one.node.conf_state()
                assert self.configurations.setdefault(count, config) == config, f"configurations differ after {count}"
            for state in one.read_states:
                assert state.index >= self.reads[state.context], f"read {state} does not see what was committed before it"
                self.reads_served += 1
            one.read_states.clear()

    def check_leader_is_complete(self, leader: int) -> None:
        log = self.cluster.node(leader).raft.log
        for entry in self.committed[log.first_index() - 1 :]:
            assert log.term(entry.index) == entry.term, f"leader completeness: {leader} lacks {entry}"

    def heal(self) -> None:
        """Members outside of the newest configuration are switched off: they may have their say for ever, thesis §4.2.3. After a while
        those are on that others still think to need: a member must not go before the others know that it may."""
        cluster = self.cluster
        for round_number in range(HEAL_ROUNDS_MAX):
            newest = max(cluster.members.values(), key=lambda one: one.node.status().applied).node.conf_state()
            needed = {*newest.voters, *newest.voters_outgoing, *newest.learners}
            if round_number >= HEAL_ROUNDS_MAX // 2:
                for member in sorted(needed):
                    needed |= {*cluster.node(member).conf_state().voters, *cluster.node(member).conf_state().voters_outgoing}
            on = sorted(needed)
            cluster.blocked = {(one, other) for one in cluster.members for other in cluster.members if one not in on or other not in on}
            for member in on:
                cluster.node(member).tick()
                if round_number % 10 == 0:
                    cluster.members[member].snapshot(keep=3)
            cluster.stabilize()
            self.check()
            leaders = [member for members in cluster.leaders().values() for member in members if member in on]
            if len(leaders) == 1 and newest == cluster.node(leaders[0]).conf_state():
                (leader,) = leaders
                self.check_leader_is_complete(leader)
                with contextlib.suppress(ProposalDroppedError):
                    cluster.node(leader).propose(b"healed %d" % round_number)
                cluster.stabilize()
                self.check()
                if all(cluster.members[member].applied == self.committed for member in on) and self.committed[-1].data.startswith(
                    b"healed"
                ):
                    return
        raise AssertionError("the healed cluster does not go on")


@pytest.mark.parametrize("seed", SEEDS)
def test_thesis_figure_3_2_random_faults_never_break_what_raft_promises(seed: int) -> None:
    Run(seed).run()


def test_the_seeds_see_what_they_are_meant_to() -> None:
    """Runs in which nothing happens would prove nothing."""
    runs = [Run(seed) for seed in SEEDS[:10]]
    for run in runs:
        run.run()
    kinds = [entry.type for run in runs for entry in run.committed]
    assert sum(run.reads_served for run in runs) > 30
    assert kinds.count(EntryType.CONF_CHANGE_V2) > 10
    assert len(kinds) > 300
    assert any(config.voters_outgoing for run in runs for config in run.configurations.values())
    assert any(member.storage.first_index() > 1 for run in runs for member in run.cluster.members.values())
    assert sum(len(run.leaders) for run in runs) > 30


def main(count: int) -> int:
    fresh = random.SystemRandom()
    failed = 0
    for _ in range(count):
        seed = fresh.randrange(1 << 32)
        try:
            Run(seed).run()
        except Exception as error:
            failed += 1
            print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
    print(f"{count} seeds, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
