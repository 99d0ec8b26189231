"""Definitions in the lives of API servers: restarts, and several servers over one store."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from apiserver.config import ServerConfig
from tests.apiserver.api import Api, running
from tests.apiserver.apiextensions.definitions import CRDS, GADGETS, NAME, condition, definition, established, gadget, until
from tests.fakes.memory_kv import MemoryKV


async def namespaced(api: Api) -> None:
    await api.created("/api/v1/namespaces", {"metadata": {"name": "ns-a"}})


@contextlib.asynccontextmanager
async def two_servers(config: ServerConfig) -> AsyncIterator[tuple[Api, Api]]:
    kv = MemoryKV()
    async with running(config, kv) as first, running(config, kv) as second:
        await namespaced(first)
        yield first, second


async def test_after_a_restart_all_is_served_as_before(server_config: ServerConfig) -> None:
    kv = MemoryKV()
    async with running(server_config, kv) as api:
        await namespaced(api)
        await established(api, definition())
        made = await api.created(GADGETS, gadget(spec={"color": "red"}))
    async with running(server_config, kv) as api:
        assert (await api.get(f"{GADGETS}/g1")).json == made
        async with api.watch(GADGETS, resourceVersion=made["metadata"]["resourceVersion"]) as watch:
            await api.patch(f"{GADGETS}/g1", {"spec": {"color": "blue"}})
            assert (await watch.next())["object"]["spec"]["color"] == "blue"


async def test_a_deletion_that_a_server_began_another_finishes(server_config: ServerConfig) -> None:
    kv = MemoryKV()
    async with running(server_config, kv) as api:
        await namespaced(api)
        await established(api, definition())
        held = gadget()
        held["metadata"]["finalizers"] = ["demo.test/hold"]
        await api.created(GADGETS, held)
        await api.delete(f"{CRDS}/{NAME}")
    async with running(server_config, kv) as api:
        crd = await until(api, f"{CRDS}/{NAME}", lambda found: condition(found, "Terminating").get("status") == "True")
        assert crd.status == 200
        await api.patch(f"{GADGETS}/g1", {"metadata": {"finalizers": None}})
        await until(api, f"{CRDS}/{NAME}", lambda found: found.status == 404)


async def test_what_one_server_establishes_the_others_serve(server_config: ServerConfig) -> None:
    async with two_servers(server_config) as (first, second):
        await established(first, definition())
        assert (await second.post(GADGETS, gadget())).status == 201
        assert (await first.get(f"{GADGETS}/g1")).status == 200
        # two servers have seen it, one has written its status, once
        managers = (await first.get(f"{CRDS}/{NAME}")).json["metadata"]["managedFields"]
        assert [entry["subresource"] for entry in managers if entry["manager"] == "kube-apiserver"] == ["status"]
        await second.delete(f"{CRDS}/{NAME}")
        await until(first, f"{CRDS}/{NAME}", lambda found: found.status == 404)
        for api in (first, second):
            await until(api, GADGETS, lambda found: found.body == b"404 page not found\n")


async def test_two_servers_give_a_name_to_one_definition(server_config: ServerConfig) -> None:
    async with two_servers(server_config) as (first, second):
        await first.created(CRDS, definition())
        await second.created(CRDS, definition(plural="gadgetz", kind="Gadget", singular="gadgetz"))
        await until(first, f"{CRDS}/{NAME}", lambda answer: condition(answer, "Established").get("status") == "True")
        other = await until(second, f"{CRDS}/gadgetz.demo.test", lambda answer: bool(condition(answer, "NamesAccepted")))
        assert condition(other, "NamesAccepted")["reason"] == "ListKindConflict"
