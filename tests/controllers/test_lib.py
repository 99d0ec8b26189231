"""Events, expectations, claims, selectors, taints, template hashes."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.machinery.objects import Object
from controllers.client import errors
from controllers.client.errors import ConnectionFailed
from controllers.client.resources import EVENTS, PODS, REPLICA_SETS
from controllers.lib import int_or_percent, selectors, taints, template_hash
from controllers.lib.controller_ref import claim
from controllers.lib.events import EventBroadcaster
from controllers.lib.expectations import TIMEOUT_SECONDS, Expectations
from controllers.lib.pod_control import slow_start
from tests.controllers.fake_api import FakeApi, refused
from tests.controllers.virtual_clock import VirtualClock, settle

POD: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "a", "uid": "u", "resourceVersion": "5"}}


class Recording:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.api = FakeApi(self.clock)
        self.broadcaster = EventBroadcaster(self.api, clock=self.clock, rng=random.Random(1))
        self.recorder = self.broadcaster.recorder("tester")
        self.task = asyncio.create_task(self.broadcaster.run())

    async def events(self) -> list[Object]:
        await settle(400)
        return self.api.all(EVENTS)


async def test_an_event_names_its_object_and_repeats_are_counted() -> None:
    recording = Recording()
    for _ in range(3):
        recording.recorder.event(POD, "Normal", "Started", "it started")
    (event,) = await recording.events()
    assert event["count"] == 3 and event["involvedObject"] == {
        "kind": "Pod",
        "apiVersion": "v1",
        "name": "p",
        "namespace": "a",
        "uid": "u",
        "resourceVersion": "5",
    }
    assert event["source"] == {"component": "tester"} and event["metadata"]["namespace"] == "a"
    recording.task.cancel()


async def test_many_similar_events_become_one() -> None:
    recording = Recording()
    for number in range(14):
        recording.recorder.event(POD, "Normal", "Started", f"message {number}")
    events = await recording.events()
    assert len(events) == 11
    (combined,) = [e for e in events if e["message"].startswith("(combined")]
    assert combined["count"] == 4 and combined["message"] == "(combined from similar events): message 13"
    recording.task.cancel()


async def test_a_source_that_says_too_much_is_cut_off() -> None:
    recording = Recording()
    for _ in range(40):
        recording.recorder.event(POD, "Normal", "Started", "again")
    (event,) = await recording.events()
    assert event["count"] == 25 and recording.broadcaster.dropped == 15
    recording.task.cancel()


async def test_an_expired_event_begins_anew_and_a_missing_server_is_waited_for() -> None:
    recording = Recording()
    recording.recorder.event(POD, "Normal", "Started", "it started")
    (event,) = await recording.events()
    await recording.api.delete(EVENTS, "a", event["metadata"]["name"])
    recording.api.fail("patch", "events", ConnectionFailed("away"))
    recording.recorder.event(POD, "Normal", "Started", "it started")
    await recording.clock.advance(10)
    (event,) = await recording.events()
    assert event["count"] == 1
    recording.task.cancel()


async def test_expectations_hold_until_seen_or_expired() -> None:
    clock = VirtualClock()
    expectations = Expectations(clock)
    assert expectations.satisfied("a")
    expectations.expect_creations("a", 2)
    expectations.expect_deletions("a", ["p1"])
    expectations.creation_observed("a")
    expectations.creation_observed("a")
    assert not expectations.satisfied("a")
    expectations.deletion_observed("a", "other")
    assert not expectations.satisfied("a") and not expectations.is_expired("a")
    await clock.advance(TIMEOUT_SECONDS)
    assert expectations.is_expired("a") and not expectations.satisfied("a")
    expectations.deletion_observed("a", "p1")
    assert expectations.satisfied("a") and not expectations.is_expired("a")


async def test_claim_adopts_matching_orphans_and_releases_what_no_longer_matches() -> None:
    api = FakeApi(VirtualClock())
    owner = await api.create(REPLICA_SETS, "a", {"metadata": {"name": "r"}})
    ref = {"uid": owner["metadata"]["uid"], "controller": True, "kind": "ReplicaSet", "name": "r", "apiVersion": "apps/v1"}
    pods: list[Object] = [
        {"metadata": {"name": "mine", "labels": {"app": "r"}, "ownerReferences": [ref]}},
        {"metadata": {"name": "left", "labels": {"app": "x"}, "ownerReferences": [ref]}},
        {"metadata": {"name": "orphan", "labels": {"app": "r"}}},
        {"metadata": {"name": "others", "labels": {"app": "r"}, "ownerReferences": [{**ref, "uid": "else"}]}},
        {"metadata": {"name": "unlike", "labels": {"app": "x"}}},
    ]
    stored = [await api.create(PODS, "a", p) for p in pods]

    def is_r(pod: Object) -> bool:
        return bool(pod["metadata"].get("labels", {}).get("app") == "r")

    claimed = await claim(api, owner, REPLICA_SETS, PODS, stored, is_r)
    assert [p["metadata"]["name"] for p in claimed] == ["mine", "orphan"]
    after = {p["metadata"]["name"]: p["metadata"].get("ownerReferences") for p in api.all(PODS)}
    assert after["orphan"] == [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "r",
            "uid": owner["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert not after["left"] and after["others"][0]["uid"] == "else" and not after["unlike"]


async def test_an_owner_that_was_replaced_behind_the_caches_back_adopts_nothing() -> None:
    api = FakeApi(VirtualClock())
    stale = await api.create(REPLICA_SETS, "a", {"metadata": {"name": "r"}})
    await api.delete(REPLICA_SETS, "a", "r")
    await api.create(REPLICA_SETS, "a", {"metadata": {"name": "r"}})
    orphan = await api.create(PODS, "a", {"metadata": {"name": "p"}})
    assert await claim(api, stale, REPLICA_SETS, PODS, [orphan], lambda _: True) == []
    assert "ownerReferences" not in api.all(PODS)[0]["metadata"]


async def test_slow_start_doubles_and_stops_at_the_first_batch_with_a_failure() -> None:
    calls: list[int] = []

    async def call(number: int) -> None:
        calls.append(number)
        if number >= 3:
            raise refused(403, "Forbidden", "quota")

    successes, failure = await slow_start(7, call)
    assert successes == 3 and isinstance(failure, errors.StatusError) and failure.code == 403
    assert calls == [0, 1, 2, 3, 4, 5, 6]  # batches of 1, 2 and 4; 3 … 6 failed together
    calls.clear()
    assert (await slow_start(20, call))[0] == 3 and len(calls) == 7


LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"))


@given(
    LABELS, st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]), st.sampled_from("ab"), st.lists(st.sampled_from("xy"), max_size=2)
)
def test_requirements_and_their_opposites_disagree(labels: dict[str, str], operator: str, key: str, values: list[str]) -> None:
    opposite = {"In": "NotIn", "NotIn": "In", "Exists": "DoesNotExist", "DoesNotExist": "Exists"}[operator]
    one = selectors.matches_requirement({"key": key, "operator": operator, "values": values}, labels)
    assert one is not selectors.matches_requirement({"key": key, "operator": opposite, "values": values}, labels)


def test_selectors() -> None:
    selector = {"matchLabels": {"b": "2"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]}]}
    assert selectors.matches(selector, {"a": "x", "b": "2"}) and not selectors.matches(selector, {"a": "z", "b": "2"})
    assert selectors.matches({}, {}) and not selectors.matches(None, {})
    assert selectors.to_string(selector) == "a in (x,y),b=2"


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "w"}, False),
        ({"key": "k", "value": "v", "effect": "NoExecute"}, False),
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, True),
        ({"key": "other", "operator": "Exists"}, False),
        ({}, False),
    ],
)
def test_tolerations(toleration: Object, tolerated: bool) -> None:
    assert taints.tolerates(toleration, {"key": "k", "value": "v", "effect": "NoSchedule"}) is tolerated


@pytest.mark.parametrize(
    ("value", "total", "up", "down"), [("25%", 1, 1, 0), ("25%", 4, 1, 1), ("50%", 3, 2, 1), (2, 3, 2, 2), ("0%", 9, 0, 0)]
)
def test_percentages(value: int | str, total: int, up: int, down: int) -> None:
    assert int_or_percent.scaled(value, total, round_up=True) == up
    assert int_or_percent.scaled(value, total, round_up=False) == down


def test_template_hashes_ignore_order_and_absence_but_not_content() -> None:
    one: Object = {"metadata": {"labels": {"a": "1", "b": "2"}, "creationTimestamp": None}, "spec": {"containers": [{"name": "c"}]}}
    same: Object = {"spec": {"containers": [{"name": "c"}], "volumes": []}, "metadata": {"labels": {"b": "2", "a": "1"}}}
    other: Object = {"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"containers": [{"name": "d"}]}}
    assert template_hash.template_hash(one) == template_hash.template_hash(same) != template_hash.template_hash(other)
    assert template_hash.template_hash(one, 0) != template_hash.template_hash(one)
    labelled = {**one, "metadata": {"labels": {"a": "1", "b": "2", "pod-template-hash": "x"}}}
    assert template_hash.equal_ignoring(one, labelled, "pod-template-hash")
    assert template_hash.fnv1a_32(b"foobar") == 0xBF9CF968
