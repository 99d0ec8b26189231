"""What a process that may die at any moment tells of its clients: records on a pipe, read back as histories and watch streams.

A call is told before it is sent and when it is answered; so what was under way at the death is known, and known to be unknown.
"""

from __future__ import annotations

import os
import pickle
import struct
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from storage import api, errors
from tests.robustness import kv_model
from tests.robustness.history import UNKNOWN, Answered, Operation, Outcome, outcome_of
from tests.robustness.watch_promises import Compacted, Stream

_LENGTH: Final = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Called:
    number: int
    client: int
    request: kv_model.Request
    at: float


@dataclass(frozen=True, slots=True)
class Returned:
    """``outcome`` None: as if the call had not been made."""

    number: int
    at: float
    outcome: Outcome | None


@dataclass(frozen=True, slots=True)
class Watching:
    """``watch`` names a client's watch over all its streams."""

    watch: str
    request: api.WatchRequest
    created_revision: int


@dataclass(frozen=True, slots=True)
class Received:
    watch: str
    item: api.WatchBatch | Compacted


@dataclass(frozen=True, slots=True)
class Note:
    text: str


Record: TypeAlias = Called | Returned | Watching | Received | Note
Tell: TypeAlias = Callable[[Record], None]


def tell_to(descriptor: int) -> Tell:
    def tell(record: Record) -> None:
        data = pickle.dumps(record)
        data = _LENGTH.pack(len(data)) + data
        while data:
            data = data[os.write(descriptor, data) :]

    return tell


@dataclass
class Journal:
    """Collects records; ``take`` bytes of one process after the other, or ``tell`` records in this one."""

    operations: list[Operation] = field(default_factory=list)
    streams: dict[str, list[Stream]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    _open: dict[int, Called] = field(default_factory=dict)
    _items: dict[str, list[api.WatchBatch | Compacted]] = field(default_factory=dict)

    def take(self, output: bytes) -> None:
        """All that a process told until its death."""
        at = 0
        while at + _LENGTH.size <= len(output):
            (length,) = _LENGTH.unpack_from(output, at)
            at += _LENGTH.size
            if at + length > len(output):
                break
            self.tell(pickle.loads(output[at : at + length]))
            at += length
        self.end_of_process()

    def tell(self, record: Record) -> None:
        match record:
            case Called():
                self._open[record.number] = record
            case Returned():
                call = self._open.pop(record.number)
                if record.outcome is not None:
                    self.operations.append(Operation(call.client, call.request, call.at, record.at, record.outcome))
            case Watching():
                self._items[record.watch] = []
                streams = self.streams.setdefault(record.watch, [])
                streams.append(Stream(record.request, self._items[record.watch], record.created_revision))
            case Received():
                self._items[record.watch].append(record.item)
            case Note():
                self.notes.append(record.text)

    def end_of_process(self) -> None:
        """What was under way may have been done, or not."""
        for call in self._open.values():
            if not isinstance(call.request, api.RangeRequest):
                self.operations.append(Operation(call.client, call.request, call.at, float("inf"), UNKNOWN))
        self._open.clear()

    def resume(self, watch: str, request: api.WatchRequest) -> api.WatchRequest:
        """The request with which a client that has seen all this goes on; after a compaction from now on (it lists anew)."""
        streams = self.streams.get(watch)
        if not streams:
            return request
        if streams[-1].items and isinstance(streams[-1].items[-1], Compacted):
            return replace(request, start_revision=0)
        return replace(request, start_revision=streams[-1].next_revision)


class Client:
    """Tells of each call around it. Numbers must differ between the clients of a process."""

    _next_number = 0

    def __init__(self, number: int, tell: Tell, now: Callable[[], float] = time.monotonic) -> None:
        self.number = number
        self._tell = tell
        self._now = now

    async def call(self, request: kv_model.Request, send: Callable[[], Awaitable[kv_model.Response]]) -> kv_model.Response:
        """Raises what ``send`` raises."""
        Client._next_number += 1
        number = Client._next_number
        self._tell(Called(number, self.number, request, self._now()))
        try:
            response = await send()
        except errors.StoreError as error:
            self._tell(Returned(number, self._now(), outcome_of(request, error)))
            raise
        except BaseException:
            # Without an answer: cancelled, or the door broke.
            self._tell(Returned(number, self._now(), None if isinstance(request, api.RangeRequest) else UNKNOWN))
            raise
        self._tell(Returned(number, self._now(), Answered(response)))
        return response
