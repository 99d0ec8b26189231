"""Writes of custom resources that were found to differ from a real server's (1.36) by random sequences of writes on both."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.api import APPLY, Api
from tests.apiserver.apiextensions.definitions import GADGETS, SCHEMA, definition, established, gadget, version

SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


def applied(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "demo.test/v1", "kind": "Gadget", "metadata": {"name": "g1"}, "spec": spec}


async def test_the_nulls_of_an_apply_are_held_against_the_schema(api: Api) -> None:
    """In a body that is created or patched they are taken for nothing."""
    await established(api, definition())
    created = await api.post(GADGETS, gadget(spec={"color": None}))
    assert (created.status, created.json["spec"]) == (201, {})
    answer = await api.patch(f"{GADGETS}/g1", applied(color=None), APPLY, query={"fieldManager": "m"})
    assert answer.status == 422
    assert answer.causes == [
        {
            "reason": "FieldValueTypeInvalid",
            "message": 'Invalid value: "null": spec.color in body must be of type string: "null"',
            "field": "spec.color",
        }
    ]


async def test_what_an_apply_empties_is_null(api: Api) -> None:
    inner = {"type": "object", "properties": {"a": {"type": "string"}}}
    properties = {**SCHEMA["properties"], "spec": {"type": "object", "properties": {"inner": inner, "color": {"type": "string"}}}}
    await established(api, definition(version(schema={**SCHEMA, "properties": properties})))
    await api.patch(f"{GADGETS}/g1", applied(inner={"a": "x"}, color="y"), APPLY, query={"fieldManager": "m1"})
    await api.patch(f"{GADGETS}/g1", applied(inner={}), APPLY, query={"fieldManager": "m2"})
    answer = await api.patch(f"{GADGETS}/g1", applied(color="y"), APPLY, query={"fieldManager": "m1"})
    assert answer.status == 422
    assert [cause["field"] for cause in answer.causes] == ["spec.inner"]


@pytest.mark.parametrize(("patch", "code"), [({"spec": {"replicas": 0}}, 200), ({"spec": {"replicas": 2}}, 200), ({"metadata": {}}, 400)])
async def test_the_scale_of_an_object_without_replicas(api: Api, patch: dict[str, Any], code: int) -> None:
    """A patch has to say them, be it that there are none; field case K2."""
    await established(api, definition(version(subresources={"scale": SCALE})))
    await api.created(GADGETS, gadget(spec={"color": "red"}))
    answer = await api.patch(f"{GADGETS}/g1/scale", patch)
    assert answer.status == code, answer.body
    if code == 200:
        assert (await api.get(f"{GADGETS}/g1")).json["spec"]["replicas"] == patch["spec"]["replicas"]
    else:
        assert answer.message == 'the spec replicas field ".spec.replicas" cannot be empty'


async def test_a_write_of_a_custom_scale_moves_the_replicas_owner(api: Api) -> None:
    await established(api, definition(version(subresources={"scale": SCALE})))
    await api.patch(f"{GADGETS}/g1", applied(replicas=1, color="x"), APPLY, query={"fieldManager": "m1"})
    await api.put(f"{GADGETS}/g1/scale", {"metadata": {"name": "g1"}, "spec": {"replicas": 3}}, query={"fieldManager": "m2"})
    entries = {entry["manager"]: entry for entry in (await api.get(f"{GADGETS}/g1")).json["metadata"]["managedFields"]}
    assert entries["m1"]["fieldsV1"] == {"f:spec": {"f:color": {}}}
    assert (entries["m2"]["subresource"], entries["m2"]["apiVersion"]) == ("scale", "demo.test/v1")
