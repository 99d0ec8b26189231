"""Counters of the traffic between members, plain numbers by the peer's id: whoever exports them reads them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from storage.member.metrics import Histogram

ROUND_TRIP_SECONDS_BOUNDS: Final = tuple(0.0001 * 2**power for power in range(16))
SNAPSHOT_SECONDS_BOUNDS: Final = tuple(0.1 * 2**power for power in range(10))
"""Both etcd's."""


@dataclass(slots=True)
class PeerMetrics:
    """In the comments: the name under which etcd exports it, and its label. All begin with ``etcd_network_``."""

    active_peers: Counter[int] = field(default_factory=Counter)  # active_peers{Local,Remote}: 1 or 0
    disconnected_peers: Counter[int] = field(default_factory=Counter)  # disconnected_peers_total{Local,Remote}
    sent_bytes: Counter[int] = field(default_factory=Counter)  # peer_sent_bytes_total{To}
    received_bytes: Counter[int] = field(default_factory=Counter)  # peer_received_bytes_total{From}
    sent_failures: Counter[int] = field(default_factory=Counter)  # peer_sent_failures_total{To}
    received_failures: Counter[int] = field(default_factory=Counter)  # peer_received_failures_total{From}
    snapshot_send_success: Counter[int] = field(default_factory=Counter)  # snapshot_send_success{To}
    snapshot_send_failures: Counter[int] = field(default_factory=Counter)  # snapshot_send_failures{To}
    snapshot_send_inflights: Counter[int] = field(default_factory=Counter)  # snapshot_send_inflights_total{To}
    snapshot_receive_success: Counter[int] = field(default_factory=Counter)  # snapshot_receive_success{From}
    snapshot_receive_failures: Counter[int] = field(default_factory=Counter)  # snapshot_receive_failures{From}
    snapshot_receive_inflights: Counter[int] = field(default_factory=Counter)  # snapshot_receive_inflights_total{From}
    round_trip_seconds: dict[int, Histogram] = field(default_factory=dict)  # peer_round_trip_time_seconds{To}
    snapshot_send_seconds: dict[int, Histogram] = field(default_factory=dict)  # snapshot_send_total_duration_seconds{To}
    snapshot_receive_seconds: dict[int, Histogram] = field(default_factory=dict)  # snapshot_receive_total_duration_seconds{From}

    def observe_round_trip(self, member_id: int, seconds: float) -> None:
        _observe(self.round_trip_seconds, member_id, seconds, ROUND_TRIP_SECONDS_BOUNDS)

    def observe_snapshot_sent(self, member_id: int, seconds: float, *, ok: bool) -> None:
        (self.snapshot_send_success if ok else self.snapshot_send_failures)[member_id] += 1
        if ok:
            _observe(self.snapshot_send_seconds, member_id, seconds, SNAPSHOT_SECONDS_BOUNDS)

    def observe_snapshot_received(self, member_id: int, seconds: float, *, ok: bool) -> None:
        (self.snapshot_receive_success if ok else self.snapshot_receive_failures)[member_id] += 1
        if ok:
            _observe(self.snapshot_receive_seconds, member_id, seconds, SNAPSHOT_SECONDS_BOUNDS)


def _observe(histograms: dict[int, Histogram], member_id: int, seconds: float, bounds: tuple[float, ...]) -> None:
    histogram = histograms.get(member_id)
    if histogram is None:
        histogram = histograms[member_id] = Histogram(bounds)
    histogram.observe(seconds)
