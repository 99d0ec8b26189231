"""A trusted fake of the API server for controllers: ``Api`` in memory, with revisions, watches, finalizers, and faults on demand.

Its own behaviour is tested in ``test_fake_api.py``. It validates and defaults nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError, already_exists, conflict, gone, not_found
from controllers.cache.indexer import key, key_of
from controllers.client.errors import ConnectionFailed
from controllers.client.interface import DELETE_DEFAULTS, LIST_DEFAULTS, DeleteOptions, ListOptions, PatchType, Propagation, WatchEvent
from controllers.client.resources import NAMESPACES, PODS, Resource
from controllers.lib.clock import Clock, format_time

MERGE_KEYS = {"conditions": "type", "ownerReferences": "uid", "taints": "key", "addresses": "type", "containers": "name"}


class FakeApi:
    def __init__(self, clock: Clock, *, graceful_pods: bool = False) -> None:
        self._clock = clock
        self.graceful_pods = graceful_pods
        self.revision = 100
        self.compacted = 0
        self.stores: dict[tuple[str, str], dict[str, Object]] = {}
        self.history: list[tuple[int, tuple[str, str], str, Object]] = []
        self.requests: list[tuple[str, str, str]] = []
        self._faults: list[tuple[str, str, Exception, int]] = []
        self._changed = asyncio.Event()
        self._held: set[str] = set()
        self._generation = 0
        self.raw_answers: dict[str, Any] = {}
        self._names = 0
        #: called with each object about to be stored by create; may raise
        self.admission: Callable[[Resource, Object], None] = lambda resource, obj: None

    # faults

    def fail(self, verb: str, plural: str, error: Exception, times: int = 1) -> None:
        """The next ``times`` requests of that sort raise ``error`` and do nothing."""
        self._faults.append((verb, plural, error, times))

    def lose_answer(self, verb: str, plural: str, times: int = 1) -> None:
        """The next ``times`` writes of that sort are done, and their answers lost."""
        self._faults.append((f"answer {verb}", plural, ConnectionFailed("the answer is lost"), times))

    def break_watches(self) -> None:
        self._generation += 1
        self._wake()

    def hold_watches(self, plural: str) -> None:
        """Watches of the resource stay silent until released."""
        self._held.add(plural)

    def release_watches(self, plural: str) -> None:
        self._held.discard(plural)
        self._wake()

    def compact(self) -> None:
        """Forgets history: watches from before now get 410."""
        self.compacted = self.revision

    def count(self, verb: str, plural: str) -> int:
        return sum(1 for v, p, _ in self.requests if (v, p) == (verb, plural))

    def all(self, resource: Resource, namespace: str = "") -> list[Object]:
        store = self._store(resource)
        return [objects.deep_copy(store[k]) for k in sorted(store) if not namespace or objects.namespace(store[k]) == namespace]

    # Api

    async def get(self, resource: Resource, namespace: str, name: str, *, subresource: str = "", metadata_only: bool = False) -> Object:
        await self._enter("get", resource, name)
        return copied(self._find(resource, namespace, name))

    async def list(self, resource: Resource, namespace: str = "", options: ListOptions = LIST_DEFAULTS) -> Object:
        await self._enter("list", resource, namespace)
        found = [o for o in self.all(resource, namespace) if _selected(o, options)]
        start = int(options.continue_token or 0)
        end = start + options.limit if options.limit else len(found)
        metadata: Object = {"resourceVersion": str(self.revision)}
        if end < len(found):
            metadata["continue"] = str(end)
        return {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata, "items": found[start:end]}

    async def create(self, resource: Resource, namespace: str, obj: Object, *, name: str = "", subresource: str = "") -> Object:
        await self._enter("create", resource, subresource or objects.name(obj))
        if subresource == "binding":
            return self._answered("create", resource, self._bind(namespace, name, obj))
        if subresource == "token":
            return {"status": {"token": f"token-of-{name}", "expirationTimestamp": format_time(self._clock.now())}}
        stored = objects.deep_copy(obj)
        metadata = stored.setdefault("metadata", {})
        if not metadata.get("name"):
            self._names += 1
            metadata["name"] = f"{metadata['generateName']}{self._names:05d}"
        if resource.namespaced:
            metadata["namespace"] = namespace or metadata.get("namespace", "")
        if key_of(stored) in self._store(resource):
            raise already_exists(resource.group, resource.plural, metadata["name"])
        self.admission(resource, stored)
        self._names += 1
        metadata.update(uid=f"uid-{self._names}", creationTimestamp=format_time(self._clock.now()), generation=1)
        stored.setdefault("kind", resource.kind)
        stored.setdefault("apiVersion", resource.api_version)
        if resource == PODS:
            stored.setdefault("status", {"phase": "Pending"})
        if resource == NAMESPACES:
            stored.setdefault("spec", {"finalizers": ["kubernetes"]})
            stored.setdefault("status", {"phase": "Active"})
        return self._answered("create", resource, self._write(resource, stored, "ADDED"))

    async def update(self, resource: Resource, obj: Object, *, subresource: str = "") -> Object:
        await self._enter("update", resource, objects.name(obj))
        old = self._find(resource, objects.namespace(obj), objects.name(obj))
        version = objects.resource_version(obj)
        if version and version != objects.resource_version(old):
            raise conflict(resource.group, resource.plural, objects.name(obj), "the object has been modified")
        return self._change(resource, old, objects.deep_copy(obj), subresource)

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        patch: Any,
        patch_type: PatchType = PatchType.MERGE,
        *,
        subresource: str = "",
        field_manager: str = "",
    ) -> Object:
        await self._enter("patch", resource, name)
        old = self._find(resource, namespace, name)
        uid = objects.metadata(patch).get("uid")
        if uid and uid != objects.uid(old):
            raise conflict(resource.group, resource.plural, name, "uid mismatch")
        version = objects.metadata(patch).get("resourceVersion")
        if version and version != objects.resource_version(old):
            raise conflict(resource.group, resource.plural, name, "the object has been modified")
        new = _merge(objects.deep_copy(old), patch, patch_type is PatchType.STRATEGIC)
        return self._answered("patch", resource, self._change(resource, old, new, subresource))

    async def delete(self, resource: Resource, namespace: str, name: str, options: DeleteOptions = DELETE_DEFAULTS) -> Object:
        await self._enter("delete", resource, name)
        old = self._find(resource, namespace, name)
        if options.uid and options.uid != objects.uid(old):
            raise conflict(resource.group, resource.plural, name, "the UID in the precondition does not match")
        if options.resource_version and options.resource_version != objects.resource_version(old):
            raise conflict(resource.group, resource.plural, name, "the resourceVersion in the precondition does not match")
        return self._answered("delete", resource, self._delete(resource, old, options))

    async def delete_collection(
        self, resource: Resource, namespace: str, options: DeleteOptions = DELETE_DEFAULTS, selection: ListOptions = LIST_DEFAULTS
    ) -> Object:
        await self._enter("deletecollection", resource, namespace)
        items = [obj for obj in self.all(resource, namespace) if _selected(obj, selection)]
        for obj in items:
            self._delete(resource, self._find(resource, objects.namespace(obj), objects.name(obj)), options)
        return {"kind": f"{resource.kind}List", "items": items}

    async def watch(self, resource: Resource, namespace: str = "", options: ListOptions = LIST_DEFAULTS) -> AsyncIterator[WatchEvent]:
        await self._enter("watch", resource, namespace)
        at = int(options.resource_version or 0)
        if at < self.compacted:
            yield WatchEvent("ERROR", gone("too old resource version").status)
            return
        generation = self._generation
        position = 0
        while self._generation == generation:
            while position < len(self.history) and resource.plural not in self._held:
                revision, kind, type_, obj = self.history[position]
                position += 1
                here = kind == _kind(resource) and (not namespace or objects.namespace(obj) == namespace)
                if revision > at and here and _selected(obj, options):
                    yield WatchEvent(type_, objects.deep_copy(obj))
            changed = self._changed
            await changed.wait()

    async def raw(self, method: str, path: str, *, accept: str = "application/json") -> Any:
        await self._enter("raw", Resource("", "", path, ""), "")
        if path not in self.raw_answers:
            raise not_found("", "paths", path)
        answer = self.raw_answers[path]
        if isinstance(answer, Exception):
            raise answer
        return copied(answer)

    # inside

    async def _enter(self, verb: str, resource: Resource, name: str) -> None:
        self.requests.append((verb, resource.plural, name))
        await asyncio.sleep(0)
        self._maybe_fail(verb, resource)

    def _answered(self, verb: str, resource: Resource, answer: Object) -> Object:
        self._maybe_fail(f"answer {verb}", resource)
        return answer

    def _maybe_fail(self, verb: str, resource: Resource) -> None:
        for position, (fault_verb, plural, error, times) in enumerate(self._faults):
            if fault_verb in (verb, "*" if " " not in verb else verb) and plural in (resource.plural, "*"):
                self._faults[position] = (fault_verb, plural, error, times - 1)
                if times <= 1:
                    del self._faults[position]
                raise error

    def _store(self, resource: Resource) -> dict[str, Object]:
        return self.stores.setdefault(_kind(resource), {})

    def _find(self, resource: Resource, namespace: str, name: str) -> Object:
        found = self._store(resource).get(key(namespace if resource.namespaced else "", name))
        if found is None:
            raise not_found(resource.group, resource.plural, name)
        return found

    def _write(self, resource: Resource, obj: Object, type_: str) -> Object:
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        store = self._store(resource)
        if type_ == "DELETED":
            store.pop(key_of(obj), None)
        else:
            store[key_of(obj)] = obj
        self.history.append((self.revision, _kind(resource), type_, objects.deep_copy(obj)))
        self._wake()
        return copied(obj)

    def _change(self, resource: Resource, old: Object, new: Object, subresource: str) -> Object:
        metadata = {
            **new["metadata"],
            "uid": objects.uid(old),
            "creationTimestamp": old["metadata"]["creationTimestamp"],
            "generation": old["metadata"].get("generation", 1),
        }
        if old["metadata"].get("deletionTimestamp"):
            metadata["deletionTimestamp"] = old["metadata"]["deletionTimestamp"]
        if subresource in ("status", "approval"):
            new = {**objects.deep_copy(old), "status": new.get("status")}
        elif subresource == "finalize":
            new = {**objects.deep_copy(old), "spec": new.get("spec")}
        else:
            if "status" in old:
                new = {**new, "status": objects.deep_copy(old["status"])}
            if new.get("spec") != old.get("spec"):
                metadata["generation"] += 1
            new = {**new, "metadata": metadata}
        if _unversioned(new) == _unversioned(old):
            return copied(old)
        held = (
            objects.finalizers(new)
            or objects.metadata(new).get("deletionGracePeriodSeconds")
            or (resource == NAMESPACES and objects.get(new, "spec", "finalizers", default=[]))
        )
        if objects.is_being_deleted(new) and not held:
            return self._write(resource, new, "DELETED")
        return self._write(resource, new, "MODIFIED")

    def _delete(self, resource: Resource, old: Object, options: DeleteOptions) -> Object:
        new = objects.deep_copy(old)
        finalizers = list(objects.finalizers(new))
        if options.propagation is Propagation.FOREGROUND and "foregroundDeletion" not in finalizers:
            finalizers.append("foregroundDeletion")
        if options.propagation is Propagation.ORPHAN and "orphan" not in finalizers:
            finalizers.append("orphan")
        if finalizers:
            new["metadata"]["finalizers"] = finalizers
        grace = options.grace_period_seconds
        if resource == PODS and self.graceful_pods and grace is None and objects.get(old, "spec", "nodeName"):
            grace = int(objects.get(old, "spec", "terminationGracePeriodSeconds", default=30))
        holds = (
            bool(finalizers)
            or bool(resource == PODS and grace)
            or (resource == NAMESPACES and bool(objects.get(old, "spec", "finalizers", default=[])))
        )
        if not holds:
            return self._write(resource, new, "DELETED")
        new["metadata"].setdefault("deletionTimestamp", format_time(self._clock.now()))
        new["metadata"]["deletionGracePeriodSeconds"] = grace or 0
        if resource == NAMESPACES:
            new.setdefault("status", {})["phase"] = "Terminating"
        if new == old:
            return copied(old)
        return self._write(resource, new, "MODIFIED")

    def _bind(self, namespace: str, name: str, binding: Object) -> Object:
        pod = objects.deep_copy(self._find(PODS, namespace, name))
        if objects.get(pod, "spec", "nodeName"):
            raise conflict("", "pods/binding", name, "pod is already assigned to a node")
        pod.setdefault("spec", {})["nodeName"] = binding["target"]["name"]
        condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": format_time(self._clock.now())}
        pod["status"]["conditions"] = [c for c in pod["status"].get("conditions", []) if c["type"] != "PodScheduled"] + [condition]
        self._write(PODS, pod, "MODIFIED")
        return {"kind": "Status", "status": "Success"}

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def copied(obj: Object) -> Object:
    out: Object = objects.deep_copy(obj)
    return out


def _unversioned(obj: Object) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": ""}}


def _kind(resource: Resource) -> tuple[str, str]:
    return (resource.group, resource.plural)


def _selected(obj: Object, options: ListOptions) -> bool:
    for term in filter(None, options.label_selector.split(",")):
        name, _, value = term.partition("=")
        if objects.labels(obj).get(name) != value:
            return False
    for term in filter(None, options.field_selector.split(",")):
        unequal = "!=" in term
        name, _, value = term.partition("!=" if unequal else "=")
        if (str(objects.get(obj, *name.split("."), default="")) == value) is unequal:
            return False
    return True


def _merge(target: Any, patch: Any, strategic: bool, field: str = "") -> Any:
    if isinstance(patch, list) and strategic and isinstance(target, list) and field in MERGE_KEYS:
        return _merge_list(target, patch, MERGE_KEYS[field])
    if not isinstance(patch, dict):
        return patch
    target = target if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        elif name != "$setElementOrder" and not name.startswith("$setElementOrder/"):
            target[name] = _merge(target.get(name) if name in target else ([] if isinstance(value, list) else None), value, strategic, name)
            if target[name] == [] and name == "ownerReferences":
                del target[name]
    return target


def _merge_list(target: list[Any], patch: list[Any], merge_key: str) -> list[Any]:
    out = list(target)
    for entry in patch:
        same = [i for i, t in enumerate(out) if t.get(merge_key) == entry.get(merge_key)]
        if entry.get("$patch") == "delete":
            out = [t for t in out if t.get(merge_key) != entry.get(merge_key)]
        elif same:
            out[same[0]] = _merge(out[same[0]], entry, True)
        else:
            out.append(entry)
    return out


def refused(code: int, reason: str, message: str) -> StatusError:
    return StatusError({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message})
