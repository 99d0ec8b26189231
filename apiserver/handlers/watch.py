"""WATCH: a stream of events that starts at once, never waits for a slow reader, and ends cleanly."""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from apiserver.handlers import forms
from apiserver.handlers.reading import bad_version
from apiserver.handlers.response import Send
from apiserver.handlers.scope import ResourceScope
from apiserver.handlers.selection import selection_of
from apiserver.machinery import resource_version
from apiserver.machinery.objects import Object, unstored_metadata
from apiserver.machinery.status import StatusError
from apiserver.machinery.table import IncludeObject
from apiserver.objectstore.cache_watcher import Bookmark, CacheWatcher
from apiserver.objectstore.interface import ChangeEvent, EventType, Selection, StoredObject
from apiserver.request.body import Receive
from apiserver.request.negotiation import JSON, PROTOBUF, Form, Negotiated
from apiserver.request.options import list_options
from apiserver.request.request_context import RequestContext

#: How often a client that asked for bookmarks gets one, in seconds; and how long before the end of a timed watch the last comes.
BOOKMARK_SECONDS = 60.0
BOOKMARK_BEFORE_END_SECONDS = 2.0
#: The longest watch: a client that wants longer starts again.
TIMEOUT_SECONDS_MAX = 24 * 3600
#: A reader that has not taken the rest of a watch so long after its end is cut off.
END_GRACE_SECONDS = 10.0
#: The initial state, and what a slow reader has missed, is sent in pieces of about this size.
PIECE_BYTES = 256 * 1024

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_ADDED = b'{"type":"ADDED","object":'

#: In the ASGI scope, where the server has it: ``write_chunk(framed) -> bool`` writes a chunk of the response at once, if it can; of
#: nothing it only tells whether it could.
WRITE_CHUNK_KEY = "sampan.write_chunk"

EncodeEvent = Callable[[EventType, ChangeEvent], bytes]


async def watch(scope: ResourceScope, context: RequestContext, receive: Receive, send: Send, min_timeout_seconds: int) -> None:
    """Without ``timeoutSeconds`` a watch lasts one to two times ``min_timeout_seconds``, at random, so that clients that came together
    do not come back together."""
    negotiated = scope.negotiate(context, watch=True)
    store, info = scope.store, context.info
    options = list_options(context.query)
    namespace = info.namespace if store.info.namespaced else ""
    name = info.parts[1] if len(info.parts) > 1 else ""
    selection = selection_of(store, namespace, name, options.label_selector, options.field_selector)
    if negotiated.form is Form.TABLE:
        forms.include_object(context)  # a bad value is told before the stream starts
    try:
        revision = options.revision()
    except resource_version.ResourceVersionError as error:
        raise bad_version(scope, error) from error
    initial, bookmarks = options.send_initial_events, options.allow_watch_bookmarks
    stream = _Stream(scope, context, negotiated, selection)
    timeout = options.timeout_seconds or int(min_timeout_seconds * (1 + random.random()))
    try:
        watcher, objects = await store.watch(selection, revision, with_state=initial, initial_events_end=bool(initial) and bookmarks)
    except StatusError as error:
        if error.code not in (410, 504):
            raise
        # the request is right, so that the refusal comes as an event
        await stream.start(send)
        await send({"type": "http.response.body", "body": stream.event("ERROR", stream.dumps(error.status))})
        return
    await _serve(stream, watcher, objects, receive, send, min(timeout, TIMEOUT_SECONDS_MAX), bookmarks)


async def _serve(
    stream: _Stream,
    watcher: CacheWatcher,
    objects: list[StoredObject],
    receive: Receive,
    send: Send,
    timeout_seconds: float,
    bookmarks: bool,
) -> None:
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    storage = stream.scope.store.storage
    timers: list[asyncio.TimerHandle] = []

    def bookmark() -> None:
        watcher.bookmark(storage.current_revision())
        timers[0] = loop.call_later(BOOKMARK_SECONDS, bookmark)

    if bookmarks:
        until_last = timeout_seconds - BOOKMARK_BEFORE_END_SECONDS
        timers.append(loop.call_later(BOOKMARK_SECONDS, bookmark))
        if until_last > 0:
            timers.append(loop.call_later(until_last, lambda: watcher.bookmark(storage.current_revision())))
    timers.append(loop.call_later(timeout_seconds, watcher.end))
    timers.append(loop.call_later(timeout_seconds + END_GRACE_SECONDS, watcher.cut))
    gone = asyncio.ensure_future(_disconnected(receive, watcher))
    watcher.on_overflow = task.cancel
    direct = stream.direct()
    remote = stream.scope.store.converts_remotely
    try:
        await stream.start(send)
        for piece in stream.initial(objects):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await asyncio.sleep(0)  # a large state leaves others their turn
        objects.clear()  # a watch lives for hours, and these versions would with it
        while True:
            batch = watcher.take(PIECE_BYTES)
            if batch:
                body = await stream.converted(batch) if remote else stream.encode(batch)
                if body:
                    await send({"type": "http.response.body", "body": body, "more_body": True})
                if stream.failed:
                    break
            elif watcher.ended:
                break
            else:
                watcher.direct = None if remote else direct
                await watcher.wait()
                watcher.direct = None
        if not gone.done():
            await send({"type": "http.response.body", "body": b""})
    except asyncio.CancelledError:
        # too slow a reader: the connection is cut (the response stays without its end), the client resumes from what it has
        if not watcher.overflowed or task.cancelling() > 1:
            raise
        task.uncancel()
    finally:
        watcher.on_overflow = None
        watcher.end()
        gone.cancel()
        for timer in timers:
            timer.cancel()


async def _disconnected(receive: Receive, watcher: CacheWatcher) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    watcher.end()


class _Stream:
    """Encoding of one watch's events: ``event`` frames one of a type and an object's bytes, which ``dumps`` makes of a dict."""

    def __init__(self, scope: ResourceScope, context: RequestContext, negotiated: Negotiated, selection: Selection) -> None:
        self.scope = scope
        self._selection = selection
        self._context = context
        self._negotiated = negotiated
        self._columns_sent = False
        #: an event could not be told: the watch ends
        self.failed = False
        self.event: Callable[[str, bytes], bytes] = _line
        self.dumps: Callable[[dict[str, Any]], bytes] = orjson.dumps
        self._show: Callable[[StoredObject], bytes] = scope.store.served
        self._content_type = JSON
        self._added_frames: Callable[[list[StoredObject]], bytes] | None = None
        # the encoded event is shared by all watches of this version and form
        self._key: Any = scope.info.api_version
        self._encode: EncodeEvent = self._encode_shared
        if negotiated.form is Form.METADATA:
            self._key = (negotiated.version, "metadata")
            self._show = functools.partial(forms.partial_of, version=negotiated.version)
        elif negotiated.form is Form.TABLE:
            self._key = None
            self._encode = self._encode_table
        if negotiated.media_type == PROTOBUF:
            from apiserver.handlers import protobuf_answers  # only where a client asks for it
            from apiserver.schemas import protobuf

            self.event, self.dumps = protobuf_answers.frame, protobuf.encode
            show = protobuf_answers.metadata_bytes if negotiated.form is Form.METADATA else protobuf_answers.object_bytes
            self._show = functools.partial(show, scope, negotiated.version)
            self._content_type = protobuf_answers.STREAM
            if negotiated.form is Form.OBJECT:
                self._added_frames = functools.partial(protobuf_answers.added_frames, scope)
            self._key = (PROTOBUF, self._key)

    async def start(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", self._content_type.encode())]})
        # an empty piece makes the server send the head now, not with the first event
        await send({"type": "http.response.body", "body": b"", "more_body": True})

    def initial(self, objects: list[StoredObject]) -> Iterator[bytes]:
        """The state that the watch begins with, in pieces. Its lines are nobody else's, so that they are not kept."""
        first, size = 0, 0
        for position, obj in enumerate(objects, 1):
            size += len(obj.raw)
            if size >= PIECE_BYTES:
                yield self._added(objects[first:position])
                first, size = position, 0
        if first < len(objects):
            yield self._added(objects[first:])

    def _added(self, objects: list[StoredObject]) -> bytes:
        if self._negotiated.form is Form.TABLE:
            return b"".join([self._table_line("ADDED", self.scope.store.decode(obj)) for obj in objects])
        show = self._show
        if self._added_frames is not None:
            return self._added_frames(objects)
        if self.event is not _line:
            return b"".join([self.event("ADDED", show(obj)) for obj in objects])
        return b"%b%b}\n" % (_ADDED, (b"}\n" + _ADDED).join([show(obj) for obj in objects]))

    def encode(self, batch: list[Any]) -> bytes:
        """Everything that waits, in one piece."""
        lines = []
        for entry in batch:
            if isinstance(entry, Bookmark):
                lines.append(self._bookmark(entry))
            else:
                lines.append(self._encode(*entry))
        return lines[0] if len(lines) == 1 else b"".join(lines)

    async def converted(self, batch: list[Any]) -> bytes:
        """The same where a webhook has to convert the objects first, and selectors see what it made. Where it cannot, that is the last
        event."""
        store = self.scope.store
        pieces: list[bytes] = []
        try:
            await store.ready([entry[1].object for entry in batch if not isinstance(entry, Bookmark)])
            for entry in batch:
                told = entry if isinstance(entry, Bookmark) else await store.delivery(self._selection, entry[1])
                if told is not None:
                    pieces.append(await store.settled(functools.partial(self.encode, [told])))
        except StatusError as error:
            self.failed = True
            pieces.append(self.event("ERROR", self.dumps(error.status)))
        return b"".join(pieces)

    def direct(self) -> Callable[[list[Any]], bool] | None:
        """A way to write events without waking the handler, which costs more than the writing: the framed chunk of one event is the same
        bytes for all watches of this form."""
        write_chunk: Callable[[bytes], bool] | None = self._context.extra.get(WRITE_CHUNK_KEY)
        if write_chunk is None or self._key is None:
            return None
        shared_key = self._key

        def write(batch: list[Any]) -> bool:
            if not write_chunk(b""):
                return False  # before anything is encoded for a reader that does not read
            if len(batch) == 1 and not isinstance(batch[0], Bookmark):
                type, event = batch[0]
                key = (type, shared_key, "chunk")
                framed = event.encoded.get(key)
                if framed is None:
                    framed = event.encoded[key] = _framed(self._line_of(type, event))  # the line itself is not kept as well
                return write_chunk(framed)
            return write_chunk(_framed(self.encode(batch)))

        return write

    def _encode_shared(self, type: EventType, event: ChangeEvent) -> bytes:
        key = (type, self._key)
        line = event.encoded.get(key)
        if line is None:
            line = event.encoded[key] = self._line_of(type, event)
        return line

    def _line_of(self, type: EventType, event: ChangeEvent) -> bytes:
        return self.event(type.value, self._show(_subject(type, event)))

    def _encode_table(self, type: EventType, event: ChangeEvent) -> bytes:
        return self._table_line(type.value, self.scope.store.decode(_subject(type, event)))

    def _table_line(self, type: str, obj: Object, at_least: IncludeObject | None = None) -> bytes:
        metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        first, self._columns_sent = not self._columns_sent, True
        table = forms.table(self.scope, self._negotiated, self._context, [obj], metadata, columns=first, at_least=at_least)
        return _line(type, orjson.dumps(table))

    def _bookmark(self, bookmark: Bookmark) -> bytes:
        info = self.scope.info
        metadata: Object = {"resourceVersion": str(bookmark.revision)}
        if info.builtin:
            metadata = unstored_metadata(**metadata)
        if bookmark.initial_events_end:
            metadata["annotations"] = {_INITIAL_EVENTS_END: "true"}
        obj: dict[str, Any] = {"kind": info.kind, "apiVersion": info.api_version, "metadata": metadata}
        if self._negotiated.form is Form.METADATA:
            obj = forms.partial(obj, self._negotiated.version)
        elif self._negotiated.form is Form.TABLE:
            # a row like others, of an object without content; the mark has to be in it, also where objects are not asked for
            return self._table_line("BOOKMARK", obj, IncludeObject.METADATA if bookmark.initial_events_end else None)
        return self.event("BOOKMARK", self.dumps(obj))


def _subject(type: EventType, event: ChangeEvent) -> StoredObject:
    """What an event shows. Where a change makes an object leave the selection, that is its last state inside, with the new revision."""
    if type is not EventType.DELETED or event.type is EventType.DELETED:
        return event.object
    return event.last_matching()


def _framed(body: bytes) -> bytes:
    """RFC 9112 §7.1."""
    return b"%x\r\n%b\r\n" % (len(body), body)


def _line(type: str, raw: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (type.encode(), raw)
