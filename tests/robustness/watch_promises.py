"""The promises of a watch, judged on what a client received. Pure.

etcd's guarantees, by which informers live:

- ordered: revisions never go back, and events of one revision come in the order in which they were done;
- unique: no event comes twice;
- atomic: the events of one revision come in one batch;
- reliable: no event between two that came is missing;
- resumable: a watch from revision r gets every event from r on, or is told that r is compacted;
- bookmarkable: after a batch or a notice of revision n, no event of a revision up to n will come, and all of them came before;
- filtered: only what was asked for; and the value before is that of the revision before.

The first three and the filter can be judged by the stream alone; the others need ``Truth``: what really happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from storage import api
from tests.robustness import kv_model
from tests.robustness.history import same_kv


@dataclass(frozen=True, slots=True)
class Compacted:
    """The stream's end, because what comes next is compacted."""

    compact_revision: int


@dataclass(frozen=True, slots=True)
class Stream:
    """What one watch received, from its request to its end. ``created_revision``: for a watch from now on, the store's revision at its
    creation if the client was told, else 0."""

    request: api.WatchRequest
    items: Sequence[api.WatchBatch | Compacted]
    created_revision: int = 0

    @property
    def first_revision(self) -> int:
        """Everything from it on is promised; 0 if that is not known."""
        return self.request.start_revision or (self.created_revision + 1 if self.created_revision else 0)

    @property
    def next_revision(self) -> int:
        """Where a client that saw this stream resumes."""
        revisions = [item.revision for item in self.items if isinstance(item, api.WatchBatch)]
        return max([self.first_revision, *[revision + 1 for revision in revisions]])


@dataclass
class Truth:
    """What happened: ``at[r]`` are the keys as of revision r, ``events[r]`` what changed."""

    revision: int = 1
    compact_revision: int = -1
    at: dict[int, kv_model.Keys] = field(default_factory=dict)
    events: dict[int, tuple[api.Event, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, log: Iterable[kv_model.Request | kv_model.OtherRequest], start: kv_model.State | None = None) -> Truth:
        """What the committed requests do."""
        state = start or kv_model.State()
        truth = cls(state.revision, state.compact_revision, dict(state.at))
        for request in log:
            applied = kv_model.apply(state, request)
            state = applied.state
            if applied.events:
                truth.at[state.revision] = state.keys
                truth.events[state.revision] = applied.events
        truth.revision, truth.compact_revision = state.revision, state.compact_revision
        return truth

    def selected(self, request: api.WatchRequest, revision: int) -> list[api.Event]:
        return [event for event in self.events.get(revision, ()) if _is_selected(event, request)]

    def key_before(self, key: bytes, revision: int) -> api.KeyValue | None:
        """What was there before all that happened at ``revision``."""
        return self.at.get(revision - 1, kv_model.State().keys).get(key)


Problems: TypeAlias = list[str]


def check_watch(
    streams: Sequence[Stream], truth: Truth | None = None, *, atomic: bool = True, complete_to: int = 0, name: str = "watch"
) -> Problems:
    """Judge one watch that its client resumed any number of times.

    Args:
        atomic: False for a door that passes events on one by one (the API server).
        complete_to: the revision up to which everything must have come by the end of the last stream.
    """
    problems: Problems = []
    resume = 0
    for number, stream in enumerate(streams):
        where = f"{name}, stream {number}"
        if number and resume and stream.request.start_revision and stream.request.start_revision != resume:
            problems.append(f"{where}: resumed at {stream.request.start_revision}, not at {resume}")
        is_last = number == len(streams) - 1
        problems += _Judge(stream, truth, atomic, complete_to if is_last else 0, where).judge()
        resume = stream.next_revision
        if stream.items and isinstance(stream.items[-1], Compacted):
            resume = 0  # lists anew
    return problems


def _is_selected(event: api.Event, request: api.WatchRequest) -> bool:
    if request.no_put and event.type is api.EventType.PUT:
        return False
    if request.no_delete and event.type is api.EventType.DELETE:
        return False
    return kv_model.in_range(event.kv.key, request.key, request.range_end)


class _Judge:
    """``_promised``: all events up to it have come, by the stream's own word."""

    def __init__(self, stream: Stream, truth: Truth | None, atomic: bool, complete_to: int, where: str) -> None:
        self._stream = stream
        self._request = stream.request
        self._truth = truth
        self._atomic = atomic
        self._complete_to = complete_to
        self._where = where
        self._problems: Problems = []
        self._promised = stream.first_revision - 1 if stream.first_revision else 0
        self._open: list[api.Event] = []
        """Events of revision ``_promised``, where a door passes them on one by one."""

    def judge(self) -> Problems:
        ended = False
        for item in self._stream.items:
            if ended:
                self._say(f"goes on after its end with {item}")
                break
            if isinstance(item, Compacted):
                ended = True
                self._judge_end(item)
            else:
                self._judge_batch(item)
        self._close_revision()
        if self._truth is not None and self._complete_to > self._promised and not ended:
            self._missing(self._promised + 1, self._complete_to)
        return self._problems

    def _judge_batch(self, batch: api.WatchBatch) -> None:
        before = self._promised
        last = 0
        by_revision: dict[int, list[api.Event]] = {}
        for event in batch.events:
            revision = event.kv.mod_revision
            if revision < last:
                self._say(f"is not ordered: revision {revision} after {last} in a batch")
            last = max(last, revision)
            self._judge_event(event)
            by_revision.setdefault(revision, []).append(event)
        if batch.revision < last:
            self._say(f"a batch of revision {batch.revision} holds an event of {last}")
        if batch.revision < before:
            self._say(f"goes back: a batch of revision {batch.revision} after {before}")
        for revision, events in by_revision.items():
            self._judge_revision(revision, events)
        if batch.revision > self._promised:
            self._close_revision()
            self._missing(self._promised + 1, batch.revision)
            self._promised = batch.revision

    def _judge_revision(self, revision: int, events: list[api.Event]) -> None:
        if revision == self._promised and self._open and not self._atomic:
            self._open += events
        elif revision <= self._promised:
            if self._promised < self._stream.first_revision:
                self._say(f"starts too early: event of revision {revision}, asked from {self._stream.first_revision} on")
            else:
                self._say(f"event of revision {revision} after all up to {self._promised} was said to have come: {_show(events)}")
            return
        else:
            self._close_revision()
            self._missing(self._promised + 1, revision - 1)
            self._promised = revision
            self._open = list(events)
        if self._atomic:
            self._close_revision()

    def _close_revision(self) -> None:
        """All events of the revision have come: they must be those that happened."""
        events, self._open = self._open, []
        seen = {(event.type, event.kv.key, event.kv.value) for event in events}
        if not events:
            return
        revision = events[0].kv.mod_revision
        if self._truth is None:
            if len(seen) < len(events):
                self._say(f"is not unique: revision {revision} has {_show(events)}")
            return
        expected = self._truth.selected(self._request, revision)
        if [_identity(event) for event in events] == [_identity(event) for event in expected]:
            for event in events:
                self._judge_value(event)
        elif sorted(map(_identity, events)) == sorted(map(_identity, expected)):
            self._say(f"is not ordered: revision {revision} came as {_show(events)}, and was {_show(expected)}")
        else:
            self._say(f"is not what happened: revision {revision} came as {_show(events)}, and was {_show(expected)}")

    def _judge_event(self, event: api.Event) -> None:
        if not _is_selected(event, self._request):
            self._say(f"got what it did not ask for: {event}")
        if event.prev_kv is not None and not self._request.prev_kv:
            self._say(f"got a value before that it did not ask for: {event}")
        if self._truth is None or not self._request.prev_kv:
            return
        before = self._truth.key_before(event.kv.key, event.kv.mod_revision)
        if event.prev_kv is None and (before is None or event.kv.mod_revision - 1 < self._truth.compact_revision):
            return
        if not same_kv(event.prev_kv, before):
            self._say(f"got a wrong value before revision {event.kv.mod_revision}: {event.prev_kv}, it was {before}")

    def _judge_value(self, event: api.Event) -> None:
        assert self._truth is not None
        now = self._truth.at[event.kv.mod_revision].get(event.kv.key)
        if event.type is api.EventType.PUT and now is not None and not same_kv(event.kv, now):
            self._say(f"got a wrong value at revision {event.kv.mod_revision}: {event.kv}, it was {now}")

    def _judge_end(self, end: Compacted) -> None:
        self._close_revision()
        if end.compact_revision <= self._promised + 1:
            self._say(f"was ended by a compaction at {end.compact_revision}, which does not reach its next revision {self._promised + 1}")
        if self._truth is not None and end.compact_revision > self._truth.compact_revision:
            self._say(f"was ended by a compaction at {end.compact_revision}; there was none beyond {self._truth.compact_revision}")

    def _missing(self, first: int, last: int) -> None:
        """Nothing came for revisions ``first`` to ``last``: nothing may have happened there."""
        if self._truth is None or not self._promised:
            return
        for revision in range(first, last + 1):
            missed = self._truth.selected(self._request, revision)
            if missed:
                self._say(f"has a gap: {_show(missed)} of revision {revision} did not come")
                return
        if last > self._truth.revision:
            self._say(f"tells of revision {last}, and there are only {self._truth.revision}")

    def _say(self, text: str) -> None:
        self._problems.append(f"{self._where} of {self._request.key!r}: {text}")


def _identity(event: api.Event) -> tuple[api.EventType, bytes, bytes]:
    return event.type, event.kv.key, event.kv.value


def _show(events: Sequence[api.Event]) -> str:
    return ", ".join(f"{event.type.name} {event.kv.key.decode(errors='replace')}={event.kv.value[:20]!r}" for event in events)
