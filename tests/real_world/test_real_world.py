"""Definitions of real projects, as they are installed; the long run takes whole repositories of them (see the package)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.apiserver.api import Api, config_in, running
from tests.e2e.conftest import Kubectl, kubectl
from tests.real_world import objects
from tests.real_world.checks import CRDS, check, definitions_in, established

__all__ = ["kubectl"]

DATA = Path(__file__).parent / "data"
DEFINITIONS = [definition for _, definition in definitions_in([DATA])]


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with running(config_in(tmp_path)) as found:
        await found.created("/api/v1/namespaces", {"metadata": {"name": "ns-a"}})
        yield found


async def test_each_loads_and_serves(api: Api) -> None:
    """Its minimal object is created, listed by its columns, explained, applied and deleted, or refused by its own rules."""
    outcomes = [await check(api, definition) for definition in DEFINITIONS]
    assert len(outcomes) == 15
    assert [(o.name, o.problems) for o in outcomes if o.problems] == []
    assert sum(o.versions for o in outcomes) >= 15
    assert sum(o.rules for o in outcomes) >= 20


async def test_sample_objects_are_accepted_or_refused_as_their_project_expects(api: Api, tmp_path: Path) -> None:
    topic = {"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaTopic", "metadata": {"name": "t", "uid": "of another cluster"}}
    found = [
        {**topic, "spec": {"partitions": 3}},
        {**topic, "spec": {"partitions": 0}, "_err": "spec.partitions in body should be greater than or equal to 1"},
        {**topic, "spec": {"partition": 3}, "_err": "no such words"},
        {**topic, "spec": {"partitions": 0}},
        {**topic, "spec": {"partitions": 3}, "_err": "it is accepted"},
        {**topic, "kind": "Unknown"},
    ]
    place = tmp_path / "samples" / "strimzi"
    place.mkdir(parents=True)
    for number, obj in enumerate(found):
        (place / f"{number}.yaml").write_text(json.dumps(obj))
    (project,) = await objects.run(api, DEFINITIONS, place.parent)
    assert (project.accepted, project.refused_as_expected, len(project.refused)) == (2, 1, 2)
    assert project.problems == ["4.yaml: not refused, but expected was 'it is accepted'"]
    assert "unknown field" in project.refused[0]
    assert project.kinds == {"KafkaTopic.kafka.strimzi.io"}


async def install(api: Api, name: str) -> None:
    definition = next(d for d in DEFINITIONS if d["metadata"]["name"] == name)
    definition = {**definition, "spec": {**definition["spec"], "conversion": {"strategy": "None"}}}
    await api.created(CRDS, definition)
    assert await established(api, name)


async def test_entries_that_a_real_rule_wants_unique_are(api: Api) -> None:
    await install(api, "machinedrainrules.cluster.x-k8s.io")
    path = "/apis/cluster.x-k8s.io/v1beta2/namespaces/ns-a/machinedrainrules"
    selector = {"selector": {"matchLabels": {"a": "b"}}}
    head = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDrainRule", "metadata": {"name": "r"}}
    rule = {**head, "spec": {"drain": {"behavior": "Skip"}, "machines": [selector, selector]}}
    refused = await api.post(path, rule)
    assert refused.status == 422
    assert refused.causes[0]["field"] == "spec.machines"
    assert refused.causes[0]["message"].endswith("entries in machines must be unique")
    rule["spec"]["machines"].pop()  # type: ignore[index]
    await api.created(path, rule)


async def test_a_field_that_a_real_rule_wants_unchanged_stays(api: Api) -> None:
    await install(api, "gatewayclasses.gateway.networking.k8s.io")
    path = "/apis/gateway.networking.k8s.io/v1/gatewayclasses"
    head = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": "c"}}
    await api.created(path, {**head, "spec": {"controllerName": "a.example.com/one"}})
    refused = await api.patch(f"{path}/c", {"spec": {"controllerName": "a.example.com/other"}})
    assert refused.status == 422
    assert "spec.controllerName: Invalid value" in refused.message
    assert "field is immutable" in refused.message
    assert (await api.patch(f"{path}/c", {"spec": {"description": "all else does"}})).status == 200


@pytest.mark.e2e
@pytest.mark.slow
def test_kubectl_installs_explains_and_removes_them(kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "-f", str(DATA))
    try:
        names = [definition["metadata"]["name"] for definition in DEFINITIONS]
        kubectl("wait", "--for=condition=Established", "--timeout=60s", *(f"crd/{name}" for name in names))
        assert "FIELD: partitions <integer>" in kubectl("explain", "kafkatopics.spec.partitions", "--api-version=kafka.strimzi.io/v1")
        topic = {"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaTopic", "metadata": {"name": "t"}, "spec": {"partitions": 3}}
        kubectl("apply", "-f", "-", stdin=json.dumps(topic))
        assert kubectl("get", "kt", "t").split()[:5] == ["NAME", "CLUSTER", "PARTITIONS", "REPLICATION", "FACTOR"]
        listed = kubectl("api-resources", "-o", "name")
        assert [name for name in names if name not in listed] == []
        assert kubectl("get", "apiservice", "v1.kafka.strimzi.io", "-o", "jsonpath={.spec.groupPriorityMinimum}") == "1000"
        kubectl("delete", "kt", "t")
    finally:
        kubectl("delete", "-f", str(DATA), "--ignore-not-found")
