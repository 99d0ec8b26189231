"""Objects whose stored values cannot be read: told, counted, and never touched by what is meant for others."""

from __future__ import annotations

import pytest

from storage import api as storage_api
from tests.apiserver.api import Api

SECRETS = "/api/v1/namespaces/ns-a/secrets"
KEY = "/registry/secrets/ns-a/locked"
ENCRYPTED = b"k8s:enc:aescbc:v1:key1:\x00\x01"
WORDS = (
    f'Internal error occurred: unable to transform key "{KEY}": identity transformer tried to read encrypted data '
    "(provider aescbc v1, key key1)"
)


@pytest.fixture(autouse=True)
async def locked(api: Api) -> None:
    await api.kv.put(storage_api.PutRequest(key=KEY.encode(), value=ENCRYPTED))
    await api.created(SECRETS, {"metadata": {"name": "open"}})


async def stored(api: Api) -> bytes:
    return (await api.kv.range(storage_api.RangeRequest(key=KEY.encode()))).kvs[0].value


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
async def test_a_request_for_it_says_why_it_cannot_be_had(api: Api, method: str) -> None:
    body = None if method in ("GET", "DELETE") else {"metadata": {"name": "locked"}}
    content_type = "application/merge-patch+json" if method == "PATCH" else ""
    answer = await api.request(method, f"{SECRETS}/locked", body, content_type=content_type)
    assert (answer.status, answer.reason, answer.message) == (500, "InternalError", WORDS)
    assert await stored(api) == ENCRYPTED


async def test_its_name_is_taken(api: Api) -> None:
    answer = await api.post(SECRETS, {"metadata": {"name": "locked"}})
    assert (answer.status, answer.reason) == (409, "AlreadyExists")
    assert await stored(api) == ENCRYPTED


async def test_lists_show_the_others_and_warn(api: Api) -> None:
    answer = await api.get(SECRETS)
    assert [item["metadata"]["name"] for item in answer.json["items"]] == ["open"]
    [warning] = answer.headers["warning"]
    assert "1 of secrets cannot be read and are missing here (1 encrypted)" in warning
    assert "warning" not in (await api.get("/api/v1/namespaces/default/secrets")).headers
    assert "warning" not in (await api.get(SECRETS, query={"fieldSelector": "metadata.name=open"})).headers


async def test_a_collection_is_deleted_but_for_it_and_the_answer_says_so(api: Api) -> None:
    """So that a namespace does not go with something in it."""
    answer = await api.delete(SECRETS)
    assert (answer.status, answer.message) == (500, WORDS)
    assert (await api.get(SECRETS)).json["items"] == []
    assert await stored(api) == ENCRYPTED


async def test_a_watch_goes_on(api: Api) -> None:
    async with api.watch(SECRETS) as watch:
        assert (await watch.next())["object"]["metadata"]["name"] == "open"
        await api.kv.put(storage_api.PutRequest(key=b"/registry/secrets/ns-a/open", value=ENCRYPTED))
        await api.created(SECRETS, {"metadata": {"name": "later"}})
        assert [(event["type"], event["object"]["metadata"]["name"]) for event in await watch.take(2)] == [
            ("DELETED", "open"),
            ("ADDED", "later"),
        ]


OPTION = "ignoreStoreReadErrorWithClusterBreakingPotential"


async def test_it_can_be_deleted_by_whoever_means_it(api: Api) -> None:
    answer = await api.delete(f"{SECRETS}/locked", {OPTION: True, "dryRun": ["All"]})
    assert answer.status == 200 and await stored(api) == ENCRYPTED
    answer = await api.delete(f"{SECRETS}/locked", query={OPTION: "true"})
    assert (answer.status, answer.json["status"], answer.json["details"]) == (200, "Success", {"name": "locked", "kind": "secrets"})
    assert (await api.get(f"{SECRETS}/locked")).status == 404
    assert (await api.delete(f"{SECRETS}/locked", {OPTION: True})).status == 404
    assert (await api.delete(f"{SECRETS}/open", {OPTION: True})).status == 409
    assert (await api.get(f"{SECRETS}/open")).status == 200


async def test_to_delete_is_not_to_delete_what_cannot_be_read(api: Api) -> None:
    rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["delete"]}]
    await api.created("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "deleter"}, "rules": rules})
    binding = {
        "metadata": {"name": "deleter"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "deleter"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
    }
    await api.created("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    answer = await api.delete(f"{SECRETS}/locked", {OPTION: True}, token="alice-token")
    assert answer.status == 403 and 'not permitted to do "unsafe-delete-ignore-read-errors"' in answer.message
    assert await stored(api) == ENCRYPTED


async def test_it_goes_with_no_other_option(api: Api) -> None:
    answer = await api.delete(f"{SECRETS}/locked", {OPTION: True, "gracePeriodSeconds": 0, "propagationPolicy": "Orphan"})
    assert answer.status == 422
    assert [cause["message"].rpartition(": ")[2] for cause in answer.causes] == [
        "cannot be set together with .propagationPolicy",
        "cannot be set together with .gracePeriodSeconds",
    ]
