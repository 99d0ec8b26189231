"""``LocalServices``: what the stored APIServices say of the groups and versions that this server serves itself.

Discovery lists what there is an APIService for, by its priorities. Whoever deletes that of a built-in version hides the version until the
next start (kube-aggregator makes it anew only then); requests for it are answered all the same.
"""

from __future__ import annotations

from collections.abc import Callable

from apiserver.aggregation import priorities
from apiserver.machinery.objects import Object
from apiserver.objectstore.interface import StoredObject

_Ranks = tuple[int, int]


class LocalServices:
    """``changed`` is an observer of the cache of APIServices. Only what differs from this server's own priorities is kept."""

    def __init__(self, is_builtin: Callable[[str, str], bool]) -> None:
        self._is_builtin = is_builtin
        self._ranks: dict[tuple[str, str], _Ranks] = {}
        self._hidden: set[tuple[str, str]] = set()
        #: raised by every change of what is answered
        self.generation = 0

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self._ranks or self._hidden)

    def changed(self, new: StoredObject | None, old: StoredObject | None) -> None:
        found = new or old
        assert found is not None
        spec: Object = found.decode().get("spec") or {}
        key = (spec.get("group") or "", spec.get("version") or "")
        before = (self._ranks.pop(key, None), key in self._hidden)
        self._hidden.discard(key)
        if new is None:
            if key[0] and self._is_builtin(*key):
                self._hidden.add(key)
        elif spec.get("service") is None:
            ranks = (spec.get("groupPriorityMinimum") or 0, spec.get("versionPriority") or 0)
            if ranks != priorities.local_rank(*key, is_builtin=self._is_builtin(*key)):
                self._ranks[key] = ranks
        if before != (self._ranks.get(key), key in self._hidden):
            self.generation += 1

    def ranks(self, group: str, version: str) -> _Ranks | None:
        """Of the group and of the version; None: it is not listed."""
        key = (group, version)
        if key in self._hidden:
            return None
        return self._ranks.get(key) or priorities.local_rank(group, version, is_builtin=self._is_builtin(group, version))

    def about(self, group: str) -> bool:
        """Whether anything differs in the group."""
        return any(found == group for found, _ in (*self._hidden, *self._ranks))
