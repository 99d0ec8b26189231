"""Objects of one resource: linearizable reads, lists at a revision, watches with replay, and compare-and-swap writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from apiserver.objectstore import codec, stored_values
from apiserver.objectstore.cache_watcher import CacheWatcher
from apiserver.objectstore.event_source import EventSource, prefix_end
from apiserver.objectstore.interface import (
    ChangeEvent,
    ContendedError,
    EventType,
    ExpiredError,
    FutureRevisionError,
    KeyExistsError,
    KeyNotFoundError,
    ListResult,
    LostRaceError,
    ReadOnlyError,
    RevisionMatch,
    Selection,
    StoredObject,
    UnreadableObjectError,
)
from apiserver.objectstore.leases import LeaseReuser
from apiserver.objectstore.watch_cache import WatchCache
from storage import api, errors

#: Lost compares after which an update gives up: each means that somebody else's write went through, so only a storm gets here.
UPDATE_ATTEMPTS_MAX = 128
#: Keys read at once where a list of an old revision has to be filtered.
FILTER_PAGE_KEYS = 1_000


#: What must hold beside the write's own condition.
Guard: TypeAlias = tuple[api.Compare, ...]


@dataclass(frozen=True, slots=True)
class Claims:
    """``by_name``: their keys and the keys of their objects; ``revision``: of a state that all of it is at least as new as."""

    by_name: Mapping[str, api.KeyValue]
    revision: int


class KvObjectStorage:
    """``path`` is ``namespace/name`` or ``name``. Beside what is named, every coroutine may raise ``storage.errors.StoreError``."""

    def __init__(self, kv: api.KV, source: EventSource, cache: WatchCache, leases: LeaseReuser, ttl_seconds: int = 0) -> None:
        self._kv = kv
        self._source = source
        self._leases = leases
        self._ttl_seconds = ttl_seconds
        self._prefix = f"{source.registry_prefix}{cache.prefix}/"
        self.cache = cache
        #: names of what only one object of the store may have (an address, a port), from an object
        self.claims_of: Callable[[dict[str, Any]], frozenset[str]] | None = None
        #: what the names of claims begin with: where those are looked for whose object is gone
        self.claim_folders: tuple[str, ...] = ()
        #: a claim that is an object itself, and the storage that has it; None: it is a key that says whose it is
        self.claim_object: Callable[[str, dict[str, Any]], tuple[KvObjectStorage, dict[str, Any]] | None] | None = None

    def _key(self, path: str) -> bytes:
        return (self._prefix + path).encode()

    @property
    def revision(self) -> int:
        """Every change up to it is in the cache."""
        return self._source.revision

    # -- reads ---------------------------------------------------------------------------------------------------------------

    def get_now(self, path: str) -> StoredObject | None:
        """From the cache as it is: for the server's own rules that bear a moment of staleness with a store over the network, and
        exact with the embedded one."""
        self._source.freshen_now()
        return self.cache.get(path)

    def is_stale(self, path: str) -> bool:
        """Whether an object is to be written even where nothing of it changes: what is stored of it is not what a write would store."""
        return path in self.cache.stale

    def freshen_now(self) -> bool:
        """Bring the cache up to date if that needs no waiting."""
        return self._source.freshen_now()

    async def get(self, path: str, min_revision: int = -1) -> StoredObject | None:
        """The newest version (``min_revision`` -1), what the cache has (0), or a version of a state not older than it. Raises
        UnreadableObjectError."""
        if self._source.freshen_now() or min_revision == 0:
            if min_revision > self._source.revision:
                await self._source.wait_for(min_revision)
        elif min_revision < 0 or min_revision > self._source.revision:
            if not self._kv.events_are_immediate:
                return await self._get_from_store(path, min_revision)  # one way there and back, and no waiting for the watch
            await self._source.freshen()
            await self._source.wait_for(min_revision)
        found = self.cache.get(path)
        if found is None and self.cache.unreadable and path in self.cache.unreadable:
            raise self.cache.unreadable[path]
        return found

    async def _get_from_store(self, path: str, min_revision: int) -> StoredObject | None:
        answer = await self._kv.range(api.RangeRequest(key=self._key(path)))
        if answer.header.revision < min_revision:
            raise FutureRevisionError(min_revision, answer.header.revision)
        if not answer.kvs:
            return None
        [kv] = answer.kvs
        cached = self.cache.get(path)
        if cached is not None and cached.revision == kv.mod_revision:
            return cached
        found = self._stored(kv)
        if isinstance(found, UnreadableObjectError):
            raise found
        return found

    async def list_objects(
        self,
        selection: Selection,
        *,
        revision: int = -1,
        match: RevisionMatch = RevisionMatch.UNSET,
        limit: int = 0,
        start: str = "",
        start_revision: int = 0,
    ) -> ListResult:
        """``revision`` -1 is the newest, 0 whatever is cached, which comes whole, whatever the limit ("Resource versions", the tables
        for list). A continued list gives the path that it ``start``s at and the ``start_revision`` of its first page (-1: go on with
        the newest state).

        Raises ExpiredError, FutureRevisionError.
        """
        exact = 0
        if revision == 0:
            limit = 0
        if start:
            exact = max(start_revision, 0)
        elif match is RevisionMatch.EXACT or (
            # the old way to ask for a page of an exact state; of one object there are no pages
            match is RevisionMatch.UNSET and limit and revision > 0 and not self.cache.is_single(selection)
        ):
            exact = revision
        wanted = exact or revision
        if not self._source.freshen_now() and (wanted < 0 or wanted > self._source.revision):
            if not self._source.can_wait:
                return await self._list_from_store(selection, exact, limit, start, revision_min=revision)
            await self._source.freshen()
        if wanted > self._source.revision:
            await self._source.wait_for(wanted)
        # The cache holds the state of every revision since the resource's last change.
        if exact and not (self.cache.changed_at <= exact and self.cache.started_at <= exact):
            return await self._list_from_store(selection, exact, limit, start)
        objects, more = self.cache.select(selection, start=start, limit=limit)
        shown = exact or self._source.revision
        # said with the first page alone
        unreadable = self.cache.unreadable_of(selection) if self.cache.unreadable and not start else ()
        if not more:
            return ListResult(objects=objects, revision=shown, unreadable=unreadable)
        remaining = None
        if not selection.selects_by_content and not selection.name:
            namespace = selection.namespace
            remaining = self.cache.count(namespace) - self.cache.count_through(namespace, objects[-1].path)
        return ListResult(objects=objects, revision=shown, next_start=objects[-1].path + "\0", remaining=remaining, unreadable=unreadable)

    async def _list_from_store(self, selection: Selection, revision: int, limit: int, start: str, *, revision_min: int = 0) -> ListResult:
        """A list of a state that is not in the cache (``revision`` 0: of now), page by page so that a selective list holds little."""
        low = f"{self._prefix}{selection.namespace}/" if selection.namespace else self._prefix
        end = prefix_end(low.encode())
        key = max(low.encode() + b"\0", self._key(start) if start else b"")  # the prefix itself may be a key, but is no object
        objects: list[StoredObject] = []
        unreadable: list[UnreadableObjectError] = []
        filtered = selection.selects_by_content or bool(selection.name)
        while key < end:
            page_keys = max(limit, FILTER_PAGE_KEYS) if filtered else limit
            try:
                page = await self._kv.range(api.RangeRequest(key=key, range_end=end, revision=revision, limit=page_keys))
            except errors.CompactedError as error:
                raise ExpiredError(revision, error.compact_revision) from error
            except errors.FutureRevisionError as error:
                raise FutureRevisionError(revision, self._source.revision) from error
            revision = revision or page.header.revision
            if revision < revision_min:
                raise FutureRevisionError(revision_min, revision)
            for position, kv in enumerate(page.kvs):
                obj = self._stored(kv)
                if isinstance(obj, UnreadableObjectError):
                    if not selection.name or obj.path.rpartition("/")[2] == selection.name:
                        unreadable.append(obj)
                    continue
                if filtered and not selection.covers(obj):
                    continue
                objects.append(obj)
                if limit and len(objects) == limit and (page.more or position + 1 < len(page.kvs)):
                    remaining = None if filtered else page.count - position - 1
                    return ListResult(
                        objects=objects, revision=revision, next_start=obj.path + "\0", remaining=remaining, unreadable=unreadable
                    )
            if not page.more:
                break
            key = page.kvs[-1].key + b"\0"
        return ListResult(objects=objects, revision=revision or self._source.revision, unreadable=unreadable)

    def _stored(self, kv: api.KeyValue) -> StoredObject | UnreadableObjectError:
        path = kv.key[len(self._prefix.encode()) :].decode()
        try:
            stored = kv.value
            if self.cache.transformer is not None:
                stored, _ = stored_values.decrypted(stored, kv.key, self.cache.transformer)
            value = stored_values.stored_form(stored, self.cache.upgrade)
        except stored_values.UnreadableValueError as error:
            return UnreadableObjectError(kv.key.decode(), path, kv.mod_revision, error.reason, str(error))
        return StoredObject(path, codec.served(value, kv.mod_revision), kv.mod_revision)

    async def read_back(self, path: str) -> StoredObject | None:
        """The newest version after a lost compare."""
        return await self.get(path)

    # -- writes --------------------------------------------------------------------------------------------------------------

    async def create(self, path: str, obj: dict[str, Any], guard: Guard = ()) -> StoredObject:
        """Raises KeyExistsError; LostRaceError where a claim of the object is taken, or ``guard`` does not hold."""
        key, value = self._key(path), codec.encode(obj)
        compare, operations = self._claiming(path, obj, self._claims(obj), frozenset())
        compare = (api.Compare(key=key, target=api.CompareTarget.CREATE, operand=0), *compare, *guard)
        answer = await self._put(key, value, compare, operations)
        if not answer.succeeded:
            if len(compare) > 1 and not _found(answer):
                raise LostRaceError(path)
            raise KeyExistsError(path)
        return await self._written(path, value, answer.header.revision)

    async def update(self, path: str, obj: dict[str, Any], expected_revision: int) -> StoredObject | None:
        """Replace the version ``expected_revision``; None where another version is there by now. Raises LostRaceError where a claim
        that the object has newly is taken."""
        key, value = self._key(path), codec.encode(obj)
        compare: tuple[api.Compare, ...] = ()
        operations: tuple[api.Op, ...] = ()
        if self.claims_of is not None:
            held = await self._held(path, expected_revision)
            if held is None:
                return None
            compare, operations = self._claiming(path, obj, self._claims(obj), held)
        compare = (api.Compare(key=key, target=api.CompareTarget.MOD, operand=expected_revision), *compare)
        answer = await self._put(key, value, compare, operations)
        if not answer.succeeded:
            if any(kv.mod_revision == expected_revision for kv in _found(answer)):
                raise LostRaceError(path)
            return None
        return await self._written(path, value, answer.header.revision)

    async def delete(self, path: str, expected_revision: int) -> int | None:
        """Delete the version ``expected_revision``; the revision of the deletion, or None where another version is there by now."""
        key = self._key(path)
        operations: tuple[api.Op, ...] = ()
        if self.claims_of is not None:
            held = await self._held(path, expected_revision)
            if held is None:
                return None
            _, operations = self._claiming(path, {}, frozenset(), held)
        compare = api.Compare(key=key, target=api.CompareTarget.MOD, operand=expected_revision)
        answer = await self._kv.txn(api.TxnRequest(compare=(compare,), success=(api.DeleteRangeRequest(key=key), *operations)))
        if not answer.succeeded:
            return None
        await self._source.see_own(answer.header.revision)
        return answer.header.revision

    async def delete_unreadable(self, path: str, *, dry_run: bool = False) -> bool:
        """Delete an object because its value cannot be read; False where it can. Raises KeyNotFoundError."""
        while True:
            try:
                if await self.get(path) is None:
                    raise KeyNotFoundError(path)
                return False
            except UnreadableObjectError as error:
                if dry_run or await self._delete_version(path, error.revision):
                    return True

    async def _delete_version(self, path: str, revision: int) -> bool:
        key = self._key(path)
        compare = api.Compare(key=key, target=api.CompareTarget.MOD, operand=revision)
        answer = await self._kv.txn(api.TxnRequest(compare=(compare,), success=(api.DeleteRangeRequest(key=key),)))
        if answer.succeeded:
            await self._source.see_own(answer.header.revision)
        return answer.succeeded

    async def guaranteed_update(self, path: str, change: Callable[[StoredObject], Awaitable[dict[str, Any] | None]]) -> StoredObject:
        """Apply ``change`` to the newest version until the write meets no other one. ``change`` answers the new object, or None to
        leave things as they are; it may run several times. Raises KeyNotFoundError, ContendedError, and what ``change`` raises."""
        current = await self.get(path)
        for _ in range(UPDATE_ATTEMPTS_MAX):
            if current is None:
                raise KeyNotFoundError(path)
            new = await change(current)
            if new is None:
                return current
            written = await self.update(path, new, current.revision)
            if written is not None:
                return written
            current = await self.read_back(path)
        raise ContendedError(path)

    async def _put(self, key: bytes, value: bytes, compare: tuple[api.Compare, ...], operations: tuple[api.Op, ...]) -> api.TxnResponse:
        if self.cache.transformer is not None:
            value = self.cache.transformer.encrypt(value, key)
        # with one compare its failure says all
        failure = (api.RangeRequest(key=key, keys_only=True),) if len(compare) > 1 else ()
        lease = await self._leases.lease_for(self._ttl_seconds) if self._ttl_seconds else 0

        def request() -> api.TxnRequest:
            put = api.PutRequest(key=key, value=value, lease=lease)
            return api.TxnRequest(compare=compare, success=(put, *operations), failure=failure)

        try:
            return await self._kv.txn(request())
        except errors.LeaseNotFoundError:
            if not lease:
                raise
        self._leases.forget()  # it expired under us: once more, with a new one
        lease = await self._leases.lease_for(self._ttl_seconds)
        return await self._kv.txn(request())

    # -- claims: what only one object of the store may have, each a key of its own that is written and deleted with the object

    def _claims(self, obj: dict[str, Any]) -> frozenset[str]:
        return self.claims_of(obj) if self.claims_of is not None else frozenset()

    async def _held(self, path: str, revision: int) -> frozenset[str] | None:
        """The claims of a version; None where it is not the newest."""
        found = self.cache.get(path)
        if found is None or found.revision != revision:
            found = await self.read_back(path)
        return None if found is None or found.revision != revision else self._claims(found.decode())

    def _claiming(
        self, path: str, obj: dict[str, Any], wanted: frozenset[str], held: frozenset[str]
    ) -> tuple[tuple[api.Compare, ...], tuple[api.Op, ...]]:
        """What turns the claims ``held`` into those ``wanted`` by ``obj``, and what must hold for that."""
        puts = [self._claim_put(claim, path, obj) for claim in sorted(wanted - held)]
        deletions = [api.DeleteRangeRequest(key=self._claim_key(claim)) for claim in sorted(held - wanted)]
        absent = tuple(api.Compare(key=put.key, target=api.CompareTarget.CREATE, operand=0) for put in puts)
        return absent, (*puts, *deletions)

    def _claim_put(self, claim: str, path: str, obj: dict[str, Any]) -> api.PutRequest:
        key = self._claim_key(claim)
        made = self.claim_object(claim, obj) if self.claim_object is not None else None
        if made is None:
            return api.PutRequest(key=key, value=(self._prefix + path).encode())
        storage, value = made[0], codec.encode(made[1])
        transformer = storage.cache.transformer
        return api.PutRequest(key=key, value=value if transformer is None else transformer.encrypt(value, key))

    def _claim_key(self, claim: str) -> bytes:
        return f"{self._source.registry_prefix}{claim}".encode()

    async def claims(self) -> Claims:
        """The claims of all objects, as the store has them now."""
        found: dict[str, api.KeyValue] = {}
        revision = 0
        below = len(self._source.registry_prefix)
        owned = {claim[: claim.rindex("/") + 1] for obj in self.cache.values() for claim in self._claims(obj.decode())}
        for folder in sorted(owned.union(self.claim_folders)):
            key = self._claim_key(folder)
            answer = await self._kv.range(api.RangeRequest(key=key, range_end=prefix_end(key)))
            found.update((kv.key[below:].decode(), kv) for kv in answer.kvs)
            revision = revision or answer.header.revision
        return Claims(by_name=found, revision=revision)

    def owner_of(self, claim: api.KeyValue) -> str:
        """The path of the object that has a claim; "" where it is no object of this storage."""
        owner = claim.value.decode(errors="replace")
        return owner.removeprefix(self._prefix) if owner.startswith(self._prefix) else ""

    async def restore_claims(self, claims: Claims | None = None) -> int:
        """Make the claims of objects that were written without, and free those whose object was deleted, or changed, without them; how
        many. For what came another way (system objects, a backup of an earlier version, somebody's etcdctl). Where two objects claim the
        same the first keeps it. ``claims``: where the caller has asked for them already."""
        there = (claims or await self.claims()).by_name
        wanted: dict[str, StoredObject] = {}
        for obj in self.cache.values():
            for claim in self._claims(obj.decode()):
                wanted.setdefault(claim, obj)
        changed = 0
        for claim in sorted(wanted.keys() - there.keys()):
            key, obj = self._claim_key(claim), wanted[claim]
            put = self._claim_put(claim, obj.path, obj.decode())
            absent = api.Compare(key=key, target=api.CompareTarget.CREATE, operand=0)
            changed += await self._if_unchanged(obj.path, obj.revision, absent, put)
        for claim, kv in there.items():
            owner = self.owner_of(kv)
            if not owner:
                continue
            found = self.cache.get(owner)
            if found is None or claim not in self._claims(found.decode()):
                same = api.Compare(key=kv.key, target=api.CompareTarget.MOD, operand=kv.mod_revision)
                put_or_free: api.Op = api.DeleteRangeRequest(key=kv.key)
                if claim in wanted:  # it goes to the first of those that have it
                    put_or_free = api.PutRequest(key=kv.key, value=(self._prefix + wanted[claim].path).encode())
                changed += await self._if_unchanged(owner, found.revision if found is not None else 0, same, put_or_free)
        return changed

    async def _if_unchanged(self, path: str, revision: int, compare: api.Compare, operation: api.Op) -> bool:
        """Write what rests on an object being as the cache has it, which may be behind (``revision`` 0: it is not there)."""
        unchanged = api.Compare(key=self._key(path), target=api.CompareTarget.MOD, operand=revision)
        return (await self._kv.txn(api.TxnRequest(compare=(unchanged, compare), success=(operation,)))).succeeded

    def unchanged(self, path: str) -> Guard:
        """A guard: this object is as the cache has it, which a server without the newest changes can only find out by the write itself.
        Empty where the cache cannot be behind."""
        if self._source.freshen_now():
            return ()
        found = self.cache.get(path)
        return (api.Compare(key=self._key(path), target=api.CompareTarget.MOD, operand=found.revision if found is not None else 0),)

    async def catch_up(self) -> bool:
        return await self._source.catch_up()

    async def _written(self, path: str, value: bytes, revision: int) -> StoredObject:
        """The written version: the cache's own where it has arrived there, so that its bytes exist once."""
        await self._source.see_own(revision)
        cached = self.cache.get(path)
        if cached is not None and cached.revision == revision:
            return cached
        return StoredObject(path, codec.served(value, revision), revision)

    # -- watches -------------------------------------------------------------------------------------------------------------

    async def watch(
        self, selection: Selection, revision: int, *, with_state: bool | None = None, initial_events_end: bool = False
    ) -> tuple[CacheWatcher, list[StoredObject]]:
        """A live watch, and the state that it starts with: the newest (``revision`` -1), what is cached (0), or one that is not older
        than ``revision``; then every change after it. ``with_state`` False: the changes after that alone; None: that of -1 and 0 only.

        With ``initial_events_end`` a bookmark marks the end of the initial state. Raises ExpiredError, FutureRevisionError.
        """
        if with_state is None:
            with_state = revision <= 0
        if with_state and revision > 0:
            revision = await self._reach(revision)
        if revision <= 0:
            if not self._source.freshen_now() and revision < 0:
                if not self._source.can_wait:
                    return await self._watch_from_store(selection, initial_events_end=initial_events_end)
                await self._source.freshen()
            objects = self.cache.select(selection)[0] if with_state else []
            return self._live(selection, self._source.revision, initial_events_end=initial_events_end), objects
        self._source.freshen_now()
        if revision > self._source.revision:
            return self._live(selection, revision), []  # nothing is sent until the store has got past it
        events, covered = await self._changes_after(selection, revision)
        return self._live(selection, revision, events, covered), []

    async def _watch_from_store(self, selection: Selection, *, initial_events_end: bool) -> tuple[CacheWatcher, list[StoredObject]]:
        """The state of now from the store, and what the cache has got and will get after it."""
        found = await self._list_from_store(selection, 0, 0, "")
        # the list may be ahead of the cache, and the cache may have got ahead of the list
        events: list[ChangeEvent] = []
        covered = found.revision
        if found.revision < self._source.revision:
            events, covered = await self._changes_after(selection, found.revision)
        return self._live(selection, found.revision, events, covered, initial_events_end=initial_events_end), found.objects

    def _live(
        self,
        selection: Selection,
        after: int,
        events: Sequence[ChangeEvent] = (),
        covered: int = 0,
        *,
        initial_events_end: bool = False,
    ) -> CacheWatcher:
        """A registered watcher that begins with ``events``. They may be ahead of the cache: it will not bring again what is
        ``covered`` by them."""
        watcher = CacheWatcher(selection, after, self.cache.unregister, self._source.dirty)
        if events:
            watcher.push_all([event for event in events if self.cache.covers(selection, event)])
        watcher.after = max(after, covered)
        if initial_events_end:
            watcher.bookmark(self._source.revision, initial_events_end=True)
        self.cache.register(watcher)
        return watcher

    async def _changes_after(self, selection: Selection, revision: int) -> tuple[list[ChangeEvent], int]:
        """The changes after ``revision``, up to the cache's revision at least: from its window, and what is older than it from the store;
        and the revision that they are complete up to. Nothing is awaited after the window is read, so what comes next comes live."""
        replayed: list[ChangeEvent] = []
        while (recent := self.cache.history_after(revision)) is None:
            events, revision = await self._replay(selection, revision)
            replayed += events
            self._source.freshen_now()
        return replayed + recent, max(revision, self._source.revision)

    async def _replay(self, selection: Selection, revision: int) -> tuple[list[ChangeEvent], int]:
        """The changes after ``revision`` from the store's own history, and the revision that they are complete up to, which is at least
        that of the caches when this was called."""
        goal = self._source.revision
        low = (f"{self._prefix}{selection.namespace}/" if selection.namespace else self._prefix).encode()
        request = api.WatchRequest(key=low, range_end=prefix_end(low), start_revision=revision + 1, prev_kv=True)
        watcher = self._kv.watch(request)
        events: list[ChangeEvent] = []
        reached = revision
        try:
            if not self._source.can_wait:
                # Nobody would say when the last change has come, so there is one more: of the key that is the prefix itself.
                try:
                    goal = (await self._kv.put(api.PutRequest(key=low, value=b""))).header.revision
                    await self._kv.delete_range(api.DeleteRangeRequest(key=low))
                except ReadOnlyError as error:
                    raise ExpiredError(revision) from error
            elif not self._kv.events_are_immediate:
                await self._kv.read_revision()  # and so asks the watch to come to it
            while reached < goal:
                batch = watcher.take()
                if batch is not None:
                    events.extend(change for event in batch.events if (change := self._change(event)) is not None)
                    reached = batch.revision
                elif self._kv.events_are_immediate:
                    break  # it has taken all there is
                else:
                    await watcher.wait()
        except errors.CompactedError as error:
            raise ExpiredError(revision, error.compact_revision) from error
        finally:
            watcher.cancel()
        return events, max(reached, goal)

    def _change(self, event: api.Event) -> ChangeEvent | None:
        if event.kv.key.endswith(b"/"):
            return None  # no object, but the mark of a replay
        previous = self._stored(event.prev_kv) if event.prev_kv is not None else None
        if isinstance(previous, UnreadableObjectError):
            previous = None
        kv = event.kv
        if event.type is api.EventType.PUT:
            new = self._stored(kv)
            if isinstance(new, UnreadableObjectError):
                return self._gone(previous, kv.mod_revision)
            # a version that could not be read was no object to anybody
            kind = EventType.ADDED if previous is None else EventType.MODIFIED
            return ChangeEvent(kind, new, previous)
        return self._gone(previous, kv.mod_revision)

    def _gone(self, previous: StoredObject | None, revision: int) -> ChangeEvent | None:
        if previous is None:
            return None
        last = StoredObject(previous.path, codec.served_again(previous.raw, revision), revision)
        return ChangeEvent(EventType.DELETED, last, previous)

    async def _reach(self, revision: int) -> int:
        """Return once there is a state that is not older than ``revision``, with where it is: 0 the cache, -1 the store. Raises
        FutureRevisionError."""
        if revision <= self._source.revision:
            return 0
        self._source.freshen_now()
        if self._source.can_wait:
            await self._source.freshen()
        elif revision <= await self._kv.read_revision():
            return -1
        await self._source.wait_for(revision)
        return 0

    def current_revision(self) -> int:
        """For a bookmark: every event up to it is queued in every watcher."""
        self._source.freshen_now()
        return self._source.revision


def _found(answer: api.TxnResponse) -> tuple[api.KeyValue, ...]:
    """What a refused write found at its key, if it looked."""
    return tuple(kv for part in answer.responses if isinstance(part, api.RangeResponse) for kv in part.kvs)
