"""Values of the object store: stored objects, events, selections, and the errors that its callers handle."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apiserver.objectstore import codec

REGISTRY_PREFIX = "/registry/"

FieldsOf = Callable[[dict[str, Any]], dict[str, str]]
LabelMatch = Callable[[Mapping[str, str]], bool]


class ObjectStoreError(Exception):
    """Base of what the object store raises on purpose; the registry turns each into a Status."""


class KeyExistsError(ObjectStoreError):
    """A create found its key taken."""


class KeyNotFoundError(ObjectStoreError):
    """The key is not there."""


class ContendedError(ObjectStoreError):
    """The object changed under every attempt to update it."""


class LostRaceError(ObjectStoreError):
    """What the write rests on was changed by another server, whose change had not arrived here: a claim (an address, a port) is taken,
    or a key that guards it is not as it was. Worth another attempt from the start, once the caches have caught up."""


class ExpiredError(ObjectStoreError):
    """The revision was compacted. ``revision`` is what was asked for, ``oldest`` the oldest that is kept (0: unknown)."""

    def __init__(self, revision: int, oldest: int = 0) -> None:
        super().__init__(f"too old resource version: {revision} ({oldest})")
        self.revision = revision
        self.oldest = oldest


class FutureRevisionError(ObjectStoreError):
    """The revision has not come yet, and did not come within the wait for it."""

    def __init__(self, wanted: int, current: int) -> None:
        super().__init__(f"too large resource version: {wanted}, current: {current}")
        self.wanted = wanted
        self.current = current


class ReadOnlyError(ObjectStoreError):
    """A write to a store that is only read."""


class EncryptionError(ObjectStoreError):
    """A value cannot be encrypted now: a plugin is away. In kube-apiserver's words."""


class Unreadable(enum.Enum):
    """Why a stored value cannot be read."""

    ENCRYPTED = "encrypted"
    UNKNOWN_TYPE = "of an unknown type"
    DAMAGED = "damaged"


class UnreadableObjectError(ObjectStoreError):
    """The object is there, and what is stored of it at ``revision`` cannot be read: the text says it in kube-apiserver's words, ``why``
    without the key."""

    def __init__(self, key: str, path: str, revision: int, reason: Unreadable, why: str) -> None:
        done = "transform" if reason is Unreadable.ENCRYPTED else "decode"
        super().__init__(f'unable to {done} key "{key}": {why}')
        self.path = path
        self.revision = revision
        self.reason = reason
        self.why = why


class StoredObject:
    """One version of one object: ``raw`` is its served form, ``revision`` its resourceVersion.

    Labels and selectable fields are decoded when a selector first needs them and then kept; the rest is decoded on every call of
    ``decode`` unless the kind is one of the few that the server itself reads all the time (``keep_decoded``).
    """

    __slots__ = ("_decoded", "_fields", "_labels", "message", "path", "raw", "revision", "served_as")

    def __init__(self, path: str, raw: bytes, revision: int) -> None:
        self.path = path
        self.raw = raw
        self.revision = revision
        self._labels: Mapping[str, str] | None = None
        self._fields: tuple[FieldsOf | None, Mapping[str, str]] | None = None
        #: of a custom object: the bytes that are served for it, and by whose rules they were made; in several versions where a webhook
        #: makes them
        self.served_as: tuple[object, bytes] | dict[object, bytes] | None = None
        self._decoded: dict[str, Any] | None = None
        #: its protobuf message and the apiVersion of it, once somebody has read the object so
        self.message: tuple[str, bytes] | None = None

    @property
    def namespace(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def decode(self) -> dict[str, Any]:
        """A dict of the caller's own."""
        return codec.decode(self.raw)

    def shared(self) -> dict[str, Any]:
        """A dict that is kept beside the bytes: to be read only."""
        if self._decoded is None:
            self._decoded = codec.decode(self.raw)
        return self._decoded

    def metadata(self) -> bytes:
        """The JSON of the metadata."""
        return codec.metadata_of(self.raw)

    def labels(self) -> Mapping[str, str]:
        if self._labels is None:
            decoded = self._decoded
            found = codec.labels_of(self.raw) if decoded is None else decoded["metadata"].get("labels")
            self._labels = found or _NOTHING
        return self._labels

    def fields(self, fields_of: FieldsOf | None) -> Mapping[str, str]:
        """metadata.name, metadata.namespace and what the kind's strategy makes selectable (in each version something else, with custom
        resources)."""
        kept = self._fields
        if kept is not None and kept[0] == fields_of:
            return kept[1]
        try:
            found = {} if fields_of is None else fields_of(self._decoded or codec.decode(self.raw))
        except (AttributeError, KeyError, TypeError, ValueError):
            # Its parts are not of the kinds that they should be, so that somebody has written it past the API: it has no fields to be
            # selected by. The changes of all objects come through here, which one of them must not end.
            found = {}
        namespace, _, name = self.path.rpartition("/")
        found["metadata.name"], found["metadata.namespace"] = name, namespace
        self._fields = (fields_of, found)
        return found


_NOTHING: Mapping[str, str] = {}


class EventType(enum.Enum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class ChangeEvent:
    """A change of one object, shared by all watchers. For DELETED ``object`` is the last version, with the deletion's revision.

    ``encoded`` keeps one encoded form per (type, form), so that N watchers of one form cost one encoding.
    """

    __slots__ = ("encoded", "object", "previous", "revision", "type")

    def __init__(self, type: EventType, object: StoredObject, previous: StoredObject | None) -> None:
        self.type = type
        self.object = object
        self.previous = previous
        self.revision = object.revision
        self.encoded: dict[Any, bytes] = {}

    def last_matching(self) -> StoredObject:
        """The version before the change under the change's revision: what a watch is told whose selection the object has left."""
        assert self.previous is not None
        raw = codec.served_again(self.previous.raw, self.revision)
        return StoredObject(self.previous.path, raw, self.revision)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which objects of a resource a list or watch is about. ``name`` comes from ``metadata.name=…``; empty strings select all.

    ``trigger``: a field and the one value that ``fields`` demands of it, for the field by which a resource's many watches differ (each
    node watches its own pods): a change then concerns only the watches of its values, not all.
    """

    namespace: str = ""
    name: str = ""
    labels: LabelMatch | None = None
    fields: LabelMatch | None = None
    fields_of: FieldsOf | None = None
    trigger: tuple[str, str] | None = None

    @property
    def selects_by_content(self) -> bool:
        return self.labels is not None or self.fields is not None

    def matches(self, obj: StoredObject) -> bool:
        """Whether ``obj``, of the right namespace and name, passes the selectors."""
        if self.labels is not None and not self.labels(obj.labels()):
            return False
        return self.fields is None or self.fields(obj.fields(self.fields_of))

    def covers(self, obj: StoredObject) -> bool:
        """``matches`` and namespace and name."""
        if self.name and obj.name != self.name:
            return False
        if self.namespace and obj.namespace != self.namespace:
            return False
        return self.matches(obj)


class RevisionMatch(enum.Enum):
    """``resourceVersionMatch``."""

    UNSET = ""
    NOT_OLDER_THAN = "NotOlderThan"
    EXACT = "Exact"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListResult:
    """``next_start`` is where the next page starts ("" at the end), for ``start`` of the next call; ``remaining`` None where it is not
    known: with selectors."""

    objects: list[StoredObject]
    revision: int
    next_start: str = ""
    remaining: int | None = None
    #: why the values of objects of the selection could not be read: they are missing in ``objects``
    unreadable: Sequence[UnreadableObjectError] = ()
