"""ValidatingAdmissionPolicies and their bindings at work."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.admission import expressions, rule_matching
from tests.apiserver.admission.policies import CONFIG_MAPS, ROOT, RULE, binding, config_map, constraints, installed, validating, warnings
from tests.apiserver.api import Api
from tests.apiserver.apiextensions import definitions

SHORT = "object.data.all(k, object.data[k].size() < 5)"


async def test_what_a_policy_forbids_is_refused_in_kubernetes_words(api: Api) -> None:
    await installed(api, validating("short", SHORT))
    assert (await api.post(CONFIG_MAPS, config_map(a="tiny"))).status == 201
    answer = await api.post(CONFIG_MAPS, config_map("two", a="much too long"))
    text = f"ValidatingAdmissionPolicy 'short' with binding 'short-binding' denied request: failed expression: {SHORT}"
    assert answer.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'configmaps "two" is forbidden: {text}',
        "reason": "Invalid",
        "details": {"name": "two", "kind": "configmaps", "causes": [{"message": text}]},
        "code": 422,
    }


async def test_a_policy_without_a_binding_does_nothing_and_its_changes_count_at_once(api: Api) -> None:
    policy = validating("never", "false")
    await api.created(f"{ROOT}/validatingadmissionpolicies", policy)
    assert (await api.post(CONFIG_MAPS, config_map("a"))).status == 201
    await api.created(f"{ROOT}/validatingadmissionpolicybindings", binding(policy))
    assert (await api.post(CONFIG_MAPS, config_map("b"))).status == 422
    change = {"spec": {"validations": [{"expression": "object.metadata.name != 'c'", "message": "not c", "reason": "Forbidden"}]}}
    assert (await api.patch(f"{ROOT}/validatingadmissionpolicies/never", change)).status == 200
    assert (await api.post(CONFIG_MAPS, config_map("b"))).status == 201
    answer = await api.post(CONFIG_MAPS, config_map("c"))
    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert answer.message.endswith("denied request: not c")
    await api.delete(f"{ROOT}/validatingadmissionpolicybindings/never-binding")
    assert (await api.post(CONFIG_MAPS, config_map("c"))).status == 201


@pytest.mark.parametrize(("reason", "code"), [("Forbidden", 403), ("Invalid", 422), ("RequestEntityTooLarge", 413)])
async def test_the_reason_gives_the_code(api: Api, reason: str, code: int) -> None:
    await installed(api, validating("no", {"expression": "false", "reason": reason}))
    answer = await api.post(CONFIG_MAPS, config_map())
    assert (answer.status, answer.reason) == (code, reason)


async def test_messages_come_from_an_expression_then_a_text_then_the_rule(api: Api) -> None:
    texts = {
        "a": {"messageExpression": "'it is ' + object.data.x", "message": "m"},
        "b": {"messageExpression": "'two\\nlines'", "message": " m "},
        "c": {"messageExpression": "string(object.data.nope)", "message": "m"},
        "d": {"messageExpression": "'  '"},
    }
    wanted = {"a": "it is y", "b": "m", "c": "m", "d": "failed expression: object.metadata.name != 'd'"}
    said = [{"expression": f"object.metadata.name != '{name}'", **more} for name, more in texts.items()]
    await installed(api, validating("texts", *said))
    for name, text in wanted.items():
        answer = await api.post(CONFIG_MAPS, config_map(name, x="y"))
        assert answer.message.endswith(f"denied request: {text}"), answer.message


async def test_expressions_see_the_whole_request(api: Api) -> None:
    checks = [
        "request.operation == (oldObject == null ? 'CREATE' : 'UPDATE')",
        "request.kind.kind == 'ConfigMap' && request.kind.group == '' && request.kind.version == 'v1'",
        "request.resource.resource == 'configmaps' && request.requestResource == request.resource && request.requestKind == request.kind",
        "request.name == 'one' && request.namespace == 'ns-a' && !has(request.subResource)",
        "request.userInfo.username == 'admin' && 'system:masters' in request.userInfo.groups",
        "!request.dryRun && request.options.kind == (oldObject == null ? 'CreateOptions' : 'UpdateOptions')",
        "namespaceObject.metadata.name == 'ns-a' && namespaceObject.status.phase == 'Active'",
        "namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == 'ns-a'",
        "oldObject == null || oldObject.data.x == 'old' && object.data.x == 'new'",
    ]
    await installed(api, validating("sees", *checks))
    answer = await api.post(CONFIG_MAPS, config_map(x="old"))
    assert answer.status == 201, answer.message
    answer = await api.put(f"{CONFIG_MAPS}/one", config_map(x="new"))
    assert answer.status == 200, answer.message


async def test_deletions_have_no_object(api: Api) -> None:
    rule = {**RULE, "operations": ["DELETE"]}
    checks = ["object == null && oldObject.data.keep != 'yes'"]
    await installed(api, validating("keep", *checks, matchConstraints=constraints(rule)))
    await api.created(CONFIG_MAPS, config_map("a", keep="yes"))
    await api.created(CONFIG_MAPS, config_map("b", keep="no"))
    assert (await api.delete(f"{CONFIG_MAPS}/a")).status == 422
    assert (await api.delete(f"{CONFIG_MAPS}/b")).status == 200


async def test_variables_are_computed_when_they_are_asked_for_and_see_those_before(api: Api) -> None:
    variables = [
        {"name": "broken", "expression": "object.data.nope"},
        {"name": "size", "expression": "object.data.x.size()"},
        {"name": "big", "expression": "variables.size > 3"},
    ]
    await installed(api, validating("vars", "!variables.big || variables.broken == ''", variables=variables))
    assert (await api.post(CONFIG_MAPS, config_map("a", x="abc"))).status == 201
    answer = await api.post(CONFIG_MAPS, config_map("b", x="abcd"))
    why = 'resulted in error: composited variable "broken" fails to evaluate: no such key: nope'
    assert answer.message.endswith(f"expression '!variables.big || variables.broken == ''' {why}")


async def test_a_variable_may_be_null(api: Api) -> None:
    variables = [{"name": "old", "expression": "oldObject"}, {"name": "text", "expression": "'x'"}]
    await installed(api, validating("null", "variables.old == null && has(variables.old) && variables.text == 'x'", variables=variables))
    answer = await api.post(CONFIG_MAPS, config_map())
    assert answer.status == 201, answer.message


async def test_conditions_say_which_requests_a_policy_is_about(api: Api) -> None:
    conditions = [{"name": "named", "expression": "request.name.startsWith('x')"}, {"name": "data", "expression": "object.data.a == 'b'"}]
    await installed(api, validating("cond", "false", matchConditions=conditions))
    assert (await api.post(CONFIG_MAPS, config_map("a"))).status == 201  # one fails; that another cannot be told does not matter
    answer = await api.post(CONFIG_MAPS, config_map("x"))
    assert answer.message.endswith("denied request: expression 'object.data.a == 'b'' resulted in error: no such key: data"), answer.message
    assert (await api.post(CONFIG_MAPS, config_map("x1", a="c"))).status == 201
    assert (await api.post(CONFIG_MAPS, config_map("x2", a="b"))).status == 422


async def test_failures_to_tell_are_ignored_where_the_policy_says_so(api: Api) -> None:
    await installed(api, validating("ignore", "object.data.nope == 'x'", failurePolicy="Ignore"))
    assert (await api.post(CONFIG_MAPS, config_map("a", x="y"))).status == 201
    await installed(api, validating("fail", "object.data.nope == 'x'"))
    answer = await api.post(CONFIG_MAPS, config_map("b", x="y"))
    assert answer.message.endswith("expression 'object.data.nope == 'x'' resulted in error: no such key: nope")
    assert answer.reason == "Invalid"


async def test_warnings_and_audit_let_a_request_pass(api: Api) -> None:
    policy = validating("tell", {"expression": "false", "message": "told"})
    await installed(api, policy, binding(policy, validationActions=["Warn", "Audit"]))
    answer = await api.post(CONFIG_MAPS, config_map())
    assert answer.status == 201
    assert warnings(answer) == ["Validation failed for ValidatingAdmissionPolicy 'tell' with binding 'tell-binding': told"]


async def test_bindings_and_selectors_narrow_what_a_policy_is_about(api: Api) -> None:
    policy = validating("narrow", "false", matchConstraints=constraints(objectSelector={"matchLabels": {"a": "b"}}))
    other = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ns-b"}}}
    await installed(api, policy, binding(policy, matchResources=other))
    await api.created("/api/v1/namespaces", {"metadata": {"name": "ns-b"}})
    labelled = {**config_map(), "metadata": {"name": "one", "labels": {"a": "b"}}}
    assert (await api.post(CONFIG_MAPS, labelled)).status == 201
    there = "/api/v1/namespaces/ns-b/configmaps"
    assert (await api.post(there, config_map("plain"))).status == 201
    assert (await api.post(there, labelled)).status == 422


async def test_expressions_may_ask_what_the_user_may_do(api: Api) -> None:
    role = {"metadata": {"name": "writer"}, "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "free"]}]}
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    await api.created(roles, role)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "writer"}
    subject = {"kind": "User", "name": "alice"}
    bound = {"metadata": {"name": "writer"}, "roleRef": reference, "subjects": [subject]}
    await api.created("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", bound)
    checks = [
        "authorizer.requestResource.check('free').allowed()",
        "authorizer.group('apps').resource('deployments').check('create').allowed() || request.userInfo.username == 'alice'",
        "!authorizer.serviceAccount('ns-a', 'default').path('/metrics').check('get').allowed()",
    ]
    await installed(api, validating("may", *checks))
    assert (await api.post(CONFIG_MAPS, config_map("a"), token="alice-token")).status == 201
    free = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]
    assert (await api.patch(f"{roles}/writer", {"rules": free})).status == 200
    answer = await api.post(CONFIG_MAPS, config_map("b"), token="alice-token")
    assert answer.message.endswith("denied request: failed expression: authorizer.requestResource.check('free').allowed()")
    assert (await api.post(CONFIG_MAPS, config_map("b"))).status == 201


# --- parameters ------------------------------------------------------------------------------------------------------------------------

OF_CONFIG_MAPS = {"apiVersion": "v1", "kind": "ConfigMap"}
SECRETS = "/api/v1/namespaces/ns-a/secrets"
ABOUT_SECRETS = constraints({**RULE, "resources": ["secrets"]})


def limited(**spec: Any) -> dict[str, Any]:
    check = {"expression": "object.metadata.name.size() <= int(params.data.max)", "messageExpression": "'at most ' + params.data.max"}
    return validating("limit", check, paramKind=OF_CONFIG_MAPS, matchConstraints=ABOUT_SECRETS, **spec)


async def test_parameters_are_found_by_name_or_labels(api: Api) -> None:
    policy = limited()
    named = binding(policy, "named", paramRef={"name": "limits", "namespace": "ns-a", "parameterNotFoundAction": "Deny"})
    await installed(api, policy, named)
    answer = await api.post(SECRETS, {"metadata": {"name": "a"}})
    text = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    assert answer.message.endswith(f"ValidatingAdmissionPolicy 'limit' with binding 'named' denied request: {text}")
    await api.created(CONFIG_MAPS, config_map("limits", max="3"))
    assert (await api.post(SECRETS, {"metadata": {"name": "abc"}})).status == 201
    answer = await api.post(SECRETS, {"metadata": {"name": "abcd"}})
    assert answer.message.endswith("denied request: at most 3")
    await api.patch(f"{CONFIG_MAPS}/limits", {"data": {"max": "4"}})
    assert (await api.post(SECRETS, {"metadata": {"name": "abcd"}})).status == 201

    chosen = binding(policy, "chosen", paramRef={"selector": {"matchLabels": {"limit": "yes"}}, "parameterNotFoundAction": "Allow"})
    await api.delete(f"{ROOT}/validatingadmissionpolicybindings/named")
    await api.created(f"{ROOT}/validatingadmissionpolicybindings", chosen)
    assert (await api.post(SECRETS, {"metadata": {"name": "abcdefg"}})).status == 201
    await api.created(CONFIG_MAPS, {**config_map(max="5"), "metadata": {"name": "more", "labels": {"limit": "yes"}}})
    answer = await api.post(SECRETS, {"metadata": {"name": "abcdefgh"}})
    assert answer.message.endswith("denied request: at most 5")


async def test_parameters_may_be_custom_objects(api: Api) -> None:
    policy = validating(
        "custom",
        "object.data.all(k, k.size() <= params.spec.size)",
        paramKind={"apiVersion": "demo.test/v1", "kind": "Gadget"},
    )
    await installed(api, policy, paramRef={"name": "g1", "parameterNotFoundAction": "Deny"})
    answer = await api.post(CONFIG_MAPS, config_map(abc="x"))
    text = "failed to configure policy: failed to find resource referenced by paramKind: 'demo.test/v1, Kind=Gadget'"
    assert answer.message.endswith(f"ValidatingAdmissionPolicy 'custom' denied request: {text}")
    await definitions.established(api, definitions.definition())
    await api.created(definitions.GADGETS, definitions.gadget(spec={"size": 2}))
    assert (await api.post(CONFIG_MAPS, config_map(abc="x"))).status == 422
    assert (await api.post(CONFIG_MAPS, config_map(ab="x"))).status == 201


async def test_custom_objects_are_judged_and_policies_themselves_are_not(api: Api) -> None:
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    policy = validating("all", "object.kind != 'Gadget' || object.spec.size < 3", matchConstraints=constraints(everything))
    await definitions.established(api, definitions.definition())
    await installed(api, policy)
    assert (await api.post(definitions.GADGETS, definitions.gadget(spec={"size": 2}))).status == 201
    assert (await api.post(definitions.GADGETS, definitions.gadget("g2", spec={"size": 3}))).status == 422
    assert (await api.delete(f"{ROOT}/validatingadmissionpolicies/all")).status == 200


async def test_an_equivalent_version_is_shown_in_the_version_of_the_rule(api: Api) -> None:
    rule = {"apiGroups": ["autoscaling"], "apiVersions": ["v2"], "operations": ["CREATE"], "resources": ["horizontalpodautoscalers"]}
    checks = ["request.kind.version == 'v2' && request.requestKind.version == 'v1' && object.apiVersion == 'autoscaling/v2'"]
    await installed(api, validating("hpa", *checks, matchConstraints=constraints(rule)))
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    body = {"metadata": {"name": "h"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50}}
    answer = await api.post("/apis/autoscaling/v1/namespaces/ns-a/horizontalpodautoscalers", body)
    assert answer.status == 201, answer.message


# --- what a policy must be ---------------------------------------------------------------------------------------------------------------


async def test_expressions_that_do_not_compile_are_refused(api: Api) -> None:
    policy = validating(
        "wrong",
        "object.spec +",
        {"expression": "1", "messageExpression": "2"},
        {"expression": "params.x == 1"},
        {"expression": "variables.late == 1"},
        variables=[{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "request.nope"}],
        matchConditions=[{"name": "c", "expression": "'text'"}],
        auditAnnotations=[{"key": "k", "valueExpression": "1"}],
    )
    answer = await api.post(f"{ROOT}/validatingadmissionpolicies", policy)
    assert answer.status == 422
    found = {cause["field"]: cause["message"].replace("\n", "|") for cause in answer.causes}
    assert found["spec.matchConditions[0].expression"] == """Invalid value: "'text'": must evaluate to bool but got string"""
    assert "undefined field 'b'" in found["spec.variables[0].expression"]
    assert "undefined field 'nope'" in found["spec.variables[1].expression"]
    assert "compilation failed: ERROR: <input>:1:14: Syntax error: mismatched input '<EOF>'" in found["spec.validations[0].expression"]
    assert found["spec.validations[1].expression"] == 'Invalid value: "1": must evaluate to bool but got int'
    assert found["spec.validations[1].messageExpression"] == 'Invalid value: "2": must evaluate to string but got int'
    assert "undeclared reference to 'params'" in found["spec.validations[2].expression"]
    assert "undefined field 'late'" in found["spec.validations[3].expression"]
    wanted = 'Invalid value: "1": must evaluate to one of [string null_type] but got int'
    assert found["spec.auditAnnotations[0].valueExpression"] == wanted


async def test_a_bomb_is_stopped_by_its_cost(api: Api) -> None:
    """Loops in loops over a big object: stopped long before they end, and refused with the failure policy's words."""
    loops = "object.data.all(a, object.data.all(b, object.data.all(c, object.data.all(d, a + b + c + d != ''))))"
    await installed(api, validating("bomb", loops))
    answer = await api.post(CONFIG_MAPS, config_map(**{f"key-{i}": "x" for i in range(100)}))
    assert answer.status == 422
    assert answer.message.endswith("operation cancelled: actual cost limit exceeded")


async def test_all_expressions_of_a_policy_share_a_budget(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "POLICY_BUDGET", 300_000)
    costly = "object.data.all(a, object.data.all(b, a + b != ''))"
    await installed(api, validating("many", *[costly] * 5))
    answer = await api.post(CONFIG_MAPS, config_map(**{f"key-{i}": "x" for i in range(150)}))
    assert answer.message.endswith("validation failed due to running out of cost budget, no further validation rules will be run")


async def test_conditions_of_webhooks_must_compile(api: Api) -> None:
    hook = {
        "name": "h.demo.test",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [RULE],
        "matchConditions": [{"name": "c", "expression": "object.metadata.nope +"}, {"name": "d", "expression": "params.x == 1"}],
    }
    answer = await api.post(f"{ROOT}/validatingwebhookconfigurations", {"metadata": {"name": "w"}, "webhooks": [hook]})
    found = {cause["field"]: cause["message"] for cause in answer.causes}
    assert "Syntax error" in found["webhooks[0].matchConditions[0].expression"]
    assert "undeclared reference to 'params'" in found["webhooks[0].matchConditions[1].expression"]


async def test_expressions_that_select_devices_must_compile(api: Api) -> None:
    wrong = ["device.driver ==", "device.driver", "device.nope == 1"]
    good = "device.driver == 'd' && device.attributes['d'].model == 'x' && device.capacity['d'].memory.isGreaterThan(quantity('1Gi'))"
    said = [{"cel": {"expression": expression}} for expression in (*wrong, good)]
    answer = await api.post("/apis/resource.k8s.io/v1/deviceclasses", {"metadata": {"name": "c"}, "spec": {"selectors": said}})
    found = {cause["field"]: cause["message"] for cause in answer.causes}
    at = "spec.selectors[{}].cel.expression"
    assert sorted(found) == [at.format(i) for i in range(3)]
    assert "Syntax error" in found[at.format(0)]
    assert found[at.format(1)].endswith("must evaluate to bool or the unknown type, not string")
    assert "undefined field 'nope'" in found[at.format(2)]


async def test_policies_about_other_resources_are_not_looked_at(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(5):
        await installed(api, validating(f"other-{i}", "false", matchConstraints=ABOUT_SECRETS))
    await installed(api, validating("own", "true", matchConstraints=constraints({**RULE, "scope": "Namespaced"})))
    looked: list[str] = []
    match = rule_matching.Matcher.match

    def counted(self: rule_matching.Matcher, *more: Any) -> Any:
        looked.append("")
        return match(self, *more)

    monkeypatch.setattr(rule_matching.Matcher, "match", counted)
    await api.created(CONFIG_MAPS, config_map("a"))
    assert len(looked) == 1
    await api.created(CONFIG_MAPS, config_map("b"))
    assert len(looked) == 2
    await api.patch(f"{ROOT}/validatingadmissionpolicies/other-0", {"spec": {"matchConstraints": constraints()}})
    assert (await api.post(CONFIG_MAPS, config_map("c"))).status == 422, "a policy that turns to another resource is found"
