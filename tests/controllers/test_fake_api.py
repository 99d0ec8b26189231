"""The fake does what the controllers' tests trust it for."""

from __future__ import annotations

import pytest

from apiserver.machinery.status import StatusError
from controllers.client.interface import DeleteOptions, ListOptions, PatchType, Propagation, WatchEvent, list_all
from controllers.client.resources import CONFIG_MAPS, PODS
from tests.controllers.fake_api import FakeApi
from tests.controllers.virtual_clock import VirtualClock


def config_map(name: str, **metadata: object) -> dict[str, object]:
    return {"metadata": {"name": name, **metadata}}


async def test_an_update_with_an_old_version_conflicts() -> None:
    api = FakeApi(VirtualClock())
    created = await api.create(CONFIG_MAPS, "a", config_map("x"))
    await api.update(CONFIG_MAPS, {**created, "data": {"k": "1"}})
    with pytest.raises(StatusError) as refused:
        await api.update(CONFIG_MAPS, {**created, "data": {"k": "2"}})
    assert refused.value.code == 409


async def test_a_finalizer_holds_an_object_until_it_is_removed() -> None:
    api = FakeApi(VirtualClock())
    await api.create(CONFIG_MAPS, "a", config_map("x", finalizers=["x/y"]))
    await api.delete(CONFIG_MAPS, "a", "x", DeleteOptions(propagation=Propagation.FOREGROUND))
    held = await api.get(CONFIG_MAPS, "a", "x")
    assert held["metadata"]["finalizers"] == ["x/y", "foregroundDeletion"] and held["metadata"]["deletionTimestamp"]
    await api.patch(CONFIG_MAPS, "a", "x", {"metadata": {"finalizers": None}})
    with pytest.raises(StatusError):
        await api.get(CONFIG_MAPS, "a", "x")


async def test_a_watch_gives_what_came_after_its_version_in_order() -> None:
    api = FakeApi(VirtualClock())
    await api.create(CONFIG_MAPS, "a", config_map("before"))
    _, version = await list_all(api, CONFIG_MAPS)
    for name in ("x", "y"):
        await api.create(CONFIG_MAPS, "a", config_map(name))
    await api.delete(CONFIG_MAPS, "a", "x")
    seen: list[WatchEvent] = []
    async for event in api.watch(CONFIG_MAPS, options=ListOptions(resource_version=version)):
        seen.append(event)
        if len(seen) == 3:
            break
    assert [(e.type, e.object["metadata"]["name"]) for e in seen] == [("ADDED", "x"), ("ADDED", "y"), ("DELETED", "x")]


async def test_pages_are_joined() -> None:
    api = FakeApi(VirtualClock())
    for number in range(5):
        await api.create(CONFIG_MAPS, "a", config_map(f"x{number}"))
    items, _ = await list_all(api, CONFIG_MAPS, "a", ListOptions(limit=2))
    assert [i["metadata"]["name"] for i in items] == [f"x{n}" for n in range(5)]


async def test_strategic_patches_merge_and_delete_owner_references_by_uid() -> None:
    api = FakeApi(VirtualClock())
    await api.create(PODS, "a", config_map("p", ownerReferences=[{"uid": "1", "name": "one"}]))
    await api.patch(PODS, "a", "p", {"metadata": {"ownerReferences": [{"uid": "2", "name": "two"}]}}, PatchType.STRATEGIC)
    both = await api.get(PODS, "a", "p")
    assert [r["uid"] for r in both["metadata"]["ownerReferences"]] == ["1", "2"]
    await api.patch(PODS, "a", "p", {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": "1"}]}}, PatchType.STRATEGIC)
    assert [r["uid"] for r in (await api.get(PODS, "a", "p"))["metadata"]["ownerReferences"]] == ["2"]
