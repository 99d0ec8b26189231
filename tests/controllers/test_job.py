"""Jobs: decisions as properties and tables, the shell over the fake API."""

from __future__ import annotations

import datetime
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.machinery.objects import Object
from controllers.client.resources import JOBS, PODS
from controllers.job import decision, indexes
from controllers.job.controller import JobController
from controllers.lib.clock import format_time
from controllers.ttlafterfinished.controller import TTLAfterFinishedController
from tests.controllers.world import World, template

NOW = datetime.datetime(2024, 5, 1, 10, tzinfo=datetime.UTC)


def job(**spec: Any) -> Object:
    made = template(app="j")
    made["spec"]["restartPolicy"] = "Never"
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": 6,
            "selector": {"matchLabels": {"app": "j"}},
            "template": made,
            **spec,
        },
    }


def pod(name: str, phase: str = "Running", index: int | None = None, ended: datetime.datetime = NOW) -> Object:
    annotations = {} if index is None else {indexes.ANNOTATION: str(index)}
    ends = [{"state": {"terminated": {"finishedAt": format_time(ended)}}}] if phase in ("Failed", "Succeeded") else []
    return {"metadata": {"name": name, "uid": name, "annotations": annotations}, "status": {"phase": phase, "containerStatuses": ends}}


def conditions(status: Object) -> dict[str, str]:
    return {c["type"]: c["reason"] for c in status.get("conditions", []) if c["status"] == "True"}


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 8), st.integers(1, 5), st.booleans(), st.integers(0, 2**32))
def test_a_job_ends_with_exactly_its_completions_and_never_runs_too_many(
    completions: int, parallelism: int, indexed: bool, seed: int
) -> None:
    rng = random.Random(seed)
    mode = "Indexed" if indexed else "NonIndexed"
    current = job(completions=completions, parallelism=parallelism, completionMode=mode, backoffLimit=1000)
    pods: dict[str, Object] = {}
    now = NOW
    for step in range(400):
        plan = decision.plan(current, list(pods.values()), now, may_manage=True)
        current = {**current, "status": plan.status}
        for gone in plan.delete:
            del pods[gone["metadata"]["name"]]
        for number, index in enumerate(plan.create):
            pods[f"p{step}-{number}"] = pod(f"p{step}-{number}", index=index)
        active = [p for p in pods.values() if p["status"]["phase"] == "Running"]
        assert len(active) <= parallelism
        assert len({indexes.of_pod(p) for p in active}) == len(active) or not indexed
        if decision.is_finished(current):
            break
        now += datetime.timedelta(seconds=rng.choice([1, 60, 400]))
        if active:
            name = rng.choice(sorted(p["metadata"]["name"] for p in active))
            pods[name] = pod(name, rng.choice(["Succeeded", "Succeeded", "Failed"]), indexes.of_pod(pods[name]), now)
    assert conditions(current["status"]) == {"SuccessCriteriaMet": "CompletionsReached", "Complete": "CompletionsReached"}
    assert current["status"]["succeeded"] == completions and current["status"]["completionTime"]
    if indexed:
        assert indexes.parse(current["status"]["completedIndexes"]) == set(range(completions))


def test_too_many_failures_fail_the_job_and_stop_what_runs() -> None:
    pods = [pod("a", "Failed"), pod("b", "Failed"), pod("c")]
    plan = decision.plan(job(backoffLimit=1, parallelism=2), pods, NOW, may_manage=True)
    assert [p["metadata"]["name"] for p in plan.delete] == ["c"] and conditions(plan.status) == {"FailureTarget": "BackoffLimitExceeded"}
    plan = decision.plan({**job(backoffLimit=1), "status": plan.status}, pods[:2], NOW, may_manage=True)
    assert conditions(plan.status)["Failed"] == "BackoffLimitExceeded" and plan.status["failed"] == 2 and "active" not in plan.status


def test_failures_are_followed_by_growing_pauses() -> None:
    one = decision.plan(job(), [pod("a", "Failed")], NOW + datetime.timedelta(seconds=4), may_manage=True)
    assert one.create == () and one.again_seconds == 6
    three = decision.plan(job(), [pod(n, "Failed") for n in "abc"], NOW, may_manage=True)
    assert three.again_seconds == 40
    assert decision.plan(job(), [pod("a", "Failed")], NOW + datetime.timedelta(seconds=10), may_manage=True).create == (None,)


def test_a_deadline_fails_the_job() -> None:
    running = {**job(activeDeadlineSeconds=30), "status": {"startTime": format_time(NOW)}}
    early = decision.plan(running, [pod("a")], NOW + datetime.timedelta(seconds=20), may_manage=True)
    assert conditions(early.status) == {} and early.again_seconds == 10
    late = decision.plan(running, [], NOW + datetime.timedelta(seconds=30), may_manage=True)
    assert conditions(late.status)["Failed"] == "DeadlineExceeded"


def test_finished_counts_do_not_sink_when_pods_are_cleaned_away() -> None:
    counted = {**job(completions=3), "status": {"succeeded": 2, "failed": 1, "startTime": format_time(NOW)}}
    status = decision.plan(counted, [], NOW, may_manage=True).status
    assert status["succeeded"] == 2 and status["failed"] == 1


def test_a_suspended_job_runs_nothing_and_starts_anew_when_resumed() -> None:
    suspended = decision.plan(job(suspend=True), [pod("a")], NOW, may_manage=True)
    assert len(suspended.delete) == 1 and "startTime" not in suspended.status
    assert conditions(suspended.status) == {"Suspended": "JobSuspended"}
    resumed = decision.plan({**job(), "status": suspended.status}, [], NOW, may_manage=True)
    assert resumed.create == (None,) and resumed.status["startTime"] and conditions(resumed.status) == {}


@given(st.sets(st.integers(0, 40)))
def test_indexes_survive_being_written(found: set[int]) -> None:
    assert indexes.parse(indexes.text(found)) == found


async def test_a_job_is_run_to_its_end_and_cleaned_up_after_its_time() -> None:
    world = World()
    await world.api.create(JOBS, "a", job(completions=2, ttlSecondsAfterFinished=60))
    async with world.running(JobController, TTLAfterFinishedController):
        for done in (1, 2):
            (running,) = [p for p in world.api.all(PODS) if p["status"]["phase"] == "Pending"]
            assert running["metadata"]["generateName"] == "j-" and running["metadata"]["ownerReferences"][0]["kind"] == "Job"
            await world.api.patch(PODS, "a", running["metadata"]["name"], {"status": {"phase": "Succeeded"}}, subresource="status")
            await world.rest()
            assert world.api.all(JOBS)[0]["status"]["succeeded"] == done
        assert world.events("Completed") and len(world.api.all(PODS)) == 2
        await world.advance(59)
        assert not world.api.all(JOBS)[0]["metadata"].get("deletionTimestamp")
        await world.advance(2)
        assert world.api.all(JOBS)[0]["metadata"]["deletionTimestamp"], "deleted in the foreground"


async def test_indexed_pods_know_their_index() -> None:
    world = World()
    await world.api.create(JOBS, "a", job(completions=2, parallelism=2, completionMode="Indexed"))
    async with world.running(JobController):
        pods = world.api.all(PODS)
        assert sorted(p["spec"]["hostname"] for p in pods) == ["j-0", "j-1"]
        assert all(p["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX" for p in pods)
