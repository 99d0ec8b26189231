"""MutatingAdmissionPolicies and their bindings at work."""

from __future__ import annotations

from typing import Any

from tests.apiserver.admission.policies import (
    CONFIG_MAPS,
    ROOT,
    RULE,
    applied,
    binding,
    config_map,
    constraints,
    installed,
    mutating,
    patched,
)
from tests.apiserver.api import Api
from tests.apiserver.apiextensions import definitions

PODS = "/api/v1/namespaces/ns-a/pods"
OF_PODS = constraints({**RULE, "resources": ["pods"]})


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


async def test_fields_are_merged_as_server_side_apply_merges(api: Api) -> None:
    change = """Object{metadata: Object.metadata{labels: {'team': 'a'}},
                       spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{
                         name: c.name, env: [Object.spec.containers.env{name: 'A', value: c.image}]}),
                       tolerations: [Object.spec.tolerations{key: 'x', operator: 'Exists'}]}}"""
    fine = change.replace(
        """,
                       tolerations: [Object.spec.tolerations{key: 'x', operator: 'Exists'}]""",
        "",
    )
    await installed(api, mutating("labels", applied(fine), matchConstraints=OF_PODS))
    body = pod()
    body["metadata"]["labels"] = {"own": "b"}
    body["spec"]["containers"][0]["env"] = [{"name": "B", "value": "c"}]
    made = await api.created(PODS, body)
    assert made["metadata"]["labels"] == {"own": "b", "team": "a"}
    assert made["spec"]["containers"][0]["env"] == [{"name": "B", "value": "c"}, {"name": "A", "value": "i"}]

    await installed(api, mutating("atomic", applied(change), matchConstraints=OF_PODS))
    answer = await api.post(PODS, pod("q"))
    why = "may not mutate atomic arrays, maps or structs: .spec.tolerations"
    text = f"policy 'atomic' with binding 'atomic-binding' denied request: error applying patch: invalid ApplyConfiguration: {why}"
    assert (answer.status, answer.reason, answer.message) == (403, "Invalid", text)
    assert answer.causes == [{"message": text}]


async def test_patches_change_what_they_point_at(api: Api) -> None:
    change = """has(object.metadata.labels) ? [JSONPatch{op: 'test', path: '/metadata/labels/a', value: 'b'},
                   JSONPatch{op: 'replace', path: '/data/x', value: object.data.x + '!'}]
                 : [JSONPatch{op: 'add', path: '/metadata/labels', value: {'n': string(object.data.size())}}]"""
    await installed(api, mutating("patch", patched(change)))
    assert (await api.created(CONFIG_MAPS, config_map("one", x="y")))["metadata"]["labels"] == {"n": "1"}
    for labels, wanted in (({"a": "b"}, "y!"), ({"a": "c"}, "y")):  # a test that fails leaves the object alone
        body = {**config_map(x="y"), "metadata": {"name": f"l-{labels['a']}", "labels": labels}}
        assert (await api.created(CONFIG_MAPS, body))["data"]["x"] == wanted


async def test_keys_are_escaped_in_pointers(api: Api) -> None:
    change = "[JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('a.b/c'), value: 'x'}]"
    await installed(api, mutating("escape", patched(change)))
    body = {"metadata": {"name": "one", "annotations": {"own": "y"}}}
    assert (await api.created(CONFIG_MAPS, body))["metadata"]["annotations"] == {"own": "y", "a.b/c": "x"}


async def test_what_was_changed_is_defaulted_and_validated(api: Api) -> None:
    add = "[JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{name: 'side', image: 'x'}}]"
    await installed(api, mutating("sidecar", patched(add), matchConstraints=OF_PODS))
    made = await api.created(PODS, pod())
    assert [c["name"] for c in made["spec"]["containers"]] == ["c", "side"]
    assert made["spec"]["containers"][1]["imagePullPolicy"] == "Always"
    answer = await api.post(PODS, pod("q", containers=[{"name": "side", "image": "i"}]))
    assert answer.status == 422
    assert answer.causes[0]["field"] == "spec.containers[1].name"


async def test_policies_run_one_after_the_other_and_again_where_they_want_it(api: Api) -> None:
    def count(label: str) -> dict[str, Any]:
        value = f"'x' + object.metadata.?labels[?'{label}'].orValue('')"
        return applied(f"Object{{metadata: Object.metadata{{labels: {{'{label}': {value}}}}}}}")

    await installed(api, mutating("a-again", count("again"), reinvocationPolicy="IfNeeded"))
    await installed(api, mutating("b-once", count("once")))
    made = await api.created(CONFIG_MAPS, config_map())
    # the second changed what the first had made, so that the first runs once more
    assert made["metadata"]["labels"] == {"again": "xx", "once": "x"}


async def test_conditions_parameters_and_variables(api: Api) -> None:
    change = "Object{metadata: Object.metadata{annotations: {'from': variables.source}}}"
    policy = mutating(
        "params",
        applied(change),
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        variables=[{"name": "source", "expression": "params.data.source + '/' + request.name"}],
        matchConditions=[{"name": "c", "expression": "!object.metadata.name.startsWith('skip')"}],
        matchConstraints=constraints({**RULE, "resources": ["secrets"]}),
    )
    await installed(api, policy, paramRef={"name": "given", "parameterNotFoundAction": "Deny"})
    secrets = "/api/v1/namespaces/ns-a/secrets"
    answer = await api.post(secrets, {"metadata": {"name": "a"}})
    why = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    assert answer.message == f"policy 'params' with binding 'params-binding' denied request: {why}"
    await api.created(CONFIG_MAPS, config_map("given", source="here"))
    assert (await api.created(secrets, {"metadata": {"name": "a"}}))["metadata"]["annotations"] == {"from": "here/a"}
    assert "annotations" not in (await api.created(secrets, {"metadata": {"name": "skip"}}))["metadata"]


async def test_failures_are_refused_or_ignored(api: Api) -> None:
    change = applied("Object{metadata: Object.metadata{labels: {'x': object.data.nope}}}")
    await installed(api, mutating("ignored", change, failurePolicy="Ignore"))
    assert (await api.post(CONFIG_MAPS, config_map("a", x="y"))).status == 201
    await installed(api, mutating("failing", change))
    answer = await api.post(CONFIG_MAPS, config_map("b", x="y"))
    expression = change["applyConfiguration"]["expression"]
    text = f"expression '{expression}' resulted in error: no such key: nope"
    assert answer.message == f"policy 'failing' with binding 'failing-binding' denied request: {text}"


async def test_custom_objects_are_changed(api: Api) -> None:
    await definitions.established(api, definitions.definition())
    rule = {"apiGroups": ["demo.test"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["gadgets"]}
    await installed(api, mutating("gadgets", applied("Object{spec: Object.spec{size: 7}}"), matchConstraints=constraints(rule)))
    assert (await api.created(definitions.GADGETS, definitions.gadget(spec={"color": "red"})))["spec"] == {"color": "red", "size": 7}


async def test_expressions_must_be_changes(api: Api) -> None:
    policy = mutating("wrong", applied("'x'"), patched("[1]"), applied("Object{spec: nope}"), patched("[JSONPatch{where: 'x'}]"))
    answer = await api.post(f"{ROOT}/mutatingadmissionpolicies", policy)
    assert answer.status == 422
    found = {cause["field"]: cause["message"] for cause in answer.causes}
    at = "spec.mutations[{}].{}.expression"
    assert found[at.format(0, "applyConfiguration")] == """Invalid value: "'x'": must evaluate to Object but got string"""
    assert found[at.format(1, "jsonPatch")] == 'Invalid value: "[1]": must evaluate to list(JSONPatch) but got list(int)'
    assert "undeclared reference to 'nope'" in found[at.format(2, "applyConfiguration")]
    assert "undefined field 'where'" in found[at.format(3, "jsonPatch")]


async def test_objects_are_called_by_their_place(api: Api) -> None:
    await installed(api, mutating("misnamed", applied("Object{spec: Object.status{replicas: 1}}"), matchConstraints=OF_PODS))
    answer = await api.post(PODS, pod())
    why = 'type mismatch: unexpected type name "Object.status", expected "Object.spec", which matches field name path from root Object type'
    assert answer.message.endswith(f"denied request: {why}")


async def test_a_binding_says_where(api: Api) -> None:
    policy = mutating("where", applied("Object{metadata: Object.metadata{labels: {'x': 'y'}}}"))
    only = {"objectSelector": {"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]}}
    await installed(api, policy, binding(policy, matchResources=only))
    assert (await api.created(CONFIG_MAPS, config_map()))["metadata"]["labels"] == {"x": "y"}
    body = {"metadata": {"name": "two", "labels": {"skip": ""}}}
    assert (await api.created(CONFIG_MAPS, body))["metadata"]["labels"] == {"skip": ""}


async def test_all_mutations_that_fail_are_told_and_null_is_no_text(api: Api) -> None:
    wrong = [applied(f"Object{{data: Object.data{{x: object.data.{name}}}}}") for name in ("a", "b")]
    await installed(api, mutating("two", *wrong))
    answer = await api.post(CONFIG_MAPS, config_map(x="y"))
    assert [cause["message"].rpartition(": ")[2] for cause in answer.causes] == ["a", "b"]
    null = applied("Object{metadata: Object.metadata{labels: {'x': null}}}")
    await installed(api, mutating("null", null, matchConstraints=OF_PODS))
    answer = await api.post(PODS, pod())
    assert ".metadata.labels.x: expected string, got &value.valueUnstructured{Value:0}" in answer.message
