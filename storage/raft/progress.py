"""What a leader knows of one member's log, and how fast it may send to it."""

from __future__ import annotations

import enum

from storage.raft.inflights import Inflights


class ProgressState(enum.Enum):
    PROBE = "probe"
    """Where the logs agree is not known: one append at a time, the next after an answer or a heartbeat's."""
    REPLICATE = "replicate"
    """The logs agree: appends are sent ahead of the answers, up to the window."""
    SNAPSHOT = "snapshot"
    """What the member lacks is compacted: a snapshot is under way, no appends until it is reported or answered."""


class Progress:
    """``match`` is known to be in the member's log; ``next`` is sent next; always ``match`` < ``next``.

    ``sent_commit`` is the highest commit index it was told of, ``pending_snapshot`` the index of the snapshot under way (SNAPSHOT),
    ``recent_active`` whether it was heard since the last check of the quorum. A member that lacks compacted entries goes

        PROBE ─ entries compacted ─> SNAPSHOT ─ report_snapshot ok ─> PROBE (paused, from pending_snapshot + 1) ─ answer ─> REPLICATE
                                        └─ report_snapshot failed ─> PROBE (paused until a heartbeat is answered, from match + 1)
    """

    __slots__ = ("inflights", "is_learner", "match", "next", "paused", "pending_snapshot", "recent_active", "sent_commit", "state")

    def __init__(self, *, match: int, next: int, in_flight_max: int, in_flight_bytes_max: int = 0, is_learner: bool = False) -> None:
        self.match = match
        self.next = next
        self.state = ProgressState.PROBE
        self.paused = False
        self.recent_active = False
        self.pending_snapshot = 0
        self.sent_commit = 0
        self.is_learner = is_learner
        self.inflights = Inflights(count_max=in_flight_max, bytes_max=in_flight_bytes_max)

    def become_probe(self) -> None:
        """After a snapshot that arrived, go on behind it; else where the logs are known to agree."""
        after_snapshot = self.pending_snapshot if self.state is ProgressState.SNAPSHOT else 0
        self._reset(ProgressState.PROBE)
        self.next = max(self.match, after_snapshot) + 1
        self.sent_commit = min(self.sent_commit, self.next - 1)

    def become_replicate(self) -> None:
        self._reset(ProgressState.REPLICATE)
        self.next = self.match + 1

    def become_snapshot(self, index: int) -> None:
        self._reset(ProgressState.SNAPSHOT)
        self.pending_snapshot = index
        self.next = max(self.match, index) + 1
        self.sent_commit = index

    def _reset(self, state: ProgressState) -> None:
        self.state = state
        self.paused = False
        self.pending_snapshot = 0
        self.inflights.clear()

    def is_paused(self) -> bool:
        """Whether nothing may be sent until an answer (or a heartbeat's, or a report) comes."""
        return self.paused or self.state is ProgressState.SNAPSHOT

    def takes_entries(self) -> bool:
        """False while the window is full. A heartbeat's answer then lets one empty append through: were all appends of the window
        lost, it is refused, and so the gap is found; were only the answers lost, its answer frees the window."""
        return self.state is not ProgressState.REPLICATE or not self.inflights.is_full()

    def sent(self, entry_count: int, size: int) -> None:
        """An append of the ``entry_count`` entries (``size`` bytes of data) from ``next`` on is under way."""
        if self.state is ProgressState.PROBE:
            self.paused = True
            return
        assert self.state is ProgressState.REPLICATE, self.state
        if entry_count:
            self.next += entry_count
            self.inflights.add(self.next - 1, size)
        self.paused = self.inflights.is_full()

    def can_bump_commit(self, committed: int) -> bool:
        """Whether telling ``committed`` may move the member's commit index, given what it was told already."""
        return committed > self.sent_commit and self.sent_commit < self.next - 1

    def maybe_update(self, index: int) -> bool:
        """The member holds all up to ``index``. False when that was known."""
        self.inflights.free_up_to(index)
        if index <= self.match:
            return False
        self.match = index
        self.next = max(self.next, index + 1)
        self.paused = False
        return True

    def maybe_decrease(self, rejected: int, hint: int) -> bool:
        """The member refused an append after ``rejected``; its log may agree up to ``hint``. False for an answer that is stale."""
        if self.state is ProgressState.SNAPSHOT:
            return False
        if self.state is ProgressState.REPLICATE:
            if rejected <= self.match:
                return False
            self.next = self.match + 1
        else:
            if self.next - 1 != rejected:
                return False
            self.next = max(min(rejected, hint + 1), self.match + 1)
            self.paused = False
        self.sent_commit = min(self.sent_commit, self.next - 1)
        return True

    def heard_heartbeat(self) -> None:
        """An answer to a heartbeat frees a stuck probe or a full window for one append, since what was sent may have been lost."""
        self.recent_active = True
        self.paused = False
