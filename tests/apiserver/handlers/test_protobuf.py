"""Answers and bodies in Kubernetes' protobuf form, through the whole server."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from apiserver.config import ServerConfig
from apiserver.handlers import protobuf_answers, reading, response
from apiserver.schemas import protobuf
from apiserver.schemas.protobuf import decoding, table
from tests.apiserver.api import MERGE, Answer, Api, Watch, running
from tests.apiserver.apiextensions.definitions import CRDS, GADGETS, NAME, condition, definition, gadget, until, version
from tests.apiserver.test_http_protocol import HEAD, listening, read_head

PROTOBUF = "application/vnd.kubernetes.protobuf"
ACCEPT = {"accept": PROTOBUF}
NS = "/api/v1/namespaces/ns-a"
CM, PODS = f"{NS}/configmaps", f"{NS}/pods"
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
METADATA = "as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


def read(answer: Answer) -> Any:
    assert answer.headers["content-type"] == [PROTOBUF]
    return protobuf.decode(answer.body)


def same(one: Any, other: Any) -> bool:
    """Protobuf says zeros and empty parts that JSON leaves out."""
    return protobuf.encode(one) == protobuf.encode(other)


class Frames:
    """Events of a protobuf watch."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._rest = b""

    async def next(self) -> tuple[str, Any]:
        while len(self._rest) < 4 or len(self._rest) < 4 + int.from_bytes(self._rest[:4], "big"):
            piece = await self._watch.queue.get()
            assert piece is not None, "the watch has ended"
            self._rest += piece
        size = int.from_bytes(self._rest[:4], "big")
        event, self._rest = self._rest[4 : 4 + size], self._rest[4 + size :]
        found = decoding.decode_message(f"{table.META}WatchEvent", event)
        return found["type"], found["object"]


async def test_get_list_and_writes_say_in_protobuf_what_they_say_in_json(api: Api) -> None:
    body = protobuf.encode({"apiVersion": "v1", "kind": "Pod", **POD})
    created = await api.post(PODS, body, content_type=PROTOBUF, headers=ACCEPT)
    assert created.status == 201
    as_json = (await api.get(f"{PODS}/p")).json
    assert read(created)["metadata"]["uid"] == as_json["metadata"]["uid"]
    assert same(read(created), as_json)
    assert same(read(await api.get(f"{PODS}/p", headers=ACCEPT)), as_json)

    as_json["metadata"]["labels"] = {"a": "b"}
    updated = await api.put(f"{PODS}/p", protobuf.encode(as_json), content_type=PROTOBUF, headers=ACCEPT)
    assert read(updated)["metadata"]["labels"] == {"a": "b"}
    patched = await api.patch(f"{PODS}/p", {"metadata": {"labels": {"a": "c"}}}, MERGE, headers=ACCEPT)
    assert read(patched)["metadata"]["labels"] == {"a": "c"}

    listed = read(await api.get(PODS, headers=ACCEPT))
    assert (listed["kind"], listed["apiVersion"]) == ("PodList", "v1")
    assert same(listed, (await api.get(PODS)).json)
    options = protobuf.encode({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0})
    deleted = await api.delete(f"{PODS}/p", options, content_type=PROTOBUF, headers=ACCEPT)
    assert read(deleted)["metadata"]["name"] == "p"
    assert (await api.get(f"{PODS}/p")).status == 404


async def test_a_body_that_does_not_say_what_it_is_is_of_the_kind_of_the_path(api: Api) -> None:
    whole = protobuf.encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    message = whole[whole.index(b"ConfigMap") + len(b"ConfigMap") :]
    created = await api.post(CM, protobuf.MAGIC + b"\x0a\x00" + message, content_type=PROTOBUF)
    assert (created.status, created.json["kind"]) == (201, "ConfigMap")


async def test_pages_of_a_list(api: Api) -> None:
    for name in "abc":
        await api.created(CM, {"metadata": {"name": name}})
    first = read(await api.get(CM, query={"limit": 2}, headers=ACCEPT))
    assert first["metadata"]["remainingItemCount"] == 1
    rest = read(await api.get(CM, query={"limit": 2, "continue": first["metadata"]["continue"]}, headers=ACCEPT))
    assert [item["metadata"]["name"] for item in first["items"] + rest["items"]] == ["a", "b", "c"]
    empty = await api.get("/api/v1/namespaces/absent/configmaps", headers=ACCEPT)
    assert read(empty).get("items", []) == []


async def test_what_was_encoded_once_is_kept_until_the_object_changes(api: Api) -> None:
    await api.created(CM, {"metadata": {"name": "a"}})
    [stored] = [each for each in await _stored(api) if each.name == "a"]
    assert stored.message is None
    await api.get(CM)
    assert stored.message is None, "who reads JSON pays for no copy"
    await api.get(CM, headers=ACCEPT)
    kept = stored.message
    assert kept is not None
    await api.get(f"{CM}/a", headers=ACCEPT)
    assert stored.message is kept
    await api.patch(f"{CM}/a", {"data": {"k": "v"}})
    assert read(await api.get(f"{CM}/a", headers=ACCEPT))["data"] == {"k": "v"}


async def _stored(api: Api) -> list[Any]:
    storage = api.server.objects.storages()["configmaps"]
    return list(storage.cache.values())


async def test_a_list_in_pieces_is_the_same_list(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        await api.created(CM, {"metadata": {"name": f"c{number:02}"}, "data": {"k": "v" * 200}})
    whole = await api.get(CM, headers=ACCEPT)
    monkeypatch.setattr(response, "PIECE_BYTES", 700)
    monkeypatch.setattr(protobuf_answers, "OBJECTS_PER_TURN", 3)
    for stored in await _stored(api):
        stored.message = None
    again = await api.get(CM, headers=ACCEPT)
    assert again.body == whole.body
    assert again.headers["content-length"] == [str(len(whole.body))]


async def test_other_versions_of_an_object(api: Api) -> None:
    """A HorizontalPodAutoscaler is stored as v2 and served as v1 as well, with another message."""
    spec = {
        "maxReplicas": 3,
        "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
        "targetCPUUtilizationPercentage": 70,
    }
    path = "/apis/autoscaling/{}/namespaces/ns-a/horizontalpodautoscalers"
    await api.created(path.format("v1"), {"metadata": {"name": "h"}, "spec": spec})
    for _ in range(2):
        for served in ("v1", "v2"):
            for suffix in ("", "/h"):
                answer = read(await api.get(path.format(served) + suffix, headers=ACCEPT))
                as_json = (await api.get(path.format(served) + suffix)).json
                assert answer["apiVersion"] == f"autoscaling/{served}"
                assert same(answer, as_json)


async def test_watch_frames(api: Api) -> None:
    await api.created(CM, {"metadata": {"name": "a", "labels": {"x": "1"}}})
    query = {"sendInitialEvents": "true", "allowWatchBookmarks": "true", "resourceVersionMatch": "NotOlderThan", "labelSelector": "x=1"}
    async with api.watch(CM, ACCEPT, **query) as watch:
        assert (b"content-type", f"{PROTOBUF};stream=watch".encode()) in watch.head["headers"]
        frames = Frames(watch)
        type_, obj = await frames.next()
        assert (type_, obj["kind"], obj["apiVersion"], obj["metadata"]["name"]) == ("ADDED", "ConfigMap", "v1", "a")
        type_, obj = await frames.next()
        assert (type_, obj["kind"]) == ("BOOKMARK", "ConfigMap")
        assert obj["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        await api.patch(f"{CM}/a", {"data": {"k": "v"}})
        type_, obj = await frames.next()
        assert (type_, obj["data"]) == ("MODIFIED", {"k": "v"})
        changed = (await api.patch(f"{CM}/a", {"metadata": {"labels": {"x": "2"}}})).json
        type_, obj = await frames.next()
        assert (type_, obj["metadata"]["labels"]) == ("DELETED", {"x": "1"})
        assert obj["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]


async def test_events_written_past_the_handler_are_one_frame_for_all(api: Api) -> None:
    """On a real connection an event goes out as one chunk, the same bytes for every watch of its form: protobuf and JSON side by side."""
    revision = (await api.get(CM)).json["metadata"]["resourceVersion"]
    async with listening(api.server.app) as (_, port), asyncio.timeout(20):
        readers = []
        for accept in (PROTOBUF, PROTOBUF, "application/json"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            path = f"{CM}?watch=1&resourceVersion={revision}"
            writer.write(f"GET {path} HTTP/1.1\r\n{HEAD}Accept: {accept}\r\n\r\n".encode())
            await read_head(reader)
            readers.append((reader, writer))
        created = await api.created(CM, {"metadata": {"name": "a"}, "data": {"k": "v"}})
        chunks = []
        for reader, writer in readers:
            size = int(await reader.readline(), 16)
            chunks.append(await reader.readexactly(size))
            writer.close()
    first, second, as_json = chunks
    assert first == second
    assert first == protobuf_answers.frame("ADDED", protobuf.encode(created))
    assert orjson.loads(as_json) == {"type": "ADDED", "object": created}


async def test_watches_of_metadata_and_refusals_within_a_watch(server_config: ServerConfig, api: Api) -> None:
    created = await api.created(CM, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    async with api.watch(CM, {"accept": f"{PROTOBUF};{METADATA}"}) as watch:
        type_, obj = await Frames(watch).next()
        assert (type_, obj["kind"], obj["apiVersion"], obj["metadata"]["uid"]) == (
            "ADDED",
            "PartialObjectMetadata",
            "meta.k8s.io/v1",
            created["metadata"]["uid"],
        )
        assert "data" not in obj
    for value in ("w", "x", "y"):
        changed = await api.patch(f"{CM}/a", {"data": {"k": value}})
    await api.kv.compact(int(changed.json["metadata"]["resourceVersion"]))
    first = created["metadata"]["resourceVersion"]
    async with running(server_config, api.kv) as again, again.watch(CM, ACCEPT, resourceVersion=first) as watch:
        type_, obj = await Frames(watch).next()
        assert (type_, obj["kind"], obj["code"], obj["reason"]) == ("ERROR", "Status", 410, "Expired")


async def test_metadata_in_protobuf_and_tables_never(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    await api.created(CM, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    one = read(await api.get(f"{CM}/a", headers={"accept": f"{PROTOBUF};{METADATA}"}))
    assert (one["kind"], one["metadata"]["name"]) == ("PartialObjectMetadata", "a")
    wanted = {"accept": f"{PROTOBUF};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
    listed = await api.get(CM, headers=wanted)
    assert [item["metadata"]["name"] for item in read(listed)["items"]] == ["a"]
    monkeypatch.setattr(reading, "ON_LOOP_OBJECTS_MAX", 0)
    assert (await api.get(CM, headers=wanted)).body == listed.body
    table_wanted = f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io"
    assert (await api.get(CM, headers={"accept": table_wanted})).status == 406
    assert (await api.get(CM, headers={"accept": f"{table_wanted},application/json"})).json["kind"] == "ConfigMapList"


async def test_refusals_are_statuses_in_protobuf(api: Api) -> None:
    missing = read(await api.get(f"{CM}/nothing", headers=ACCEPT))
    assert (missing["kind"], missing["apiVersion"], missing["code"], missing["reason"]) == ("Status", "v1", 404, "NotFound")
    assert missing["details"]["name"] == "nothing"
    invalid = read(await api.post(CM, {"metadata": {"name": "No"}}, headers=ACCEPT))
    assert [cause["field"] for cause in invalid["details"]["causes"]] == ["metadata.name"]
    forbidden = await api.get(CM, headers=ACCEPT, token="alice-token")
    assert (forbidden.status, read(forbidden)["reason"]) == (403, "Forbidden")
    as_yaml = await api.get(f"{CM}/nothing", headers={"accept": "application/yaml"})
    assert (as_yaml.status, as_yaml.headers["content-type"]) == (404, ["application/yaml"])
    assert b"reason: NotFound\n" in as_yaml.body


CONFIG_MAP = protobuf.encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
UNRECOGNIZED = "the object provided is unrecognized (must be of type ConfigMap): "
NO_KIND = 'no kind "{}" is registered for version "{}" in scheme "pkg/api/legacyscheme/scheme.go:30"'


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", f"{UNRECOGNIZED}empty data (<empty>)"),
        (b"{}", f"{UNRECOGNIZED}provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] ({{}})"),
        (protobuf.MAGIC, f"{UNRECOGNIZED}empty body (6b387300)"),
        (CONFIG_MAP[:30], f"{UNRECOGNIZED}unexpected EOF (6b3873000a0f0a0276311209436f6e6669674d617012130a110a0161120"),
        (protobuf.MAGIC + b"\xff" * 11, f"{UNRECOGNIZED}proto: integer overflow (6b387300ffffffffffffffffffffff)"),
        (
            CONFIG_MAP[:21] + b"\x12\x0b" + b"\xff" * 11 + b"\x1a\x00\x22\x00",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: proto: integer overflow',
        ),
        (
            CONFIG_MAP.replace(b"ConfigMap", b"ConfigMop"),
            f'ConfigMop in version "v1" cannot be handled as a ConfigMap: {NO_KIND.format("ConfigMop", "v1")}',
        ),
        (
            CONFIG_MAP.replace(b"\x02v1", b"\x02v9"),
            f'ConfigMap in version "v9" cannot be handled as a ConfigMap: {NO_KIND.format("ConfigMap", "v9")}',
        ),
        (
            protobuf.encode({"apiVersion": "v1", "kind": "Pod", **POD}),
            'Pod in version "v1" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): unknown conversion',
        ),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else value[:60],
)
async def test_damaged_bodies_are_refused_in_a_real_servers_words(api: Api, body: bytes, message: str) -> None:
    answer = await api.post(CM, body, content_type=PROTOBUF)
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert answer.message.startswith(message)


async def test_subresources_and_reviews(api: Api) -> None:
    deployment = {
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]},
        },
    }
    path = "/apis/apps/v1/namespaces/ns-a/deployments"
    await api.created(path, deployment)
    scale = read(await api.get(f"{path}/d/scale", headers=ACCEPT))
    assert (scale["kind"], scale["apiVersion"], scale["status"]["selector"]) == ("Scale", "autoscaling/v1", "a=b")
    of_lists = await api.get(f"{path}/d/scale", headers={"accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"})
    assert (of_lists.status, of_lists.message.rpartition(" ")[2]) == (406, "(*autoscaling.Scale)")
    scale["spec"] = {"replicas": 2}
    scaled = await api.put(f"{path}/d/scale", protobuf.encode(scale), content_type=PROTOBUF, headers=ACCEPT)
    assert read(scaled)["spec"]["replicas"] == 2

    token = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": [], "expirationSeconds": 600}}
    issued = await api.post(f"{NS}/serviceaccounts/default/token", protobuf.encode(token), content_type=PROTOBUF, headers=ACCEPT)
    assert issued.status == 201
    assert read(issued)["status"]["token"].count(".") == 2

    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
    }
    answer = await api.post(
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", protobuf.encode(review), content_type=PROTOBUF, headers=ACCEPT
    )
    assert read(answer)["status"]["allowed"] is True

    await api.created(PODS, POD)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": "ns-a"}}
    evicted = await api.post(f"{PODS}/p/eviction", protobuf.encode(eviction), content_type=PROTOBUF, headers=ACCEPT)
    assert (read(evicted)["kind"], read(evicted)["status"]) == ("Status", "Success")


async def test_every_built_in_kind_that_is_listed_has_a_protobuf_form(api: Api) -> None:
    """What the server stores at its start, and empty lists of the rest."""
    for info in api.server.registry.table:
        if not info.builtin or "list" not in info.verbs:
            continue
        path = f"/apis/{info.group}/{info.version}/{info.resource}" if info.group else f"/api/{info.version}/{info.resource}"
        answer = await api.get(path, headers=ACCEPT)
        assert answer.status == 200, path
        assert same(read(answer), (await api.get(path)).json), path


async def test_custom_resources_have_no_protobuf_form_but_their_metadata_have(api: Api) -> None:
    definition_as_protobuf = protobuf.encode(definition(version(subresources={"scale": SCALE})))
    created = await api.post(CRDS, definition_as_protobuf, content_type=PROTOBUF, headers=ACCEPT)
    assert (created.status, read(created)["spec"]["group"]) == (201, "demo.test")
    await until(api, f"{CRDS}/{NAME}", lambda answer: condition(answer, "Established").get("status") == "True")
    one = await api.created(GADGETS, gadget(spec={"replicas": 1}))

    for path in (GADGETS, f"{GADGETS}/g1", f"{GADGETS}/g1/scale"):
        refused = await api.get(path, headers=ACCEPT)
        assert (refused.status, read(refused)["reason"]) == (406, "NotAcceptable"), path
        assert read(refused)["message"].startswith("only the following media types are accepted: application/json, "), path
        either = await api.get(path, headers={"accept": f"{PROTOBUF},*/*;q=0.1"})
        assert (either.status, either.headers["content-type"]) == (200, ["application/json"]), path
    assert (await api.get(GADGETS, query="watch=1", headers=ACCEPT)).status == 406

    metadata = read(await api.get(f"{GADGETS}/g1", headers={"accept": f"{PROTOBUF};{METADATA}"}))
    assert (metadata["kind"], metadata["metadata"]["uid"]) == ("PartialObjectMetadata", one["metadata"]["uid"])
    listed = read(await api.get(GADGETS, headers={"accept": f"{PROTOBUF};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}))
    assert [item["metadata"]["name"] for item in listed["items"]] == ["g1"]
    async with api.watch(GADGETS, {"accept": f"{PROTOBUF};{METADATA},application/json"}) as watch:
        type_, obj = await Frames(watch).next()
        assert (type_, obj["kind"], obj["metadata"]["name"]) == ("ADDED", "PartialObjectMetadata", "g1")
    body = await api.post(GADGETS, CONFIG_MAP, content_type=PROTOBUF)
    assert (body.status, body.reason) == (400, "BadRequest")
