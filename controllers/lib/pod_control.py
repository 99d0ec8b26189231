"""Creates and deletes the pods of a controller, with the events that tell of it (``controller_utils.go``, ``RealPodControl``)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.client import errors
from controllers.client.interface import Api, DeleteOptions
from controllers.client.resources import PODS, Resource
from controllers.lib.controller_ref import owner_reference
from controllers.lib.events import EventRecorder

#: The first of the batches that double: a quota that refuses one pod is not asked for a hundred.
SLOW_START_INITIAL = 1
#: generateName leaves room for five random characters in 63
GENERATE_NAME_MAX = 58


def pod_from_template(template: Object, owner: Object, owner_resource: Resource, *, generate_name: bool = True) -> Object:
    """Pure. A pod of the template, controlled by the owner, not yet named."""
    meta = objects.metadata(template)
    metadata: Object = {"namespace": objects.namespace(owner), "ownerReferences": [owner_reference(owner, owner_resource)]}
    if generate_name:
        metadata["generateName"] = f"{objects.name(owner)}-"
    for field in ("labels", "annotations", "finalizers"):
        if meta.get(field):
            metadata[field] = objects.deep_copy(meta[field])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": objects.deep_copy(template.get("spec") or {})}


class PodControl:
    def __init__(self, api: Api, recorder: EventRecorder) -> None:
        self._api, self._recorder = api, recorder

    async def create(self, pod: Object, owner: Object) -> Object:
        """Raises what the API answers, after telling it in an event (but for a namespace that goes away)."""
        try:
            created = await self._api.create(PODS, objects.namespace(owner), pod)
        except errors.TRANSIENT as error:
            if not errors.is_namespace_terminating(error):
                self._recorder.event(owner, "Warning", "FailedCreate", f"Error creating: {error}")
            raise
        self._recorder.event(owner, "Normal", "SuccessfulCreate", f"Created pod: {objects.name(created)}")
        return created

    async def delete(self, pod: Object, owner: Object) -> None:
        """A pod that is gone already is no error, but raises NotFound so that the caller drops its expectation."""
        name = objects.name(pod)
        try:
            await self._api.delete(PODS, objects.namespace(pod), name, DeleteOptions(uid=objects.uid(pod)))
        except errors.TRANSIENT as error:
            if not errors.is_not_found(error):
                self._recorder.event(owner, "Warning", "FailedDelete", f"Error deleting: {error}")
            raise
        self._recorder.event(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {name}")


async def slow_start(count: int, call: Callable[[int], Awaitable[None]], initial: int = SLOW_START_INITIAL) -> tuple[int, Exception | None]:
    """Runs ``call(0) … call(count-1)`` in batches of 1, 2, 4 …; stops after a batch in which one failed.

    Returns:
        How many succeeded, and the first failure. Those after it were never called.
    """
    done = 0
    successes = 0
    batch = min(initial, count)
    while batch > 0:
        results = await asyncio.gather(*(call(done + i) for i in range(batch)), return_exceptions=True)
        failures = [r for r in results if isinstance(r, BaseException)]
        successes += batch - len(failures)
        done += batch
        for failure in failures:
            if not isinstance(failure, errors.TRANSIENT):
                raise failure
            return successes, failure
        batch = min(batch * 2, count - done)
    return successes, None
