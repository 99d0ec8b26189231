"""What a seed draws: which faults happen in this run, how often, and sizes that make rare paths common ("swarm testing")."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

HEAL_SECONDS_MAX: Final = 40.0
"""After the faults end the cluster must have made progress within so much virtual time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Times in virtual seconds. Everything follows from the seed."""

    seed: int
    members: int
    hurt_seconds: float
    heartbeat_interval_ms: int
    election_timeout_ms: int
    pre_vote: bool
    snapshot_count: int
    catch_up_entries: int
    wal_segment_bytes: int
    quota_backend_bytes: int
    clients: int
    client_pause_seconds: float
    keys: int
    value_bytes_max: int
    watchers: int
    lease_clients: int
    clock_drift: float
    wall_skew_seconds: float
    watch_buffer_batches: int
    history_slice_records: int
    faults: dict[str, float] = field(default_factory=dict)
    """Fault → weight; those that are not in it do not happen."""
    fault_pause_seconds: float = 1.0
    loss_chance: float = 0.0
    double_chance: float = 0.0
    slow_message_chance: float = 0.0
    slow_disk_chance: float = 0.0
    disk_error_chance: float = 0.0
    snapshot_break_chance: float = 0.0
    minority_stays_down: bool = False
    crash_at_end: bool = False
    compactions: bool = True

    def __str__(self) -> str:
        faults = ", ".join(f"{name} {weight:g}" for name, weight in sorted(self.faults.items()))
        return (
            f"seed {self.seed}: {self.members} members, {self.hurt_seconds:.1f} s, ticks {self.heartbeat_interval_ms}/"
            f"{self.election_timeout_ms} ms, snapshot_count {self.snapshot_count}, segments {self.wal_segment_bytes}, "
            f"{self.clients} clients, {self.keys} keys; every {self.fault_pause_seconds:.1f} s one of: {faults or 'no faults'}; "
            f"loss {self.loss_chance:g}, doubles {self.double_chance:g}, slow messages {self.slow_message_chance:g}, "
            f"slow disk {self.slow_disk_chance:g}, disk errors {self.disk_error_chance:g}"
        )


OPERATIONS: Final = (
    "move_leader",
    "defragment",
    "free_space",
    "add_member",
    "add_learner",
    "promote",
    "remove_member",
    "replace",
    "finish_replacement",
)
"""What operators do; the others are bad luck."""

FAULTS: Final = (
    *OPERATIONS,
    "crash",
    "crash_at_failpoint",
    "crash_after_promise",
    "crash_all",
    "stop",
    "pause",
    "cut_one",
    "cut_one_way",
    "cut_leader",
    "split",
    "clog",
    "mend",
    "disk_full",
    "slow_disk",
    "wall_clock",
    "check_hash",
)


def draw(seed: int, *, faults: tuple[str, ...] = FAULTS) -> Options:
    """The options of a seed."""
    rng = random.Random(seed * 7919 + 17)
    heartbeat, election = rng.choice(((30, 150), (50, 300), (100, 500), (100, 500), (150, 800)))
    on = {name: rng.choice((1.0, 1.0, 3.0)) for name in faults if rng.random() < 0.3}
    if rng.random() < 0.05:
        on = {}
    members = rng.choice((1, 2, 3, 3, 3, 3, 3, 3, 4, 5))
    return Options(
        seed=seed,
        members=members,
        hurt_seconds=rng.uniform(1.5, 6.0),
        heartbeat_interval_ms=heartbeat,
        election_timeout_ms=election,
        pre_vote=rng.random() < 0.85,
        snapshot_count=rng.choice((5, 20, 50, 200, 10_000)),
        catch_up_entries=rng.choice((0, 3, 20, 5000)),
        wal_segment_bytes=rng.choice((4096, 4096, 16_384, 1 << 20)),
        quota_backend_bytes=rng.choice((0, 0, 0, 0, 60_000)),
        clients=rng.randint(1, 6),
        client_pause_seconds=rng.choice((0.05, 0.2, 0.4)),
        keys=rng.choice((1, 3, 8)),
        value_bytes_max=rng.choice((0, 40, 600)),
        watchers=rng.randint(0, 3),
        lease_clients=rng.choice((0, 1, 2)),
        clock_drift=rng.choice((0.0, 0.0, 0.01, 0.05)),
        wall_skew_seconds=rng.choice((0.0, 1.0, 3600.0)),
        watch_buffer_batches=rng.choice((1, 3, 1024)),
        history_slice_records=rng.choice((1, 3, 1000)),
        faults=on,
        fault_pause_seconds=rng.choice((0.2, 0.5, 1.0)),
        loss_chance=rng.choice((0.0, 0.0, 0.01, 0.1)),
        double_chance=rng.choice((0.0, 0.0, 0.05)),
        slow_message_chance=rng.choice((0.0, 0.0, 0.05, 0.3)),
        slow_disk_chance=rng.choice((0.0, 0.0, 0.05, 0.3)),
        disk_error_chance=rng.choice((0.0, 0.0, 0.0, 0.002)),
        snapshot_break_chance=rng.choice((0.0, 0.3)),
        minority_stays_down=members > 2 and rng.random() < 0.2,
        crash_at_end=rng.random() < 0.3,
        compactions=rng.random() < 0.7,
    )
