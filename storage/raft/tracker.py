"""All members as a leader or candidate sees them: progress and votes."""

from __future__ import annotations

from storage.raft.messages import ConfState
from storage.raft.progress import Progress
from storage.raft.quorum import MajorityQuorum, VoteResult


class ProgressTracker:
    def __init__(self, conf_state: ConfState, *, in_flight_max: int) -> None:
        self.in_flight_max = in_flight_max
        self.quorum = MajorityQuorum(tuple(sorted(conf_state.voters)))
        self.learners = tuple(sorted(conf_state.learners))
        self.progress: dict[int, Progress] = {}
        self.votes: dict[int, bool] = {}
        self.reset(last_index=0)

    def reset(self, *, last_index: int) -> None:
        """Forget all that was known, as a new term begins: each log may agree up to ``last_index``."""
        self.votes = {}
        self.progress = {
            member: Progress(match=0, next=last_index + 1, in_flight_max=self.in_flight_max)
            for member in sorted((*self.quorum.voters, *self.learners))
        }

    def conf_state(self) -> ConfState:
        return ConfState(self.quorum.voters, self.learners)

    def is_singleton(self, member: int) -> bool:
        return self.quorum.voters == (member,)

    def is_voter(self, member: int) -> bool:
        return member in self.quorum.voters

    def record_vote(self, member: int, granted: bool) -> None:
        """The first answer of a member counts."""
        self.votes.setdefault(member, granted)

    def vote_result(self) -> VoteResult:
        return self.quorum.vote_result(self.votes)

    def committed_index(self) -> int:
        voters = self.quorum.voters
        if len(voters) == 1:
            return self.progress[voters[0]].match
        index = self.quorum.committed_index({member: progress.match for member, progress in self.progress.items()})
        return 0 if index is None else index

    def quorum_is_active(self, self_id: int) -> bool:
        """Whether a quorum was heard of since the last check; begins the next period."""
        active = {member: progress.recent_active or member == self_id for member, progress in self.progress.items()}
        for member, progress in self.progress.items():
            if member != self_id:
                progress.recent_active = False
        return self.quorum.vote_result(active) is VoteResult.WON
