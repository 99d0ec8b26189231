"""Rules in CEL of custom resources on a whole server; ``tests/crd_rules`` compares their answers with a real one's."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from apiserver import cel, long_runs
from apiserver.apiextensions.definition_validation import validate_definition
from apiserver.apiextensions.nodes import Node
from apiserver.apiextensions.rules import compiled, evaluation
from apiserver.apiextensions.rules.declared import REQUEST_BYTES_MAX, declared
from apiserver.apiextensions.structural import StructuralSchema
from apiserver.schemas.schema_set import SchemaSet
from tests.apiserver.api import APPLY, MERGE, Api
from tests.apiserver.apiextensions.definitions import CRDS, GADGETS, NAME, definition, established, gadget, version
from tests.apiserver.apiextensions.test_definitions import definition as checked_definition
from tests.apiserver.apiextensions.test_definitions import version as checked_version

SCHEMAS = SchemaSet.load("1.36")


def schema(*rules: Any, status: Any = None, **properties: Any) -> dict[str, Any]:
    said = [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]
    spec = {"type": "object", "properties": properties, "x-kubernetes-validations": said}
    return {"type": "object", "properties": {"spec": spec, **({} if status is None else {"status": status})}}


NUMBERS: dict[str, Any] = {"min": {"type": "integer"}, "max": {"type": "integer"}}


async def test_objects_are_judged_whichever_way_they_are_written(api: Api) -> None:
    rules = ["self.min <= self.max", {"rule": "self.min >= oldSelf.min", "message": "min only grows"}]
    await established(api, definition(version(schema=schema(*rules, **NUMBERS))))
    answer = await api.post(GADGETS, gadget(spec={"min": 2, "max": 1}))
    assert answer.status == 422
    assert answer.message == 'Gadget.demo.test "g1" is invalid: spec: Invalid value: failed rule: self.min <= self.max'
    made = await api.created(GADGETS, gadget(spec={"min": 2, "max": 3}))
    one = f"{GADGETS}/g1"
    for answer in (
        await api.put(one, {**made, "spec": {"min": 1, "max": 3}}),
        await api.patch(one, {"spec": {"min": 1}}, MERGE),
        await api.patch(one, [{"op": "replace", "path": "/spec/min", "value": 1}], "application/json-patch+json"),
        await api.patch(one, gadget(spec={"min": 1}), APPLY, query={"fieldManager": "m", "force": "true"}),
    ):
        assert (answer.status, answer.message) == (422, 'Gadget.demo.test "g1" is invalid: spec: Invalid value: min only grows')
    assert (await api.patch(one, {"spec": {"min": 3}}, MERGE)).status == 200


async def test_a_status_is_judged_by_all_rules_and_what_did_not_change_is_only_warned_of(api: Api) -> None:
    status = {"type": "object", "properties": {"n": {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= 0"}]}}}
    shape = schema(status=status, **NUMBERS)
    await established(api, definition(version(schema=shape, subresources={"status": {}})))
    await api.created(GADGETS, gadget(spec={"min": 2, "max": 1}))
    stricter = schema("self.min <= self.max", status=status, **NUMBERS)
    change = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": stricter}]
    assert (await api.patch(f"{CRDS}/{NAME}", change, "application/json-patch+json")).status == 200
    answer = await api.patch(f"{GADGETS}/g1/status", {"status": {"n": -1}})
    assert [cause["field"] for cause in answer.causes] == ["status.n"]
    answer = await api.patch(f"{GADGETS}/g1/status", {"status": {"n": 1}})
    assert answer.status == 200
    assert answer.headers["warning"] == ['299 - "spec: Invalid value: failed rule: self.min <= self.max"']
    answer = await api.patch(f"{GADGETS}/g1", {"spec": {"min": 3}}, MERGE)
    assert [cause["field"] for cause in answer.causes] == ["spec"]


async def test_a_rule_that_takes_long_does_not_keep_others_waiting(api: Api) -> None:
    """The estimate lets it pass, since the lists are short enough; a full object takes a second, of which other requests see nothing."""
    texts = {"type": "array", "maxItems": 500, "items": {"type": "string", "maxLength": 10}}
    rule = {"rule": "self.list.all(a, self.list.all(b, a <= b || b <= a))", "message": "in order"}
    await established(api, definition(version(schema=schema(rule, list=texts))))
    writing = asyncio.create_task(api.post(GADGETS, gadget(spec={"list": [f"text-{i}" for i in range(500)]})))
    served, longest = 0, 0.0
    while not writing.done():
        asked = time.perf_counter()
        assert (await api.get("/api/v1/namespaces/ns-a")).status == 200
        longest = max(longest, time.perf_counter() - asked)
        served += 1
        await asyncio.sleep(0)
    answer = await writing
    why = "operation cancelled: actual cost limit exceeded"
    wanted = f"'{why}': no further validation rules will be run due to call cost exceeds limit for rule: in order"
    assert answer.causes[0]["message"] == f'Invalid value: "object": {wanted}'
    assert served > 3, (served, longest)


async def test_an_object_has_one_budget(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "OBJECT_BUDGET", 500_000)
    texts = {"type": "array", "maxItems": 200, "items": {"type": "string", "maxLength": 10}}
    rule = "self.list.all(a, self.list.all(b, a <= b || b <= a))"
    await established(api, definition(version(schema=schema(*[rule] * 5, list=texts))))
    answer = await api.post(GADGETS, gadget(spec={"list": [f"text-{i}" for i in range(200)]}))
    assert [cause["message"] for cause in answer.causes] == [
        'Invalid value: "object": validation failed due to running out of cost budget, no further validation rules will be run'
    ]


def test_what_takes_long_says_so_to_who_is_in_a_hurry() -> None:
    texts = {"type": "array", "items": {"type": "string"}}
    shape = StructuralSchema(schema("self.list.all(a, self.list.all(b, a + b != ''))", list=texts), schemas=SCHEMAS)
    big = gadget(spec={"list": ["x"] * 300})
    with pytest.raises(long_runs.LongRunError):
        shape.validate_rules(big, None, [], lambda text: None, patient=False)
    assert shape.validate_rules(big, None, [], lambda text: None) == []
    assert shape.validate_rules(gadget(spec={"list": ["x"] * 3}), None, [], lambda text: None, patient=False) == []


def test_bounds_of_what_a_rule_sees() -> None:
    free = declared(Node({"type": "array", "items": {"type": "string"}}), is_root=False)
    assert free is not None and free.element is not None
    assert free.element.size_max == REQUEST_BYTES_MAX - 2
    assert free.size_max == (REQUEST_BYTES_MAX - 2) // 3  # quotes and a comma each
    keyed = declared(Node({"type": "object", "additionalProperties": {"type": "integer"}}), is_root=False)
    assert keyed is not None and keyed.size_max == (REQUEST_BYTES_MAX - 2) // 7
    short = declared(Node({"type": "string", "maxLength": 5}), is_root=False)
    assert short is not None and short.size_max == 20  # a character may take four bytes
    listed = declared(Node({"type": "string", "enum": ["a", "long"]}), is_root=False)
    assert listed is not None and listed.size_max == 4
    needed = {"type": "object", "required": ["ab", "c"], "properties": {"ab": {"type": "integer"}, "c": {"type": "string", "default": "x"}}}
    whole = declared(Node(needed), is_root=False)
    assert whole is not None and whole.json_bytes_min == 2 + 2 + 1 + 4
    assert declared(Node({"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}}), is_root=False) is None


def test_every_object_has_its_kind_and_names_to_a_rule() -> None:
    node = Node({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "string"}}}}})
    seen = declared(node, is_root=True)
    assert seen is not None
    assert sorted(seen.fields) == ["apiVersion", "kind", "metadata"]
    assert sorted(seen.fields["metadata"].fields) == ["generateName", "name"]


def test_a_definition_that_already_costs_too_much_may_be_written_again() -> None:
    texts = {"type": "array", "items": {"type": "string"}}
    costly = checked_version(schema=schema({"rule": "self.list.all(a, a.contains('x'))"}, list=texts))
    obj = checked_definition(costly)
    fields = [error.field for error in validate_definition(obj, None, SCHEMAS)]
    assert any(field.endswith("x-kubernetes-validations[0].rule") for field in fields)
    again = [error.text() for error in validate_definition(obj, obj, SCHEMAS)]
    assert not any("estimated rule cost exceeds budget" in text for text in again)


def test_programs_of_a_schema_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0
    compile_rules = compiled.compile_rules

    def counted(*arguments: Any, **more: Any) -> Any:
        nonlocal made
        made += 1
        return compile_rules(*arguments, **more)

    monkeypatch.setattr(compiled, "compile_rules", counted)
    shape = StructuralSchema(schema("self.min <= self.max", **NUMBERS), schemas=SCHEMAS)
    for _ in range(3):
        assert shape.validate_rules(gadget(spec={"min": 1, "max": 2}), None, [], lambda text: None) == []
    assert made == 1


def test_a_run_of_one_rule_is_bounded() -> None:
    program = cel.Environment({"self": cel.list_of(cel.INT)}).compile("self.all(a, self.all(b, a + b > 0))")
    outcome = compiled.evaluate(program, {"self": [1] * 2000})
    assert outcome.over_limit and outcome.cost <= compiled.RUN_COST_MAX * 1.01
