"""Two API servers on one store: what a client did through one holds at the other, at once, and what only one may have only one gets."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from apiserver.config import ServerConfig
from apiserver.kubernetes_endpoints import ApiAddress, KubernetesEndpoints
from storage import api as storage_api
from storage.etcdclient import ClientConfig, EtcdKV
from tests.apiserver.api import Answer, Api, running
from tests.fakes.follower_kv import FollowerKV
from tests.fakes.memory_kv import MemoryKV
from tests.fakes.travelling_kv import TravellingKV
from tests.storage.etcd_process import EtcdProcess

NS = "/api/v1/namespaces/ns-a"
SERVICES = f"{NS}/services"
KINDS = ("follower", "travelling", "travelling-old")
#: on a real etcd too in every run; with SAMPAN_TEST_ETCD all are
ALSO_ON_ETCD = ("no_address", "system", "service_has")

Connect = Callable[[], Awaitable[storage_api.KV]]


@pytest.fixture
async def connect(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Connect]:
    """Makes clients of one empty store."""
    made: list[Any] = []
    inner = MemoryKV()
    with contextlib.ExitStack() as stack:
        etcd = stack.enter_context(EtcdProcess(tmp_path / "etcd")) if request.param == "etcd" else None

        async def new() -> storage_api.KV:
            if etcd is not None:
                client = EtcdKV(ClientConfig(endpoints=(f"http://{etcd.target}",)))
                await client.start()
                made.append(client)
                return client
            if request.param == "follower":
                follower = FollowerKV(inner, seed=len(made))
                made.append(follower)
                return follower
            fake = TravellingKV(inner, progress_on_request=request.param == "travelling", seed=len(made))
            made.append(fake)
            return fake

        yield new
        for kv in made:
            closing = kv.close()
            if closing is not None:
                await closing


@pytest.fixture
async def servers(server_config: ServerConfig, connect: Connect) -> AsyncIterator[tuple[Api, Api]]:
    """``ns-a`` and its default account were made through the first."""
    config = server_config.model_copy(update={"service_cluster_ip_range": "10.0.0.0/28", "service_node_port_range": "30000-30009"})
    async with running(config, await connect()) as first, running(config, await connect()) as second:
        await first.created("/api/v1/namespaces", {"metadata": {"name": "ns-a"}})
        await first.created(f"{NS}/serviceaccounts", {"metadata": {"name": "default"}})
        yield first, second


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    with_etcd = os.environ.get("SAMPAN_TEST_ETCD") or any(words in metafunc.function.__name__ for words in ALSO_ON_ETCD)
    metafunc.parametrize("connect", (*KINDS, *(["etcd"] if with_etcd else ())), indirect=True)


def pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


def held_back(api: Api) -> contextlib.AbstractContextManager[None]:
    """Changes do not arrive at this server meanwhile (where the store can be told so; a real etcd's are merely quick)."""

    @contextlib.contextmanager
    def holding() -> Any:
        kv = api.kv
        if isinstance(kv, TravellingKV):
            kv.hold_events()
        yield
        if isinstance(kv, TravellingKV):
            kv.release_events()

    return holding()


async def released_soon(api: Api, call: Awaitable[Answer]) -> Answer:
    """Begin the call while changes do not arrive, and let them arrive while it waits."""
    task = asyncio.ensure_future(call)
    await asyncio.sleep(0.03)
    if isinstance(api.kv, TravellingKV):
        api.kv.release_events()
    return await task


async def test_reads_elsewhere_see_every_write(servers: tuple[Api, Api]) -> None:
    here, there = servers
    for number in range(10):
        made = await here.created(f"{NS}/configmaps", {"metadata": {"name": f"c{number}"}})
        revision = made["metadata"]["resourceVersion"]
        assert (await there.get(f"{NS}/configmaps/c{number}")).json == made
        listed = (await there.get(f"{NS}/configmaps")).json
        assert len(listed["items"]) == number + 1
        assert int(listed["metadata"]["resourceVersion"]) >= int(revision)
        cached = await there.get(f"{NS}/configmaps", query={"resourceVersion": revision, "resourceVersionMatch": "NotOlderThan"})
        assert len(cached.json["items"]) == number + 1


async def test_what_admission_needs_is_found_though_it_is_new(servers: tuple[Api, Api]) -> None:
    """A namespace, its account and a priority class, made through the other server a moment ago."""
    here, there = servers
    with held_back(there):
        await here.created("/api/v1/namespaces", {"metadata": {"name": "new"}})
        await here.created("/api/v1/namespaces/new/serviceaccounts", {"metadata": {"name": "default"}})
        await here.created("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 9})
        body = pod("p")
        body["spec"]["priorityClassName"] = "high"
        answer = await released_soon(there, there.post("/api/v1/namespaces/new/pods", body))
    assert (answer.status, answer.json["spec"]["priority"]) == (201, 9)


async def test_rights_and_tokens_hold_at_once(servers: tuple[Api, Api]) -> None:
    here, there = servers
    with held_back(there):
        rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]
        await here.created("/apis/rbac.authorization.k8s.io/v1/namespaces/ns-a/roles", {"metadata": {"name": "r"}, "rules": rules})
        subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
        body = {"metadata": {"name": "b"}, "subjects": [subject], "roleRef": role}
        await here.created("/apis/rbac.authorization.k8s.io/v1/namespaces/ns-a/rolebindings", body)
        await here.created(f"{NS}/serviceaccounts", {"metadata": {"name": "robot"}})
        token = (await here.created(f"{NS}/serviceaccounts/robot/token", {"spec": {}}))["status"]["token"]
        answer = await released_soon(there, there.get(f"{NS}/configmaps", token="alice-token"))
    assert answer.status == 200
    who = await there.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, token=token)
    assert who.status == 201, who.body
    assert who.json["status"]["userInfo"]["username"] == "system:serviceaccount:ns-a:robot"
    assert (await there.get(f"{NS}/secrets", token="alice-token")).status == 403
    assert (await there.get(f"{NS}/secrets", token="no-token")).status == 401


async def test_no_address_is_given_twice(servers: tuple[Api, Api]) -> None:
    """14 addresses, one of them the kubernetes service's, and 10 ports; asked for from both sides at once."""
    answers = await asyncio.gather(*(servers[n % 2].post(SERVICES, service(f"s{n}", type="NodePort")) for n in range(10)))
    assert [answer.status for answer in answers] == [201] * 10, [answer.body for answer in answers if answer.status != 201]
    ips = [answer.json["spec"]["clusterIP"] for answer in answers]
    ports = [answer.json["spec"]["ports"][0]["nodePort"] for answer in answers]
    assert len({*ips, "10.0.0.1"}) == 11
    assert len(set(ports)) == 10


async def test_of_two_who_name_an_address_one_gets_it_and_a_freed_one_is_free_everywhere(servers: tuple[Api, Api]) -> None:
    here, there = servers
    first, second = await asyncio.gather(
        here.post(SERVICES, service("a", clusterIP="10.0.0.5")), there.post(SERVICES, service("b", clusterIP="10.0.0.5"))
    )
    assert sorted((first.status, second.status)) == [201, 422]
    refused = first if first.status == 422 else second
    assert refused.causes[0]["message"].endswith("failed to allocate IP 10.0.0.5: provided IP is already allocated")
    winner = "a" if first.status == 201 else "b"
    with held_back(there):
        assert (await here.delete(f"{SERVICES}/{winner}")).status == 200
        answer = await released_soon(there, there.post(SERVICES, service("c", clusterIP="10.0.0.5")))
    assert answer.status == 201, answer.body


async def test_an_update_takes_and_gives_back(servers: tuple[Api, Api]) -> None:
    here, there = servers
    await here.created(SERVICES, service("a"))
    taken = await here.patch(f"{SERVICES}/a", {"spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30003}]}})
    assert taken.status == 200, taken.body
    refused = await there.post(SERVICES, service("b", type="NodePort", ports=[{"port": 80, "nodePort": 30003}]))
    assert refused.status == 422
    assert (await here.patch(f"{SERVICES}/a", {"spec": {"type": "ClusterIP", "ports": [{"port": 80, "nodePort": None}]}})).status == 200
    given = await there.post(SERVICES, service("b", type="NodePort", ports=[{"port": 80, "nodePort": 30003}]))
    assert given.status == 201, given.body


async def test_a_quota_is_not_exceeded_through_two_doors(servers: tuple[Api, Api]) -> None:
    here, there = servers
    quota = await here.created(f"{NS}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "5"}}})
    quota["status"] = {"hard": {"configmaps": "5"}, "used": {"configmaps": "0"}}
    assert (await here.put(f"{NS}/resourcequotas/q/status", quota)).status == 200
    assert (await there.get(f"{NS}/resourcequotas")).json["items"][0]["status"]["used"] == {"configmaps": "0"}
    await asyncio.sleep(0.02)
    answers = await asyncio.gather(*(servers[n % 2].post(f"{NS}/configmaps", {"metadata": {"name": f"c{n}"}}) for n in range(12)))
    made = sum(answer.status == 201 for answer in answers)
    assert made <= 5
    assert {answer.status for answer in answers} <= {201, 403, 409}
    while made < 5:  # a lost race is told as a conflict: who tries again gets what is left
        answer = await there.post(f"{NS}/configmaps", {"metadata": {"generateName": "again-"}})
        assert answer.status == 201, answer.body
        made += 1
    assert (await here.post(f"{NS}/configmaps", {"metadata": {"name": "more"}})).status == 403


async def test_nothing_comes_into_a_namespace_that_is_gone(servers: tuple[Api, Api]) -> None:
    """The other server has not heard of the deletion: the write itself finds out."""
    here, there = servers
    await here.created("/api/v1/namespaces", {"metadata": {"name": "short"}})
    assert (await there.post("/api/v1/namespaces/short/configmaps", {"metadata": {"name": "first"}})).status == 201
    with held_back(there):
        assert (await here.delete("/api/v1/namespaces/short")).status == 200
        answer = await released_soon(there, there.post("/api/v1/namespaces/short/configmaps", {"metadata": {"name": "late"}}))
        assert answer.status == 403, answer.body
        assert "because it is being terminated" in answer.message


async def test_updates_from_both_sides_lose_nothing(servers: tuple[Api, Api]) -> None:
    await servers[0].created(f"{NS}/configmaps", {"metadata": {"name": "c"}, "data": {}})
    answers = await asyncio.gather(*(servers[n % 2].patch(f"{NS}/configmaps/c", {"data": {f"k{n}": "v"}}) for n in range(12)))
    assert {answer.status for answer in answers} == {200}
    assert len((await servers[1].get(f"{NS}/configmaps/c")).json["data"]) == 12


async def test_watches_of_both_tell_the_same(servers: tuple[Api, Api]) -> None:
    start = (await servers[0].get(f"{NS}/configmaps")).json["metadata"]["resourceVersion"]
    async with (
        servers[0].watch(f"{NS}/configmaps", resourceVersion=start) as first,
        servers[1].watch(f"{NS}/configmaps", resourceVersion=start) as second,
    ):
        for number in range(8):
            await servers[number % 2].created(f"{NS}/configmaps", {"metadata": {"name": f"c{number}"}})
        assert await first.take(8) == await second.take(8)


async def test_servers_that_start_together_make_one_system(server_config: ServerConfig, connect: Connect) -> None:
    async with contextlib.AsyncExitStack() as stack:
        found = await asyncio.gather(*[stack.enter_async_context(running(server_config, await connect())) for _ in range(3)])
        spaces = [(await api.get("/api/v1/namespaces")).json["items"] for api in found]
        assert spaces[0] == spaces[1] == spaces[2]
        assert len(spaces[0]) == 4
        roles = [(await api.get("/apis/rbac.authorization.k8s.io/v1/clusterroles")).json["items"] for api in found]
        assert roles[0] == roles[1] == roles[2]


async def test_a_start_mends_the_systems_roles_and_leaves_what_others_change(server_config: ServerConfig, connect: Connect) -> None:
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:basic-user"
    binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:basic-user"
    async with running(server_config, await connect()) as first:
        whole = (await first.get(role)).json["rules"]
        more = {"apiGroups": ["x"], "resources": ["y"], "verbs": ["get"]}
        assert (await first.patch(role, {"rules": [more]})).status == 200
        moved = (await first.get(binding)).json
        del moved["metadata"]["resourceVersion"], moved["metadata"]["uid"]
        assert (await first.delete(binding)).status == 200
        await first.created(binding.rpartition("/")[0], {**moved, "roleRef": {**moved["roleRef"], "name": "view"}})
        async with running(server_config, await connect()) as second:
            mended = (await second.get(role)).json["rules"]
            assert mended[0] == more
            assert {r for rule in mended[1:] for r in rule["resources"]} == {r for rule in whole for r in rule["resources"]}
            assert (await first.get(binding)).json["roleRef"]["name"] == "system:basic-user"


async def test_the_kubernetes_service_has_the_addresses_of_those_who_live(servers: tuple[Api, Api]) -> None:
    here, there = servers

    async def told(api: Api) -> tuple[Any, Any]:
        endpoints = (await api.get("/api/v1/namespaces/default/endpoints/kubernetes")).json["subsets"]
        slices = (await api.get("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices")).json["items"]
        addresses = [([e["addresses"][0] for e in one["endpoints"]], one["ports"][0]["port"]) for one in slices]
        return [([a["ip"] for a in one["addresses"]], one["ports"][0]["port"]) for one in endpoints], addresses

    others = [
        KubernetesEndpoints(api.server.registry, ApiAddress(ip, port), lambda: False)
        for api, ip, port in ((there, "10.1.0.2", 6443), (there, "10.1.0.3", 7443))
    ]
    for other in others:
        await other.keep()
    expected = [(["10.1.0.2", "127.0.0.1"], 6443), (["10.1.0.3"], 7443)]
    assert await told(here) == (expected, expected)
    await asyncio.gather(*(other.keep() for other in others))  # nothing to say, and no harm in saying it at once
    assert await told(there) == (expected, expected)
    await others[1].leave()
    await others[0].leave()
    await asyncio.sleep(0.02)
    await here.server._endpoints.keep()
    assert await told(there) == ([(["127.0.0.1"], 6443)], [(["127.0.0.1"], 6443)])


async def test_a_kube_apiserver_on_the_same_store_is_one_of_those_who_live(servers: tuple[Api, Api]) -> None:
    """Its key is its address alone, and holds an object, as it expects of ours."""
    here, _ = servers
    for name in ("10.1.0.9", "10.1.0.10"):
        await here.server.objects.hold_key(f"masterleases/{name}", 0, 60)
    own = ApiAddress("10.1.0.11", 6443)
    await KubernetesEndpoints(here.server.registry, own, lambda: False).keep()
    [subset] = (await here.get("/api/v1/namespaces/default/endpoints/kubernetes")).json["subsets"]
    assert [address["ip"] for address in subset["addresses"]] == ["10.1.0.10", "10.1.0.11", "10.1.0.9", "127.0.0.1"]
    assert subset["ports"][0]["port"] == 6443
    found = await here.kv.range(storage_api.RangeRequest(key=f"/registry/masterleases/{own}".encode()))
    assert orjson.loads(found.kvs[0].value)["subsets"][0]["addresses"] == [{"ip": "10.1.0.11"}]
