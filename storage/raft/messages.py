"""The values of the Raft protocol. Numbers of the enums are those of etcd's ``raftpb``."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar, dataclass_transform

T = TypeVar("T")

NO_MEMBER: Final = 0
"""The id of nobody: no vote, no known leader."""


@dataclass_transform(frozen_default=True, kw_only_default=False)
def made_often(*, kw_only: bool = False) -> Callable[[type[T]], type[T]]:
    """``dataclass(frozen=True, slots=True)`` for values of which each write makes some. Only the type checker keeps them from being
    changed: what is frozen at run time takes three times as long to make."""
    return dataclass(slots=True, unsafe_hash=True, kw_only=kw_only)


class EntryType(enum.IntEnum):
    NORMAL = 0
    CONF_CHANGE = 1
    CONF_CHANGE_V2 = 2


@made_often()
class Entry:
    """One entry of the log. A new leader's first entry has no data (Raft §8)."""

    term: int
    index: int
    data: bytes = b""
    type: EntryType = EntryType.NORMAL


@dataclass(frozen=True, slots=True)
class HardState:
    """What must survive a crash (Raft figure 2, "persistent state"); ``commit`` is kept along, so that a restart knows what to apply."""

    term: int = 0
    vote: int = NO_MEMBER
    commit: int = 0


@dataclass(frozen=True, slots=True)
class ConfState:
    """Who votes and who learns. The ``outgoing`` half belongs to a joint configuration."""

    voters: tuple[int, ...] = ()
    learners: tuple[int, ...] = ()
    voters_outgoing: tuple[int, ...] = ()
    learners_next: tuple[int, ...] = ()
    auto_leave: bool = False


class ConfChangeType(enum.IntEnum):
    ADD_NODE = 0
    REMOVE_NODE = 1
    UPDATE_NODE = 2
    """Changes nothing here: the context tells the state machine what changed of the member."""
    ADD_LEARNER_NODE = 3


class ConfChangeTransition(enum.IntEnum):
    """How a change comes about. A joint configuration needs majorities of the old and of the new voters (Raft §6)."""

    AUTO = 0
    """One change at a time is made directly (thesis §4.1), several by JOINT_IMPLICIT."""
    JOINT_IMPLICIT = 1
    """The leader leaves the joint configuration on its own, as soon as it is applied."""
    JOINT_EXPLICIT = 2
    """The joint configuration stays until a change without changes is proposed."""


@dataclass(frozen=True, slots=True)
class ConfChange:
    """One change of one member: ``raftpb.ConfChange``. ``member`` 0 (NO_MEMBER) asks for nothing, for one that is declined when applied."""

    type: ConfChangeType
    member: int
    context: bytes = b""
    id: int = 0


@dataclass(frozen=True, slots=True)
class ConfChangeSingle:
    type: ConfChangeType
    member: int


@dataclass(frozen=True, slots=True)
class ConfChangeV2:
    """Several changes at a time. Without any it ends a joint configuration."""

    changes: tuple[ConfChangeSingle, ...] = ()
    transition: ConfChangeTransition = ConfChangeTransition.AUTO
    context: bytes = b""

    def leaves_joint(self) -> bool:
        return not self.changes and self.transition is ConfChangeTransition.AUTO

    def enters_joint(self) -> bool:
        return self.transition is not ConfChangeTransition.AUTO or len(self.changes) > 1

    def leaves_automatically(self) -> bool:
        return self.transition is not ConfChangeTransition.JOINT_EXPLICIT


def as_v2(change: ConfChange | ConfChangeV2) -> ConfChangeV2:
    if isinstance(change, ConfChangeV2):
        return change
    return ConfChangeV2((ConfChangeSingle(change.type, change.member),), context=change.context)


@dataclass(frozen=True, slots=True)
class SnapshotMetadata:
    conf_state: ConfState = ConfState()
    index: int = 0
    term: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    data: bytes = b""
    metadata: SnapshotMetadata = SnapshotMetadata()


class MessageType(enum.IntEnum):
    HUP = 0
    BEAT = 1
    PROPOSE = 2
    APPEND = 3
    APPEND_RESPONSE = 4
    VOTE = 5
    VOTE_RESPONSE = 6
    SNAPSHOT = 7
    HEARTBEAT = 8
    HEARTBEAT_RESPONSE = 9
    UNREACHABLE = 10
    SNAPSHOT_STATUS = 11
    CHECK_QUORUM = 12
    TRANSFER_LEADER = 13
    TIMEOUT_NOW = 14
    READ_INDEX = 15
    READ_INDEX_RESPONSE = 16
    PRE_VOTE = 17
    PRE_VOTE_RESPONSE = 18


@made_often(kw_only=True)
class Message:
    """One message. What a field means depends on the type:

    - APPEND: ``index`` and ``log_term`` name the entry before ``entries``; ``commit`` is the leader's.
    - APPEND_RESPONSE: ``index`` is the last entry that matches; when ``reject``, the refused index, with ``reject_hint`` and
      ``log_term`` naming the last entry of the follower's log that could match.
    - VOTE, PRE_VOTE: ``index`` and ``log_term`` name the candidate's last entry; ``term`` is the one it runs for. In these and their
      responses ``commit`` and ``reject_hint`` are index and term of the last entry that the sender knows to be committed.
    - SNAPSHOT: ``snapshot``; answered by an APPEND_RESPONSE with the index that matches then.
    - HEARTBEAT and its response: ``context`` is the round of reads that it confirms, if any.
    - PROPOSE, READ_INDEX, TRANSFER_LEADER: forwarded to the leader. A READ_INDEX names the read in the data of its only entry, the
      READ_INDEX_RESPONSE adds ``index``. ``sender`` of a TRANSFER_LEADER is the member that shall lead.
    - TIMEOUT_NOW: the leader asks ``to`` to stand for election at once.
    """

    type: MessageType
    to: int = NO_MEMBER
    sender: int = NO_MEMBER
    term: int = 0
    log_term: int = 0
    index: int = 0
    entries: tuple[Entry, ...] = ()
    commit: int = 0
    vote: int = NO_MEMBER
    snapshot: Snapshot | None = None
    reject: bool = False
    reject_hint: int = 0
    context: bytes = b""


LOCAL_MESSAGES: Final = frozenset(
    {
        MessageType.HUP,
        MessageType.BEAT,
        MessageType.UNREACHABLE,
        MessageType.SNAPSHOT_STATUS,
        MessageType.CHECK_QUORUM,
    }
)
"""Messages that a member sends only to itself; from the wire they are an offence."""

LEADER_MESSAGES: Final = frozenset({MessageType.APPEND, MessageType.HEARTBEAT, MessageType.SNAPSHOT})
"""Messages that only a leader sends."""

FORWARDED: Final = frozenset({MessageType.PROPOSE, MessageType.READ_INDEX, MessageType.TRANSFER_LEADER})
"""Requests that any member passes on to the leader; they have no term. All other messages of peers have one."""

VOTES: Final = frozenset({MessageType.VOTE, MessageType.VOTE_RESPONSE, MessageType.PRE_VOTE, MessageType.PRE_VOTE_RESPONSE})
"""Requests for votes and their responses: they name their term themselves."""

RESPONSES: Final = frozenset(
    {
        MessageType.APPEND_RESPONSE,
        MessageType.VOTE_RESPONSE,
        MessageType.HEARTBEAT_RESPONSE,
        MessageType.UNREACHABLE,
        MessageType.READ_INDEX_RESPONSE,
        MessageType.PRE_VOTE_RESPONSE,
    }
)


def entries_within(entries: list[Entry], bytes_max: int) -> list[Entry]:
    """The longest prefix whose data fits in ``bytes_max``, but at least one entry, so that a large one is not stuck."""
    total = 0
    for count, entry in enumerate(entries):
        total += len(entry.data)
        if total > bytes_max and count:
            return entries[:count]
    return entries
