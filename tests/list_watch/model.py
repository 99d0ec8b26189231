"""A small obvious model of one resource: every version of every object by its revision, and what lists and watches have to show of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Version:
    """What of an object the tests look at."""

    name: str
    revision: int
    labels: tuple[tuple[str, str], ...] = ()
    flag: bool = False


Selects: TypeAlias = Callable[[Version], bool]
#: type, object: its name, the event's revision, the labels and the flag that it is shown with
Event: TypeAlias = tuple[str, Version]


@dataclass(slots=True)
class Model:
    """``log``: revision, name, and the version that was written, None for a deletion."""

    log: list[tuple[int, str, Version | None]] = field(default_factory=list)
    compacted: int = 0

    @property
    def newest(self) -> int:
        return self.log[-1][0] if self.log else 0

    def write(self, version: Version) -> None:
        self.log.append((version.revision, version.name, version))

    def delete(self, name: str, revision: int) -> None:
        self.log.append((revision, name, None))

    def state(self, revision: int) -> dict[str, Version]:
        """By name, in the order of names."""
        found: dict[str, Version] = {}
        for at, name, version in self.log:
            if at > revision:
                break
            if version is None:
                found.pop(name, None)
            else:
                found[name] = version
        return dict(sorted(found.items()))

    def select(self, selects: Selects, revision: int) -> list[Version]:
        return [version for version in self.state(revision).values() if selects(version)]

    def events(self, selects: Selects, after: int) -> list[Event]:
        """What a watch from ``after`` sees, up to now."""
        shown = {version.name: version for version in self.select(selects, after)}
        events: list[Event] = []
        for revision, name, version in self.log:
            if revision <= after:
                continue
            known = shown.pop(name, None)
            if version is not None and selects(version):
                shown[name] = version
                events.append(("ADDED" if known is None else "MODIFIED", version))
            elif known is not None:
                events.append(("DELETED", Version(name, revision, known.labels, known.flag)))
        return events
