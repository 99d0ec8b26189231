"""The collector against a dumb twin on random forests, and the cases that hurt people."""

from __future__ import annotations

import asyncio

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apiserver.machinery.objects import Object
from controllers.client.interface import DeleteOptions, Propagation
from controllers.client.resources import CONFIG_MAPS, NODES, SECRETS, Resource
from controllers.garbagecollector.controller import GarbageCollector
from controllers.garbagecollector.decision import Delete, DropReferences, Keep, OwnerState, judge
from tests.controllers.world import World

VERBS = ["create", "delete", "get", "list", "watch", "patch"]


class Collected(World):
    def __init__(self) -> None:
        super().__init__()
        self.api.raw_answers = {
            "/api": {"versions": ["v1"]},
            "/apis": {"groups": []},
            "/api/v1": {
                "resources": [
                    {"name": r.plural, "kind": r.kind, "namespaced": r.namespaced, "verbs": VERBS} for r in (CONFIG_MAPS, SECRETS, NODES)
                ]
            },
        }

    async def make(
        self, name: str, *owners: Object, namespace: str = "a", resource: Resource = CONFIG_MAPS, blocks: bool = False, **metadata: object
    ) -> Object:
        references = [
            {
                "apiVersion": "v1",
                "kind": o["kind"],
                "name": o["metadata"]["name"],
                "uid": o["metadata"]["uid"],
                **({"blockOwnerDeletion": True} if blocks else {}),
            }
            for o in owners
        ]
        made = {"metadata": {"name": name, **({"ownerReferences": references} if references else {}), **metadata}}
        return await self.api.create(resource, namespace if resource.namespaced else "", made)

    async def delete(self, name: str, propagation: Propagation | None = None, namespace: str = "a") -> None:
        await self.api.delete(CONFIG_MAPS, namespace, name, DeleteOptions(propagation=propagation))
        await self.rest()

    def names(self, resource: Resource = CONFIG_MAPS) -> set[str]:
        return {o["metadata"]["name"] for o in self.api.all(resource)}

    def owners(self, name: str) -> list[str]:
        found = next(o for o in self.api.all(CONFIG_MAPS) if o["metadata"]["name"] == name)
        return [r["name"] for r in found["metadata"].get("ownerReferences") or []]


async def test_dependents_of_a_deleted_owner_go_down_to_the_leaves() -> None:
    world = Collected()
    one = await world.make("one")
    two = await world.make("two", one)
    await world.make("three", two)
    await world.make("other")
    async with world.running(GarbageCollector):
        assert world.names() == {"one", "two", "three", "other"}
        await world.delete("one")
        assert world.names() == {"other"}


async def test_a_second_owner_keeps_the_dependent_and_only_the_dead_reference_goes() -> None:
    world = Collected()
    one, two = await world.make("one"), await world.make("two")
    await world.make("kid", one, two)
    async with world.running(GarbageCollector):
        await world.delete("one")
        assert world.owners("kid") == ["two"]
        await world.delete("two")
        assert world.names() == set()


async def test_an_owner_made_anew_under_the_same_name_is_another_owner() -> None:
    world = Collected()
    one = await world.make("one")
    await world.make("kid", one)
    await world.api.delete(CONFIG_MAPS, "a", "one")
    await world.make("one")
    async with world.running(GarbageCollector):
        assert world.names() == {"one"}


async def test_an_owner_that_never_was_collects_its_dependent_and_an_unseen_one_is_asked_for() -> None:
    world = Collected()
    ghost: Object = {"kind": "ConfigMap", "metadata": {"name": "ghost", "uid": "ghost"}}
    async with world.running(GarbageCollector):
        await world.make("lost", ghost)
        await world.rest()
        assert world.names() == set()
        world.api.hold_watches("secrets")
        hidden = await world.make("hidden", resource=SECRETS)
        await world.make("kid", hidden)
        await world.rest()
        assert world.names() == {"kid"}, "its owner exists, though no monitor has shown it"


async def test_orphaning_keeps_the_dependents_without_the_reference() -> None:
    world = Collected()
    one, two = await world.make("one"), await world.make("two")
    await world.make("kid", one, two)
    async with world.running(GarbageCollector):
        await world.delete("one", Propagation.ORPHAN)
        assert world.names() == {"two", "kid"} and world.owners("kid") == ["two"]


async def test_in_the_foreground_blocking_dependents_go_before_their_owner() -> None:
    world = Collected()
    one = await world.make("one")
    await world.make("blocks", one, blocks=True, finalizers=["x/y"])
    await world.make("lets", one, finalizers=["x/y"])
    async with world.running(GarbageCollector):
        await world.delete("one", Propagation.FOREGROUND)
        assert world.names() == {"one", "blocks", "lets"}
        await world.api.patch(CONFIG_MAPS, "a", "blocks", {"metadata": {"finalizers": None}})
        await world.rest()
        assert world.names() == {"lets"}


async def test_a_circle_in_the_foreground_is_broken() -> None:
    world = Collected()
    one = await world.make("one")
    two = await world.make("two", one, blocks=True)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "two", "uid": two["metadata"]["uid"], "blockOwnerDeletion": True}
    await world.api.patch(CONFIG_MAPS, "a", "one", {"metadata": {"ownerReferences": [reference]}})
    async with world.running(GarbageCollector):
        await world.delete("one", Propagation.FOREGROUND)
        await world.advance(5)
        assert world.names() == set()


async def test_an_owner_in_another_namespace_does_not_count_in_either_order() -> None:
    for kid_first in (True, False):
        world = Collected()
        async with world.running(GarbageCollector):
            if kid_first:
                world.api.hold_watches("configmaps")
            own = await world.make("own", namespace="b")
            if not kid_first:
                await world.rest()
            await world.make("kid", own, namespace="a")
            world.api.release_watches("configmaps")
            await world.rest()
            assert world.names() == {"own"}
            (event,) = world.events("OwnerRefInvalidNamespace")
            assert event["type"] == "Warning" and event["metadata"]["namespace"] == "a" and event["involvedObject"]["name"] == "kid"


async def test_a_cluster_wide_object_that_names_a_namespaced_owner_is_kept() -> None:
    world = Collected()
    own = await world.make("own")
    async with world.running(GarbageCollector):
        await world.make("n", own, resource=NODES)
        await world.rest()
        await world.delete("own")
        await world.rest()
        assert world.names(NODES) == {"n"} and world.events("OwnerRefInvalidNamespace")


async def test_a_new_resource_is_monitored_after_discovery_shows_it() -> None:
    world = Collected()
    things = Resource("", "v1", "things", "Thing")
    async with world.running(GarbageCollector):
        world.api.raw_answers["/api/v1"]["resources"].append({"name": "things", "kind": "Thing", "namespaced": True, "verbs": VERBS})
        await world.advance(31)
        one = await world.make("one")
        await world.make("kid", one, resource=things)
        await world.delete("one")
        assert world.names(things) == set()


def test_verdicts() -> None:
    a, b = {"uid": "a"}, {"uid": "b"}
    plain: Object = {"metadata": {}}

    def verdict(obj: Object, *owners: tuple[Object, OwnerState], dependents: bool = False, wait: bool = False) -> object:
        return judge(obj, owners, has_dependents=dependents, dependents_wait=wait)

    solid, absent, waiting = OwnerState.SOLID, OwnerState.ABSENT, OwnerState.WAITING
    assert verdict(plain) == Keep()
    assert verdict(plain, (a, solid)) == Keep()
    assert verdict(plain, (a, solid), (b, absent)) == DropReferences(frozenset({"b"}))
    assert verdict(plain, (a, solid), (b, waiting)) == DropReferences(frozenset({"b"}))
    assert verdict(plain, (a, absent)) == Delete(Propagation.BACKGROUND)
    assert verdict(plain, (a, waiting), dependents=True) == Delete(Propagation.FOREGROUND)
    assert verdict(plain, (a, waiting), dependents=True, wait=True) == Delete(Propagation.FOREGROUND, unblock_first=True)
    assert verdict({"metadata": {"finalizers": ["orphan"]}}, (a, absent)) == Delete(Propagation.ORPHAN)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.sets(st.integers(0, 7), max_size=3), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 7), st.sampled_from([None, Propagation.ORPHAN, Propagation.FOREGROUND])), max_size=4),
)
def test_it_does_what_a_dumb_twin_does(parents: list[set[int]], deletions: list[tuple[int, Propagation | None]]) -> None:
    """Object i has as owners those of its set below i. The twin deletes and drops references one by one until nothing changes."""
    owners = {i: {p for p in parent if p < i} for i, parent in enumerate(parents)}
    twin = {i: set(o) for i, o in owners.items()}
    for number, propagation in deletions:
        if number not in twin:
            continue
        del twin[number]
        if propagation is Propagation.ORPHAN:
            for references in twin.values():
                references.discard(number)
        changed = True
        while changed:
            changed = False
            for i in sorted(twin):
                dead = {p for p in twin[i] if p not in twin}
                if dead and dead == twin[i]:
                    del twin[i]
                    changed = True
                elif dead:
                    twin[i] -= dead

    async def really() -> dict[int, set[int]]:
        world = Collected()
        made: dict[int, Object] = {}
        for i, parent in owners.items():
            made[i] = await world.make(f"o{i}", *(made[p] for p in sorted(parent)), blocks=True)
        async with world.running(GarbageCollector):
            for number, propagation in deletions:
                if f"o{number}" in world.names():
                    await world.delete(f"o{number}", propagation)
                    await world.advance(1)
            return {int(name[1:]): {int(o[1:]) for o in world.owners(name)} for name in world.names()}

    assert asyncio.run(really()) == twin
