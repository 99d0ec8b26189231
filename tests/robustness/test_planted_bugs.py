"""Known classic bugs are planted into the code, one at a time; the suite must find each. Who tests the tests?

The Raft core's bugs are found by the random schedules of ``tests.simulation.raft_group``, those of the whole by ``tests.simulation``
(linearizability, watch promises, leases, equal hashes, progress). A bug must be found within a few seeds: one that takes luck to find
would slip through.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import pytest

from storage.lease.lease import Lease
from storage.lease.lessor import Lessor
from storage.member import raft_loop, read_index, snapshotter, state_machine
from storage.mvcc.store import Store
from storage.raft import leader, raft, rawnode
from storage.watch.watchable_store import WatchableStore
from tests.robustness.planting import planted
from tests.simulation.options import Options, draw
from tests.simulation.raft_group import RaftGroup
from tests.simulation.run import run_seed
from tests.storage.raft import test_paper

RAFT_SEEDS_MAX = 200
RAFT_STEPS = 2000
SEEDS_MAX = 40

pytestmark = pytest.mark.slow

Plant = AbstractContextManager[None]


def found_in_raft(plant: Plant) -> str:
    """What the first seed that fails says."""
    with plant:
        for seed in range(RAFT_SEEDS_MAX):
            try:
                RaftGroup(seed).run(RAFT_STEPS)
            except AssertionError as error:
                return f"{type(error).__name__}: {error}"
    pytest.fail(f"{RAFT_SEEDS_MAX} schedules did not find it")


def found_in_cluster(plant: Plant, **changes: Any) -> str:
    with plant:
        for options in itertools.islice(hard(**changes), SEEDS_MAX):
            report = run_seed(options.seed, options=options)
            if report.failure is not None:
                return report.failure
    pytest.fail(f"{SEEDS_MAX} seeds did not find it")


def hard(**changes: Any) -> Iterator[Options]:
    """Seeds with a fault that such bugs need, three members unless asked for others."""
    for seed in itertools.count(1000):
        options = draw(seed)
        faults = dict.fromkeys(("crash", "crash_all", "cut_leader", "cut_one", "pause", "mend"), 1.0)
        common: dict[str, Any] = {"members": 3, "hurt_seconds": 8.0, "faults": faults, "quota_backend_bytes": 0}
        yield replace(options, **(common | changes))


# -- the Raft core


def test_a_vote_that_is_not_persisted() -> None:
    """Raft §5.2: after a crash a member votes a second time in one term."""
    plant = planted(
        rawnode.RawNode, "ready", "hard_state=hard_state,", "hard_state=hard_state and HardState(hard_state.term, 0, hard_state.commit),"
    )
    assert "vote" in found_in_raft(plant)


def test_two_votes_a_term() -> None:
    plant = planted(raft.Raft, "_answer_vote", "self.vote == message.sender", "True")
    assert "vote" in found_in_raft(plant)


def test_a_vote_for_a_log_that_lacks_entries() -> None:
    """Raft §5.4.1."""
    plant = planted(raft.Raft, "_answer_vote", "free and self.log.is_up_to_date(message.index, message.log_term)", "free")
    found_in_raft(plant)


def test_a_vote_before_it_is_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = planted(raft.Raft, "send", "message.type in _DURABLE_FIRST", 'message.type.name == "APPEND_RESPONSE"')
    assert "vote" in found_in_raft(plant)


def test_entries_acknowledged_before_they_are_durable() -> None:
    """A follower answers an append and writes later; a crash in between takes what a quorum was thought to hold."""
    plant = planted(raft.Raft, "send", "message.type in _DURABLE_FIRST", '"VOTE" in message.type.name')
    found_in_raft(plant)


def test_entries_of_an_older_term_committed_by_counting() -> None:
    """Raft figure 8."""
    plant = planted(leader, "maybe_commit", "raft.term)", "raft.log.term(max(raft.tracker.committed_index(), raft.log.committed)))")
    with plant, pytest.raises(AssertionError):
        test_paper.test_paper_5_4_2_figure_8_copies_of_an_older_term_are_not_counted()


def test_a_read_without_asking_the_quorum() -> None:
    """Thesis §6.4: a leader that was replaced and does not know it yet answers from the past."""
    plant = planted(
        leader, "read_index", "raft.read_only.add(request, raft.log.committed)", "_answer_read(raft, request, raft.log.committed)"
    )
    found_in_cluster(plant, faults={"cut_leader": 2.0, "mend": 1.0}, fault_pause_seconds=0.8, client_pause_seconds=0.05, clients=6)


def test_a_read_before_the_leader_knows_what_is_committed() -> None:
    """Raft §8: until an entry of its own term is committed."""
    plant = planted(leader, "read_index", "not raft.committed_in_term", "False")
    assert "read" in found_in_raft(plant)


# -- the whole


def test_a_stale_read_without_read_index() -> None:
    """Each member answers from what it has applied."""
    plant = planted(read_index.ReadIndex, "wait", "await reader.future", "reader.future.cancel()")
    found_in_cluster(plant)


def test_a_write_acknowledged_before_its_sync() -> None:
    """ST-F2 (etcd-io/etcd#14140): the entry counts as durable as soon as it is on its way to the disk."""
    plant = planted(
        raft_loop.RaftLoop,
        "_work",
        "self._disk.submit(SaveJob(ready, self._unsaved_state))\n",
        "self._disk.submit(SaveJob(ready, self._unsaved_state)); self._saved_number = ready.number; self._advance()\n",
    )
    found_in_cluster(plant, members=1, slow_disk_chance=0.3)


def test_entries_applied_twice_after_a_restart() -> None:
    """The state machine is one entry behind what it holds."""
    plant = planted(
        state_machine.StateMachine,
        "__init__",
        "self.applied_index = self.store.store.consistent_index",
        "self.applied_index = self.store.store.consistent_index = max(0, self.store.store.consistent_index - 1)",
    )
    found_in_cluster(plant, snapshot_count=10_000)


def test_an_applied_index_that_is_not_written_with_what_was_applied() -> None:
    """ST-F4 (etcd-io/etcd#13766): data and index reach the disk in different batches; after a crash entries are applied again."""
    plant = planted(
        Store, "_put_consistent_index", "self.consistent_index != self._written_consistent_index", "self.consistent_index % 3 == 0"
    )
    found_in_cluster(plant)


def test_a_compaction_that_races_a_watch() -> None:
    """ST-S2 (etcd-io/etcd#15402): a watch that it overtakes jumps over what is gone, and nobody tells it."""
    plant = planted(WatchableStore, "catch_up", "watcher.next_revision < self.compact_revision", "False")
    found_in_cluster(plant, watch_buffer_batches=1, watchers=3, compactions=True)


def test_a_slow_watch_that_loses_an_event() -> None:
    plant = planted(WatchableStore, "_post", "self._become_lagging(watcher, revision)", "self._become_lagging(watcher, revision + 1)")
    found_in_cluster(plant, watch_buffer_batches=1, watchers=3)


def test_a_watch_that_repeats_events_after_it_caught_up() -> None:
    """etcd-io/etcd#17247."""
    plant = planted(WatchableStore, "_become_lagging", "next_revision\n", "next_revision - 1\n")
    found_in_cluster(plant, watch_buffer_batches=1, watchers=3)


def test_a_start_in_the_future_that_gets_older_events() -> None:
    """ST-W2 (etcd-io/etcd#20221)."""
    plant = planted(WatchableStore, "_post", "revision < watcher.start_revision", "False")
    found_in_cluster(plant, watchers=3)


def test_a_lease_that_ends_early() -> None:
    plant = planted(Lease, "refresh", "self.run_seconds", "self.run_seconds / 2")
    found_in_cluster(plant, lease_clients=2)


def test_a_lease_that_never_ends() -> None:
    plant = planted(Lessor, "expired", "not self._is_primary", "True")
    found_in_cluster(plant, lease_clients=2)


def test_a_marker_of_what_the_backend_does_not_hold_yet() -> None:
    """The log is released up to an entry that only memory holds."""
    plant = planted(
        snapshotter.Snapshotter,
        "maybe_mark",
        "durable = self._durable(conf_state)",
        "durable = self._durable(conf_state); durable = SnapshotMetadata(durable.conf_state, applied, durable.term)",
    )
    found_in_cluster(plant, snapshot_count=20, members=1)


def test_the_seeds_are_clean_without_a_bug() -> None:
    """Else anything would be "found"."""
    for options in itertools.islice(hard(), 6):
        report = run_seed(options.seed, options=options)
        assert report.ok, report.failure
