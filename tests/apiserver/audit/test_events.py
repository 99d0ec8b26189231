"""Events of whole requests, in process: what is noted at which level and stage."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver.audit import policy
from apiserver.audit.auditor import Auditor, Output
from apiserver.audit.event import source_ips
from apiserver.audit.log_file import LogFile, Rotation
from apiserver.audit.sinks import Losses
from tests.apiserver.api import Api, config_in, running
from tests.apiserver.filters.test_handler_chain import LIST, Lines, World

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@asynccontextmanager
async def audited(directory: Path, *rules: dict[str, Any], **more: Any) -> AsyncIterator[tuple[Api, list[dict[str, Any]]]]:
    """A server, and the events of it as they come."""
    lines: list[bytes] = []
    text = yaml.safe_dump({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": list(rules), **more})
    auditor = Auditor(policy.parse(text.encode(), "p"), [Output(sink=Lines(lines))], Losses(), lambda: 1_700_000_000.25)
    events: list[dict[str, Any]] = []

    class Parsed:
        def put(self, event: bytes) -> bool:
            events.append(json.loads(event))
            return True

        def close(self) -> None:
            pass

    auditor._outputs = (Output(sink=Parsed()),)
    async with running(config_in(directory)) as api:
        api.server.app._auditor = auditor
        yield api, events


def of(events: list[dict[str, Any]], stage: str, verb: str) -> dict[str, Any]:
    [found] = [event for event in events if (event["stage"], event["verb"]) == (stage, verb)]
    return found


async def test_bodies_are_noted_where_the_policy_says_so_and_not_else(tmp_path: Path) -> None:
    secrets = {"level": "Metadata", "resources": [{"group": "", "resources": ["secrets"]}]}
    reads = {"level": "Request", "verbs": ["get", "delete"]}
    async with audited(tmp_path, secrets, reads, {"level": "RequestResponse"}, omitManagedFields=True) as (api, events):
        await api.post(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
        await api.get(f"{CONFIGMAPS}/a")
        await api.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}, "stringData": {"k": "hidden"}})
        await api.delete(f"{CONFIGMAPS}/a")
    received, created = events[0], events[1]
    assert (received["stage"], received["level"]) == ("RequestReceived", "RequestResponse")
    assert not {"requestObject", "responseStatus", "annotations"} & set(received)
    assert created["requestObject"] == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "a"},
        "data": {"k": "v"},
    }
    assert created["responseObject"]["metadata"]["uid"] and "managedFields" not in created["responseObject"]["metadata"]
    assert created["objectRef"] == {"resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1"}
    assert created["responseStatus"] == {"metadata": {}, "code": 201}
    assert created["requestReceivedTimestamp"] <= created["stageTimestamp"] == "2023-11-14T22:13:20.250000Z"
    got = of(events, "ResponseComplete", "get")
    assert "requestObject" not in got and "responseObject" not in got and got["level"] == "Request"
    assert "hidden" not in json.dumps(events)
    deleted = of(events, "ResponseComplete", "delete")
    assert deleted["responseStatus"]["status"] == "Success" and deleted["responseStatus"]["details"]["name"] == "a"


async def test_refusals_say_why_and_watches_when_they_begin(tmp_path: Path) -> None:
    async with audited(tmp_path, {"level": "RequestResponse"}, omitStages=["RequestReceived"]) as (api, events):
        await api.get(f"{CONFIGMAPS}/none")
        await api.get(CONFIGMAPS, query="watch=1&timeoutSeconds=1&resourceVersion=0")
    missing = of(events, "ResponseComplete", "get")
    assert missing["responseStatus"] == {
        "metadata": {},
        "status": "Failure",
        "message": 'configmaps "none" not found',
        "reason": "NotFound",
        "details": {"name": "none", "kind": "configmaps"},
        "code": 404,
    }
    assert missing["responseObject"]["kind"] == "Status"
    assert of(events, "ResponseStarted", "watch")["responseStatus"] == {"metadata": {}, "code": 200}
    assert "responseObject" not in of(events, "ResponseComplete", "watch")


async def test_tokens_are_never_noted(tmp_path: Path) -> None:
    async with audited(tmp_path, {"level": "RequestResponse"}) as (api, events):
        account = "/api/v1/namespaces/default/serviceaccounts"
        await api.post(account, {"metadata": {"name": "a"}})
        answer = await api.post(f"{account}/a/token", {"spec": {"audiences": []}})
        token = answer.json["status"]["token"]
        review = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": token}}
        reviewed = await api.post("/apis/authentication.k8s.io/v1/tokenreviews", review)
        assert reviewed.json["status"]["authenticated"]
    text = json.dumps(events)
    assert token not in text and text.count("REDACTED") == 3


async def world(rules: list[dict[str, Any]]) -> tuple[World, list[bytes]]:
    made = World()
    text = yaml.safe_dump({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}).encode()
    made.chain._auditor = Auditor(policy.parse(text, "p"), [Output(sink=Lines(made.lines))], Losses(), lambda: 1_700_000_000.0)
    return made, made.lines


async def test_who_cannot_say_who_he_is_is_noted_at_once() -> None:
    made, lines = await world([{"level": "RequestResponse"}])
    await made.call(LIST, "nobody-knows")
    [event] = map(json.loads, lines)
    assert (event["stage"], event["user"]) == ("ResponseStarted", {})
    refused = {"metadata": {}, "status": "Failure", "message": "Unauthorized", "reason": "Unauthorized", "code": 401}
    assert event["responseStatus"] == refused and event["responseObject"] == {"kind": "Status", "apiVersion": "v1", **refused}
    assert b"nobody-knows" not in lines[0]


async def test_impersonation_is_told_with_both_users_and_judged_by_the_first() -> None:
    made, lines = await world([{"level": "Metadata", "users": ["admin"]}, {"level": "None"}])
    await made.call(LIST, "admin", headers=(("Impersonate-User", "bob"),))
    received, complete = map(json.loads, lines)
    assert "impersonatedUser" not in received
    assert (complete["user"]["username"], complete["impersonatedUser"]["username"]) == ("admin", "bob")
    lines.clear()
    await made.call(LIST, "alice", headers=(("Impersonate-User", "admin"),))
    assert not lines, "of alice nothing is noted, whoever she wants to be"


async def test_a_fault_of_the_server_is_a_panic() -> None:
    made, lines = await world([{"level": "Metadata"}])
    made.handler.error = ValueError("x")
    await made.call(LIST, "admin")
    event = json.loads(lines[-1])
    assert (event["stage"], event["responseStatus"]["code"], event["responseStatus"]["reason"]) == ("Panic", 500, "InternalError")


async def test_a_sink_that_fails_costs_no_answer() -> None:
    made, _ = await world([{"level": "Metadata"}])
    auditor = made.chain._auditor
    assert auditor is not None

    def fail(event: bytes) -> bool:
        raise OSError("full")

    auditor._outputs[0].sink.put = fail  # type: ignore[method-assign]
    assert (await made.call(LIST, "admin")).status == 200
    assert auditor._losses.by_plugin["event"] == 2
    await asyncio.sleep(0)


@pytest.mark.parametrize(("strict", "status"), [(False, 200), (True, 500)])
async def test_a_log_on_a_full_disk_ends_a_request_only_where_it_is_strict(strict: bool, status: int) -> None:
    made, _ = await world([{"level": "Metadata"}])
    auditor = made.chain._auditor
    assert auditor is not None
    log = LogFile(Path("/dev/full"), Rotation(), auditor._losses, blocking=True)
    auditor._outputs = (Output(sink=log, strict=strict),)
    answer = await made.call(LIST, "admin")
    assert answer.status == status
    assert auditor._losses.by_plugin["log"] >= 2, "each is counted"
    if strict:
        assert answer.json["message"] == "Internal error occurred: failed to store audit event"
    log.close()


async def test_a_large_event_is_told_without_its_objects() -> None:
    made, lines = await world([{"level": "RequestResponse"}])
    auditor = made.chain._auditor
    assert auditor is not None
    await made.call(LIST, "admin")
    auditor._outputs = (dataclasses.replace(auditor._outputs[0], event_bytes_max=2000),)
    event = {**json.loads(lines[-1]), "requestObject": {"data": "x" * 5000}}
    assert auditor._put(auditor._outputs[0], event, json.dumps(event).encode())
    told = json.loads(lines[-1])
    assert "requestObject" not in told and told["annotations"]["audit.k8s.io/truncated"] == "true"
    before, event = len(lines), {**event, "userAgent": "x" * 5000}
    assert auditor._put(auditor._outputs[0], event, json.dumps(event).encode())
    assert len(lines) == before and auditor._losses.by_plugin["log"] == 1


def test_addresses_are_those_of_proxies_and_of_who_connects() -> None:
    assert source_ips({}, "10.0.0.9") == ["10.0.0.9"]
    headers = {b"x-forwarded-for": b"1.2.3.4, junk, 5.6.7.8", b"x-real-ip": b"9.9.9.9"}
    assert source_ips(headers, "10.0.0.9") == ["1.2.3.4", "5.6.7.8", "9.9.9.9", "10.0.0.9"]
    assert source_ips({b"x-forwarded-for": b"10.0.0.9"}, "10.0.0.9") == ["10.0.0.9"]
