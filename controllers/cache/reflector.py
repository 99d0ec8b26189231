"""``Reflector``: keeps a sink equal to one resource of the server, by list and watch (client-go ``reflector.go``).

The life of a reflector:
 1. list, in pages and consistently (no resourceVersion) → ``sink.replace``. client-go asks for "0", any state that the server holds in
    memory; a controller that starts on such a list could create again what its predecessor has just created
 2. watch from the list's resourceVersion; each event goes to the sink and moves the resourceVersion on; bookmarks only move it on
 3. the stream ends, breaks, or the server is away: watch again from the last resourceVersion after a backoff
 4. 410 Gone (that revision is compacted) or a revision the server has not: list again, back to 2
"""

from __future__ import annotations

import logging
import random
from typing import Protocol

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.client import errors
from controllers.client.interface import Api, ListOptions, WatchEvent, list_all
from controllers.client.resources import Resource
from controllers.lib.clock import Clock

#: Objects a page: keeps one answer below about 5 MB for pods.
PAGE_SIZE = 500
#: A watch asks the server for a time-out between once and twice this, so that many watches do not end together.
WATCH_TIMEOUT_SECONDS = 300
#: Waits between failures: from the first, doubling up to the second, times a random factor of 1 … 1.5. A server that is started again is
#: found soon, and many clients do not all come at once.
BACKOFF_SECONDS = 0.1
BACKOFF_SECONDS_MAX = 10.0
#: A watch that held this long begins the backoff anew.
BACKOFF_RESET_SECONDS = 10.0
#: so many failures in a row are no more than a server being started again
QUIET_FAILURES = 4

log = logging.getLogger(__name__)


class Sink(Protocol):
    def add(self, obj: Object) -> None: ...
    def update(self, obj: Object) -> None: ...
    def delete(self, obj: Object) -> None: ...
    def replace(self, found: list[Object]) -> None: ...


class _ListAgain(Exception):
    """The watch cannot go on from where it was."""


class Reflector:
    def __init__(
        self,
        api: Api,
        resource: Resource,
        sink: Sink,
        *,
        clock: Clock,
        rng: random.Random,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> None:
        self._api, self._resource, self._sink, self._clock, self._random = api, resource, sink, clock, rng
        self._namespace = namespace
        self._label_selector, self._field_selector, self._metadata_only = label_selector, field_selector, metadata_only
        #: of the last list or event; "" before the first list
        self.resource_version = ""
        #: counts for tests and metrics
        self.lists = 0
        self.watches = 0
        self._failures = 0

    async def run(self) -> None:
        """Runs until cancelled. What goes wrong on the server's side is logged and tried again; it never raises for that."""
        while True:
            listed = self._clock.monotonic()
            try:
                await self._list()
                await self._watch_until_list_again()
            except _ListAgain as reason:
                log.info("listing %s again: %s", self._resource.qualified, reason)
                if self._clock.monotonic() - listed < BACKOFF_RESET_SECONDS:
                    await self._back_off("watch", None)  # else a server that compacts at once would be listed without end
            except errors.TRANSIENT as error:
                await self._back_off("list", error)

    async def _list(self) -> None:
        self.lists += 1
        options = ListOptions(
            label_selector=self._label_selector, field_selector=self._field_selector, metadata_only=self._metadata_only, limit=PAGE_SIZE
        )
        items, version = await list_all(self._api, self._resource, self._namespace, options)
        for item in items:
            # the items of a typed list leave out what the list says once
            item.setdefault("kind", self._resource.kind)
            item.setdefault("apiVersion", self._resource.api_version)
        self._sink.replace(items)
        self.resource_version = version

    async def _watch_until_list_again(self) -> None:
        while True:
            started = self._clock.monotonic()
            try:
                await self._watch_once()
            except errors.TRANSIENT as error:
                if errors.is_expired(error) or errors.is_too_large_resource_version(error):
                    raise _ListAgain(str(error)) from error
                if self._clock.monotonic() - started >= BACKOFF_RESET_SECONDS:
                    self._failures = 0
                await self._back_off("watch", error)
            else:
                # A stream that ended in peace is asked for again at once, unless that happens too quickly.
                if self._clock.monotonic() - started < 1.0:
                    await self._back_off("watch", None)
                else:
                    self._failures = 0

    async def _watch_once(self) -> None:
        self.watches += 1
        timeout = int(WATCH_TIMEOUT_SECONDS * (1 + self._random.random()))
        options = ListOptions(
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            metadata_only=self._metadata_only,
            resource_version=self.resource_version,
            allow_watch_bookmarks=True,
            timeout_seconds=timeout,
        )
        stream = self._api.watch(self._resource, self._namespace, options)
        try:
            async for event in stream:
                self._take(event)
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()

    def _take(self, event: WatchEvent) -> None:
        if event.type == "ERROR":
            raise errors.status_error(int(event.object.get("code") or 500), event.object, {})
        obj = event.object
        version = objects.resource_version(obj)
        if event.type != "BOOKMARK":
            obj.setdefault("kind", self._resource.kind)
            obj.setdefault("apiVersion", self._resource.api_version)
        if event.type == "ADDED":
            self._sink.add(obj)
        elif event.type == "MODIFIED":
            self._sink.update(obj)
        elif event.type == "DELETED":
            self._sink.delete(obj)
        elif event.type != "BOOKMARK":
            raise errors.DecodeFailed(f"watch of {self._resource.qualified}: unknown event type {event.type!r}")
        if version:
            self.resource_version = version

    async def _back_off(self, what: str, error: Exception | None) -> None:
        delay = min(BACKOFF_SECONDS * 2**self._failures, BACKOFF_SECONDS_MAX) * (1 + self._random.random() / 2)
        self._failures = min(self._failures + 1, 16)
        if error is not None:
            level = logging.INFO if self._failures <= QUIET_FAILURES else logging.WARNING
            log.log(level, "%s of %s failed, again in %.1f s: %s", what, self._resource.qualified, delay, error)
        await self._clock.sleep(delay)
