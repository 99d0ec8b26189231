"""All members as a leader or candidate sees them: the configuration, progress and votes."""

from __future__ import annotations

from storage.raft import confchange
from storage.raft.messages import ConfState
from storage.raft.progress import Progress
from storage.raft.quorum import JointQuorum, MajorityQuorum, VoteResult


class ProgressTracker:
    """``progress`` holds every member of the configuration, ascending."""

    def __init__(self, config: ConfState, *, in_flight_max: int, in_flight_bytes_max: int) -> None:
        self._in_flight_max = in_flight_max
        self._in_flight_bytes_max = in_flight_bytes_max
        self.progress: dict[int, Progress] = {}
        self.votes: dict[int, bool] = {}
        self.switch(confchange.normalized(config), last_index=0)

    def switch(self, config: ConfState, *, last_index: int) -> None:
        """Another configuration is in force. Members that stay keep their progress."""
        self.config = config
        self.quorum = JointQuorum(MajorityQuorum(config.voters), MajorityQuorum(config.voters_outgoing))
        self.voters = self.quorum.voters()
        old, self.progress = self.progress, {}
        for member in sorted({*self.voters, *config.learners}):
            progress = old.get(member)
            if progress is None:
                progress = self._new_progress(max(last_index, 1))
                # Else a check of the quorum could unseat the leader before the new member had a chance to be heard.
                progress.recent_active = True
            progress.is_learner = member in config.learners
            self.progress[member] = progress

    def reset(self, *, last_index: int) -> None:
        """Forget all that was known, as a new term begins: each log may agree up to ``last_index``."""
        self.votes = {}
        for member in self.progress:
            progress = self._new_progress(last_index + 1)
            progress.is_learner = member in self.config.learners
            self.progress[member] = progress

    def _new_progress(self, next_index: int) -> Progress:
        return Progress(match=0, next=next_index, in_flight_max=self._in_flight_max, in_flight_bytes_max=self._in_flight_bytes_max)

    def is_singleton(self, member: int) -> bool:
        """Whether ``member`` alone decides."""
        return self.voters == (member,)

    def is_voter(self, member: int) -> bool:
        return member in self.voters

    def record_vote(self, member: int, granted: bool) -> None:
        """The first answer of a member counts."""
        self.votes.setdefault(member, granted)

    def vote_result(self) -> VoteResult:
        return self.quorum.vote_result(self.votes)

    def committed_index(self) -> int:
        voters = self.voters
        if len(voters) == 1:
            return self.progress[voters[0]].match
        index = self.quorum.committed_index({voter: self.progress[voter].match for voter in voters})
        return 0 if index is None else index

    def quorum_is_active(self, self_id: int) -> bool:
        """Whether a quorum was heard of since the last check; begins the next period."""
        active = {member: progress.recent_active or member == self_id for member, progress in self.progress.items()}
        for member, progress in self.progress.items():
            if member != self_id:
                progress.recent_active = False
        return self.quorum.vote_result(active) is VoteResult.WON
