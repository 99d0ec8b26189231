"""Selection of objects that only a webhook can show in the version that is asked for: labels and fields are those of the version that is
read, so that objects are converted before selectors see them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from apiserver.objectstore.cache_watcher import Delivery, transition
from apiserver.objectstore.interface import ChangeEvent, ListResult, RevisionMatch, Selection, StoredObject

if TYPE_CHECKING:
    from apiserver.registry.store import Store

#: Objects that are read, and converted, at once to fill a page of a selective list.
PAGE_OBJECTS = 500


def without_content(selection: Selection) -> Selection:
    """What can be decided before anything is converted: namespace and name."""
    return Selection(namespace=selection.namespace, name=selection.name)


def matching(store: Store, selection: Selection, objects: Sequence[StoredObject]) -> list[StoredObject]:
    """Those of the selection, of objects that are converted already."""
    return [obj for obj in objects if selection.matches(store.selectable(obj))]


async def list_objects(
    store: Store, selection: Selection, *, revision: int, match: RevisionMatch, limit: int, start: str, start_revision: int
) -> ListResult:
    """As ``KvObjectStorage.list_objects``. Raises StatusError beside what that raises."""
    wide = without_content(selection)
    found: list[StoredObject] = []
    first: ListResult | None = None
    while True:
        page = await store.storage.list_objects(
            wide, revision=revision, match=match, limit=max(limit, PAGE_OBJECTS) if limit else 0, start=start, start_revision=start_revision
        )
        first = first or page
        await store.ready(page.objects)
        for position, obj in enumerate(page.objects, 1):
            if not selection.matches(store.selectable(obj)):
                continue
            found.append(obj)
            if revision and len(found) == limit and (position < len(page.objects) or page.next_start):
                return dataclasses.replace(first, objects=found, next_start=f"{obj.path}\0", remaining=None)
        if not page.next_start:
            return dataclasses.replace(first, objects=found, next_start="", remaining=None)
        start, start_revision = page.next_start, page.revision


async def delivery(store: Store, selection: Selection, event: ChangeEvent) -> Delivery | None:
    """What a change is to a watch with this selection; None: nothing. Raises StatusError."""
    await store.ready([obj for obj in (event.object, event.previous) if obj is not None])
    previous = None if event.previous is None else store.selectable(event.previous)
    return transition(ChangeEvent(event.type, store.selectable(event.object), previous), selection)
