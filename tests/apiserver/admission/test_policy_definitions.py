"""What policies and bindings must be to be stored, and who may store them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from apiserver.admission import expression_texts
from apiserver.registry.validation import admission_policies
from tests.apiserver.admission.policies import (
    CONFIG_MAPS,
    ROOT,
    RULE,
    applied,
    binding,
    config_map,
    constraints,
    mutating,
    patched,
    validating,
)
from tests.apiserver.api import Answer, Api

VALIDATING, MUTATING = f"{ROOT}/validatingadmissionpolicies", f"{ROOT}/mutatingadmissionpolicies"
BINDINGS = f"{ROOT}/validatingadmissionpolicybindings"


def told(answer: Answer) -> dict[str, str]:
    assert answer.status == 422, answer.body
    return {cause["field"]: cause["message"].partition("\n")[0] for cause in answer.causes}


async def refused(api: Api, body: dict[str, Any]) -> dict[str, str]:
    return told(await api.post(VALIDATING if body["kind"].startswith("Val") else MUTATING, body))


@pytest.mark.parametrize(
    ("validation", "field", "message"),
    [
        ({"expression": " "}, "expression", "Required value: expression is not specified"),
        ({"message": "  "}, "message", 'Invalid value: "  ": must be non-empty if specified'),
        ({"message": "a\rb"}, "message", 'Invalid value: "a\\rb": must not contain line breaks'),
        ({"messageExpression": " "}, "messageExpression", 'Invalid value: " ": must be non-empty if specified'),
        (
            {"reason": "Unauthorized"},
            "reason",
            'Unsupported value: "Unauthorized": supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"',
        ),
    ],
)
async def test_validations(api: Api, validation: dict[str, str], field: str, message: str) -> None:
    found = await refused(api, validating("p", {"expression": "true", **validation}))
    assert found == {f"spec.validations[0].{field}": message}


async def test_an_expression_of_several_lines_needs_no_message(api: Api) -> None:
    await api.created(VALIDATING, validating("p", "true ||\nfalse"))


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ({"apiVersion": "a/b/c", "kind": "Kind"}, {"apiVersion": 'Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'}),
        ({"apiVersion": "group/", "kind": "Kind"}, {"apiVersion": 'Invalid value: "group/": version must be specified'}),
        ({"apiVersion": "v1"}, {"kind": "Required value"}),
        ({"kind": "Kind"}, {"apiVersion": "Required value"}),
    ],
)
async def test_kinds_of_parameters(api: Api, kind: dict[str, str], found: dict[str, str]) -> None:
    answered = await refused(api, validating("p", "true", paramKind=kind))
    assert answered == {f"spec.paramKind.{field}": message for field, message in found.items()}


async def test_kinds_of_parameters_are_names(api: Api) -> None:
    found = await refused(api, validating("p", "true", paramKind={"apiVersion": "A_b/V1", "kind": "no kind"}))
    assert found["spec.paramKind.kind"].startswith('Invalid value: "no kind": may have mixed case, but should otherwise match: a DNS-1035')
    assert 'Invalid value: "A_b": a lowercase RFC 1123 subdomain' in found["spec.paramKind.apiVersion"] or "V1" in str(found)


async def test_variables_are_identifiers_and_unknown_where_there_is_none(api: Api) -> None:
    wrong = [{"name": name, "expression": "1"} for name in ("", "a-b", "in")]
    found = await refused(api, validating("p", "true", variables=wrong))
    assert found == {
        "spec.variables[0].name": "Required value: name is not specified",
        "spec.variables[1].name": 'Invalid value: "a-b": must be a valid CEL identifier',
        "spec.variables[2].name": 'Invalid value: "in": must be a valid CEL identifier',
    }
    found = await refused(api, validating("p", "variables.a == 1"))
    assert "undeclared reference to 'variables'" in found["spec.validations[0].expression"]
    found = await refused(api, mutating("p", applied("Object{spec: variables.a}")))
    assert "undefined field 'a'" in found["spec.mutations[0].applyConfiguration.expression"]


async def test_names_of_resources(api: Api) -> None:
    found = await refused(api, validating("p", "true", matchConstraints=constraints({**RULE, "resourceNames": ["a", "a", "b/c"]})))
    at = "spec.matchConstraints.resourceRules[0].resourceNames"
    assert found == {f"{at}[1]": 'Duplicate value: "a"', f"{at}[2]": "Invalid value: \"b/c\": may not contain '/'"}


async def test_audit_annotations(api: Api) -> None:
    many = [{"key": f"k{i}", "valueExpression": "'x'"} for i in range(21)]
    assert list(await refused(api, validating("p", auditAnnotations=many))) == ["spec.auditAnnotations"]
    long = [{"key": "", "valueExpression": f"'{'x' * 5120}'"}]
    found = await refused(api, validating("p", auditAnnotations=long))
    assert found["spec.auditAnnotations[0].valueExpression"] == "Required value: must not exceed 5120 bytes in length"
    assert found["spec.auditAnnotations[0].key"].startswith('Invalid value: "p/": name part must')


async def test_a_mutation_has_the_field_of_its_type(api: Api) -> None:
    both = {**patched("[JSONPatch{}]"), **applied("Object{}"), "patchType": "JSONPatch"}
    found = await refused(api, mutating("p", both, {"patchType": "ApplyConfiguration"}, {"patchType": "Other"}, {}))
    assert found == {
        "spec.mutations[0].applyConfiguration": 'Invalid value: "{applyConfiguration}": must not be specified when patchType is JSONPatch',
        "spec.mutations[1].applyConfiguration": "Required value: must be specified when patchType is ApplyConfiguration",
        "spec.mutations[2].patchType": 'Unsupported value: "Other": supported values: "ApplyConfiguration", "JSONPatch"',
        "spec.mutations[3].patchType": "Required value",
    }


async def test_nothing_changes_what_is_deleted(api: Api) -> None:
    rule = {**RULE, "operations": ["CREATE", "DELETE"]}
    wrong = 'Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"'
    policy = mutating("p", applied("Object{}"), matchConstraints=constraints(rule))
    assert await refused(api, policy) == {"spec.matchConstraints.resourceRules.operations": wrong}
    bound = binding(mutating("p", applied("Object{}")), matchResources=constraints(rule))
    answer = await api.post(f"{ROOT}/mutatingadmissionpolicybindings", bound)
    assert told(answer) == {"spec.matchResources.resourceRules.operations": wrong}
    await api.created(BINDINGS, binding(validating("p", "true"), matchResources=constraints(rule)))


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ({}, {"": "Required value: one of name or selector must be specified"}),
        (
            {"name": "a", "selector": {}},
            {
                ".name": "Forbidden: name and selector are mutually exclusive",
                ".selector": "Forbidden: name and selector are mutually exclusive",
            },
        ),
        (
            {"name": "a", "parameterNotFoundAction": "Later"},
            {".parameterNotFoundAction": 'Unsupported value: "Later": supported values: "Deny", "Allow"'},
        ),
    ],
)
async def test_references_to_parameters(api: Api, reference: dict[str, Any], found: dict[str, str]) -> None:
    answer = await api.post(BINDINGS, binding(validating("p", "true"), paramRef=reference))
    assert told(answer) == {f"spec.paramRef{field}": message for field, message in found.items()}


async def test_updates_say_what_they_replace(api: Api) -> None:
    policy = await api.created(VALIDATING, validating("p", "true"))
    del policy["metadata"]["resourceVersion"]
    found = told(await api.put(f"{VALIDATING}/p", policy))
    assert found == {"metadata.resourceVersion": "Invalid value: 0: must be specified for an update"}


def test_new_expressions_use_what_the_release_before_had_and_kept_ones_all() -> None:
    """``sort`` came to the libraries with 1.34: a policy with it is taken from 1.35 on, and kept on a 1.34 that stored it."""
    policy = validating("p", "[3, 1].sort() == [1, 3]", variables=[{"name": "a", "expression": "[2, 1].sort()"}])
    policy["spec"] |= {"failurePolicy": "Fail", "matchConstraints": {"matchPolicy": "Exact", "namespaceSelector": {}, "objectSelector": {}}}
    policy["spec"]["matchConstraints"]["resourceRules"] = [RULE]
    assert admission_policies.validating_policy(policy, 35) == []
    fields = [error.field for error in admission_policies.validating_policy(policy, 34)]
    assert fields == ["spec.variables[0].expression", "spec.validations[0].expression"]
    assert admission_policies.validating_policy(policy, 34, policy) == []
    more = {**policy, "spec": {**policy["spec"], "validations": [*policy["spec"]["validations"], {"expression": "[1].sort() == [1]"}]}}
    assert [error.field for error in admission_policies.validating_policy(more, 34, policy)] == ["spec.validations[1].expression"]


def test_conditions_are_looked_at_where_the_policy_changes() -> None:
    policy = validating("p", "true", matchConditions=[{"name": "c", "expression": "nonsense"}])
    policy["spec"] |= {"failurePolicy": "Fail", "matchConstraints": {"matchPolicy": "Exact", "namespaceSelector": {}, "objectSelector": {}}}
    policy["spec"]["matchConstraints"]["resourceRules"] = [RULE]
    assert [error.field for error in admission_policies.validating_policy(policy, 36)] == ["spec.matchConditions[0].expression"]
    labelled = {**policy, "metadata": {"name": "p", "labels": {"a": "b"}}}
    assert admission_policies.validating_policy(labelled, 36, policy) == []


# --- who may ----------------------------------------------------------------------------------------------------------------------------


async def allowed(api: Api, name: str, *rules: dict[str, Any]) -> None:
    """alice may do what the rules say, everywhere."""
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    await api.created(f"{rbac}/clusterroles", {"metadata": {"name": name}, "rules": list(rules)})
    subjects = [{"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}]
    role = {"kind": "ClusterRole", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
    await api.created(f"{rbac}/clusterrolebindings", {"metadata": {"name": name}, "subjects": subjects, "roleRef": role})


POLICIES = {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]}


async def test_who_writes_a_policy_must_be_able_to_read_its_parameters(api: Api) -> None:
    await allowed(api, "policies", POLICIES)
    for where, policy in (
        (VALIDATING, validating("p", "true", paramKind={"apiVersion": "v1", "kind": "ConfigMap"})),
        (MUTATING, mutating("p", applied("Object{}"), paramKind={"apiVersion": "demo.test/v1", "kind": "Gadget"})),
    ):
        answer = await api.post(where, policy, token="alice-token")
        kind = policy["spec"]["paramKind"]
        who = "user &{alice 2 [devs system:authenticated] map[]}"
        what = f"(kind={kind['kind']}, apiVersion={kind['apiVersion']})"
        why = f'Forbidden: {who} must have "get" permission on all objects of the referenced paramKind {what}'
        assert told(answer) == {"spec.paramKind": why}
    await allowed(
        api,
        "readers",
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
        {"apiGroups": ["demo.test"], "resources": ["gadgets"], "verbs": ["get"]},
    )
    policy = validating("p", "true", paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    assert (await api.post(VALIDATING, policy, token="alice-token")).status == 201
    unknown = validating("q", "true", paramKind={"apiVersion": "v1", "kind": "Nothing"})
    assert "spec.paramKind" in told(await api.post(VALIDATING, unknown, token="alice-token")), "it may become anything of the group"


async def test_who_writes_a_binding_must_be_able_to_read_the_parameter(api: Api) -> None:
    await allowed(api, "policies", POLICIES, {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["known"], "verbs": ["get"]})
    policy = validating("p", "true", paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    await api.created(VALIDATING, policy)

    def bound(name: str, parameter: str) -> dict[str, Any]:
        return binding(policy, name, paramRef={"name": parameter, "namespace": "ns-a", "parameterNotFoundAction": "Deny"})

    assert (await api.post(BINDINGS, bound("a", "known"), token="alice-token")).status == 201
    answer = await api.post(BINDINGS, bound("b", "secret"), token="alice-token")
    who = "user &{alice 2 [devs system:authenticated] map[]}"
    assert told(answer) == {"spec.paramRef": f'Forbidden: {who} does not have "get" permission on the object referenced by paramRef'}
    await api.created(BINDINGS, bound("b", "secret"))
    labels = {"metadata": {"labels": {"a": "b"}}}
    assert (await api.patch(f"{BINDINGS}/b", labels, token="alice-token")).status == 200, "the reference does not change"
    change = {"spec": {"paramRef": {"name": "other"}}}
    assert (await api.patch(f"{BINDINGS}/b", change, token="alice-token")).status == 422


async def test_a_policy_with_much_text_keeps_nobody_waiting(api: Api) -> None:
    """Ten thousand characters are compiled beside the loop: when the policy is written, and at the first request that it is about."""
    many = validating("many", *[f"object.metadata.name != 'x{i}'" for i in range(400)])
    assert expression_texts.characters(many["spec"]) > expression_texts.INLINE_CHARACTERS_MAX

    async def served_meanwhile(work: Coroutine[Any, Any, Answer]) -> int:
        task, served = asyncio.create_task(work), 0
        while not task.done():
            await asyncio.sleep(0)
            served += 1
        assert task.result().status == 201, task.result().body
        return served

    assert await served_meanwhile(api.post(VALIDATING, many)) > 20
    await api.created(BINDINGS, binding(many))
    assert await served_meanwhile(api.post(CONFIG_MAPS, config_map("a"))) > 20
    answer = await api.post(CONFIG_MAPS, config_map("x7"))
    assert answer.message.endswith("failed expression: object.metadata.name != 'x7'")
