"""The generic ``Store``: what creating, changing and deleting objects of one resource means (apiserver ``registry/generic/registry``).

Down once, up once: a change is one function old → new that runs against the newest version, and again if another write came first; so
everything in it (patch, admission, strategy, validation) bears running twice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from apiserver import long_runs
from apiserver.admission.interfaces import AdmissionAttributes, Operation
from apiserver.machinery import field_errors, go_json, managed_fields, object_meta_validation, objects, release, resource_version, status
from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.objectstore import codec
from apiserver.objectstore.cache_watcher import CacheWatcher, Delivery
from apiserver.objectstore.interface import (
    ChangeEvent,
    ExpiredError,
    KeyExistsError,
    ListResult,
    LostRaceError,
    RevisionMatch,
    Selection,
    StoredObject,
)
from apiserver.objectstore.kv_object_storage import Guard, KvObjectStorage
from apiserver.objectstore.statuses import TooLargeError, as_statuses
from apiserver.registry import before, conversion, deletion, owner_references, status_metadata
from apiserver.registry.environment import Environment, Write
from apiserver.registry.strategy import Strategy, StrategyContext
from apiserver.request.unanswered import settled
from apiserver.resources.resource_info import ResourceInfo

#: Attempts at a write that rests on what other servers change (an address, a namespace). Each lost one means that one of them succeeded.
LOST_RACES_MAX = 16
#: Old → new. The old object is the function's own copy; the new one must share nothing with anything that outlives the call.
Build = Callable[[Object], Awaitable[Object]]

#: versions in which an object is kept as a webhook made it; a definition has two or three
SERVED_FORMS_MAX = 8

STATUS = "status"
T = TypeVar("T")

_VERSION_ON_CREATE = "resourceVersion should not be set on objects to be created"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preconditions:
    """What an object must be for an update to be done; None: no matter what."""

    uid: str | None = None
    resource_version: str | None = None


NO_PRECONDITIONS = Preconditions()


class Store:
    """One resource in one served version. ``stored`` is the resource in the version in which its objects are stored."""

    def __init__(self, info: ResourceInfo, stored: ResourceInfo, storage: KvObjectStorage, strategy: Strategy, env: Environment) -> None:
        self.info = info
        self.stored = stored
        self.storage = storage
        self.strategy = strategy
        self.env = env
        self._converts = info.api_version != stored.api_version
        self._from_storage = strategy.from_storage if strategy.reads_otherwise else None
        self._remote = strategy.converts_remotely
        self._served_mark = object()
        # objects that an older server stored in another version start otherwise
        self._type_prefix = codec.type_prefix(info.api_version, info.kind)
        self._stored_prefix = codec.type_prefix(stored.api_version, stored.kind)
        self.supports_grace = info.group == "" and info.resource == "pods"

    # -- reads ---------------------------------------------------------------------------------------------------------------

    def path(self, namespace: str, name: str) -> str:
        return f"{namespace}/{name}" if self.info.namespaced else name

    async def get(self, namespace: str, name: str, min_revision: int = -1) -> StoredObject:
        with as_statuses(self.info, name):
            found = await self.storage.get(self.path(namespace, name), min_revision)
        if found is None:
            raise status.not_found(self.info.group, self.info.resource, name)
        if self._remote:
            await self.ready([found])
        return found

    async def ready(self, objects: Sequence[StoredObject]) -> None:
        """Before objects that come from the storage itself are decoded or served: the webhook has converted those that only it can.
        Raises StatusError."""
        if self._remote:
            from apiserver.registry import remote_conversion

            await remote_conversion.pin(self, objects)

    async def settled(self, work: Callable[[], T]) -> T:
        """What ``work`` answers, for which the webhook is asked where it needs it. Raises StatusError."""
        return await self.env.settled(work) if self._remote else work()

    @property
    def converts_remotely(self) -> bool:
        return self._remote

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
        """Raises what the object storage raises: the handler words it."""
        if self._remote and selection.selects_by_content:
            from apiserver.registry import converted_reads

            return await converted_reads.list_objects(
                self, selection, revision=revision, match=match, limit=limit, start=start, start_revision=start_revision
            )
        result = await self.storage.list_objects(
            selection, revision=revision, match=match, limit=limit, start=start, start_revision=start_revision
        )
        if self._remote:
            await self.ready(result.objects)
        return result

    async def watch(
        self, selection: Selection, revision: int, *, with_state: bool | None = None, initial_events_end: bool = False
    ) -> tuple[CacheWatcher, list[StoredObject]]:
        """Where only a webhook converts, the watcher has the changes of the namespace and name, and ``delivery`` decides about each."""
        wide = selection
        if self._remote and selection.selects_by_content:
            from apiserver.registry import converted_reads

            wide = converted_reads.without_content(selection)
        with as_statuses(self.info, ""):
            if not with_state and 0 < revision < self.strategy.since_revision:
                raise ExpiredError(revision, self.strategy.since_revision)
            watcher, found = await self.storage.watch(wide, revision, with_state=with_state, initial_events_end=initial_events_end)
        if self._remote:
            try:
                await self.ready(found)
                if wide is not selection:
                    found = converted_reads.matching(self, selection, found)
            except BaseException:
                watcher.end()
                raise
        return watcher, found

    async def delivery(self, selection: Selection, event: ChangeEvent) -> Delivery | None:
        """Of an event of ``watch`` where only a webhook converts: what it is to the selection. Raises StatusError."""
        if not selection.selects_by_content:
            await self.ready((event.object,))
            return event.type, event
        from apiserver.registry import converted_reads

        return await converted_reads.delivery(self, selection, event)

    def selectable(self, stored: StoredObject) -> StoredObject:
        """What selectors see of an object that is converted already."""
        if not self._remote or stored.raw.startswith(self._type_prefix):
            return stored
        return StoredObject(stored.path, self.served(stored), stored.revision)

    def decode(self, stored: StoredObject) -> Object:
        """A stored object as a dict of the caller's own, in the served version."""
        if self._remote:
            return codec.decode(self._served_remote(stored))
        obj = stored.decode()
        return conversion.convert(obj, self.info) if self._from_storage is None else self._from_storage(obj)

    def served(self, stored: StoredObject) -> bytes:
        """The JSON that is served for a stored object."""
        if self._from_storage is not None:
            return self._served_custom(stored)
        return stored.raw if stored.raw.startswith(self._type_prefix) else self.encode(self.decode(stored))

    def _served_custom(self, stored: StoredObject) -> bytes:
        """Pruned and defaulted once by what the definition says now; the stored bytes where that changes nothing."""
        if self._remote:
            return self._served_remote(stored)
        known = stored.served_as
        if isinstance(known, tuple) and known[0] is self._served_mark:
            return known[1]
        raw = self._settled_bytes(stored)
        stored.served_as = (self._served_mark, raw)
        return raw

    def _served_remote(self, stored: StoredObject) -> bytes:
        """The same in several versions at once, since each costs a call. Raises NeedsConversionError."""
        known = stored.served_as
        if not isinstance(known, dict) or len(known) > SERVED_FORMS_MAX:
            known = stored.served_as = {}
        raw = known.get(self._served_mark)
        if raw is None:
            raw = known[self._served_mark] = self._settled_bytes(stored)
        return raw

    def _settled_bytes(self, stored: StoredObject) -> bytes:
        original = stored.decode()
        obj = self.strategy.from_storage(original)
        unchanged = stored.raw.startswith(self._type_prefix) and (obj is original or obj == original)
        return stored.raw if unchanged else self.encode(obj)

    def encode(self, obj: Object) -> bytes:
        """JSON of an object in the served version, resourceVersion included if it has one."""
        version = obj["metadata"].get("resourceVersion")
        value = codec.encode(obj)
        return codec.served(value, int(version)) if version else value

    def to_storage(self, obj: Object) -> Object:
        if self._from_storage is not None:
            return self.strategy.to_storage(obj)
        return conversion.convert(dict(obj), self.stored) if self._converts else obj

    async def stored_form(self, obj: Object) -> Object:
        """``to_storage``, for which a webhook is waited for."""
        return await self.env.settled(lambda: self.to_storage(obj)) if self._remote else self.to_storage(obj)

    def unwritten(self, path: str, obj: Object, revision: int) -> StoredObject:
        """What a dry run answers."""
        value = codec.encode(self.to_storage(obj))
        return StoredObject(path, codec.served(value, revision) if revision else value, revision)

    # -- create --------------------------------------------------------------------------------------------------------------

    async def create(
        self, write: Write, namespace: str, obj: Object, *, manages_fields: bool = True, by_update: bool = False
    ) -> StoredObject:
        """Store a decoded and defaulted object that is the Store's own. ``manages_fields`` False: its managedFields are made already
        (apply). ``by_update``: the request is a PUT or an apply, which needs leave to create and may name a version. Raises StatusError."""
        release.serve(self.env.minor)
        if not self._may_lose():
            return await self._try_create(write, namespace, obj, manages_fields, by_update, ())
        for attempt in range(LOST_RACES_MAX):
            guard = self._guard(namespace)
            try:
                return await self._try_create(write, namespace, objects.deep_copy(obj), manages_fields, by_update, guard)
            except LostRaceError:
                await self.storage.catch_up()
            except StatusError as error:
                # an address that is said to be taken may have been given back
                if error.code != 422 or self.storage.claims_of is None or attempt or not await self.storage.catch_up():
                    raise
        raise status.conflict(self.info.group, self.info.resource, objects.name(obj), "what it needs was taken by others again and again")

    def _may_lose(self) -> bool:
        return self.storage.claims_of is not None or (self.info.namespaced and not self.storage.freshen_now())

    def _guard(self, namespace: str) -> Guard:
        """No object comes into a namespace that another server has begun to delete: what admission saw of it must be what is stored."""
        namespaces = self.env.namespaces
        return namespaces.unchanged(namespace) if self.info.namespaced and namespaces is not None else ()

    async def _try_create(
        self, write: Write, namespace: str, obj: Object, manages_fields: bool, by_update: bool, guard: Guard
    ) -> StoredObject:
        """Raises LostRaceError beside StatusError."""
        metadata = obj["metadata"]
        version = metadata.pop("resourceVersion", "")
        says_version = not by_update and not write.dry_run and _is_version(version)
        generated = not metadata.get("name") and bool(metadata.get("generateName"))
        now = self.env.clock.text()
        if self.info.namespaced:
            metadata["namespace"] = namespace
        if self.env.managers is not None and manages_fields:
            obj = await self._tracked("", None, obj, write.manager, now)
            metadata = obj["metadata"]
        before.wipe(metadata)
        attributes = self.attributes(Operation.CREATE, write, namespace, metadata.get("name") or "", obj, None)
        await self.env.admission.admit(attributes)
        owner_references.deduplicate(obj["metadata"], write.warn, after_admission=True)
        attempts = before.GENERATE_NAME_ATTEMPTS if generated else 1
        while True:
            attempts -= 1
            before.of_create(
                obj, namespace=namespace, namespaced=self.info.namespaced, strategy=self.strategy, now=now, source=self.env.random
            )
            context = self._context(write, namespace, now)
            try:
                self.strategy.prepare_for_create(context, obj)
                if self.env.drop_unserved is not None:
                    self.env.drop_unserved(self.info, obj)
                metadata = obj["metadata"]
                errors = self._validate_metadata(obj)
                errors = errors + await _validated(context, partial(self.strategy.validate, context, obj))
                name = metadata.get("name") or ""
                if errors:
                    raise status.invalid(self.info.group, self.info.kind, name, errors)
                before.drop_empty_metadata(metadata)
                self.strategy.canonicalize(obj)
                for text in self.strategy.warnings(obj, None):
                    write.warn(text)
                attributes.name = name
                if by_update and self.env.authorize_create is not None:
                    await settled(partial(self.env.authorize_create, write.user, self.info, namespace, name))
                await self.env.admission.validate(attributes)
                if says_version:
                    raise StatusError(status.failure(500, "", _VERSION_ON_CREATE))
                path = self.path(namespace, name)
                created = await self._create(write, path, obj, guard, manages_fields)
                if self._remote:
                    await self.ready((created,))
                if write.dry_run:
                    _undo(context)
                return created
            except KeyExistsError as error:
                _undo(context)
                if attempts:
                    metadata.pop("name")
                    continue
                raise self._exists(path, name, generated) from error
            except BaseException:
                _undo(context)
                raise

    async def _create(self, write: Write, path: str, obj: Object, guard: Guard, manages_fields: bool) -> StoredObject:
        """Raises KeyExistsError and LostRaceError beside StatusError, since another attempt may follow."""
        with as_statuses(self.info, obj["metadata"]["name"]):
            if write.dry_run:
                if await self.storage.get(path) is not None:
                    raise KeyExistsError(path)
                return await self.settled(lambda: self.unwritten(path, obj, 0))
            try:
                return await self.storage.create(path, await self.stored_form(obj), guard)
            except TooLargeError:
                if not manages_fields or obj["metadata"].pop("managedFields", None) is None:
                    raise
                return await self.storage.create(path, await self.stored_form(obj), guard)

    def _exists(self, path: str, name: str, generated: bool) -> StatusError:
        error = status.already_exists(self.info.group, self.info.resource, name)
        if generated:
            message = error.status["message"]
            error.status["message"] = f"{message}, the server was not able to generate a unique name for the object"
            error.status["details"]["retryAfterSeconds"] = 1
        current = self.storage.get_now(path)
        if current is not None and objects.is_being_deleted(current.decode()):
            error.status["message"] = f"object is being deleted: {error.status['message']}"
        return error

    # -- update and patch ----------------------------------------------------------------------------------------------------

    async def update(
        self,
        write: Write,
        namespace: str,
        name: str,
        build: Build,
        *,
        subresource: str = "",
        create: Build | None = None,
        manages_fields: bool = True,
        preconditions: Preconditions = NO_PRECONDITIONS,
    ) -> tuple[StoredObject, bool]:
        """Replace an object by what ``build`` makes of it; the new version and whether it was created.

        ``create``: makes the object of nothing where there is none (apply, PUT of kinds that allow it).
        ``manages_fields`` False: ``build`` keeps managedFields itself (apply).
        An object that has outgrown the store's limit by its managedFields loses them, but for an apply, which is about them.
        """
        path = self.path(namespace, name)
        unwritten: StoredObject | None = None
        goes = False
        tracks = True
        context = self._context(write, namespace, self.env.clock.text())

        async def change(current: StoredObject) -> Object | None:
            nonlocal unwritten, goes
            unwritten, goes = None, False
            _undo(context)
            if self._remote:
                await self.ready((current,))
            old = self.decode(current)
            self._check_preconditions_of_update(write, path, name, preconditions, old["metadata"])
            own_old = self.decode(current)
            new = await self._changed(write, context, name, old, build, own_old, subresource, manages_fields)
            goes = self._goes(new, old)
            if not goes and managed_fields.restore_timestamps(old, new) == old:
                if not await self._is_stored_otherwise(path, current, old):
                    return None
                new = old
            if goes or write.dry_run:
                unwritten = await self.settled(lambda: self.unwritten(path, new, current.revision))
                if self._remote:
                    await self.ready((unwritten,))
                return None
            return await self.stored_form(new if tracks else managed_fields.without_entries(new))

        lost_races = 0
        while True:
            with as_statuses(self.info, name):
                if create is not None and await self.storage.get(path) is None:
                    self._check_preconditions_of_update(write, path, name, preconditions, {})
                    new = await create({})
                    try:
                        return await self.create(write, namespace, new, manages_fields=manages_fields, by_update=True), True
                    except StatusError as error:
                        if error.status.get("reason") != "AlreadyExists":
                            raise
                        continue  # another write has created it meanwhile: an update, then
                try:
                    result = await self.storage.guaranteed_update(path, change)
                except TooLargeError:
                    _undo(context)
                    if not manages_fields or not tracks:
                        raise
                    tracks = False
                    continue
                except LostRaceError as error:
                    _undo(context)
                    lost_races += 1
                    if lost_races == LOST_RACES_MAX:
                        why = "what it needs was taken by others again and again"
                        raise status.conflict(self.info.group, self.info.resource, name, why) from error
                    await self.storage.catch_up()
                    continue
                except BaseException:
                    _undo(context)
                    raise
                if unwritten is None:
                    if self._remote:
                        await self.ready((result,))
                    return result, False
                if write.dry_run:
                    _undo(context)
                if not goes or write.dry_run:
                    return unwritten, False
                if await self.storage.delete(path, result.revision) is not None:
                    return unwritten, False
            # another write came between the check and the deletion: once more

    async def _is_stored_otherwise(self, path: str, current: StoredObject, obj: Object) -> bool:
        """Whether a write of ``obj``, which is what is served of ``current``, stores something else than there is: in the version that is
        stored by now, with further defaults, by another key. Then it is written although nothing changes, which is how objects migrate."""
        if self.storage.is_stale(path) or not current.raw.startswith(self._stored_prefix):
            return True
        return self._from_storage is not None and await self.stored_form(obj) != current.decode()

    async def _changed(
        self,
        write: Write,
        context: StrategyContext,
        name: str,
        old: Object,
        build: Build,
        own_old: Object,
        subresource: str,
        manages_fields: bool,
    ) -> Object:
        """The new object, which may be equal to the old."""
        release.serve(self.env.minor)
        if self.env.drop_unserved is not None:
            self.env.drop_unserved(self.info, own_old)  # a server of a later Kubernetes may have written it
        new = await build(own_old)
        metadata = new["metadata"]
        self._check_identity(name, metadata, old["metadata"])
        if self.env.managers is not None and manages_fields:
            new = await self._tracked(subresource, old, new, write.manager, context.now)
        attributes = self.attributes(Operation.UPDATE, write, context.namespace, name, new, old, subresource)
        if not write.admitted:
            await self.env.admission.admit(attributes)
        owner_references.deduplicate(new["metadata"], write.warn, after_admission=True)
        before.of_update(new, old)
        strategy = self.strategy
        # None: the subresource's own handler has decided all of the change
        rules = strategy if subresource in ("", STATUS, "scale") else strategy.subresource(subresource)
        if subresource == STATUS:
            strategy.prepare_for_status_update(context, new, old)
            if self.info.builtin:
                status_metadata.keep(self.info, new, old)
        elif rules is not None:
            rules.prepare_for_update(context, new, old)
            if strategy.has_generation and strategy.spec_changed(new, old):
                new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        if self.env.drop_unserved is not None:
            self.env.drop_unserved(self.info, new)
        metadata = new["metadata"]
        metadata["resourceVersion"] = old["metadata"]["resourceVersion"]
        errors = object_meta_validation.validate_update(new, old, builtin=self.info.builtin and self.strategy.standard_finalizers)
        if not self.info.builtin:
            namespaced = self.info.namespaced
            errors = object_meta_validation.validate(new, namespaced=namespaced, name_rule="path_segment", builtin=False) + errors
        if subresource == STATUS:
            errors = errors + await _validated(context, partial(strategy.validate_status_update, context, new, old))
        elif rules is not None:
            errors = errors + await _validated(context, partial(rules.validate_update, context, new, old))
        if errors:
            errors = _without_kept_addresses(errors, old)
        if errors:
            raise status.invalid(self.info.group, self.info.kind, name, errors)
        before.drop_empty_metadata(metadata)
        strategy.canonicalize(new)
        for text in strategy.warnings(new, old) if subresource != STATUS else ():
            write.warn(text)
        if not write.admitted:
            await self.env.admission.validate(attributes)
        return new

    async def _tracked(self, subresource: str, old: Object | None, new: Object, manager: str, now: str) -> Object:
        """``new`` with its managedFields."""
        managers = self.env.managers
        assert managers is not None
        if not self._remote:
            return managers.update(self.info, subresource, old, new, manager, now)
        try:
            return await self.env.settled(lambda: managers.update(self.info, subresource, old, new, manager, now))
        except StatusError:  # the webhook does not convert into the version of some manager
            return managers.untracked(old, new)

    def _check_preconditions_of_update(self, write: Write, path: str, name: str, wanted: Preconditions, found: Object) -> None:
        """``found``: the metadata of the object, empty where there is none yet. Raises 409 in the words of upstream's storage."""
        if wanted.uid is not None and wanted.uid != found.get("uid", ""):
            why = f"UID in precondition: {wanted.uid}, UID in object meta: {found.get('uid', '')}"
        elif wanted.resource_version is not None and wanted.resource_version != found.get("resourceVersion", ""):
            why = (
                f"ResourceVersion in precondition: {wanted.resource_version}, "
                f"ResourceVersion in object meta: {found.get('resourceVersion', '')}"
            )
        else:
            return
        # a dry run does not get as far as where the store's own prefix is put in front
        key = f"{'' if write.dry_run else '/registry'}/{self.info.storage_prefix}/{path}"
        text = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {why}"
        raise status.conflict(self.info.group, self.info.resource, name, text)

    def _check_identity(self, name: str, metadata: Object, before: Object) -> None:
        """The optimistic lock."""
        version = metadata.get("resourceVersion") or ""
        try:
            wanted = resource_version.of_object(version)
        except go_json.GoError as error:
            if self.info.builtin:
                raise status.bad_request(str(error)) from error
            # upstream forgets to make a refusal of it, which is kept where answers are compared with it byte by byte
            raise StatusError(status.failure(500, "", str(error))) from error
        if not wanted:
            if self.strategy.allow_unconditional_update:
                return
            path = "metadata.resourceVersion"
            errors = [field_errors.invalid(path, 0, "must be specified for an update")]
            raise status.invalid(self.info.group, self.info.resource, name, errors)
        if version != before["resourceVersion"]:
            raise status.conflict(self.info.group, self.info.resource, name, status.MODIFIED)

    def _goes(self, new: Object, old: Object) -> bool:
        if not deletion.goes_with_update(new, old):
            return False
        if self.info.resource == "namespaces" and self.info.group == "":
            return not objects.get(new, "spec", "finalizers")
        return True

    # -- shared --------------------------------------------------------------------------------------------------------------

    def _context(self, write: Write, namespace: str, now: str) -> StrategyContext:
        return StrategyContext(
            namespace=namespace,
            now=now,
            user=write.user.name,
            user_info=write.user,
            dry_run=write.dry_run,
            allocators=self.env.allocators,
            schemas=self.env.schemas,
            warn=write.warn,
        )

    def _validate_metadata(self, obj: Object) -> list[FieldError]:
        info = self.info
        return object_meta_validation.validate(
            obj, namespaced=info.namespaced, name_rule=self.strategy.name_rule, builtin=info.builtin and self.strategy.standard_finalizers
        )

    async def admit_apart(
        self, operation: Operation, write: Write, namespace: str, name: str, new: Object, old: Object | None, subresource: str
    ) -> Write:
        """Admission of what a subresource takes that is not the object itself; ``new`` may be changed. Answers the write to go on with.
        Raises StatusError."""
        attributes = self.attributes(operation, write, namespace, name, new, old, subresource)
        await self.env.admission.admit(attributes)
        await self.env.admission.validate(attributes)
        return dataclasses.replace(write, admitted=True)

    def attributes(
        self,
        operation: Operation,
        write: Write,
        namespace: str,
        name: str,
        new: Object | None,
        old: Object | None,
        subresource: str = "",
    ) -> AdmissionAttributes:
        return AdmissionAttributes(
            operation=operation,
            info=self.info,
            subresource=subresource,
            namespace=namespace,
            name=name,
            user=write.user,
            object=new,
            old_object=old,
            dry_run=write.dry_run,
            options=write.options,
            warnings=_Warnings(write),
            annotate=write.annotate,
        )


def _is_version(text: str) -> bool:
    """Whether ``metadata.resourceVersion`` says a version; what is no number says none."""
    return text.isascii() and text.isdigit() and int(text[:20]) > 0


async def _validated(context: StrategyContext, check: Callable[[], list[FieldError]]) -> list[FieldError]:
    def work(patient: bool) -> list[FieldError]:
        context.patient = patient
        return check()

    return await long_runs.patiently(work)


def _without_kept_addresses(errors: list[FieldError], old: Object) -> list[FieldError]:
    from apiserver.registry.validation import formats

    return formats.without_kept(errors, old)


def _undo(context: StrategyContext) -> None:
    """Give back what was allocated for a write that came to nothing."""
    while context.undo:
        context.undo.pop()()


class _Warnings(list[str]):
    """What admission plugins append goes straight to the request's warnings."""

    def __init__(self, write: Write) -> None:
        super().__init__()
        self._write = write

    def append(self, text: str) -> None:
        self._write.warn(text)

    def extend(self, texts: object) -> None:
        for text in texts:  # type: ignore[attr-defined]
            self._write.warn(text)
