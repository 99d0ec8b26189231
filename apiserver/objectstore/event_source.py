"""One watch of the store feeds the watch caches of all resources.

    storage watch of /registry/ ── drain ──> WatchCache of the key's prefix ──> its CacheWatchers

``drain`` is a plain call that takes what the store has ready. With a store whose events are immediate (the embedded one) a reader
that drains first has seen every acknowledged write, so that reads from the cache are linearizable and never wait. With a store whose
events come over the network a reader waits until the watch has reached the revision that a linearizable read answers; where the store
cannot tell that (``can_wait`` is false: an old etcd), linearizable reads go to the store itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping

from apiserver.objectstore import codec, stored_values, unread
from apiserver.objectstore.cache_watcher import CacheWatcher
from apiserver.objectstore.interface import REGISTRY_PREFIX, FutureRevisionError, StoredObject, UnreadableObjectError
from apiserver.objectstore.watch_cache import WatchCache
from storage import api, errors

_log = logging.getLogger(__name__)

#: Objects read at once while loading: bounds the memory that a page needs beside the caches.
LOAD_PAGE_OBJECTS = 2_000
#: A load of many values that have to be decoded lets other tasks go on, and says how far it is, as often as this.
LOAD_TURN_SECONDS = 0.1
#: How long a read waits for a revision that has not come (kube-apiserver's 3 s).
FRESHNESS_TIMEOUT_SECONDS = 3.0
#: How long a write's answer waits for its own event, so that whoever wrote finds it in the caches. What comes later comes later.
OWN_EVENT_SECONDS = 1.0
#: How long a refusal waits for news from a store that cannot say whether there are any.
NEWS_SECONDS = 0.1
#: Between attempts to load everything again from a store that is away.
RELOAD_PAUSE_SECONDS = 1.0
#: Batches taken before other tasks get a turn.
BATCHES_PER_TURN = 512


class EventSource:
    """Owns the caches. ``revision``: every change up to it is in the caches."""

    def __init__(self, kv: api.KV, registry_prefix: str = REGISTRY_PREFIX) -> None:
        self._kv = kv
        self.registry_prefix = registry_prefix
        self._prefix = registry_prefix.encode()
        self._caches: dict[bytes, WatchCache] = {}
        self._two_part: set[bytes] = set()
        self._loading: dict[WatchCache, list[tuple[str, api.Event]]] = {}
        self._watcher: api.Watcher | None = None
        #: watchers with something to pass on at the end of the turn
        self.dirty: list[CacheWatcher] = []
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        #: keys of no resource, by what stands in a storage prefix's place
        self._elsewhere: Counter[str] = Counter()
        self._unread_classes: dict[WatchCache, type[StoredObject]] = {}
        #: told now and then how many keys of a load have been read
        self.on_progress: Callable[[int], object] | None = None
        self.revision = 0
        self.alive = False

    # -- caches --------------------------------------------------------------------------------------------------------------

    def add(self, cache: WatchCache) -> None:
        """Before ``start``: the cache is loaded with the others."""
        key = cache.prefix.encode()
        assert key not in self._caches, cache.prefix
        self._elsewhere.pop(cache.prefix, None)
        self._caches[key] = cache
        if b"/" in key:
            self._two_part.add(key.partition(b"/")[0])

    async def add_and_load(self, cache: WatchCache) -> None:
        """After ``start``: load one more resource; changes that come meanwhile are applied behind the load."""
        missed: list[tuple[str, api.Event]] = []
        self._loading[cache] = missed
        self.add(cache)
        try:
            objects, revision = await self._read(f"{self.registry_prefix}{cache.prefix}/".encode())
        except BaseException:
            del self._caches[cache.prefix.encode()]
            raise
        finally:
            del self._loading[cache]
        cache.load(objects.get(cache, []), revision)
        for path, event in missed:
            if event.kv.mod_revision > revision:
                self._apply(cache, path, event)

    async def read_again(self, cache: WatchCache) -> None:
        """After ``start``: load a resource anew, some of whose values could not be read and now may be. Its watches end, since they
        cannot be told of what was there already."""
        if cache in self._loading:
            return
        missed: list[tuple[str, api.Event]] = []
        before = dict(cache.unreadable)
        self._loading[cache] = missed
        try:
            objects, revision = await self._read(f"{self.registry_prefix}{cache.prefix}/".encode())
        finally:
            del self._loading[cache]
        for path, error in before.items():
            if cache.unreadable.get(path) is error:  # it is gone from the store
                del cache.unreadable[path]
        cache.replace(objects.get(cache, []), revision)
        for path, event in missed:
            if event.kv.mod_revision > revision:
                self._apply(cache, path, event)

    def remove(self, cache: WatchCache) -> None:
        """Forget a resource (a deleted custom resource definition); its watches end."""
        self._caches.pop(cache.prefix.encode(), None)
        for watcher in cache.watchers():
            watcher.end()

    # -- life ----------------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Load all caches at one revision and watch from the next."""
        found, revision = await self._read(self._prefix)
        for cache in self._caches.values():
            cache.load(found.get(cache, []), revision)
        self.revision = revision
        self._watch_from(revision + 1)

    def _watch_from(self, revision: int) -> None:
        self._watcher = self._kv.watch(api.WatchRequest(key=self._prefix, range_end=prefix_end(self._prefix), start_revision=revision))
        self.alive = True

    async def run(self) -> None:
        """Feed the caches until cancelled or until the store stops. At the end all watches end, so that their clients reconnect."""
        assert self._watcher is not None, "start comes first"
        try:
            while True:
                try:
                    await self._watcher.wait()
                    if not self.drain(BATCHES_PER_TURN):
                        await asyncio.sleep(0)
                except errors.CompactedError:
                    await self._reload()
        except errors.StoppedError:
            pass
        finally:
            self.alive = False
            self._watcher.cancel()
            for cache in self._caches.values():
                for watcher in cache.watchers():
                    watcher.end()

    async def _reload(self) -> None:
        """The store has compacted what was to come next: start from its newest state, as soon as it can be read."""
        assert self._watcher is not None
        self.alive = False
        self._watcher.cancel()
        while True:
            try:
                found, revision = await self._read(self._prefix)
                break
            except errors.StoppedError:
                raise
            except errors.UnavailableError as error:
                _log.warning("the store cannot be read, another attempt follows: error=%s", error)
                await asyncio.sleep(RELOAD_PAUSE_SECONDS)
        for cache in self._caches.values():
            cache.replace(found.get(cache, []), revision)
        self.revision = revision
        self._watch_from(revision + 1)
        self._release()

    def drain(self, batches_max: int = 1 << 62) -> bool:
        """Apply what the store has ready; whether nothing is left. Raises StoreError when the watch has broken."""
        try:
            return self._drain(batches_max)
        finally:
            if self.dirty:
                due, self.dirty[:] = list(self.dirty), []
                for watcher in due:
                    watcher.flush()

    def _drain(self, batches_max: int) -> bool:
        watcher = self._watcher
        assert watcher is not None
        take = watcher.take
        for _ in range(batches_max):
            batch = take()
            if batch is None:
                return True
            for event in batch.events:
                self._route(event)
            if batch.revision > self.revision:
                self.revision = batch.revision
                if self._waiters:
                    self._release()
        return False

    def _route(self, event: api.Event) -> None:
        located = self._locate(event.kv.key)
        if located is None:
            return
        cache, path = located
        if self._loading and cache in self._loading:
            self._loading[cache].append((path, event))
        else:
            self._apply(cache, path, event)

    def _apply(self, cache: WatchCache, path: str, event: api.Event) -> None:
        kv = event.kv
        if event.type is api.EventType.PUT:
            value = self._readable(cache, path, kv)
            if value is not None:
                # a version that could not be read was no object to anybody
                cache.put(path, value, kv.mod_revision, kv.create_revision == kv.mod_revision or cache.get(path) is None)
                return
        elif cache.unreadable:
            cache.unreadable.pop(path, None)
        if cache.stale:
            cache.stale.discard(path)
        cache.delete(path, kv.mod_revision)

    def _readable(self, cache: WatchCache, path: str, kv: api.KeyValue) -> bytes | None:
        """The stored form of what any server may have written; None, and a place in the cache's ``unreadable``, where it cannot be read."""
        try:
            stored, stale = kv.value, False
            if cache.transformer is not None:
                stored, stale = stored_values.decrypted(stored, kv.key, cache.transformer)
            value = stored_values.stored_form(stored, cache.upgrade)
            if stale or value is not stored:
                cache.stale.add(path)
            elif cache.stale:
                cache.stale.discard(path)
        except stored_values.UnreadableValueError as error:
            self._note_unreadable(cache, path, kv.mod_revision, error)
            return None
        if cache.unreadable:
            cache.unreadable.pop(path, None)
        return value

    def _note_unreadable(self, cache: WatchCache, path: str, revision: int, error: stored_values.UnreadableValueError) -> None:
        key = f"{self.registry_prefix}{cache.prefix}/{path}"
        cache.unreadable[path] = UnreadableObjectError(key, path, revision, error.reason, str(error))
        _log.debug("a stored value is left alone: key=%s reason=%s", key, error)

    def _unread(self, cache: WatchCache, path: str, kv: api.KeyValue) -> StoredObject:
        """An object that is decoded when somebody looks at it."""
        made = self._unread_classes.get(cache)
        if made is None:

            def convert(path: str, value: bytes, revision: int) -> bytes:
                try:
                    form = stored_values.stored_form(value, cache.upgrade)
                    cache.stale.add(path)
                except stored_values.UnreadableValueError as error:
                    self._note_unreadable(cache, path, revision, error)
                    form = unread.nameless_content(path, "v1", "Unknown")
                return codec.served(form, revision)

            made = self._unread_classes[cache] = unread.unread_class(convert)
        return made(path, kv.value, kv.mod_revision)

    async def check_unread(self) -> None:
        """Once: find out which of the objects that nobody has looked at cannot be read, and take them out as a load does. They stay
        unread otherwise: what nobody looks at needs no memory for a form of its own."""
        damaged = 0
        turn_ends = time.monotonic() + unread.CHECK_SECONDS
        for cache in list(self._unread_classes):
            for obj in list(cache.values()):
                value = unread.stored_value(obj)
                if value is not None:
                    try:
                        stored_values.stored_form(value, cache.upgrade)
                    except stored_values.UnreadableValueError as error:
                        if cache.forget(obj):
                            self._note_unreadable(cache, obj.path, obj.revision, error)
                            damaged += 1
                elif obj.path in cache.unreadable and cache.forget(obj):
                    damaged += 1
                if time.monotonic() > turn_ends:
                    await asyncio.sleep(unread.REST_SECONDS)
                    turn_ends = time.monotonic() + unread.CHECK_SECONDS
        if damaged:
            _log.warning("%d stored values cannot be read, and are left alone", damaged)

    @property
    def elsewhere(self) -> Mapping[str, int]:
        """How many keys were found, when everything was loaded, that belong to no resource; by what stands where those have their storage
        prefix. They stay in the store as they are."""
        return self._elsewhere

    async def _read(self, prefix: bytes) -> tuple[dict[WatchCache, list[StoredObject]], int]:
        """Every object under ``prefix``, by its cache, at one revision."""
        found: dict[WatchCache, list[StoredObject]] = {}
        key, end, revision = prefix, prefix_end(prefix), 0
        everything, elsewhere, read = prefix == self._prefix, Counter[str](), 0
        decoded, known = 0, set[bytes]()
        turn_ends = time.monotonic() + LOAD_TURN_SECONDS
        while True:
            page = await self._kv.range(api.RangeRequest(key=key, range_end=end, limit=LOAD_PAGE_OBJECTS, revision=revision))
            revision = revision or page.header.revision
            for kv in page.kvs:
                located = self._locate(kv.key)
                if located is not None:
                    cache, path = located
                    kind = unread.type_of(kv.value)
                    if decoded >= unread.READ_AT_ONCE_MAX and kind in known and cache.transformer is None:
                        found.setdefault(cache, []).append(self._unread(cache, path, kv))
                    elif (value := self._readable(cache, path, kv)) is not None:
                        raw = codec.served(value, kv.mod_revision)
                        found.setdefault(cache, []).append(StoredObject(path, raw, kv.mod_revision))
                        if kind:
                            known.add(kind)
                            decoded += 1
                elif everything:
                    elsewhere[_place_of(kv.key[len(prefix) :])] += 1
                read += 1
                if time.monotonic() > turn_ends:
                    if self.on_progress is not None:
                        self.on_progress(read)
                    await asyncio.sleep(0)
                    turn_ends = time.monotonic() + LOAD_TURN_SECONDS
            if not page.more:
                if everything:
                    self._elsewhere = elsewhere
                return found, revision
            key = page.kvs[-1].key + b"\0"

    def _locate(self, key: bytes) -> tuple[WatchCache, str] | None:
        rest = key[len(self._prefix) :]
        first, _, path = rest.partition(b"/")
        cache = self._caches.get(first)
        if first in self._two_part:
            second, _, deeper = path.partition(b"/")
            narrower = self._caches.get(first + b"/" + second)
            if narrower is not None:
                cache, path = narrower, deeper
        if cache is None or not path or path.endswith(b"/"):
            return None  # a prefix itself is no object, but the mark of a replay
        return cache, path.decode()

    # -- freshness -----------------------------------------------------------------------------------------------------------

    @property
    def can_wait(self) -> bool:
        """Whether ``freshen`` is possible."""
        return self._kv.progress_on_request

    def freshen_now(self) -> bool:
        """Bring the caches to what a linearizable read would see, if that needs no I/O; whether it did. If it did not, the caches have
        at least what is here already."""
        if not self._kv.events_are_immediate:
            return False
        revision = self._kv.local_revision()
        if revision is None:
            self.drain()
            return False
        if revision != self.revision:
            self.drain()
            if revision > self.revision:  # later changes were outside of /registry/
                self.revision = revision
        return True

    async def freshen(self) -> None:
        """As ``freshen_now``, with waiting where it must be."""
        if self.freshen_now():
            return
        assert self.can_wait, "nobody would say when the caches are there"
        revision = await self._kv.read_revision()
        if self._kv.events_are_immediate:
            self.drain()
            self.revision = max(self.revision, revision)
        else:
            await self.wait_for(revision)

    async def catch_up(self) -> bool:
        """For whoever is about to refuse a request for something that the caches do not have: another server may have written it a
        moment ago. Whether the caches have news since the call, so that it is worth looking again. As far as the store can tell."""
        if self.freshen_now():
            return False
        before = self.revision
        try:
            revision = await self._kv.read_revision()
            if self._kv.events_are_immediate:
                self.drain()
            else:
                await self.wait_for(revision, FRESHNESS_TIMEOUT_SECONDS if self.can_wait else NEWS_SECONDS)
        except (errors.StoreError, FutureRevisionError):
            pass  # the refusal stands
        return self.revision != before

    async def see_own(self, revision: int) -> None:
        """Return once the caches have this server's own write of ``revision``, or after a moment: it has happened in any case."""
        if not self.freshen_now() and self.revision < revision and self.alive:
            with contextlib.suppress(FutureRevisionError):
                await self.wait_for(revision, OWN_EVENT_SECONDS)

    async def wait_for(self, revision: int, timeout_seconds: float = FRESHNESS_TIMEOUT_SECONDS) -> None:
        """Return once the caches have reached ``revision``; raises ``FutureRevisionError`` after the timeout."""
        if self.revision >= revision:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (revision, waiter)
        self._waiters.append(entry)
        try:
            async with asyncio.timeout(timeout_seconds):
                await waiter
        except TimeoutError:
            self.freshen_now()
            if self.revision < revision:
                raise FutureRevisionError(revision, self.revision) from None
        finally:
            if entry in self._waiters:
                self._waiters.remove(entry)

    def _release(self) -> None:
        due = [entry for entry in self._waiters if entry[0] <= self.revision]
        for entry in due:
            self._waiters.remove(entry)
            if not entry[1].done():
                entry[1].set_result(None)


def _place_of(rest: bytes) -> str:
    """The part of a key that is, or would be, a storage prefix: of a group with a dot in its name it has two parts."""
    parts = rest.decode("utf-8", "backslashreplace").split("/")
    return "/".join(parts[:2]) if len(parts) > 2 and ("." in parts[0] or parts[0] == "services") else parts[0]


def prefix_end(prefix: bytes) -> bytes:
    """The end of the range of all keys with ``prefix`` (which does not end in 0xff)."""
    return prefix[:-1] + bytes([prefix[-1] + 1])
