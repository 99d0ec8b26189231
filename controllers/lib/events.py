"""``EventRecorder``: tells what happened to an object as a ``v1.Event`` (client-go ``tools/record``).

Telling never waits and never fails: events go through a bounded queue to one sending task, and are dropped when it is full or the
server refuses them.
"""

from __future__ import annotations

import asyncio
import logging
import random

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.client import errors
from controllers.client.interface import Api, PatchType
from controllers.client.resources import EVENTS
from controllers.lib.clock import Clock, format_time
from controllers.lib.event_correlator import EventCorrelator, Known, Occurrence

#: Events that wait to be sent; further ones are dropped (client-go has the same number).
QUEUE_MAX = 1000
#: Tries for an event that meets no server, with this pause between them.
SEND_ATTEMPTS_MAX = 12
SEND_PAUSE_SECONDS = 10.0
#: kube-apiserver's limit for the message of an Event
MESSAGE_MAX = 1024

log = logging.getLogger(__name__)


class EventBroadcaster:
    """Sends the events of its recorders; one for an identity. ``run`` until cancelled."""

    def __init__(self, api: Api, *, clock: Clock, rng: random.Random) -> None:
        self._api, self._clock, self._random = api, clock, rng
        self._queue: asyncio.Queue[Occurrence] = asyncio.Queue(QUEUE_MAX)
        self._correlator = EventCorrelator()
        self._sequence = 0
        self.dropped = 0

    def recorder(self, component: str, host: str = "") -> EventRecorder:
        return EventRecorder(self, component, host)

    def put(self, occurrence: Occurrence) -> None:
        try:
            self._queue.put_nowait(occurrence)
        except asyncio.QueueFull:
            self.dropped += 1
            log.warning("event dropped, %d wait to be sent: %s %s", QUEUE_MAX, occurrence.reason, occurrence.involved.get("name"))

    async def run(self) -> None:
        while True:
            occurrence = await self._queue.get()
            try:
                await self._send(occurrence)
            finally:
                self._queue.task_done()

    async def drain(self) -> None:
        """Waits until all events put so far have been sent or given up; for tests and an orderly end."""
        await self._queue.join()

    async def _send(self, occurrence: Occurrence) -> None:
        sending = self._correlator.correlate(occurrence, self._clock.monotonic())
        if sending is None:
            self.dropped += 1
            return
        known = sending.known
        namespace = str(occurrence.involved.get("namespace") or "default")
        for attempt in range(SEND_ATTEMPTS_MAX):
            stamp = format_time(self._clock.now())
            try:
                if known is not None:
                    patch = {"count": known.count + 1, "lastTimestamp": stamp, "message": sending.message}
                    await self._api.patch(EVENTS, namespace, known.name, patch, PatchType.STRATEGIC)
                    self._correlator.sent(sending.key, Known(known.name, known.count + 1, known.first))
                else:
                    event = self._event(occurrence, sending.message, namespace, stamp)
                    await self._api.create(EVENTS, namespace, event)
                    self._correlator.sent(sending.key, Known(objects.name(event), 1, stamp))
                return
            except errors.StatusError as error:
                if known is not None and errors.is_not_found(error):
                    known = None  # expired on the server: begin a new one
                    self._correlator.forget(sending.key)
                    continue
                if not errors.is_namespace_terminating(error) and not errors.is_not_found(error):
                    log.warning("the server refused an event (%s): %s", occurrence.reason, error)
                return
            except (errors.ConnectionFailed, errors.DecodeFailed):
                if attempt + 1 < SEND_ATTEMPTS_MAX:
                    await self._clock.sleep(SEND_PAUSE_SECONDS * self._random.random())
        log.warning("event given up after %d tries: %s", SEND_ATTEMPTS_MAX, occurrence.reason)

    def _event(self, occurrence: Occurrence, message: str, namespace: str, stamp: str) -> Object:
        self._sequence += 1  # two events of one moment still have two names, in their order
        suffix = f"{int(self._clock.now().timestamp() * 1e9) + self._sequence:x}"
        source = {"component": occurrence.component}
        if occurrence.host:
            source["host"] = occurrence.host
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{occurrence.involved.get('name')}.{suffix}", "namespace": namespace},
            "involvedObject": occurrence.involved,
            "reason": occurrence.reason,
            "message": message,
            "type": occurrence.type,
            "source": source,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
            "reportingComponent": occurrence.component,
            "reportingInstance": occurrence.host,
        }


class EventRecorder:
    def __init__(self, broadcaster: EventBroadcaster, component: str, host: str) -> None:
        self._broadcaster, self._component, self._host = broadcaster, component, host

    def event(self, about: Object, type_: str, reason: str, message: str, *, field_path: str = "") -> None:
        """``about`` needs apiVersion, kind and metadata. ``type_`` is Normal or Warning."""
        assert type_ in ("Normal", "Warning"), type_
        involved = reference(about)
        if field_path:
            involved["fieldPath"] = field_path
        self._broadcaster.put(
            Occurrence(involved=involved, type=type_, reason=reason, message=_cut(message), component=self._component, host=self._host)
        )


def reference(obj: Object) -> Object:
    """An ObjectReference to the object as it is at this resourceVersion."""
    out = {
        "kind": obj.get("kind"),
        "apiVersion": obj.get("apiVersion"),
        "name": objects.name(obj),
        "namespace": objects.namespace(obj),
        "uid": objects.uid(obj),
        "resourceVersion": objects.resource_version(obj),
    }
    return {k: v for k, v in out.items() if v}


def _cut(message: str) -> str:
    return message if len(message.encode()) <= MESSAGE_MAX else message.encode()[: MESSAGE_MAX - 3].decode("utf-8", "ignore") + "..."
