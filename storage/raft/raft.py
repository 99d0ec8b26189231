"""The state of one member and the rules that hold in every role; ``follower``, ``candidate`` and ``leader`` add theirs.

Sections named "Raft §" are of the extended paper by Ongaro and Ousterhout, "thesis §" of Ongaro's dissertation.
"""

from __future__ import annotations

import random
from typing import Final

from storage.raft import candidate, confchange, follower, leader
from storage.raft.config import CAMPAIGN_TRANSFER, Config, Role
from storage.raft.log import RaftLog
from storage.raft.log_storage import LogStorage
from storage.raft.messages import (
    FORWARDED,
    LEADER_MESSAGES,
    NO_MEMBER,
    VOTES,
    ConfChangeV2,
    ConfState,
    Entry,
    EntryType,
    HardState,
    Message,
    MessageType,
)
from storage.raft.read_only import ReadOnly, ReadState
from storage.raft.tracker import ProgressTracker

_DURABLE_FIRST: Final = frozenset({MessageType.APPEND_RESPONSE, MessageType.VOTE, MessageType.VOTE_RESPONSE, MessageType.PRE_VOTE_RESPONSE})
"""Messages that promise something about this member's disk: they leave after what they promise is written.

VOTE is one of them. Were it sent at once: 1. A candidate asks for votes in term 5, its log ending at 10. 2. It crashes with neither on
the disk, and is back in term 4 with a log that ends at 9. 3. It stands in term 5 again, and the votes for the longer log arrive: it
leads without entry 10, which may be committed.
"""


class Raft:
    """One member. ``messages`` may leave at once, ``messages_after_append`` after what was appended before them is durable."""

    def __init__(self, config: Config, storage: LogStorage, rng: random.Random) -> None:
        config.validate()
        self.config = config
        self.id = config.id
        self.rng = rng
        hard_state, conf_state = storage.initial_state()
        self.log = RaftLog(storage)
        self.tracker = ProgressTracker(conf_state, in_flight_max=config.in_flight_max, in_flight_bytes_max=config.in_flight_bytes_max)
        self.term = hard_state.term
        self.vote = hard_state.vote
        # Commits are not synced on their own: the begin of the log and the state machine may be ahead of the saved commit index.
        if hard_state.commit > self.log.last_index():
            raise ValueError(f"commit {hard_state.commit} is beyond the last entry {self.log.last_index()}")
        self.log.commit_to(hard_state.commit)
        if config.applied:
            if config.applied > self.log.last_index():
                raise ValueError(f"applied {config.applied} is beyond the last entry {self.log.last_index()}")
            self.log.commit_to(config.applied)
            self.log.accept_applying(max(config.applied, self.log.applying))
            self.log.applied_to(self.log.applying)
        self.role = Role.FOLLOWER
        self.leader_id = NO_MEMBER
        self.messages: list[Message] = []
        self.messages_after_append: list[Message] = []
        self.election_elapsed = 0
        self.heartbeat_elapsed = 0
        self.election_timeout = 0
        self.uncommitted_bytes = 0
        self.read_only = ReadOnly(self.id)
        self.read_states: list[ReadState] = []
        self.committed_in_term = False
        """The leader has committed an entry of its term: its commit index is at least that of all leaders before it (Raft §8)."""
        self.lead_transferee = NO_MEMBER
        self.pending_conf_index = 0
        """No configuration change is in the log after this index; while it is not applied no further one is let in."""
        self.become_follower(self.term, NO_MEMBER)

    # -- values read from outside

    def hard_state(self) -> HardState:
        return HardState(self.term, self.vote, self.log.committed)

    def is_promotable(self) -> bool:
        """Whether this member may stand for election: a voter, and not one whose log is yet to come."""
        return self.tracker.is_voter(self.id) and self.log.unstable.snapshot is None

    # -- sending

    def send(self, message: Message) -> None:
        """Queue a message that was made for this call alone: who sends it and the term are filled in, in place. Vote messages name
        their own term, those that are passed on keep their sender."""
        if message.type in VOTES:
            assert message.term, message
            committed = self.log.committed
            message.sender = self.id  # type: ignore[misc]
            message.commit, message.reject_hint = committed, self.log.term(committed)  # type: ignore[misc]
        elif message.type in FORWARDED:
            message.term = 0  # type: ignore[misc]  # a newer one may begin while it is passed on
        else:
            message.sender, message.term = self.id, self.term  # type: ignore[misc]
        if message.type in _DURABLE_FIRST:
            self.messages_after_append.append(message)
        else:
            self.messages.append(message)

    # -- transitions

    def _reset(self, term: int) -> None:
        if self.term != term:
            self.term = term
            self.vote = NO_MEMBER
        self.leader_id = NO_MEMBER
        self.election_elapsed = 0
        self.heartbeat_elapsed = 0
        self.uncommitted_bytes = 0
        self.read_only.reset()
        self.committed_in_term = False
        self.lead_transferee = NO_MEMBER
        self.pending_conf_index = 0
        self.draw_election_timeout()
        self.tracker.reset(last_index=self.log.last_index())

    def draw_election_timeout(self) -> None:
        """Random, so that split votes are rare (Raft §5.2)."""
        self.election_timeout = self.config.election_ticks + self.rng.randrange(self.config.election_ticks)

    def become_follower(self, term: int, leader_id: int) -> None:
        self._reset(term)
        self.role = Role.FOLLOWER
        self.leader_id = leader_id

    def become_pre_candidate(self) -> None:
        """Ask around without touching term or vote."""
        assert self.role is not Role.LEADER, self.role
        self.tracker.votes = {}
        self.role = Role.PRE_CANDIDATE
        self.leader_id = NO_MEMBER

    def become_candidate(self) -> None:
        assert self.role is not Role.LEADER, self.role
        self._reset(self.term + 1)
        self.vote = self.id
        self.role = Role.CANDIDATE

    def become_leader(self) -> None:
        assert self.role is Role.CANDIDATE, self.role
        self._reset(self.term)
        self.role = Role.LEADER
        self.leader_id = self.id
        mine = self.tracker.progress[self.id]
        mine.become_replicate()
        mine.recent_active = True
        # Some change may be among the entries that are not applied here yet.
        self.pending_conf_index = self.log.last_index()
        # An entry of its own term lets a leader find out what is committed (Raft §8); it weighs nothing.
        taken = leader.append_entries(self, [(b"", EntryType.NORMAL)])
        assert taken

    # -- time

    def tick(self) -> None:
        if self.role is Role.LEADER:
            leader.tick(self)
            return
        self.election_elapsed += 1
        if self.is_promotable() and self.election_elapsed >= self.election_timeout:
            self.election_elapsed = 0
            self.step(Message(type=MessageType.HUP, sender=self.id))

    # -- messages

    def step(self, message: Message) -> None:
        """Take one message, of a peer or of this member itself (those have no term)."""
        if message.type in VOTES and message.commit > self.log.committed:
            self._learn_commit(message)
        if message.term > self.term:
            if not self._heed_newer_term(message):
                return
        elif 0 < message.term < self.term:
            self._answer_older_term(message)
            return
        if message.type is MessageType.HUP:
            candidate.maybe_campaign(self)
        elif message.type in (MessageType.VOTE, MessageType.PRE_VOTE):
            self._answer_vote(message)
        elif self.role is Role.LEADER:
            leader.step(self, message)
        elif self.role is Role.FOLLOWER:
            follower.step(self, message)
        else:
            candidate.step(self, message)

    def _learn_commit(self, message: Message) -> None:
        """A voter or candidate knows more to be committed than this member, which may hold it too.

        1. Members 1 2 3 become 2 3 by way of a joint configuration; its end is committed, member 1 is switched off. 2. Member 2 has the
        longest log, but does not know that the end is committed: it thinks to need the vote of 1. 3. Member 3 knows, but is not given
        the vote of 2. Nobody could be elected, if 3 did not tell.
        """
        if self.role is Role.LEADER or not self.log.matches(message.commit, message.reject_hint):
            return
        self.log.commit_to(message.commit)
        if self.role is not Role.FOLLOWER and self.log.has_unapplied_conf_change():
            self.become_follower(self.term, NO_MEMBER)  # it asked voters of a configuration that is over

    def _heed_newer_term(self, message: Message) -> bool:
        """A newer term makes a follower of anyone (Raft §5.1). False when the message is not to be heard at all."""
        kind = message.type
        if kind in (MessageType.VOTE, MessageType.PRE_VOTE):
            heard_leader = self.leader_id != NO_MEMBER and self.election_elapsed < self.config.election_ticks
            if self.config.check_quorum and heard_leader and message.context != CAMPAIGN_TRANSFER:
                return False  # a member that was cut off must not unseat a leader that works (Raft §6)
        if kind is MessageType.PRE_VOTE:
            return True  # it asks about a term that has not begun
        if kind is MessageType.PRE_VOTE_RESPONSE and not message.reject:
            return True  # granted for the term that this member would begin
        self.become_follower(message.term, message.sender if kind in LEADER_MESSAGES else NO_MEMBER)
        return True

    def _answer_older_term(self, message: Message) -> None:
        """Most of them are late and are dropped. Two senders would stay stuck without an answer."""
        if message.type in (MessageType.APPEND, MessageType.HEARTBEAT) and (self.config.check_quorum or self.config.pre_vote):
            # 1. This member was cut off and began terms on its own. 2. It is back; the leader's term is older than its own.
            # 3. Its vote requests are not heard, since the leader is. So tell the leader the newer term.
            self.send(Message(type=MessageType.APPEND_RESPONSE, to=message.sender))
        elif message.type is MessageType.PRE_VOTE:
            self.send(Message(type=MessageType.PRE_VOTE_RESPONSE, to=message.sender, term=self.term, reject=True))

    def _answer_vote(self, message: Message) -> None:
        """Raft §5.2 (one vote a term, first come first served) and §5.4.1 (only for a log at least as up to date)."""
        free = (
            self.vote == message.sender
            or (self.vote == NO_MEMBER and self.leader_id == NO_MEMBER)
            or (message.type is MessageType.PRE_VOTE and message.term > self.term)
        )
        response = MessageType.VOTE_RESPONSE if message.type is MessageType.VOTE else MessageType.PRE_VOTE_RESPONSE
        if free and self.log.is_up_to_date(message.index, message.log_term):
            self.send(Message(type=response, to=message.sender, term=message.term))
            if message.type is MessageType.VOTE:
                self.election_elapsed = 0
                self.vote = message.sender
        else:
            self.send(Message(type=response, to=message.sender, term=self.term, reject=True))

    # -- the configuration

    def apply_conf_change(self, change: ConfChangeV2) -> ConfState:
        """Make a committed change. Raises ConfChangeError, which no change does that a leader of this code let into the log."""
        return self._switch(confchange.changed(self.tracker.config, change))

    def restore_configuration(self, config: ConfState) -> None:
        """Take the configuration of a snapshot. Raises ConfChangeError."""
        assert self.role is Role.FOLLOWER, self.role
        self.tracker.switch(confchange.normalized(config), last_index=self.log.last_index())

    def _switch(self, config: ConfState) -> ConfState:
        self.tracker.switch(config, last_index=self.log.last_index())
        if self.role is Role.LEADER:
            if self.tracker.is_voter(self.id):
                leader.configuration_changed(self)
            else:
                # The leader of a configuration without it leads up to the commit of the change (thesis §4.2.2), which was now.
                self.become_follower(self.term, NO_MEMBER)
        return config

    # -- the leader's and a follower's account of the log's end

    def charge_uncommitted(self, size: int) -> bool:
        """Count the data of new entries; False (nothing counted) when the limit is passed. Entries without data and the first
        one are always let in, so that a leader can always commit."""
        if size and self.uncommitted_bytes and self.uncommitted_bytes + size > self.config.uncommitted_bytes_max:
            return False
        self.uncommitted_bytes += size
        return True

    def refund_uncommitted(self, entries: list[Entry]) -> None:
        """Entries were committed; those of former leaders were never counted, hence the floor."""
        if self.role is Role.LEADER and self.uncommitted_bytes:
            self.uncommitted_bytes = max(0, self.uncommitted_bytes - sum(len(entry.data) for entry in entries))
