"""Deletes an object of a ``Store``, or begins to: preconditions, admission, grace, finalizers, the namespace that is emptied first
(apiserver ``registry/generic/registry/store.go``). The rules of what a deletion does to an object are in ``deletion``."""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.admission.interfaces import Operation
from apiserver.authorization.authorizer import Attributes, Decision
from apiserver.machinery import objects, status
from apiserver.machinery.objects import Object
from apiserver.objectstore import codec
from apiserver.objectstore.interface import StoredObject
from apiserver.objectstore.statuses import as_statuses
from apiserver.registry import before, deletion
from apiserver.registry.deletion import DeleteOptions
from apiserver.registry.environment import Write
from apiserver.registry.store import Store
from apiserver.request.unanswered import settled
from apiserver.resources.resource_info import ResourceInfo

#: the verb of a deletion of what cannot be read
UNSAFE_DELETE = "unsafe-delete-ignore-read-errors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """``object``: the object as it was, or as it waits for its end. ``gone``: whether it is away (or would be, in a dry run)."""

    object: StoredObject
    gone: bool


async def delete(store: Store, write: Write, namespace: str, name: str, options: DeleteOptions) -> Deleted:
    """Delete, or begin to. ``options.dry_run`` is the caller's ``write.dry_run``. Raises StatusError."""
    path = store.path(namespace, name)
    while True:
        with as_statuses(store.info, name):
            current = await store.get(namespace, name)
            done = await _delete_version(store, write, namespace, name, path, current, options)
            if done is not None:
                await store.ready((done.object,))
                return done


async def delete_unreadable(store: Store, write: Write, namespace: str, name: str) -> None:
    """Delete an object whose stored value cannot be read, without any of what a deletion usually asks of it: admission, finalizers,
    preconditions. Raises StatusError: 403 for whoever may not do just this, 409 where the object can be read."""
    attributes = Attributes(
        user=write.user,
        verb=UNSAFE_DELETE,
        group=store.info.group,
        version=store.info.version,
        namespace=namespace,
        resource=store.info.resource,
        name=name,
    )
    authorizer = store.env.authorizer
    decision, reason = (Decision.NO_OPINION, "") if authorizer is None else await settled(lambda: authorizer.authorize(attributes))
    if decision is not Decision.ALLOW:
        why = f'not permitted to do "{UNSAFE_DELETE}", reason: {reason}'
        raise status.forbidden(store.info.group, store.info.resource, name, why)
    with as_statuses(store.info, name):
        if not await store.storage.delete_unreadable(store.path(namespace, name), dry_run=write.dry_run):
            why = "it can be read: delete it as usual, without ignoreStoreReadErrorWithClusterBreakingPotential"
            raise status.conflict(store.info.group, store.info.resource, name, why)


async def _delete_version(
    store: Store, write: Write, namespace: str, name: str, path: str, current: StoredObject, options: DeleteOptions
) -> Deleted | None:
    """None: another write came first."""
    old = store.decode(current)
    _check_preconditions(store.info, name, old, options)
    now, options = store.env.clock.text(), options.copy()
    new = store.decode(current)
    if store.strategy.begin_deletion(new, now):
        if write.dry_run:
            return Deleted(object=await store.settled(lambda: store.unwritten(path, new, current.revision)), gone=False)
        begun = await store.storage.update(path, await store.stored_form(new), current.revision)
        return None if begun is None else Deleted(object=begun, gone=False)
    grace = deletion.begin(new, options, supports_grace=store.supports_grace, now=now)
    if grace.pending:
        return Deleted(object=current, gone=False)
    attributes = store.attributes(Operation.DELETE, write, namespace, name, None, old)
    if not write.admitted:
        await store.env.admission.admit(attributes)
        await store.env.admission.validate(attributes)
    finalizers = new["metadata"].get("finalizers") or []
    wanted = deletion.garbage_collection_finalizers(finalizers, options, store.strategy.default_garbage_collection)
    if wanted is not None:
        new["metadata"]["finalizers"] = finalizers = wanted
    if _marks_namespace(store.info, new, now):
        finalizers = [*finalizers, *(objects.get(new, "spec", "finalizers") or [])]
    elif not grace.graceful and finalizers:
        deletion.mark(new, now)
    marked = grace.graceful or bool(finalizers)
    before.drop_empty_metadata(new["metadata"])
    held = bool(finalizers) or (grace.graceful and bool(options.grace_period_seconds))
    last = current
    if marked and new != old:
        if write.dry_run:
            last = await store.settled(lambda: store.unwritten(path, new, current.revision))
        else:
            written = await store.storage.update(path, await store.stored_form(new), current.revision)
            if written is None:
                return None
            last = written
    if held:
        return Deleted(object=last, gone=False)
    if not write.dry_run:
        revision = await store.storage.delete(path, last.revision)
        if revision is None:
            return None
        last = StoredObject(path, codec.served_again(last.raw, revision), revision)
    return Deleted(object=last, gone=True)


def _marks_namespace(info: ResourceInfo, obj: Object, now: str) -> bool:
    """A namespace goes when its controller has emptied it and takes ``kubernetes`` out of its spec.finalizers."""
    if info.group or info.resource != "namespaces":
        return False
    metadata = obj["metadata"]
    metadata.setdefault("deletionTimestamp", now)
    obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    return bool(objects.get(obj, "spec", "finalizers"))


def _check_preconditions(info: ResourceInfo, name: str, obj: Object, options: DeleteOptions) -> None:
    metadata = obj["metadata"]
    if options.uid is not None and options.uid != metadata.get("uid"):
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata.get('uid', '')}). "
            "The object might have been deleted and then recreated"
        )
        raise status.conflict(info.group, info.kind, name, why)
    if options.resource_version is not None and options.resource_version != metadata["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion in record "
            f"({metadata['resourceVersion']}). The object might have been modified"
        )
        raise status.conflict(info.group, info.kind, name, why)
