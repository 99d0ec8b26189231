"""WATCH over HTTP: start, order, selectors, bookmarks, resuming, ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from apiserver.config import ServerConfig
from storage.api import PutRequest
from tests.apiserver.api import JSON_PATCH, Api, running

CM = "/api/v1/namespaces/ns-a/configmaps"


def named(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}}


async def revision(api: Api) -> str:
    return str((await api.get(CM)).json["metadata"]["resourceVersion"])


async def test_a_watch_starts_at_once_and_delivers_changes_in_order(api: Api) -> None:
    async with api.watch(CM, resourceVersion=await revision(api)) as watch:
        assert watch.head["status"] == 200  # before any event
        await api.created(CM, named("a"))
        await api.patch(f"{CM}/a", {"data": {"k": "v"}})
        await api.delete(f"{CM}/a")
        events = await watch.take(3)
    assert [e["type"] for e in events] == ["ADDED", "MODIFIED", "DELETED"]
    versions = [int(e["object"]["metadata"]["resourceVersion"]) for e in events]
    assert versions == sorted(set(versions))
    assert events[2]["object"]["data"] == {"k": "v"}


async def test_without_a_version_the_state_comes_first(api: Api) -> None:
    await api.created(CM, named("a"))
    await api.created(CM, named("b"))
    async with api.watch(CM) as watch:
        assert [(e["type"], e["object"]["metadata"]["name"]) for e in await watch.take(2)] == [("ADDED", "a"), ("ADDED", "b")]


async def test_objects_enter_and_leave_a_selection(api: Api) -> None:
    await api.created(CM, named("a", tier="web"))
    version = await revision(api)
    async with api.watch(CM, resourceVersion=version, labelSelector="tier=web") as watch:
        out = await api.patch(f"{CM}/a", {"metadata": {"labels": {"tier": "db"}}})
        await api.patch(f"{CM}/a", {"data": {"seen": "not"}})
        await api.patch(f"{CM}/a", {"metadata": {"labels": {"tier": "web"}}})
        left, entered = await watch.take(2)
    assert left["type"] == "DELETED"
    assert left["object"]["metadata"]["labels"] == {"tier": "web"}
    assert left["object"]["metadata"]["resourceVersion"] == out.json["metadata"]["resourceVersion"]
    assert entered["type"] == "ADDED"


async def test_one_name_across_namespaces_sees_only_that_name(api: Api) -> None:
    await api.created("/api/v1/namespaces", {"metadata": {"name": "ns-b"}})
    version = await revision(api)
    async with api.watch("/api/v1/configmaps", resourceVersion=version, fieldSelector="metadata.name=a") as watch:
        await api.created("/api/v1/namespaces/ns-b/configmaps", named("b"))
        await api.created("/api/v1/namespaces/ns-b/configmaps", named("a"))
        event = await watch.next()
    assert (event["object"]["metadata"]["name"], event["object"]["metadata"]["namespace"]) == ("a", "ns-b")


async def test_timeout_seconds_ends_the_stream_cleanly(api: Api) -> None:
    async with api.watch(CM, resourceVersion=await revision(api), timeoutSeconds=1) as watch:
        assert await watch.next() is None
        assert watch.ended


async def test_streaming_list_marks_the_end_of_the_initial_state(api: Api) -> None:
    """Field case B2."""
    query: dict[str, Any] = {"sendInitialEvents": "true", "allowWatchBookmarks": "true", "resourceVersionMatch": "NotOlderThan"}
    async with api.watch(CM, **query) as watch:
        bookmark = await watch.next()
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    for name in "abc":
        await api.created(CM, named(name))
    now = int(await revision(api))
    async with api.watch(CM, **query) as watch:
        events = await watch.take(4)
        await api.created(CM, named("later"))
        live = await watch.next()
    assert [e["type"] for e in events] == ["ADDED"] * 3 + ["BOOKMARK"]
    assert int(events[3]["object"]["metadata"]["resourceVersion"]) >= now
    assert live["object"]["metadata"]["name"] == "later"


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"watch": "1", "sendInitialEvents": "true"}, "requires setting resourceVersionMatch to NotOlderThan"),
        ({"sendInitialEvents": "true"}, "forbidden for list"),
        ({"watch": "1", "resourceVersionMatch": "Exact", "resourceVersion": "5"}, "forbidden for watch unless sendInitialEvents"),
    ],
)
async def test_an_incomplete_streaming_list_is_refused(api: Api, query: dict[str, str], text: str) -> None:
    """Field case B3."""
    answer = await api.get(CM, query=query)
    assert answer.status == 422
    assert answer.json["details"]["kind"] == "ListOptions"
    assert text in answer.message


async def test_a_bookmark_shortly_before_the_end_tells_how_far_the_watch_has_got(api: Api) -> None:
    """Field case B1: only for those who ask, with nothing in it but the version."""
    async with api.watch(CM, resourceVersion=await revision(api), timeoutSeconds=3, allowWatchBookmarks="true") as watch:
        await api.created("/api/v1/namespaces/ns-a/secrets", {"metadata": {"name": "s"}})
        bookmark = await watch.next()
    newest = await revision(api)
    assert bookmark == {"type": "BOOKMARK", "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": newest}}}


async def test_a_watch_resumes_over_a_restart_without_a_gap(server_config: ServerConfig, api: Api) -> None:
    """Changes that the new process never saw come from the store's history."""
    first = await api.created(CM, named("a"))
    await api.patch(f"{CM}/a", {"data": {"n": "1"}})
    await api.delete(f"{CM}/a")
    await api.created(CM, named("b"))
    async with running(server_config, api.kv) as again, again.watch(CM, resourceVersion=first["metadata"]["resourceVersion"]) as watch:
        await again.created(CM, named("c"))
        events = await watch.take(4)
    assert [(e["type"], e["object"]["metadata"]["name"]) for e in events] == [
        ("MODIFIED", "a"),
        ("DELETED", "a"),
        ("ADDED", "b"),
        ("ADDED", "c"),
    ]


async def test_a_compacted_version_is_gone(server_config: ServerConfig, api: Api) -> None:
    """Field case A3: never a silent empty stream."""
    first = await api.created(CM, named("a"))
    for n in range(3):
        await api.patch(f"{CM}/a", {"data": {"n": str(n)}})
    await api.kv.compact(int(await revision(api)))
    async with running(server_config, api.kv) as again, again.watch(CM, resourceVersion=first["metadata"]["resourceVersion"]) as watch:
        event = await watch.next()
        assert await watch.next() is None
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"], event["object"]["metadata"]) == (410, "Expired", {})


async def test_table_events_carry_the_columns_once(api: Api) -> None:
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    async with api.watch(CM, headers=accept, resourceVersion=await revision(api)) as watch:
        await api.created(CM, named("a"))
        await api.patch(f"{CM}/a", {"data": {"k": "v"}})
        first, second = await watch.take(2)
    assert first["object"]["kind"] == "Table"
    assert [c["name"] for c in first["object"]["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert not second["object"].get("columnDefinitions")
    assert second["object"]["rows"][0]["cells"][:2] == ["a", 1]


async def test_metadata_only_events(api: Api) -> None:
    accept = {"accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
    async with api.watch(CM, headers=accept, resourceVersion=await revision(api)) as watch:
        await api.created(CM, {"metadata": {"name": "a"}, "data": {"k": "v"}})
        event = await watch.next()
    assert event["object"]["kind"] == "PartialObjectMetadata"
    assert "data" not in event["object"]


async def test_many_watchers_share_one_encoding_of_an_event(api: Api) -> None:
    version = await revision(api)
    cache = api.server.objects.storages()["configmaps"].cache
    async with api.watch(CM, resourceVersion=version) as one, api.watch(CM, resourceVersion=version) as two:
        await api.created(CM, named("a"))
        assert await one.next() == await two.next()
        (event,) = cache.history_after(int(version)) or []
    assert len(event.encoded) == 1


async def test_a_change_that_changes_nothing_makes_no_event(api: Api) -> None:
    await api.created(CM, named("a", x="1"))
    async with api.watch(CM, resourceVersion=await revision(api)) as watch:
        await api.patch(f"{CM}/a", {"metadata": {"labels": {"x": "1"}}})
        await api.patch(f"{CM}/a", [{"op": "add", "path": "/metadata/labels/y", "value": "2"}], JSON_PATCH, query={"dryRun": "All"})
        await api.delete(f"{CM}/a", query={"dryRun": "All"})
        await api.patch(f"{CM}/a", {"metadata": {"labels": {"x": "2"}}})
        event = await watch.next()
    assert event["object"]["metadata"]["labels"] == {"x": "2"}


async def test_a_reader_that_is_too_slow_is_cut_and_the_others_go_on(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Field case ST-S1: bounded, and nobody waits for it."""
    monkeypatch.setattr("apiserver.objectstore.cache_watcher.QUEUE_EVENTS_MAX", 5)
    version = await revision(api)
    stuck = asyncio.Event()

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Any) -> None:
        if message.get("body"):
            await stuck.wait()

    scope = api.scope("GET", CM, {"watch": "1", "resourceVersion": version}, {"authorization": "Bearer admin-token"})
    slow = asyncio.create_task(api.server.app(scope, receive, send))
    async with api.watch(CM, resourceVersion=version) as quick:
        await api.created(CM, named("a"))
        await quick.next()
        for n in range(10):
            await api.patch(f"{CM}/a", {"data": {"n": str(n)}})
            assert (await quick.next())["object"]["data"] == {"n": str(n)}
        async with asyncio.timeout(5):
            await slow
    assert not stuck.is_set()


async def test_the_end_of_the_server_ends_watches_cleanly(api: Api) -> None:
    async with api.watch(CM, resourceVersion=await revision(api)) as watch:
        api.server.stop()
        assert await watch.next() is None
        assert watch.ended


async def test_each_node_is_told_of_its_own_pods(api: Api) -> None:
    """Also of those that come to it and that leave; and no watch is asked about a pod of another node."""
    pods = "/api/v1/namespaces/ns-a/pods"
    spec = {"containers": [{"name": "c", "image": "i"}]}
    version = (await api.get(pods)).json["metadata"]["resourceVersion"]
    cache = api.server.objects.storages()["pods"].cache
    async with (
        api.watch("/api/v1/pods", resourceVersion=version, fieldSelector="spec.nodeName=n1") as first,
        api.watch("/api/v1/pods", resourceVersion=version, fieldSelector="spec.nodeName=n2,status.phase!=Failed") as second,
        api.watch("/api/v1/pods", resourceVersion=version, fieldSelector="spec.nodeName=") as unscheduled,
    ):
        assert len(cache.watchers()) == 3
        await api.created(pods, {"metadata": {"name": "a"}, "spec": {**spec, "nodeName": "n1"}})
        await api.created(pods, {"metadata": {"name": "b"}, "spec": spec})
        await api.post(f"{pods}/b/binding", {"metadata": {"name": "b"}, "target": {"kind": "Node", "name": "n2"}})
        await api.patch(f"{pods}/b/status", {"status": {"phase": "Failed"}})
        mine, (added, deleted) = await first.next(), await second.take(2)
        waiting, gone = await unscheduled.take(2)
    assert (mine["type"], mine["object"]["metadata"]["name"]) == ("ADDED", "a")
    assert [(e["type"], e["object"]["metadata"]["name"]) for e in (added, deleted)] == [("ADDED", "b"), ("DELETED", "b")]
    assert [(e["type"], e["object"]["metadata"]["name"]) for e in (waiting, gone)] == [("ADDED", "b"), ("DELETED", "b")]
    assert cache.watchers() == [] and not cache._watchers_of_trigger


async def test_every_kind_streams_as_a_table_also_what_is_not_there(api: Api) -> None:
    """The mark of the end comes as a row of an object without content."""
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    query: dict[str, Any] = {"sendInitialEvents": "true", "allowWatchBookmarks": "true", "resourceVersionMatch": "NotOlderThan"}
    for info in api.server.table:
        if "watch" not in info.verbs:
            continue
        base = f"/apis/{info.group}/{info.version}" if info.group else f"/api/{info.version}"
        for include in ("None", "Object"):
            more: dict[str, Any] = {"includeObject": include, "labelSelector": "no=such"}
            async with api.watch(f"{base}/{info.resource}", headers=accept, **query, **more) as watch:
                event = await watch.next()
            table = event["object"]
            assert (event["type"], table["kind"]) == ("BOOKMARK", "Table"), (info.resource, event)
            [row] = table["rows"]
            assert len(row["cells"]) == len(table["columnDefinitions"]) > 0
            assert row["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
            assert row["object"]["kind"] == ("PartialObjectMetadata" if include == "None" else info.kind)


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        ("/api/v1/watch/namespaces/ns-a/configmaps/b", {}, ["b"]),
        ("/api/v1/watch/namespaces/ns-a/configmaps", {"labelSelector": "x=1"}, ["a"]),
        ("/api/v1/watch/configmaps", {"fieldSelector": "metadata.namespace=ns-a,metadata.name!=a"}, ["b"]),
        ("/api/v1/watch/namespaces/ns-a/configmaps/b", {"fieldSelector": "metadata.name=b", "allowWatchBookmarks": "true"}, ["b"]),
    ],
)
async def test_watches_of_old_have_their_own_paths(api: Api, path: str, query: dict[str, Any], expected: list[str]) -> None:
    await api.created(CM, named("a", x="1"))
    await api.created(CM, named("b"))
    async with api.watch(path, **{**query, "watch": ""}) as watch:
        assert [event["object"]["metadata"]["name"] for event in await watch.take(len(expected))] == expected
    other = await api.get("/api/v1/watch/namespaces/ns-a/configmaps/b", query={"fieldSelector": "metadata.name=a"})
    assert (other.status, other.message) == (400, "fieldSelector metadata.name doesn't match requested name")


async def test_a_streaming_list_of_the_future_is_refused_in_the_stream(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Field case C4, for a watch: the request is right, so that its status is 200."""
    monkeypatch.setattr("apiserver.objectstore.event_source.EventSource.wait_for.__defaults__", (0.01,))
    query: dict[str, Any] = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "resourceVersion": "999999"}
    async with api.watch(CM, **query) as watch:
        event = await watch.next()
        assert await watch.next() is None
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 504, "Timeout")
    assert event["object"]["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


async def test_a_watch_that_begins_with_what_is_there_in_the_old_way_marks_its_end_too(api: Api) -> None:
    await api.created(CM, named("a"))
    async with api.watch(CM, allowWatchBookmarks="true") as watch:
        added, bookmark = await watch.take(2)
    assert (added["type"], bookmark["type"]) == ("ADDED", "BOOKMARK")
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_an_object_that_is_none_of_its_kind_ends_no_watch(api: Api) -> None:
    """Somebody has put it into the store past the API: it matches no selector, and what follows arrives."""
    pods = "/api/v1/namespaces/ns-a/pods"
    version = (await api.get(pods)).json["metadata"]["resourceVersion"]
    async with (
        api.watch("/api/v1/pods", resourceVersion=version, fieldSelector="spec.nodeName=n1,status.phase=Pending") as by_field,
        api.watch("/api/v1/pods", resourceVersion=version, labelSelector="a") as by_label,
    ):
        value = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"odd","namespace":"ns-a","labels":[1]},"spec":[],"status":7}'
        await api.kv.put(PutRequest(key=b"/registry/pods/ns-a/odd", value=value))
        spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n1"}
        await api.created(pods, {"metadata": {"name": "a", "labels": {"a": "b"}}, "spec": spec})
        found = [await watch.next() for watch in (by_field, by_label)]
    assert [(e["type"], e["object"]["metadata"]["name"]) for e in found] == [("ADDED", "a"), ("ADDED", "a")]
