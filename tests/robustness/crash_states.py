"""A disk that remembers: records what a program does to the files of a directory, and lays out every state in which a crash of the machine
may leave them.

What is assumed of disk and file system, and no more:

- a sector (512 bytes) is written as a whole or not at all; the sectors of a write reach the disk in any order;
- what was written with ``RWF_DSYNC``, or before an ``fsync`` of its file, stays, the file's length with it;
- a new, changed or removed name is durable after an ``fsync`` of its directory; before that each change of a name may have happened or
  not, each by itself, in any order;
- other changes of a file that was not synced (its length, space set aside) may have happened or not.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest import mock

from storage.wal import segment

SECTOR_BYTES: Final = 512
SUBSETS_MAX: Final = 24
"""States tried for one write of many sectors, and for many changes of names that are under way; beyond it a random choice."""


@dataclass(frozen=True)
class Write:
    file: int
    offset: int
    data: bytes
    synced: bool


@dataclass(frozen=True)
class Resize:
    """``grow_only``: space set aside behind the end."""

    file: int
    size: int
    grow_only: bool = False


@dataclass(frozen=True)
class Sync:
    file: int


@dataclass(frozen=True)
class Name:
    """``file`` gets the name, or nobody any more (None)."""

    name: str
    file: int | None


@dataclass(frozen=True)
class Rename:
    old: str
    new: str


@dataclass(frozen=True)
class SyncNames:
    pass


@dataclass(frozen=True)
class Mark:
    """Where the program stood: what it had promised to others."""

    value: Any


Step = Write | Resize | Sync | Name | Rename | SyncNames | Mark


@dataclass
class Trace:
    """What happened to the files of ``directory``; a file is a number, since names come and go."""

    directory: Path
    steps: list[Step] = field(default_factory=list)
    _files: dict[str, int] = field(default_factory=dict)
    _open: dict[int, int | None] = field(default_factory=dict)
    """descriptor → file, None for the directory"""

    def mark(self, value: object) -> None:
        self.steps.append(Mark(value))

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Within it, calls of ``os`` on the directory are noted (and done)."""
        with ExitStack() as stack:
            for one in self._patches():
                stack.enter_context(one)
            yield

    def _patches(self) -> list[AbstractContextManager[object]]:
        real_open, real_close, real_rename, real_unlink = os.open, os.close, os.rename, os.unlink
        real_pwritev, real_truncate, real_fsync = os.pwritev, os.ftruncate, os.fsync
        allocate = segment._allocate

        def patched_open(path: Any, flags: int, *args: Any, **options: Any) -> int:
            is_new = bool(flags & os.O_CREAT) and not os.path.exists(path)
            descriptor = real_open(path, flags, *args, **options)
            name = self._name(path)
            if name is not None:
                if is_new:
                    self._files[name] = len({step.file for step in self.steps if isinstance(step, Name)} - {None})
                    self.steps.append(Name(name, self._files[name]))
                self._open[descriptor] = self._files[name]
            elif Path(path) == self.directory:
                self._open[descriptor] = None
            return descriptor

        def patched_close(descriptor: int) -> None:
            self._open.pop(descriptor, None)
            real_close(descriptor)

        def patched_pwritev(descriptor: int, buffers: Any, offset: int, flags: int = 0) -> int:
            written = real_pwritev(descriptor, buffers, offset, flags)
            if (file := self._open.get(descriptor)) is not None:
                self.steps.append(Write(file, offset, b"".join(buffers)[:written], bool(flags & os.RWF_DSYNC)))
            return written

        def patched_truncate(descriptor: int, size: int) -> None:
            real_truncate(descriptor, size)
            if (file := self._open.get(descriptor)) is not None:
                self.steps.append(Resize(file, size))

        def patched_allocate(descriptor: int, offset: int, length: int) -> None:
            assert allocate is not None
            allocate(descriptor, offset, length)
            if (file := self._open.get(descriptor)) is not None:
                self.steps.append(Resize(file, offset + length, grow_only=True))

        def patched_fsync(descriptor: int) -> None:
            real_fsync(descriptor)
            if descriptor in self._open:
                file = self._open[descriptor]
                self.steps.append(SyncNames() if file is None else Sync(file))

        def patched_rename(old: Any, new: Any) -> None:
            real_rename(old, new)
            old_name, new_name = self._name(old), self._name(new)
            if old_name is not None and new_name is not None:
                self._files[new_name] = self._files.pop(old_name)
                self.steps.append(Rename(old_name, new_name))

        def patched_unlink(path: Any, **options: Any) -> None:
            real_unlink(path, **options)
            if (name := self._name(path)) is not None:
                del self._files[name]
                self.steps.append(Name(name, None))

        patched: dict[str, Callable[..., object]] = {
            "open": patched_open,
            "close": patched_close,
            "pwritev": patched_pwritev,
            "ftruncate": patched_truncate,
            "fsync": patched_fsync,
            "rename": patched_rename,
            "unlink": patched_unlink,
        }
        patches: list[AbstractContextManager[object]] = [mock.patch.object(os, name, function) for name, function in patched.items()]
        patches.append(mock.patch.object(segment, "_allocate", patched_allocate))
        return patches

    def _name(self, path: Any) -> str | None:
        return Path(path).name if Path(path).parent == self.directory else None


Files = dict[str, bytes]
"""What is found after the crash: name → content."""


@dataclass
class _Disk:
    """What is durable, and what may be."""

    contents: dict[int, bytearray] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    pending: dict[int, list[Write | Resize]] = field(default_factory=dict)
    pending_names: list[Name | Rename] = field(default_factory=list)

    def take(self, step: Step) -> None:
        """The step has returned."""
        match step:
            case Write(file=file):
                if step.synced:
                    # Its data and the length up to it are durable; what else is under way stays so.
                    _apply(self.contents.setdefault(file, bytearray()), step)
                else:
                    self.pending.setdefault(file, []).append(step)
            case Resize(file=file):
                self.pending.setdefault(file, []).append(step)
            case Sync(file=file):
                for change in self.pending.pop(file, []):
                    _apply(self.contents.setdefault(file, bytearray()), change)
            case Name() | Rename():
                if isinstance(step, Name) and step.file is not None:
                    self.contents.setdefault(step.file, bytearray())
                self.pending_names.append(step)
            case SyncNames():
                self.names = _named(self.names, self.pending_names)
                self.pending_names = []

    def states(self, torn: Write | None, rng: random.Random) -> Iterator[Files]:
        """Every state, with ``torn`` under way."""
        for names in _subsets(self.pending_names, rng):
            named = _named(self.names, names)
            for pending in _subsets([(file, change) for file, changes in self.pending.items() for change in changes], rng):
                contents = {file: bytearray(content) for file, content in self.contents.items()}
                for file, change in pending:
                    _apply(contents[file], change)
                if torn is None:
                    yield _files(named, contents)
                    continue
                for pieces in _subsets(_sectors(torn), rng):
                    with_pieces = dict(contents)
                    with_pieces[torn.file] = bytearray(contents[torn.file])
                    for piece in pieces:
                        _apply(with_pieces[torn.file], piece)
                    yield _files(named, with_pieces)


def crash_states(trace: Trace, rng: random.Random) -> Iterator[tuple[int, Files]]:
    """(number of steps that had returned, files) for a crash before the first step, during and after each step. Repeats are left out."""
    disk = _Disk()
    seen: set[tuple[int, frozenset[tuple[str, bytes]]]] = set()
    for done, step in enumerate([*trace.steps, Mark("end")]):
        torn = step if isinstance(step, Write) else None
        for files in disk.states(torn, rng):
            # Names of which nothing is known here (locks) and equal states need one look.
            marks = sum(isinstance(each, Mark) for each in trace.steps[:done])
            key = (marks, frozenset((name, content.rstrip(b"\0")) for name, content in files.items()))
            if key not in seen:
                seen.add(key)
                yield done, files
        disk.take(step)


def _apply(content: bytearray, change: Write | Resize) -> None:
    if isinstance(change, Write):
        end = change.offset + len(change.data)
        if len(content) < end:
            content.extend(bytes(end - len(content)))
        content[change.offset : end] = change.data
    elif len(content) < change.size:
        content.extend(bytes(change.size - len(content)))
    elif not change.grow_only:
        del content[change.size :]


def _sectors(write: Write) -> list[Write]:
    pieces = []
    at, end = write.offset, write.offset + len(write.data)
    while at < end:
        next_sector = min(at - at % SECTOR_BYTES + SECTOR_BYTES, end)
        pieces.append(Write(write.file, at, write.data[at - write.offset : next_sector - write.offset], synced=False))
        at = next_sector
    return pieces


def _named(names: dict[str, int], changes: list[Name | Rename]) -> dict[str, int]:
    """A rename whose file got no name before (its creation was lost) has nothing to move."""
    result = dict(names)
    for change in changes:
        if isinstance(change, Rename):
            if change.old in result:
                result[change.new] = result.pop(change.old)
        elif change.file is None:
            result.pop(change.name, None)
        else:
            result[change.name] = change.file
    return result


def _files(names: dict[str, int], contents: dict[int, bytearray]) -> Files:
    return {name: bytes(contents[file]) for name, file in names.items()}


def _subsets(items: list[Any], rng: random.Random) -> Iterator[list[Any]]:
    """All, in their order; of many a random choice, the whole and nothing always among them."""
    if 2 ** len(items) <= SUBSETS_MAX:
        for count in range(len(items) + 1):
            yield from (list(each) for each in itertools.combinations(items, count))
        return
    yield []
    yield list(items)
    for _ in range(SUBSETS_MAX - 2):
        yield [each for each in items if rng.random() < 0.5]
