"""OpenAPI of two servers in one document: whatever the other one sends, this server's own stays whole."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from apiserver.aggregation import openapi
from apiserver.aggregation.openapi import RemoteOpenApi

PATH = "/apis/zoo.example.com/v1"


def local() -> dict[str, Any]:
    return {"swagger": "2.0", "paths": {"/api/v1/pods": {}}, "definitions": {"Pod": {"type": "object"}, "Meta": {"type": "object"}}}


def remote(document: Any) -> RemoteOpenApi:
    return RemoteOpenApi(path=PATH, v3_url="", swagger=document if isinstance(document, bytes) else orjson.dumps(document))


def operation(definition: str) -> dict[str, Any]:
    return {"get": {"responses": {"200": {"description": "OK", "schema": {"$ref": f"#/definitions/{definition}"}}}}}


def test_paths_of_the_api_service_come_with_the_definitions_that_they_need() -> None:
    document = {
        "paths": {f"{PATH}/ferrets": operation("Ferret"), "/api/v1/pods": operation("Evil"), f"{PATH}x/y": operation("Evil")},
        "definitions": {
            "Ferret": {"properties": {"metadata": {"$ref": "#/definitions/Own"}}},
            "Own": {"type": "string"},
            "Evil": {"type": "object"},
        },
    }
    found = openapi.merged_swagger(local(), [remote(document)])
    assert sorted(found["paths"]) == ["/api/v1/pods", f"{PATH}/ferrets"]
    assert found["paths"]["/api/v1/pods"] == {}
    assert list(found["definitions"]) == ["Ferret", "Meta", "Own", "Pod"]


def test_a_definition_whose_name_is_taken_gets_another_and_an_equal_one_is_shared() -> None:
    document = {
        "paths": {f"{PATH}/ferrets": operation("Pod")},
        "definitions": {"Pod": {"properties": {"m": {"$ref": "#/definitions/Meta"}}}, "Meta": {"type": "object"}},
    }
    found = openapi.merged_swagger(local(), [remote(document)])
    assert found["definitions"]["Pod"] == {"type": "object"}
    assert found["definitions"]["Pod_v2"] == {"properties": {"m": {"$ref": "#/definitions/Meta"}}}
    schema = found["paths"][f"{PATH}/ferrets"]["get"]["responses"]["200"]["schema"]
    assert schema == {"$ref": "#/definitions/Pod_v2"}


def nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(depth):
        found = {"properties": {"a": found}}
    return found


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"no json",
        [],
        {},
        {"paths": []},
        {"paths": {f"{PATH}/x": 1}},
        {"paths": {f"{PATH}/x": {"get": nested(110)}}},
        {"paths": {f"{PATH}/x": {}}, "definitions": {"A": 1}},
    ],
)
def test_what_cannot_be_understood_is_left_out(document: Any) -> None:
    found = openapi.merged_swagger(local(), [remote(document)])
    assert set(found["definitions"]) == {"Pod", "Meta"}
    assert openapi.v3_of_swagger(remote(document), {}) is None or document != b""
