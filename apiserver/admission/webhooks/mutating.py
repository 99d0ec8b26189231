"""Mutating webhooks: one after the other, each sees what those before it made of the object.

Where one changes the object, the whole chain of plugins that change objects runs a second time (``Reinvocation``). In it webhooks with
``reinvocationPolicy: IfNeeded`` are called again if they had been called before the last change, others are not, and none is called for
the first time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from apiserver.admission import metrics
from apiserver.admission.interfaces import AdmissionAttributes, Reinvocation
from apiserver.admission.webhooks import call, review
from apiserver.admission.webhooks.call import HookFailedError
from apiserver.admission.webhooks.hooks import Hook, in_version
from apiserver.admission.webhooks.review import Answer
from apiserver.admission.webhooks.world import WebhookWorld
from apiserver.machinery import json_patch, objects, status
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.resources.resource_info import ResourceInfo

_NAME = "MutatingAdmissionWebhook"
_MUTATION = "mutation.webhook.admission.k8s.io/"
_PATCH = "patch.webhook.admission.k8s.io/"


@dataclass(slots=True, kw_only=True)
class _Memory:
    """Between the two rounds: the reinvocable webhooks that were called and have seen no change since; those that have to be called again;
    and the object as it was left."""

    called: set[str] = field(default_factory=set)
    again: set[str] = field(default_factory=set)
    left: Object | None = None

    def changed(self) -> None:
        self.again |= self.called
        self.called = set()


async def dispatch(hooks: Sequence[Hook], attributes: AdmissionAttributes, world: WebhookWorld) -> None:
    """Raises StatusError."""
    reinvocation = attributes.reinvocation
    if reinvocation is None:
        reinvocation = attributes.reinvocation = Reinvocation()
    memory: _Memory = reinvocation.memo.setdefault(_NAME, _Memory())
    if reinvocation.second and memory.left != attributes.object:
        memory.changed()  # by a plugin that ran again before this one
    running = _Running(attributes, world, reinvocation, memory)
    for position, hook in enumerate(hooks):
        await running.ask(position, hook)
    await running.finish()
    memory.left = objects.deep_copy(attributes.object) if reinvocation.wanted and not reinvocation.second else None


class _Running:
    """One round. ``_seen`` is the request in the version that the last webhook wanted; what webhooks change stays in it until the end."""

    def __init__(self, attributes: AdmissionAttributes, world: WebhookWorld, reinvocation: Reinvocation, memory: _Memory) -> None:
        self._attributes = attributes
        self._world = world
        self._reinvocation = reinvocation
        self._memory = memory
        self._seen = replace(attributes)
        self._dirty = False
        self._old: tuple[ResourceInfo, bytes | None] | None = None

    async def ask(self, position: int, hook: Hook) -> None:
        # rules and selectors see the request's own resource, and the object as it is by now
        wanted = await hook.match(replace(self._seen, info=self._attributes.info), self._world)
        if wanted is None or (self._reinvocation.second and hook.id not in self._memory.again):
            return
        await self._see_in(wanted)
        place = f"round_{int(self._reinvocation.second)}_index_{position}"
        changed = False
        try:
            with call.counted(hook, self._attributes, self._world, metrics.ADMIT):
                changed = await self._call(hook, place)
        except HookFailedError as error:
            if not hook.ignores_failures:
                raise call.failed_closed(error) from error
            call.failed_open(hook, error, self._attributes, f"{_MUTATION}{place}")
        finally:
            said = {"configuration": hook.configuration, "webhook": hook.name, "mutated": changed}
            self._attributes.annotate(f"{_MUTATION}{place}", orjson.dumps(said).decode())
        if changed:
            self._memory.changed()
            self._reinvocation.wanted = True
        if hook.reinvocable:
            self._memory.called.add(hook.id)

    async def _see_in(self, to: ResourceInfo) -> None:
        if self._seen.info is not to:
            self._seen = await in_version(self._seen, to, self._world)

    async def _call(self, hook: Hook, place: str) -> bool:
        """Whether the webhook changed the object."""
        seen = self._seen
        if self._old is None or self._old[0] is not seen.info:
            self._old = (seen.info, call.encoded(seen.old_object))
        new = call.encoded(seen.object)
        answer = await call.call(hook, self._attributes, seen, new, self._old[1], self._world, mutating=True)
        operations = _operations(hook, answer)
        if not operations:
            return False
        if seen.object is None:
            why = f'admission webhook "{hook.name}" attempted to modify the object, which is not supported for this operation'
            raise status.internal_error(why)
        patched = _patched(seen.object, operations)
        said = {"configuration": hook.configuration, "webhook": hook.name, "patch": operations, "patchType": review.JSON_PATCH}
        self._attributes.annotate(f"{_PATCH}{place}", orjson.dumps(said).decode())
        before = new
        try:
            completed = self._world.completed(patched, seen.info, seen.subresource)
        except ValueError as error:
            raise status.internal_error(str(error)) from error
        self._seen = replace(seen, object=completed)
        self._dirty = True
        return bool(completed != orjson.loads(before or b"null"))

    async def finish(self) -> None:
        """What was changed becomes the request's object, in the request's version."""
        if not self._dirty:
            return
        own = self._attributes.object
        assert own is not None, "only an object can have been changed"
        await self._see_in(self._attributes.info)
        found = self._seen.object
        assert found is not None, "an object stays one"
        self._check_namespace(found)
        if found is not own:
            own.clear()
            own.update(found)

    def _check_namespace(self, obj: Object) -> None:
        """A webhook does not move objects."""
        wanted, said = self._attributes.namespace, objects.namespace(obj)
        if wanted and said and said != wanted:
            raise status.bad_request("the namespace of the provided object does not match the namespace sent on the request")


def _operations(hook: Hook, answer: Answer) -> list[Any]:
    if not answer.patch:
        return []
    try:
        operations = orjson.loads(answer.patch)
    except orjson.JSONDecodeError as error:
        from apiserver.schemas import json_syntax

        why = json_syntax.explain(answer.patch) or str(error)
        raise HookFailedError(hook, f"received undecodable patch in webhook response: {why}") from error
    if operations is None:
        return []
    if not isinstance(operations, list) or not all(isinstance(operation, dict) for operation in operations):
        why = "json: cannot unmarshal into Go value of type jsonpatch.Patch"
        raise HookFailedError(hook, f"received undecodable patch in webhook response: {why}")
    return operations


def _patched(obj: Object, operations: list[Any]) -> Object:
    """Raises StatusError 500, as upstream: a patch that does not apply is the webhook's fault, not the client's."""
    try:
        patched = json_patch.apply(obj, operations)
    except StatusError as error:
        raise status.internal_error(str(error.__cause__ or error.message)) from error
    if not isinstance(patched, dict):
        raise status.internal_error("json: cannot unmarshal into an object")
    return patched
