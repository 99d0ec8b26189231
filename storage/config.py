"""Settings of an embedded member: one frozen object, checked once. Names are those of etcd's flags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

DEFAULT_PEER_URLS: Final = ("http://localhost:2380",)
"""Of a member that is alone: nobody calls it there, but a member must have one (etcd's default)."""

_DURATION_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_UNIT_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberConfig:
    """``data_dir`` holds ``member/snap/db`` (the backend) and, unless ``wal_dir`` says otherwise, ``member/wal`` (the log)."""

    data_dir: Path
    wal_dir: Path | None = None
    name: str = "default"
    initial_cluster: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Name → peer URLs of every member at the first start, this one among them; not looked at once there is a log. Empty: this member
    alone."""
    initial_cluster_state: Literal["new", "existing"] = "new"
    """``existing``: join a cluster that runs and has this member on its list."""
    initial_cluster_token: str = "etcd-cluster"
    """Part of the ids of cluster and members, so that clusters with equal addresses do not take each other for themselves."""
    advertise_client_urls: tuple[str, ...] = ()
    """What the other members and ``member list`` tell clients of this one."""
    strict_reconfig_check: bool = True
    """Refuse changes of the membership that would leave too few members that are reachable for a quorum."""
    pre_vote: bool = True
    snapshot_count: int = 10_000
    """Entries applied between two snapshot markers: about as many are replayed after a crash at most."""
    snapshot_catchup_entries: int = 5000
    """Applied entries that a member with peers keeps in memory, so that a follower that lags a little need not be sent the database."""
    wal_segment_bytes: int = 64 * 1024 * 1024
    """A log file is closed once it is this long (etcd's fixed size)."""
    quota_backend_bytes: int = 2 * 1024**3
    """Writes that add data are refused beyond it; 0 is no quota."""
    auto_compaction_mode: Literal["periodic", "revision"] = "periodic"
    auto_compaction_retention: str = "0"
    """``periodic``: hours, or a duration such as ``30m``; ``revision``: how many revisions. 0 leaves compaction to the clients."""
    lease_checkpoint_interval_seconds: float = 300.0
    """How often the leader notes what is left of leases that are longer than that; 0 is never, so that each new leader starts them anew."""
    corrupt_check_seconds: float = 4 * 3600.0
    """How often the leader compares what the members hold; 0 is never."""
    initial_corrupt_check: bool = True
    """A member of several compares itself with the others when it starts, and stops if it holds something else."""
    heartbeat_interval_ms: int = 30
    election_timeout_ms: int = 150
    """Lower bound; the timeout is drawn from [t, 2t)."""
    max_request_bytes: int = 1_572_864
    expire_leases: bool = True
    """Revoke leases when they end. Off where the keys are to stay as they are: a backup that is only looked at."""
    unsafe_no_fsync: bool = False
    """Acknowledge writes before they are on disk: a crash of the machine may lose them and make the directory unusable."""

    def validate(self) -> None:
        """Raises ValueError, worded for the person who set the flag."""
        if not self.name:
            raise ValueError("--name must not be empty")
        for flag, value, least in (
            ("--snapshot-count", self.snapshot_count, 1),
            ("--snapshot-catchup-entries", self.snapshot_catchup_entries, 1),
            ("wal_segment_bytes", self.wal_segment_bytes, 4096),
            ("--quota-backend-bytes", self.quota_backend_bytes, 0),
            ("--heartbeat-interval", self.heartbeat_interval_ms, 1),
            ("--max-request-bytes", self.max_request_bytes, 1),
        ):
            if value < least:
                raise ValueError(f"{flag} must be at least {least}, not {value}")
        if self.election_timeout_ms < 5 * self.heartbeat_interval_ms:
            raise ValueError(
                f"--election-timeout ({self.election_timeout_ms} ms) must be at least five times "
                f"--heartbeat-interval ({self.heartbeat_interval_ms} ms)"
            )
        for flag, seconds in (
            ("lease checkpoint interval", self.lease_checkpoint_interval_seconds),
            ("--corrupt-check-time", self.corrupt_check_seconds),
        ):
            if seconds < 0:
                raise ValueError(f"{flag} must not be negative: {seconds}")
        parse_retention(self.auto_compaction_mode, self.auto_compaction_retention)
        self._validate_cluster()

    def validate_bootstrap(self) -> None:
        """What is needed only where there is no log yet. Raises ValueError."""
        if self.initial_cluster and self.name not in self.initial_cluster:
            raise ValueError(f"--initial-cluster does not name this member, {self.name!r} (--name)")
        if self.initial_cluster_state == "existing" and len(self.initial_cluster) < 2:
            raise ValueError("--initial-cluster-state existing needs the other members in --initial-cluster")

    def _validate_cluster(self) -> None:
        if self.initial_cluster_state not in ("new", "existing"):
            raise ValueError(f"--initial-cluster-state must be new or existing, not {self.initial_cluster_state!r}")
        seen: dict[str, str] = {}
        for name, urls in self.initial_cluster.items():
            if not urls:
                raise ValueError(f"--initial-cluster has no URL for {name}")
            for url in urls:
                check_url(url, flag="--initial-cluster")
                if seen.setdefault(url, name) != name:
                    raise ValueError(f"--initial-cluster has {url} for both {seen[url]} and {name}")
        for url in self.advertise_client_urls:
            check_url(url, flag="--advertise-client-urls")

    def peer_urls(self) -> tuple[str, ...]:
        """Where this member's peers reach it at first."""
        return self.initial_cluster.get(self.name, DEFAULT_PEER_URLS)

    def member_dir(self) -> Path:
        return self.data_dir / "member"

    def log_dir(self) -> Path:
        return self.wal_dir if self.wal_dir is not None else self.member_dir() / "wal"

    def backend_file(self) -> Path:
        return self.member_dir() / "snap" / "db"


def check_url(url: str, *, flag: str) -> None:
    """Raises ValueError for what is no URL of a member: scheme, host, port and nothing more (etcd's rules)."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"{flag}: {url!r}: {error}") from None
    if parts.scheme not in ("http", "https", "unix", "unixs"):
        raise ValueError(f"{flag}: URL scheme must be http, https, unix or unixs: {url!r}")
    if parts.scheme in ("http", "https") and (not parts.hostname or port is None):
        raise ValueError(f"{flag}: URL must have a host and a port: {url!r}")
    if parts.path or parts.query or parts.fragment:
        raise ValueError(f"{flag}: URL must not contain a path: {url!r}")


def parse_retention(mode: str, retention: str) -> float:
    """Of ``--auto-compaction-retention``: seconds (``periodic``; a bare number is hours) or revisions. 0 is none. Raises ValueError, worded
    for the person who set the flag."""
    if mode not in ("periodic", "revision"):
        raise ValueError(f"--auto-compaction-mode must be periodic or revision, not {mode!r}")
    if retention.isdecimal():
        return int(retention) * 3600.0 if mode == "periodic" else int(retention)
    if mode == "revision":
        raise ValueError(f"--auto-compaction-retention must be a number of revisions, not {retention!r}")
    parts = _DURATION_PART.findall(retention)
    if not parts or "".join(number + unit for number, unit in parts) != retention:
        raise ValueError(f"--auto-compaction-retention must be hours, or a duration such as 30m or 1h30m, not {retention!r}")
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)
