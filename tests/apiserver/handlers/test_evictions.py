"""Evictions and disruption budgets (registry/core/pod/storage, EvictionREST)."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.registry import object_deletion
from tests.apiserver.api import Answer, Api

PODS = "/api/v1/namespaces/ns-a/pods"
BUDGETS = "/apis/policy/v1/namespaces/ns-a/poddisruptionbudgets"
POD: dict[str, Any] = {
    "metadata": {"name": "p", "labels": {"app": "web"}},
    "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
}
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


async def running_pod(api: Api, **status: Any) -> None:
    await api.created(PODS, POD)
    assert (await api.patch(f"{PODS}/p/status", {"status": {"phase": "Running", **READY, **status}})).status == 200


async def budget(api: Api, name: str = "b", *, spec: Any = None, **status: Any) -> None:
    body = {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}, **(spec or {})}}
    await api.created(BUDGETS, body)
    whole = {"observedGeneration": 1, "disruptionsAllowed": 0, "expectedPods": 1, "currentHealthy": 1, "desiredHealthy": 1, **status}
    assert (await api.patch(f"{BUDGETS}/{name}/status", {"status": whole})).status == 200


async def evict(api: Api, **more: Any) -> Answer:
    return await api.post(f"{PODS}/p/eviction", {"metadata": {"name": "p"}, **more})


async def gone(api: Api) -> bool:
    answer = await api.get(f"{PODS}/p")
    return answer.status == 404 or "deletionTimestamp" in answer.json["metadata"]


async def test_an_eviction_spends_what_is_allowed_and_says_when_that_was_all(api: Api) -> None:
    await running_pod(api)
    await budget(api, disruptionsAllowed=1)
    assert (await evict(api)).status == 201
    assert await gone(api)
    status = (await api.get(f"{BUDGETS}/b")).json["status"]
    assert status["disruptionsAllowed"] == 0 and list(status["disruptedPods"]) == ["p"]
    (condition,) = status["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("DisruptionAllowed", "False", "InsufficientPods")


async def test_an_eviction_that_is_not_allowed(api: Api) -> None:
    await running_pod(api)
    await budget(api)
    answer = await evict(api)
    assert (answer.status, answer.reason) == (429, "TooManyRequests")
    assert answer.message == "Cannot evict pod as it would violate the pod's disruption budget."
    needs = "The disruption budget b needs 1 healthy pods and has 1 currently"
    assert answer.json["details"] == {"causes": [{"reason": "DisruptionBudget", "message": needs}]}
    assert "retry-after" not in answer.headers and not await gone(api)


async def test_a_budget_whose_controller_is_behind_is_to_be_asked_again(api: Api) -> None:
    await running_pod(api)
    await budget(api, observedGeneration=0, disruptionsAllowed=5)
    answer = await evict(api)
    assert (answer.status, answer.headers["retry-after"]) == (429, ["10"])
    assert answer.json["details"]["retryAfterSeconds"] == 10
    assert answer.causes[0]["message"] == "The disruption budget b is still being processed by the server."


async def test_two_budgets_for_one_pod(api: Api) -> None:
    await running_pod(api)
    await budget(api, "b", disruptionsAllowed=1)
    await budget(api, "c", disruptionsAllowed=1)
    answer = await evict(api)
    assert (answer.status, answer.reason) == (500, "")
    assert answer.message == "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


async def test_what_runs_no_more_needs_no_budget(api: Api) -> None:
    await running_pod(api, phase="Succeeded")
    await budget(api)
    assert (await evict(api)).status == 201


@pytest.mark.parametrize(
    ("policy", "healthy", "code"),
    [(None, 1, 201), (None, 0, 429), ("IfHealthyBudget", 0, 429), ("IfHealthyBudget", 1, 201), ("AlwaysAllow", 0, 201)],
)
async def test_an_unready_pod_goes_by_the_budgets_policy(api: Api, policy: str | None, healthy: int, code: int) -> None:
    await running_pod(api, conditions=[{"type": "Ready", "status": "False"}])
    await budget(api, spec={"unhealthyPodEvictionPolicy": policy} if policy else None, currentHealthy=healthy)
    assert (await evict(api)).status == code
    assert (await api.get(f"{BUDGETS}/b")).json["status"]["disruptionsAllowed"] == 0


@pytest.mark.parametrize("where", ["query", "options"])
async def test_a_dry_run_spends_and_evicts_nothing(api: Api, where: str) -> None:
    await running_pod(api)
    await budget(api, disruptionsAllowed=1)
    if where == "query":
        answer = await api.post(f"{PODS}/p/eviction", {"metadata": {"name": "p"}}, query={"dryRun": "All"})
    else:
        answer = await evict(api, deleteOptions={"dryRun": ["All"]})
    assert answer.status == 201 and not await gone(api)
    assert (await api.get(f"{BUDGETS}/b")).json["status"]["disruptionsAllowed"] == 1


async def test_an_eviction_of_another_name_or_version(api: Api) -> None:
    await running_pod(api)
    for metadata in ({"name": "q"}, {}):
        answer = await api.post(f"{PODS}/p/eviction", {"metadata": metadata})
        assert (answer.status, answer.message) == (400, "name in URL does not match name in Eviction object")
    for wanted in ({"uid": "x"}, {"resourceVersion": "1"}):
        answer = await evict(api, deleteOptions={"preconditions": wanted})
        assert (answer.status, answer.reason) == (409, "Conflict")
    assert not await gone(api)
    assert (await api.post(f"{PODS}/none/eviction", {"metadata": {"name": "none"}})).status == 404


def changed_meanwhile(api: Api, monkeypatch: pytest.MonkeyPatch, status: dict[str, Any], times: int = 1) -> list[int]:
    """Before each of the first deletions the pod's status changes; how many deletions there were."""
    delete, calls = object_deletion.delete, list[int]()

    async def after_a_change(*told: Any) -> Any:
        calls.append(1)
        if len(calls) <= times:
            marked = {"status": {**status, "message": str(len(calls))}}
            assert (await api.patch(f"{PODS}/p/status", marked)).status == 200
        return await delete(*told)

    monkeypatch.setattr(object_deletion, "delete", after_a_change)
    return calls


async def test_a_pod_that_becomes_ready_meanwhile_is_not_evicted_as_unready(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    await running_pod(api, conditions=[])
    await budget(api)
    changed_meanwhile(api, monkeypatch, READY)
    answer = await evict(api)
    assert (answer.status, answer.causes[0]["message"]) == (429, "The disruption budget b is still being processed by the server.")
    assert not await gone(api)


async def test_a_pending_pod_is_looked_at_again_until_it_stands_still(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    await api.created(PODS, POD)
    calls = changed_meanwhile(api, monkeypatch, {}, times=3)
    assert (await evict(api)).status == 201
    assert (len(calls), await gone(api)) == (4, True)


async def test_a_pod_that_runs_meanwhile_meets_its_budget(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    await api.created(PODS, POD)
    await budget(api)
    changed_meanwhile(api, monkeypatch, {"phase": "Running", **READY})
    assert (await evict(api)).status == 429 and not await gone(api)


async def test_a_version_that_the_client_names_is_its_own(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    created = await api.created(PODS, POD)
    calls = changed_meanwhile(api, monkeypatch, {})
    version = {"preconditions": {"resourceVersion": created["metadata"]["resourceVersion"]}}
    assert (await evict(api, deleteOptions=version)).status == 409
    assert (len(calls), await gone(api)) == (1, False)
