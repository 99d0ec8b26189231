"""Settings of an embedded member: one frozen object, checked once. Names are those of etcd's flags."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberConfig:
    """``data_dir`` holds ``member/snap/db`` (the backend) and, unless ``wal_dir`` says otherwise, ``member/wal`` (the log)."""

    data_dir: Path
    wal_dir: Path | None = None
    name: str = "default"
    snapshot_count: int = 10_000
    """Entries applied between two snapshot markers: about as many are replayed after a crash at most."""
    wal_segment_bytes: int = 64 * 1024 * 1024
    """A log file is closed once it is this long (etcd's fixed size)."""
    quota_backend_bytes: int = 2 * 1024**3
    """Writes that add data are refused beyond it; 0 is no quota."""
    heartbeat_interval_ms: int = 30
    election_timeout_ms: int = 150
    """Lower bound; the timeout is drawn from [t, 2t)."""
    max_request_bytes: int = 1_572_864
    unsafe_no_fsync: bool = False
    """Acknowledge writes before they are on disk: a crash of the machine may lose them and make the directory unusable."""

    def validate(self) -> None:
        """Raises ValueError, worded for the person who set the flag."""
        if not self.name:
            raise ValueError("--name must not be empty")
        for flag, value, least in (
            ("--snapshot-count", self.snapshot_count, 1),
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

    def member_dir(self) -> Path:
        return self.data_dir / "member"

    def log_dir(self) -> Path:
        return self.wal_dir if self.wal_dir is not None else self.member_dir() / "wal"

    def backend_file(self) -> Path:
        return self.member_dir() / "snap" / "db"
