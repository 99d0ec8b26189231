"""What policies decided, as metrics and as notes of the audit event."""

from __future__ import annotations

import json

import pytest

from apiserver.admission import expressions
from apiserver.admission.interfaces import AdmissionAttributes
from tests.apiserver.admission.policies import CONFIG_MAPS, RULE, applied, binding, config_map, constraints, installed, mutating, validating
from tests.apiserver.api import Api
from tests.apiserver.apiextensions import definitions


async def counted(api: Api, name: str) -> dict[str, float]:
    """The samples of one metric, by their labels."""
    text = (await api.get("/metrics")).body.decode()
    lines = [line.rpartition(" ") for line in text.splitlines() if line.startswith(f"{name}{{")]
    return {labels.removeprefix(name).strip("{}"): float(value) for labels, _, value in lines}


async def test_what_is_refused_warned_of_and_noted_is_counted(api: Api) -> None:
    policy = validating("no", "object.metadata.name != 'bad'", "object.data.x == 'y'")
    await installed(api, policy, binding(policy, "deny"), binding(policy, "tell", validationActions=["Warn", "Audit"]))
    await api.post(CONFIG_MAPS, config_map("good", x="y"))
    assert await counted(api, "apiserver_validating_admission_policy_check_total") == {}, "what passes is not counted"
    await api.post(CONFIG_MAPS, config_map("bad", x="y"))
    await api.post(CONFIG_MAPS, config_map("other"))
    labels = 'enforcement_action="{}",error_type="invalid_error",policy="no",policy_binding="{}"'
    wanted = {labels.format("deny", "deny"): 2, labels.format("warn", "tell"): 2, labels.format("audit", "tell"): 2}
    assert await counted(api, "apiserver_validating_admission_policy_check_total") == wanted
    assert await counted(api, "apiserver_validating_admission_policy_check_duration_seconds_count") == wanted
    buckets = await counted(api, "apiserver_validating_admission_policy_check_duration_seconds_bucket")
    bounds = {labels.partition('le="')[2].partition('"')[0] for labels in buckets}
    assert bounds == {"5e-07", "0.001", "0.01", "0.1", "1", "+Inf"}


async def test_what_cannot_be_told_is_counted_by_its_kind(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    await installed(api, validating("lax", "object.data.x == 'y'", failurePolicy="Ignore"))
    await api.created(CONFIG_MAPS, config_map("a"))
    monkeypatch.setattr(expressions, "POLICY_BUDGET", 1)
    await installed(api, validating("poor", "object.metadata.name.size() < 100"))
    await api.post(CONFIG_MAPS, config_map("b", x="y"))
    found = await counted(api, "apiserver_validating_admission_policy_check_total")
    assert found['enforcement_action="deny",error_type="out_of_budget",policy="poor",policy_binding="poor-binding"'] == 1
    assert found['enforcement_action="allow",error_type="invalid_error",policy="lax",policy_binding="lax-binding"'] == 1


async def test_mutations_are_counted(api: Api) -> None:
    await installed(api, mutating("set", applied("Object{data: {'a': 'b'}}")))
    await installed(api, mutating("wrong", applied("Object{data: {'a': object.nothing}}"), failurePolicy="Ignore"))
    await api.created(CONFIG_MAPS, config_map("a", x="y"))
    found = await counted(api, "apiserver_mutating_admission_policy_check_total")
    assert found['error_type="no_error",policy="set",policy_binding="set-binding"'] >= 1
    assert found['error_type="invalid_error",policy="wrong",policy_binding="wrong-binding"'] >= 1


async def test_conditions_that_keep_a_policy_away_are_counted(api: Api) -> None:
    await installed(api, validating("c", "false", matchConditions=[{"name": "n", "expression": "object.metadata.name == 'x'"}]))
    await installed(
        api, validating("d", "true", matchConditions=[{"name": "n", "expression": "object.nothing == 1"}], failurePolicy="Ignore")
    )
    await api.created(CONFIG_MAPS, config_map("a", x="y"))
    labels = 'kind="policy",name="{}",operation="CREATE",type="validate"'
    assert await counted(api, "apiserver_admission_match_condition_evaluation_seconds_count") == {labels.format(n): 1 for n in "cd"}
    assert await counted(api, "apiserver_admission_match_condition_evaluation_errors_total") == {labels.format("d"): 1}


async def test_conditions_know_no_namespace(api: Api) -> None:
    known = [{"name": "n", "expression": "namespaceObject != null"}]
    await installed(api, validating("c", "false", matchConditions=known))
    await api.created(CONFIG_MAPS, config_map("a"))
    await installed(api, validating("v", "namespaceObject == null"))
    assert (await api.post(CONFIG_MAPS, config_map("b"))).status == 422, "validations do"


async def test_annotations_do_not_tell_what_the_user_may_do(api: Api) -> None:
    key = {"key": "may", "valueExpression": "string(authorizer.path('/healthz').check('get').allowed())"}
    await installed(api, validating("a", "true", auditAnnotations=[key]))
    answer = await api.post(CONFIG_MAPS, config_map("a"))
    assert answer.message.endswith("resulted in error: no such attribute(s): authorizer")


async def test_failures_and_annotations_are_noted_in_the_audit_event(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    noted: dict[str, str] = {}
    chain = api.server.env.admission
    validate = chain.validate

    async def noting(attributes: AdmissionAttributes) -> None:
        attributes.annotate = noted.__setitem__
        await validate(attributes)

    monkeypatch.setattr(chain, "validate", noting)
    known = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
    notes = [{"key": "who", "valueExpression": "'by ' + params.metadata.name"}, {"key": "none", "valueExpression": "null"}]
    other = constraints({**RULE, "resources": ["secrets"]})
    policy = validating("p", "true", "params.data.x == 'z'", auditAnnotations=notes, matchConstraints=other, **known)
    for name in ("one", "two"):
        await api.created(CONFIG_MAPS, config_map(name, x="y"))
    both = [
        binding(policy, name, paramRef={"name": name, "parameterNotFoundAction": "Deny"}, validationActions=["Audit", "Warn"])
        for name in ("one", "two")
    ]
    await installed(api, policy, *both)
    await api.created("/api/v1/namespaces/ns-a/secrets", {"metadata": {"name": "s"}})
    assert noted["p/who"] == "by one, by two" and "p/none" not in noted
    assert json.loads(noted["validation.policy.admission.k8s.io/validation_failure"]) == [
        {
            "message": "failed expression: params.data.x == 'z'",
            "policy": "p",
            "binding": name,
            "expressionIndex": 1,
            "validationActions": ["Audit", "Warn"],
        }
        for name in ("one", "two")
    ]


async def test_rules_of_custom_resources_are_timed(api: Api) -> None:
    async def counts() -> list[float]:
        text = (await api.get("/metrics")).body.decode()
        names = ("apiserver_cel_compilation_duration_seconds_count ", "apiserver_cel_evaluation_duration_seconds_count ")
        return [next((float(line.split()[-1]) for line in text.splitlines() if line.startswith(name)), 0.0) for name in names]

    ruled = {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0"}]}
    spec = {"type": "object", "properties": {"size": ruled}}
    schema = {"type": "object", "properties": {"spec": spec}}
    before = await counts()
    await definitions.established(api, definitions.definition(definitions.version(schema=schema)))
    await api.created(definitions.GADGETS, definitions.gadget(spec={"size": 1}))
    compiled, evaluated = await counts()
    assert compiled > before[0]
    assert evaluated == before[1] + 1
