"""ControllerRevisions and status writes, where chance or a late cache comes in the way."""

from __future__ import annotations

import pytest

from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError, conflict
from controllers.client.resources import CONTROLLER_REVISIONS, DAEMON_SETS
from controllers.lib import controller_history
from controllers.lib.controller_history import History
from controllers.lib.status_writer import write_status
from tests.controllers.world import World, template


def owner(image: str = "i:1") -> Object:
    made = template(app="x")
    made["spec"]["containers"][0]["image"] = image
    metadata = {"name": "d", "namespace": "a", "uid": "u", "annotations": {"k": "v"}}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": {"template": made}}


async def test_a_revision_puts_its_template_back() -> None:
    world = World()
    newest = await History(world.api, DAEMON_SETS, "hash").sync(owner(), [])
    assert newest.revision["data"]["spec"]["template"]["$patch"] == "replace"
    assert controller_history.template_of(newest.revision) == owner()["spec"]["template"]
    assert newest.revision["metadata"]["annotations"] == {"k": "v"}


async def test_a_revision_that_the_cache_does_not_show_yet_is_found_and_not_made_twice() -> None:
    world = World()
    history = History(world.api, DAEMON_SETS, "hash")
    first = await history.sync(owner(), [])
    again = await history.sync(owner(), [])
    assert again.revision["metadata"]["uid"] == first.revision["metadata"]["uid"] and again.collision_count is None
    assert len(world.api.all(CONTROLLER_REVISIONS)) == 1


async def test_another_template_under_the_same_name_is_told_apart_by_the_collision_count() -> None:
    world = World()
    history = History(world.api, DAEMON_SETS, "hash")
    made = (await history.sync(owner(), [])).revision
    await world.api.update(CONTROLLER_REVISIONS, {**made, "data": controller_history.patch_of(owner("other")["spec"]["template"])})
    newest = await history.sync(owner(), [])
    assert newest.collision_count == 1 and newest.revision["metadata"]["name"] != made["metadata"]["name"]


async def test_only_idle_revisions_beyond_the_limit_go_and_the_oldest_first() -> None:
    world = World()
    history = History(world.api, DAEMON_SETS, "hash")
    known: list[Object] = []
    for image in ("i:1", "i:2", "i:3", "i:4"):
        known.append((await history.sync(owner(image), known)).revision)
    assert [controller_history.number(r) for r in known] == [1, 2, 3, 4]
    await history.truncate(known[:3], {known[0]["metadata"]["name"]}, 1)
    left = sorted(controller_history.number(r) for r in world.api.all(CONTROLLER_REVISIONS))
    assert left == [1, 3, 4]


async def test_a_status_goes_over_a_newer_version_of_the_object_but_never_on_another() -> None:
    world = World()
    stale = await world.api.create(DAEMON_SETS, "a", {"metadata": {"name": "d"}, "spec": {}})
    await world.api.patch(DAEMON_SETS, "a", "d", {"spec": {"minReadySeconds": 1}})
    stored = await write_status(world.api, DAEMON_SETS, stale, {"numberReady": 1})
    assert stored["status"] == {"numberReady": 1} and stored["spec"] == {"minReadySeconds": 1}
    await world.api.delete(DAEMON_SETS, "a", "d")
    await write_status(world.api, DAEMON_SETS, stored, {"numberReady": 2})
    await world.api.create(DAEMON_SETS, "a", {"metadata": {"name": "d"}, "spec": {}})
    await write_status(world.api, DAEMON_SETS, stored, {"numberReady": 2})
    assert "status" not in world.api.all(DAEMON_SETS)[0]


async def test_a_second_conflict_is_left_to_the_next_sync() -> None:
    world = World()
    made = await world.api.create(DAEMON_SETS, "a", {"metadata": {"name": "d"}, "spec": {}})
    world.api.fail("update", "daemonsets", conflict("apps", "daemonsets", "d", "modified"), times=2)
    with pytest.raises(StatusError):
        await write_status(world.api, DAEMON_SETS, made, {"numberReady": 1})
