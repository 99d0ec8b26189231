"""Counters of the traffic between members, plain numbers by the peer's id: whoever exports them reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from storage.metric_families import Family, Histogram, Kind

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

    def families(self, local_id: int) -> list[Family]:
        """All of them, for an exporter. Ids are in hexadecimal, as etcd shows them; what was said to a member whose id was not known yet
        is left out."""
        pairs = (
            (Kind.GAUGE, "active_peers", "The current number of active peer connections.", self.active_peers),
            (Kind.COUNTER, "disconnected_peers_total", "The total number of disconnected peers.", self.disconnected_peers),
        )
        found = [
            Family(kind, f"etcd_network_{name}", text, tuple(
                ((("Local", f"{local_id:x}"), ("Remote", f"{member_id:x}")), value) for member_id, value in sorted(counts.items())
            ))
            for kind, name, text, counts in pairs
        ]  # fmt: skip
        labelled: tuple[tuple[Kind, str, str, str, Mapping[int, int | Histogram]], ...] = (
            (Kind.COUNTER, "peer_sent_bytes_total", "The total number of bytes sent to peers.", "To", self.sent_bytes),
            (Kind.COUNTER, "peer_received_bytes_total", "The total number of bytes received from peers.", "From", self.received_bytes),
            (Kind.COUNTER, "peer_sent_failures_total", "The total number of send failures from peers.", "To", self.sent_failures),
            (Kind.COUNTER, "peer_received_failures_total", "The total number of receive failures from peers.", "From",
             self.received_failures),
            (Kind.COUNTER, "snapshot_send_success", "Total number of successful snapshot sends", "To", self.snapshot_send_success),
            (Kind.COUNTER, "snapshot_send_failures", "Total number of snapshot send failures", "To", self.snapshot_send_failures),
            (Kind.GAUGE, "snapshot_send_inflights_total", "Total number of inflight snapshot sends", "To", self.snapshot_send_inflights),
            (Kind.COUNTER, "snapshot_receive_success", "Total number of successful snapshot receives", "From",
             self.snapshot_receive_success),
            (Kind.COUNTER, "snapshot_receive_failures", "Total number of snapshot receive failures", "From",
             self.snapshot_receive_failures),
            (Kind.GAUGE, "snapshot_receive_inflights_total", "Total number of inflight snapshot receives", "From",
             self.snapshot_receive_inflights),
            (Kind.HISTOGRAM, "peer_round_trip_time_seconds", "Round-Trip-Time histogram between peers", "To", self.round_trip_seconds),
            (Kind.HISTOGRAM, "snapshot_send_total_duration_seconds", "Total latency distributions of v3 snapshot sends", "To",
             self.snapshot_send_seconds),
            (Kind.HISTOGRAM, "snapshot_receive_total_duration_seconds", "Total latency distributions of v3 snapshot receives", "From",
             self.snapshot_receive_seconds),
        )  # fmt: skip
        for kind, name, text, label, values in labelled:
            samples = tuple((((label, f"{member_id:x}"),), value) for member_id, value in sorted(values.items()) if member_id)
            found.append(Family(kind, f"etcd_network_{name}", text, samples))
        return found

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
