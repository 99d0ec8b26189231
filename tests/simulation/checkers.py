"""The observers with full view. They look at every member after every step and at every event, and know what no member knows.

Safety (all of it always, whatever fails): one leader a term; terms and votes never go back; what is committed never changes and is the
same everywhere; every member applies it in order, and every revision has the same events on every member, which are those of the dumb
twin (``tests.robustness.kv_model``); revisions never go back; equal hashes at equal revisions; watchers get exactly the events of their
range; leases neither run out early nor live forever. Answers of clients are judged at the end, with the committed log as witness.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from storage import api
from storage.member import request as log_request
from storage.mvcc.kv_hash import hash_kv
from storage.raft.codec import CodecError
from storage.raft.messages import Entry, EntryType, Message, MessageType
from storage.raft.raft import Raft
from storage.raft.rawnode import Role
from tests.robustness import kv_model
from tests.simulation.hosts import Host
from tests.simulation.world import InvariantError, ProcessLoop, World

TRACE_ENTRIES_MAX: Final = 200_000

READ_BYTES_MAX: Final = 1 << 30

_OF_LEADERS: Final = frozenset((MessageType.APPEND, MessageType.HEARTBEAT, MessageType.TIMEOUT_NOW))


@dataclass(slots=True)
class _Seen:
    """What was seen of one process last."""

    host: Host
    raft: Raft | None = None
    term: int = 0
    committed: int = 0
    revision: int = 0
    role: Role = Role.FOLLOWER


class ClusterHistory:
    """What is true of the cluster for ever: its committed log, and the states that follow from it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.entries: list[Entry] = []
        self.committed_at: list[float] = []
        """True time at which each entry was first seen committed."""
        self.requests: list[kv_model.Request | kv_model.OtherRequest] = []
        self.state = kv_model.State()
        self.events: list[tuple[api.Event, ...]] = [(), ()]
        """By revision."""
        self.on_request: Callable[[int, kv_model.Request | kv_model.OtherRequest], None] = lambda index, request: None
        self._data: dict[bytes, int] = {}

    @property
    def last_index(self) -> int:
        return len(self.entries)

    def note(self, who: str, entry: Entry) -> None:
        """``who`` holds ``entry`` as committed. Raises InvariantError."""
        position = entry.index - 1
        if position < len(self.entries):
            known = self.entries[position]
            if known.term != entry.term or known.data != entry.data or known.type != entry.type:
                raise InvariantError(f"{who} has committed {_show(entry)}, but {_show(known)} was committed before")
            return
        if position > len(self.entries):
            raise InvariantError(f"{who} has committed entry {entry.index}, nobody the {position - len(self.entries)} before it")
        self.entries.append(entry)
        self.committed_at.append(self.world.now)
        self._replay(entry)

    def _replay(self, entry: Entry) -> None:
        request = self._decode(entry)
        self.requests.append(request)
        applied = kv_model.apply(self.state, request)
        self.state = applied.state
        if applied.events:
            self.events.append(applied.events)
        self.on_request(entry.index, request)

    def _decode(self, entry: Entry) -> kv_model.Request | kv_model.OtherRequest:
        if entry.type is not EntryType.NORMAL or not entry.data:
            return kv_model.OtherRequest()
        twice = self._data.setdefault(entry.data, entry.index)
        if twice != entry.index:
            raise InvariantError(f"the proposal of entry {twice} is entry {entry.index} again: {_show(entry)}")
        try:
            return log_request.decode(entry.data)[1]
        except CodecError as error:
            raise InvariantError(f"{_show(entry)} cannot be read: {error}") from error

    def events_between(self, after: int, up_to: int, key: bytes, range_end: bytes) -> list[tuple[int, list[api.Event]]]:
        """The events of a range at the revisions of (after, up_to]."""
        found = []
        for revision in range(max(after, 0) + 1, min(up_to, self.state.revision) + 1):
            events = [event for event in self.events[revision] if kv_model.in_range(event.kv.key, key, range_end)]
            if events:
                found.append((revision, events))
        return found


class Observer:
    """Looks at the processes. ``trace`` collects what happened, for the hash of the run and for reading."""

    def __init__(self, world: World, history: ClusterHistory, *, keep_trace: bool) -> None:
        self.world = world
        self.history = history
        self.leader_changes = 0
        self.checksum = 0
        self.lines: list[str] = []
        self._keep_trace = keep_trace
        self._leaders: dict[int, str] = {}
        self._votes: dict[tuple[int, int], int] = {}
        self._hashes: dict[tuple[int, int], tuple[str, int]] = {}

    # -- the trace

    def trace(self, text: str) -> None:
        line = f"{self.world.now:10.6f} {text}"
        self.checksum = zlib.crc32(line.encode(), self.checksum)
        if self._keep_trace and len(self.lines) < TRACE_ENTRIES_MAX:
            self.lines.append(line)

    # -- after every step

    def watch(self, host: Host) -> None:
        """A new process of ``host`` has begun."""
        assert host.process is not None
        host.process.observed = _Seen(host)

    def after_step(self, process: ProcessLoop) -> None:
        """Raises InvariantError."""
        seen = process.observed
        if seen is None or process.is_dead:
            return
        raft = seen.raft
        if raft is None:
            raft = seen.raft = raft_of(seen.host)
            if raft is None:
                return
        if raft.term != seen.term or raft.role is not seen.role:
            self._check_term(process.name, seen, raft)
        if raft.log.committed != seen.committed:
            self._check_committed(process.name, seen, raft)
            revision = seen.host.member._machine.store.store.current_revision
            if revision < seen.revision:
                raise InvariantError(f"{process.name}: the revision went back from {seen.revision} to {revision}")
            seen.revision = revision

    def _check_term(self, name: str, seen: _Seen, raft: Raft) -> None:
        if raft.term < seen.term:
            raise InvariantError(f"{name}: the term went back from {seen.term} to {raft.term}")
        seen.term, seen.role = raft.term, raft.role
        self.trace(f"{name} {raft.role.value} term {raft.term}")
        if raft.role is Role.LEADER:
            self._note_leader(raft.term, seen.host.name)
            self.leader_changes += 1

    def _check_committed(self, name: str, seen: _Seen, raft: Raft) -> None:
        log = raft.log
        if log.committed < seen.committed:
            raise InvariantError(f"{name}: the commit index went back from {seen.committed} to {log.committed}")
        low = max(seen.committed + 1, log.first_index())
        if low <= log.committed:
            for entry in log.slice(low, log.committed + 1, READ_BYTES_MAX):
                self.history.note(name, entry)
        elif log.committed > self.history.last_index:
            raise InvariantError(f"{name}: a snapshot up to {log.committed}, but only {self.history.last_index} entries were committed")
        seen.committed = log.committed
        self.trace(f"{name} committed {log.committed}")

    # -- at what members say and do

    def on_message(self, message: Message, host: str) -> None:
        """A member sends: what it promises must never be taken back."""
        if message.type is MessageType.VOTE_RESPONSE and not message.reject:
            other = self._votes.setdefault((message.sender, message.term), message.to)
            if other != message.to:
                raise InvariantError(f"{host} gave its vote of term {message.term} to {other:x} and to {message.to:x}")
        elif message.type in _OF_LEADERS:
            self._note_leader(message.term, host)

    def _note_leader(self, term: int, host: str) -> None:
        other = self._leaders.setdefault(term, host)
        if other != host:
            raise InvariantError(f"{other} and {host} both lead in term {term}")

    def on_events(self, process: ProcessLoop, revision: int, events: Sequence[api.Event]) -> None:
        """A member has applied a change: it must be what the twin says."""
        name = process.name
        if revision > self.history.state.revision:
            self.after_step(process)  # committed and applied in one step
        if revision > self.history.state.revision:
            raise InvariantError(f"{name} is at revision {revision}, the committed log at {self.history.state.revision}")
        expected = self.history.events[revision]
        if [(each.type, each.kv) for each in events] != [(each.type, each.kv) for each in expected]:
            raise InvariantError(f"{name} applied {list(events)} as revision {revision}; the committed log says {list(expected)}")

    def check_hash(self, host: Host) -> None:
        """Equal hash at equal revision. Costs time in proportion to the data."""
        assert host.member is not None
        result = hash_kv(host.member._machine.store.store)
        key = result.revision, result.compact_revision
        other, expected = self._hashes.setdefault(key, (host.name, result.hash))
        if expected != result.hash:
            raise InvariantError(f"{host.name} and {other} differ at revision {key[0]} (compacted at {key[1]})")


def raft_of(host: Host) -> Raft | None:
    """The Raft core that runs on a host, once it is assembled."""
    loop = getattr(host.member, "_raft", None)
    return None if loop is None else loop.node.raft


def _show(entry: Entry) -> str:
    return f"entry {entry.index} of term {entry.term} ({entry.type.name}, {entry.data[:60]!r})"
