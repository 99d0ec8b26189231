"""The newest version of every object of one stored resource, in key order, with its watchers. Memory only, never waits."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from sortedcontainers import SortedList

from apiserver.objectstore import codec
from apiserver.objectstore.cache_watcher import CacheWatcher
from apiserver.objectstore.interface import ChangeEvent, EventType, Selection, StoredObject, UnreadableObjectError
from apiserver.objectstore.stored_values import Upgrade
from apiserver.objectstore.watch_history import WatchHistory

if TYPE_CHECKING:
    from apiserver.objectstore.encryption.transformer import Transformer

Observer = Callable[[StoredObject | None, StoredObject | None], None]


def _triggers(selection: Selection) -> bool:
    """Whether a watch is kept under its trigger: one of a namespace or of a name has few others beside it anyway."""
    return selection.trigger is not None and not selection.namespace and not selection.name


class WatchCache:
    """``prefix`` is the storage prefix (``pods``). A path is ``namespace/name``, or ``name`` for cluster-scoped kinds.

    ``changed_at`` is the revision of the last change of the resource; ``started_at`` the revision that the cache was loaded at.
    """

    def __init__(self, prefix: str, namespaced: bool) -> None:
        self.prefix = prefix
        self.namespaced = namespaced
        self.started_at = 0
        self.changed_at = 0
        #: for values that another server has written
        self.upgrade: Upgrade | None = None
        #: where encryption at rest is configured
        self.transformer: Transformer | None = None
        #: paths of what this server would store otherwise: another key than the first of the configuration has encrypted it, or another
        #: server wrote it in another form or version
        self.stale: set[str] = set()
        #: by path, the newest versions that cannot be read, and are none of the objects
        self.unreadable: dict[str, UnreadableObjectError] = {}
        self._objects: dict[str, StoredObject] = {}
        self._paths: SortedList[str] = SortedList()
        self._history = WatchHistory(0)
        self._observers: list[Observer] = []
        self._watchers_of_all: set[CacheWatcher] = set()
        self._watchers_of_namespace: dict[str, set[CacheWatcher]] = {}
        self._watchers_of_path: dict[str, set[CacheWatcher]] = {}
        self._watchers_of_trigger: dict[tuple[str, str], set[CacheWatcher]] = {}

    # -- filled by the event source ------------------------------------------------------------------------------------------

    def load(self, objects: Iterable[StoredObject], revision: int) -> None:
        """The state at ``revision``, once, before any ``apply``."""
        assert not self._objects, "a cache is loaded once"
        self._objects = {obj.path: obj for obj in objects}
        self._paths = SortedList(self._objects)
        self.started_at = revision
        self.changed_at = max((obj.revision for obj in self._objects.values()), default=0)
        self._history = WatchHistory(revision)
        for obj in self._objects.values():
            for observer in self._observers:
                observer(obj, None)

    def replace(self, objects: Iterable[StoredObject], revision: int) -> None:
        """The state at ``revision`` after changes were missed. Watches end, since they cannot be told what happened in between."""
        for watcher in self.watchers():
            watcher.end()
        before, self._objects = self._objects, {}
        found = {obj.path: obj for obj in objects}
        for path, old in before.items():
            if path not in found:
                for observer in self._observers:
                    observer(None, old)
        for path, new in found.items():
            known = before.get(path)
            if known is None or known.revision != new.revision:
                for observer in self._observers:
                    observer(new, known)
        self._objects = found
        self._paths = SortedList(found)
        self.started_at = revision
        self.changed_at = revision
        self._history = WatchHistory(revision)

    def observe(self, observer: Observer) -> None:
        """Call ``observer(new, old)`` at every change from now on, at once and in order; before ``load``: for every object loaded as
        well. For what the server derives from objects (roles, allocated addresses); it must be quick and must not raise."""
        self._observers.append(observer)

    def put(self, path: str, value: bytes, revision: int, created: bool) -> None:
        new = StoredObject(path, codec.served(value, revision), revision)
        old = self._objects.get(path)
        self._objects[path] = new
        if old is None:
            self._paths.add(path)
        for observer in self._observers:
            observer(new, old)
        self._publish(ChangeEvent(EventType.ADDED if created else EventType.MODIFIED, new, old))

    def delete(self, path: str, revision: int) -> None:
        old = self._objects.pop(path, None)
        if old is None:
            return
        self._paths.remove(path)
        for observer in self._observers:
            observer(None, old)
        last = StoredObject(path, codec.served_again(old.raw, revision), revision)
        self._publish(ChangeEvent(EventType.DELETED, last, old))

    def forget(self, obj: StoredObject) -> bool:
        """Take out an object whose value turns out to be none; whether it was still there. Nobody is told of it: it never was an
        object to anybody."""
        if self._objects.get(obj.path) is not obj:
            return False
        del self._objects[obj.path]
        self._paths.remove(obj.path)
        return True

    def _publish(self, event: ChangeEvent) -> None:
        self.changed_at = event.revision
        self._history.append(event)
        path = event.object.path
        for watcher in tuple(self._watchers_of_all):
            watcher.push(event)
        if self._watchers_of_namespace:
            for watcher in tuple(self._watchers_of_namespace.get(event.object.namespace, ())):
                watcher.push(event)
        if self._watchers_of_path:
            for watcher in tuple(self._watchers_of_path.get(path, ())):
                watcher.push(event)
        if self._watchers_of_trigger:
            for watcher in self._triggered(event):
                watcher.push(event)

    def _triggered(self, event: ChangeEvent) -> list[CacheWatcher]:
        """The watchers of the values that the object has and had."""
        groups = self._watchers_of_trigger
        (field, _), some = next(iter(groups.items()))
        fields_of = next(iter(some)).selection.fields_of
        values = {event.object.fields(fields_of).get(field, "")}
        if event.previous is not None:
            values.add(event.previous.fields(fields_of).get(field, ""))
        return [watcher for value in values for watcher in groups.get((field, value), ())]

    # -- reads ---------------------------------------------------------------------------------------------------------------

    def get(self, path: str) -> StoredObject | None:
        return self._objects.get(path)

    def __len__(self) -> int:
        return len(self._objects)

    def values(self) -> Iterable[StoredObject]:
        return self._objects.values()

    def count(self, namespace: str) -> int:
        if not namespace:
            return len(self._paths)
        return int(self._paths.bisect_left(namespace + "0") - self._paths.bisect_left(namespace + "/"))

    def count_through(self, namespace: str, path: str) -> int:
        """How many objects of the namespace stand up to and including ``path``."""
        first = self._paths.bisect_left(namespace + "/") if namespace else 0
        return int(self._paths.bisect_right(path) - first)

    def unreadable_of(self, selection: Selection) -> list[UnreadableObjectError]:
        """Those that may be of the selection: what cannot be read has a namespace and a name, but no labels."""
        return [
            error
            for path, error in self.unreadable.items()
            if (not selection.namespace or path.startswith(f"{selection.namespace}/"))
            and (not selection.name or path.rpartition("/")[2] == selection.name)
        ]

    def select(self, selection: Selection, *, start: str = "", limit: int = 0) -> tuple[list[StoredObject], bool]:
        """Objects of the selection in key order, those from the path ``start`` on; and whether ``limit`` ended the search before the
        last object, be it of the selection or not (as kube-apiserver, which does not look further either)."""
        objects = self._objects
        if self.is_single(selection):
            path = self._path(selection)
            found = objects.get(path)
            return ([found] if found is not None and path >= start and selection.matches(found) else []), False
        content, name = selection.selects_by_content, selection.name
        if not selection.namespace and not start and not limit:
            chosen = [objects[path] for path in self._paths]
            if name:
                chosen = [obj for obj in chosen if obj.name == name]
            return self._matching(chosen, selection), False
        low = f"{selection.namespace}/" if selection.namespace else ""
        high = f"{selection.namespace}0" if selection.namespace else None  # "0" follows "/" in the alphabet
        paths = self._paths.irange(max(low, start), high, inclusive=(True, False))
        if not content and not name:
            chosen = [objects[path] for path in (itertools.islice(paths, limit) if limit else paths)]
            return chosen, bool(limit) and len(chosen) == limit and next(paths, None) is not None
        chosen = []
        if not limit and not name:
            return self._matching([objects[path] for path in paths], selection), False
        for path in paths:
            obj = objects[path]
            if (not name or obj.name == name) and (not content or selection.matches(obj)):
                chosen.append(obj)
                if len(chosen) == limit:
                    return chosen, next(paths, None) is not None
        return chosen, False

    def is_single(self, selection: Selection) -> bool:
        """Whether it is about the object at one path."""
        return bool(selection.name) and (bool(selection.namespace) or not self.namespaced)

    @staticmethod
    def _matching(objects: list[StoredObject], selection: Selection) -> list[StoredObject]:
        """Those that pass the selectors, each selector in one go."""
        labels, fields, fields_of = selection.labels, selection.fields, selection.fields_of
        if labels is not None:
            objects = [obj for obj in objects if labels(obj.labels())]
        if fields is not None:
            objects = [obj for obj in objects if fields(obj.fields(fields_of))]
        return objects

    # -- watches -------------------------------------------------------------------------------------------------------------

    def history_after(self, revision: int) -> list[ChangeEvent] | None:
        """Changes later than ``revision``, or None where the window does not reach back (a replay from the store is needed)."""
        return self._history.after(revision)

    def covers(self, selection: Selection, event: ChangeEvent) -> bool:
        """Whether an event is of the selection's namespace and name."""
        obj = event.object
        return (not selection.namespace or obj.namespace == selection.namespace) and (not selection.name or obj.name == selection.name)

    def register(self, watcher: CacheWatcher) -> None:
        self._group_of(watcher.selection, create=True).add(watcher)

    def unregister(self, watcher: CacheWatcher) -> None:
        selection = watcher.selection
        group = self._group_of(selection)
        group.discard(watcher)
        if not group:  # groups come and go with their watchers: names and namespaces are without number
            if _triggers(selection):
                assert selection.trigger is not None
                self._watchers_of_trigger.pop(selection.trigger, None)
            elif not selection.name:
                self._watchers_of_namespace.pop(selection.namespace, None)
            elif selection.namespace or not self.namespaced:
                self._watchers_of_path.pop(self._path(selection), None)

    def watchers(self) -> list[CacheWatcher]:
        found = list(self._watchers_of_all)
        for groups in (self._watchers_of_namespace, self._watchers_of_path, self._watchers_of_trigger):
            for group in groups.values():
                found.extend(group)
        return found

    def _path(self, selection: Selection) -> str:
        return f"{selection.namespace}/{selection.name}" if self.namespaced else selection.name

    def _group_of(self, selection: Selection, create: bool = False) -> set[CacheWatcher]:
        groups: dict[Any, set[CacheWatcher]]
        key: Any
        if _triggers(selection):
            groups, key = self._watchers_of_trigger, selection.trigger
        elif self.is_single(selection):
            groups, key = self._watchers_of_path, self._path(selection)
        elif selection.namespace:
            groups, key = self._watchers_of_namespace, selection.namespace
        else:
            return self._watchers_of_all
        group = groups.get(key)
        if group is None:
            group = set()
            if create:
                groups[key] = group
        return group
