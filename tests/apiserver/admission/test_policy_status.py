"""The status of ValidatingAdmissionPolicies: what is wrong with the types in their expressions."""

from __future__ import annotations

from typing import Any

from tests.apiserver.admission.policies import ROOT, RULE, constraints, validating
from tests.apiserver.api import Answer, Api
from tests.apiserver.apiextensions import definitions

POLICIES = f"{ROOT}/validatingadmissionpolicies"


def about(group: str, *resources: str, version: str = "v1") -> dict[str, Any]:
    return constraints({**RULE, "apiGroups": [group], "apiVersions": [version], "resources": list(resources)})


async def observed(api: Api, name: str, generation: int = 1) -> Any:
    """The status once the generation was looked at."""

    def holds(answer: Answer) -> bool:
        return bool(answer.json.get("status", {}).get("observedGeneration") == generation)

    return (await definitions.until(api, f"{POLICIES}/{name}", holds)).json["status"]


async def warned(api: Api, *validations: Any, **spec: Any) -> dict[str, str]:
    await api.created(POLICIES, validating("p", *validations, **spec))
    status = await observed(api, "p")
    return {each["fieldRef"]: each["warning"] for each in status["typeChecking"].get("expressionWarnings", [])}


async def test_a_field_that_is_not_there_is_told_for_each_kind(api: Api) -> None:
    found = await warned(api, "object.replicas > 1", matchConstraints=about("apps", "replicasets", "deployments", "*/scale"))
    text = "ERROR: <input>:1:7: undefined field 'replicas'\n | object.replicas > 1\n | ......^\n"
    assert found == {"spec.validations[0].expression": f"apps/v1, Kind=Deployment: {text}\napps/v1, Kind=ReplicaSet: {text}"}


async def test_a_policy_without_faults_is_observed(api: Api) -> None:
    right = [
        "object.spec.replicas <= 5 && object.metadata.labels['a'] == 'b' && oldObject == null",
        "object.metadata.creationTimestamp < timestamp('2030-01-01T00:00:00Z')",
        "object.spec.template.spec.containers.all(c, quantity(c.resources.limits['cpu']).isLessThan(quantity('1')))",
        "object.spec.strategy.rollingUpdate.maxSurge == '25%' || object.spec.strategy.rollingUpdate.maxSurge == 1",
        "variables.name.startsWith('a') && variables.containers.size() > 0 && variables.containers[0].image != ''",
        "authorizer.requestResource.check('get').allowed() && namespaceObject.metadata.name == request.namespace",
    ]
    variables = [
        {"name": "name", "expression": "object.metadata.name"},
        {"name": "containers", "expression": "object.spec.template.spec.containers"},
    ]
    assert await warned(api, *right, matchConstraints=about("apps", "deployments"), variables=variables) == {}
    stored = (await api.get(f"{POLICIES}/p")).json
    assert stored["status"] == {"observedGeneration": 1, "typeChecking": {}}
    fields = [entry for entry in stored["metadata"]["managedFields"] if entry["manager"] == "validatingadmissionpolicy-status"]
    assert [entry["subresource"] for entry in fields] == ["status"]


async def test_values_that_do_not_go_together(api: Api) -> None:
    known = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "variables": [{"name": "n", "expression": "object.spec.replicas"}]}
    said = [
        {"expression": "object.spec.replicas == '1'", "messageExpression": "'x' + object.spec.paused"},
        {"expression": "params.data.max == 3"},
        {"expression": "variables.n == 'x'"},
        {"expression": "params.datum == 'x'"},
    ]
    found = await warned(api, *said, matchConstraints=about("apps", "deployments"), **known)
    heads = {field: text.partition("\n")[0].partition(": ")[2] for field, text in found.items()}
    overload = "ERROR: <input>:1:{}: found no matching overload for '{}' applied to '{}'"
    assert heads == {
        "spec.validations[0].expression": overload.format(22, "_==_", "(int, string)"),
        "spec.validations[0].messageExpression": overload.format(5, "_+_", "(string, bool)"),
        "spec.validations[1].expression": overload.format(17, "_==_", "(string, int)"),
        "spec.validations[2].expression": overload.format(13, "_==_", "(int, string)"),
        "spec.validations[3].expression": "ERROR: <input>:1:7: undefined field 'datum'",
    }


async def test_custom_kinds_have_their_schema_and_unknown_ones_none(api: Api) -> None:
    await definitions.established(api, definitions.definition())
    both = constraints(
        {**RULE, "apiGroups": ["demo.test"], "apiVersions": ["v1", "v9"], "resources": ["gadgets"]},
        {**RULE, "apiGroups": ["nowhere.test"], "resources": ["things"]},
    )
    found = await warned(api, "object.spec.size > 1 && object.spec.girth > 1 && object.metadata.name != ''", matchConstraints=both)
    assert found["spec.validations[0].expression"].startswith("demo.test/v1, Kind=Gadget: ERROR: <input>:1:36: undefined field 'girth'")
    assert found["spec.validations[0].expression"].count("ERROR") == 1


async def test_wildcards_are_not_looked_at(api: Api) -> None:
    found = await warned(api, "object.nothing == 1", matchConstraints=about("*", "deployments"))
    assert found == {}


async def test_a_new_generation_is_looked_at_again(api: Api) -> None:
    assert await warned(api, "object.nope == 1", matchConstraints=about("", "pods")) != {}
    await api.patch(f"{POLICIES}/p", {"spec": {"validations": [{"expression": "object.metadata.name != ''"}]}})
    status = await observed(api, "p", 2)
    assert status == {"observedGeneration": 2, "typeChecking": {}}


async def test_a_status_that_a_client_writes(api: Api) -> None:
    policy = await api.created(POLICIES, validating("p", "true"))
    await observed(api, "p")
    wrong = {"status": {"typeChecking": {"expressionWarnings": [{"fieldRef": "", "warning": ""}]}}}
    answer = await api.patch(f"{POLICIES}/p/status", wrong)
    assert {cause["field"] for cause in answer.causes} == {
        "status.typeChecking.expressionWarnings[0].warning",
        "status.typeChecking.expressionWarnings[0].fieldRef",
    }
    assert (await api.get(f"{POLICIES}/p")).json["spec"] == policy["spec"]
