"""Objects of a store that another server has filled: decoded when somebody looks, with the same answers as at once."""

from __future__ import annotations

import pytest

from apiserver.authorization.node_graph import NodeGraph
from apiserver.machinery.objects import Object
from apiserver.objectstore import unread
from apiserver.objectstore.event_source import EventSource
from apiserver.objectstore.interface import Selection, StoredObject
from apiserver.objectstore.watch_cache import WatchCache
from apiserver.schemas.protobuf import encoding
from storage import api
from tests.fakes.memory_kv import MemoryKV


def pod(name: str, node: str = "n1") -> Object:
    metadata = {"name": name, "namespace": "a", "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": node, "containers": []}}


async def loaded(values: dict[str, bytes]) -> tuple[EventSource, WatchCache]:
    kv = MemoryKV()
    for name, value in values.items():
        await kv.txn(api.TxnRequest(success=(api.PutRequest(key=f"/registry/pods/a/{name}".encode(), value=value),)))
    source, cache = EventSource(kv), WatchCache("pods", namespaced=True)
    source.add(cache)
    await source.start()
    return source, cache


def values(count: int) -> dict[str, bytes]:
    return {f"p{i}": encoding.encode(pod(f"p{i}")) for i in range(count)}


def is_unread(obj: StoredObject | None) -> bool:
    assert obj is not None
    return unread.stored_value(obj) is not None


@pytest.fixture
def _three_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread, "READ_AT_ONCE_MAX", 3)


@pytest.mark.usefixtures("_three_at_once")
async def test_what_is_read_later_is_as_what_is_read_at_once() -> None:
    _, cache = await loaded(values(6))
    assert [is_unread(obj) for obj in cache.values()] == [False, False, False, True, True, True]
    found, _ = cache.select(Selection(namespace="a"))
    assert [obj.decode()["metadata"]["labels"] for obj in found] == [{"app": f"p{i}"} for i in range(6)]
    assert found[5].decode()["metadata"]["resourceVersion"] == str(found[5].revision)
    assert not any(is_unread(obj) for obj in cache.values())


@pytest.mark.usefixtures("_three_at_once")
async def test_what_cannot_be_read_is_found_without_a_look_at_it() -> None:
    whole = values(6)
    whole["p4"], whole["p5"] = whole["p4"][:-9] + b"\xff" * 9, b"k8s\x00\xff"
    source, cache = await loaded(whole)
    assert set(cache.unreadable) == {"a/p5"}, "of a type that was not seen before: read at once"
    await source.check_unread()
    assert set(cache.unreadable) == {"a/p4", "a/p5"}
    assert [obj.name for obj in cache.values()] == ["p0", "p1", "p2", "p3"]
    assert is_unread(cache.get("a/p3")), "nobody has looked at it"


@pytest.mark.usefixtures("_three_at_once")
async def test_a_look_at_what_cannot_be_read_shows_its_name_alone_and_tells() -> None:
    whole = values(5)
    whole["p4"] = whole["p4"][:-9] + b"\xff" * 9
    source, cache = await loaded(whole)
    damaged = cache.get("a/p4")
    assert damaged is not None
    assert damaged.labels() == {}
    assert set(cache.unreadable) == {"a/p4"}
    await source.check_unread()
    assert cache.get("a/p4") is None


def test_a_node_graph_reads_what_waits_for_the_node_that_asks() -> None:
    graph, read = NodeGraph(), []
    for name, node in (("x", "n1"), ("y", "n2")):
        obj = {**pod(name, node), "spec": {"nodeName": node, "serviceAccountName": f"of-{name}"}}

        def decode(obj: Object = obj) -> Object:
            read.append(obj["metadata"]["name"])
            return obj

        graph.object_waits("", "pods", "a", name, encoding.encode(obj), decode)
    assert graph.leads_to("", "serviceaccounts", "a", "of-x", "n1")
    assert not graph.leads_to("", "serviceaccounts", "a", "of-y", "n1")
    assert read == ["x"]
    assert graph.leads_to("", "serviceaccounts", "a", "of-y", "n2")
    graph.object_changed("", "pods", "a", "y", None)
    assert not graph.leads_to("", "serviceaccounts", "a", "of-y", "n2")
