"""Custom resources whose versions only a webhook can tell apart, on a whole API server and a real socket."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import orjson
import pytest

from apiserver import upkeep
from apiserver.apiextensions import cleanup
from tests.apiserver.api import APPLY, Api
from tests.apiserver.apiextensions.definitions import condition, definition, established, until, version
from tests.fakes.webhook_server import WebhookServer, http, serving

GROUP = "/apis/demo.test"
V1, V2 = f"{GROUP}/v1/namespaces/ns-a/gadgets", f"{GROUP}/v2/namespaces/ns-a/gadgets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = f"{CRDS}/gadgets.demo.test"

Convert = Callable[[dict[str, Any], str], Any]


def schema(field: str) -> dict[str, Any]:
    spec = {"type": "object", "properties": {field: {"type": "string"}, "common": {"type": "string"}}}
    return {"type": "object", "properties": {"spec": spec, "status": {"type": "object", "properties": {"seen": {"type": "string"}}}}}


def convert(obj: dict[str, Any], api_version: str) -> dict[str, Any]:
    """``spec.old`` in v1 is ``spec.new`` in v2."""
    old, new = ("old", "new") if api_version.endswith("v2") else ("new", "old")
    spec = dict(obj.get("spec") or {})
    if old in spec:
        spec[new] = spec.pop(old)
    return {**obj, "apiVersion": api_version, "spec": spec}


def answering(function: Convert, **more: Any) -> Callable[[str, bytes, asyncio.StreamWriter], Any]:
    async def respond(path: str, body: bytes, writer: asyncio.StreamWriter) -> bytes:
        review = orjson.loads(body)
        asked = review["request"]
        response = {
            "uid": asked["uid"],
            "result": {"status": "Success"},
            "convertedObjects": [function(obj, asked["desiredAPIVersion"]) for obj in asked["objects"]],
            **more,
        }
        return http(orjson.dumps({"kind": review["kind"], "apiVersion": review["apiVersion"], "response": response}))

    return respond


def gadgets(server: WebhookServer, storage: str = "v1", review_versions: tuple[str, ...] = ("v1",)) -> dict[str, Any]:
    subresources: dict[str, Any] = {"status": {}}
    body = definition(
        version("v1", storage=storage == "v1", schema=schema("old"), subresources=subresources),
        version("v2", storage=storage == "v2", schema=schema("new"), subresources=subresources),
    )
    webhook = {"clientConfig": server.client_config, "conversionReviewVersions": list(review_versions)}
    body["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    return body  # type: ignore[no-any-return]


def gadget(name: str, api_version: str, **spec: str) -> dict[str, Any]:
    return {"apiVersion": f"demo.test/{api_version}", "kind": "Gadget", "metadata": {"name": name}, "spec": spec}


@contextlib.asynccontextmanager
async def defined(api: Api, function: Convert = convert, **more: Any) -> AsyncIterator[WebhookServer]:
    async with serving(answering(function, **more)) as server:
        await established(api, gadgets(server))
        yield server


async def test_an_object_is_written_and_read_in_each_version(api: Api) -> None:
    async with defined(api) as server:
        await api.created(V1, gadget("a", "v1", old="1"))
        assert server.asked == [], "the stored version needs no conversion"
        read = (await api.get(f"{V2}/a")).json
        assert (read["apiVersion"], read["spec"]) == ("demo.test/v2", {"new": "1"})
        made = await api.created(V2, gadget("b", "v2", new="2"))
        assert made["spec"] == {"new": "2"}
        assert (await api.get(f"{V1}/b")).json["spec"] == {"old": "2"}
        replaced = await api.put(f"{V2}/b", {**made, "spec": {"new": "3"}})
        assert (replaced.status, replaced.json["spec"]) == (200, {"new": "3"})
        merged = await api.patch(f"{V2}/a", {"spec": {"common": "c"}})
        assert merged.json["spec"] == {"new": "1", "common": "c"}
        assert (await api.get(f"{V1}/a")).json["spec"] == {"old": "1", "common": "c"}
        applied = await api.patch(f"{V2}/c", gadget("c", "v2", new="4"), APPLY, query={"fieldManager": "m"})
        assert (applied.status, applied.json["spec"]) == (201, {"new": "4"})
        status = await api.patch(f"{V2}/c/status", {"status": {"seen": "yes"}})
        assert status.json["status"] == {"seen": "yes"} and status.json["spec"] == {"new": "4"}
        deleted = await api.delete(f"{V2}/c")
        assert deleted.status == 200


async def test_a_list_is_one_call_and_reading_again_is_none(api: Api) -> None:
    async with defined(api) as server:
        for number in range(5):
            await api.created(V1, gadget(f"g{number}", "v1", old=str(number)))
        listed = (await api.get(V2)).json
        assert [item["spec"]["new"] for item in listed["items"]] == ["0", "1", "2", "3", "4"]
        assert {item["apiVersion"] for item in listed["items"]} == {"demo.test/v2"}
        assert len(server.asked) == 1 and len(server.asked[0][1]["request"]["objects"]) == 5
        assert (await api.get(V2)).json == listed
        assert (await api.get(f"{V2}/g1")).json["spec"] == {"new": "1"}
        assert len(server.asked) == 1


async def test_a_watch_shows_each_change_converted(api: Api) -> None:
    async with defined(api):
        first = await api.created(V1, gadget("a", "v1", old="1"))
        async with api.watch(V2, resourceVersion="0") as watch:
            assert (await watch.next())["object"]["spec"] == {"new": "1"}
            await api.put(f"{V1}/a", {**first, "spec": {"old": "2"}})
            event = await watch.next()
            assert (event["type"], event["object"]["apiVersion"], event["object"]["spec"]) == ("MODIFIED", "demo.test/v2", {"new": "2"})
            await api.delete(f"{V1}/a")
            event = await watch.next()
            assert (event["type"], event["object"]["spec"]) == ("DELETED", {"new": "2"})


async def test_a_change_that_cannot_be_converted_ends_a_watch_with_the_reason(api: Api) -> None:
    def only_good(obj: dict[str, Any], api_version: str) -> dict[str, Any]:
        return {} if obj["spec"].get("old") == "bad" else convert(obj, api_version)

    async with defined(api, only_good), api.watch(V2) as watch:
        await api.created(V1, gadget("a", "v1", old="good"))
        assert (await watch.next())["object"]["spec"] == {"new": "good"}
        await api.created(V1, gadget("b", "v1", old="bad"))
        event = await watch.next()
        assert event["type"] == "ERROR" and event["object"]["code"] == 500
        assert await watch.next() is None and watch.ended


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda obj, to: {}, "Object 'Kind' is missing in '{}'"),
        (
            lambda obj, to: obj,
            "returned invalid object at index 0: invalid groupVersion (expected demo.test/v2, received demo.test/v1)",
        ),
        (
            lambda obj, to: {**convert(obj, to), "kind": "Other"},
            "returned invalid object at index 0: invalid kind (expected Gadget, received Other)",
        ),
        (
            lambda obj, to: {**convert(obj, to), "metadata": {**obj["metadata"], "name": "x"}},
            "returned invalid object: must have the same name: a != x",
        ),
        (
            lambda obj, to: {**convert(obj, to), "metadata": {**obj["metadata"], "uid": "x"}},
            "returned invalid object: must have the same UID: ",
        ),
        (
            lambda obj, to: {k: v for k, v in convert(obj, to).items() if k != "metadata"},
            "returned invalid object: must have the same name: a != ",
        ),
        (
            lambda obj, to: {**convert(obj, to), "metadata": {**obj["metadata"], "labels": {"a": 1}}},
            "returned invalid metadata: metadata.labels[a] must be a string, but is ",
        ),
    ],
)
async def test_what_a_webhook_may_not_do_is_told(api: Api, function: Convert, why: str) -> None:
    async with defined(api, function):
        await api.created(V1, gadget("a", "v1", old="1"))
        answer = await api.get(f"{V2}/a")
        assert answer.status == 500
        start = "" if why.startswith("Object") else "conversion webhook for demo.test/v1, Kind=Gadget "
        assert answer.message.startswith(f"{start}{why}")
        assert (await api.get(f"{V1}/a")).status == 200


async def test_identity_and_other_metadata_stay_the_servers(api: Api) -> None:
    def meddle(obj: dict[str, Any], api_version: str) -> dict[str, Any]:
        metadata = {**obj["metadata"], "labels": {"converted": "yes"}, "finalizers": ["meddled.example.com/x"], "generation": 99}
        return {**convert(obj, api_version), "metadata": metadata}

    async with defined(api, meddle):
        made = await api.created(V1, gadget("a", "v1", old="1"))
        read = (await api.get(f"{V2}/a")).json["metadata"]
        assert read["labels"] == {"converted": "yes"}
        assert "finalizers" not in read and read["generation"] == made["metadata"]["generation"]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"uid": "other"}, "failed: expected response.uid="),
        ({"result": {"status": "Failure", "message": "cannot"}}, "failed: cannot"),
        ({"result": {}}, "failed: response.result.status was '', not 'Success'"),
        ({"convertedObjects": []}, "returned 0 objects, expected 1"),
    ],
)
async def test_an_answer_that_is_none_is_told(api: Api, more: dict[str, Any], why: str) -> None:
    async with defined(api, **more):
        await api.created(V1, gadget("a", "v1", old="1"))
        for path in (f"{V2}/a", V2):
            answer = await api.get(path)
            assert answer.status == 500
            assert answer.message.startswith(f"conversion webhook for demo.test/v1, Kind=Gadget {why}")
        refused = await api.post(V2, gadget("b", "v2", new="1"))
        assert refused.status == 500
        assert (await api.get(f"{V1}/b")).status == 404


async def test_v1beta1_is_spoken_where_it_comes_first(api: Api) -> None:
    async with serving(answering(convert)) as server:
        await established(api, gadgets(server, review_versions=("v1beta1", "v1")))
        await api.created(V1, gadget("a", "v1", old="1"))
        assert (await api.get(f"{V2}/a")).json["spec"] == {"new": "1"}
        assert server.asked[0][1]["apiVersion"] == "apiextensions.k8s.io/v1beta1"


async def test_dry_run_shows_what_would_be_stored_and_read_back(api: Api) -> None:
    async with defined(api):
        tried = await api.post(V2, gadget("a", "v2", new="1"), query={"dryRun": "All"})
        assert (tried.status, tried.json["spec"]) == (201, {"new": "1"})
        made = await api.created(V2, gadget("a", "v2", new="1"))
        changed = await api.put(f"{V2}/a", {**made, "spec": {"new": "2"}}, query={"dryRun": "All"})
        assert changed.json["spec"] == {"new": "2"}
        assert (await api.get(f"{V2}/a")).json == made


async def test_objects_move_to_the_next_storage_version_by_a_write_that_changes_nothing(api: Api) -> None:
    """What kube-storage-version-migrator does, and the end of it: the old version may be dropped."""
    async with defined(api) as server:
        await api.created(V1, gadget("a", "v1", old="1"))
        current = (await api.get(NAME)).json
        assert current["status"]["storedVersions"] == ["v1"]
        next_one = gadgets(server, storage="v2")
        answer = await api.put(NAME, {**next_one, "metadata": current["metadata"]})
        assert answer.status == 200, answer.body
        answer = await until(api, NAME, lambda found: found.json["status"]["storedVersions"] == ["v1", "v2"])
        read = (await api.get(f"{V2}/a")).json
        assert read["spec"] == {"new": "1"}
        written = await api.put(f"{V2}/a", read)
        assert written.json["metadata"]["resourceVersion"] != read["metadata"]["resourceVersion"], "it is stored anew"
        again = await api.put(f"{V2}/a", written.json)
        assert again.json["metadata"]["resourceVersion"] == written.json["metadata"]["resourceVersion"]
        shrunk = await api.patch(f"{NAME}/status", {"status": {"storedVersions": ["v2"]}})
        assert shrunk.json["status"]["storedVersions"] == ["v2"]
        only = {**shrunk.json, "spec": {**shrunk.json["spec"], "versions": shrunk.json["spec"]["versions"][1:]}}
        assert (await api.put(NAME, only)).status == 200
        assert (await api.get(f"{V2}/a")).json["spec"] == {"new": "1"}


async def test_a_version_that_is_still_stored_cannot_be_dropped(api: Api) -> None:
    async with defined(api) as server:
        current = (await api.get(NAME)).json
        await api.put(NAME, {**gadgets(server, storage="v2"), "metadata": current["metadata"]})
        current = (await until(api, NAME, lambda found: len(found.json["status"]["storedVersions"]) == 2)).json
        dropped = await api.put(NAME, {**current, "spec": {**current["spec"], "versions": current["spec"]["versions"][1:]}})
        assert dropped.status == 422
        assert "status.storedVersions[0]" in dropped.message and "missing from spec.versions" in dropped.message


async def test_a_webhook_without_a_server_fails_what_it_is_needed_for_and_no_more(api: Api) -> None:
    async with defined(api) as server:
        await api.created(V1, gadget("a", "v1", old="1"))
    answer = await api.get(f"{V2}/a")
    assert answer.status == 500
    assert answer.message == (
        f'conversion webhook for demo.test/v1, Kind=Gadget failed: Post "{server.url}/?timeout=30s": '
        f"dial tcp 127.0.0.1:{server.port}: connect: connection refused"
    )
    assert (await api.get(f"{V1}/a")).status == 200
    assert (await api.delete(NAME)).status == 200
    await until(api, NAME, lambda found: found.status == 404)


async def test_a_clean_up_that_no_webhook_lets_through_rests_until_its_pause_is_over_or_the_definition_is_another(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[str] = []
    clean_up = cleanup.clean_up

    async def counted(registry: Any, schemas: Any, name: str, write: Any) -> None:
        attempts.append(name)
        await clean_up(registry, schemas, name, write)

    monkeypatch.setattr(upkeep, "PAUSE_SECONDS", 3600.0)
    monkeypatch.setattr(cleanup, "clean_up", counted)
    async with defined(api, lambda obj, api_version: {}):
        await api.created(V1, gadget("g", "v1"))
        crd = (await api.get(NAME)).json
        for each in crd["spec"]["versions"]:
            each["storage"] = each["name"] == "v2"
        assert (await api.put(NAME, crd)).status == 200
        await api.delete(NAME)
        failed = await until(api, NAME, lambda found: condition(found, "Terminating").get("reason") == "InstanceDeletionFailed")
        assert "Object 'Kind' is missing in '{}'" in condition(failed, "Terminating")["message"]
        await api.patch(NAME, {"metadata": {"labels": {"a": "b"}}})
        # the keeper takes definitions in the order of their changes: once this one is established, the one above was looked at
        await established(api, definition(plural="others", kind="Other"))
        assert len(attempts) == 1, "a write of the definition, its own too, starts no attempt"
        repaired = await api.patch(NAME, {"spec": {"conversion": {"strategy": "None", "webhook": None}}})
        assert repaired.status == 200, repaired.body
        await until(api, NAME, lambda found: found.status == 404)
