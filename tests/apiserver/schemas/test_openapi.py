"""OpenAPI documents: complete in themselves, of the form clients expect, and true to what is served."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from apiserver.kubernetes_versions import KUBERNETES_VERSIONS
from apiserver.resources.resource_info import ResourceInfo, SubresourceInfo
from apiserver.resources.table import ResourceTable
from apiserver.schemas.openapi import gnostic, openapi3, swagger2
from apiserver.schemas.schema_set import SchemaSet

GOLDEN = Path(__file__).parents[2] / "golden" / "crd-openapi.json"
POD = "io.k8s.api.core.v1.Pod"
GVK = "x-kubernetes-group-version-kind"


@cache
def published(version: str) -> Any:
    return SchemaSet.load(version).definitions


@cache
def swagger(version: str = "1.37") -> Any:
    return swagger2.document(ResourceTable(version), published(version))


@cache
def group_document(name: str, version: str = "1.37") -> Any:
    return openapi3.document(ResourceTable(version), published(version), name)


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def resolve(document: Any, reference: str) -> Any:
    for part in reference.removeprefix("#/").split("/"):
        document = document[part]
    return document


@pytest.mark.parametrize("version", [KUBERNETES_VERSIONS[0], KUBERNETES_VERSIONS[-1]])
def test_every_reference_of_version_2_leads_somewhere(version: str) -> None:
    document = swagger(version)
    for reference in set(references(document)):
        assert resolve(document, reference)


@pytest.mark.parametrize("version", [KUBERNETES_VERSIONS[0], KUBERNETES_VERSIONS[-1]])
def test_every_reference_of_version_3_leads_somewhere(version: str) -> None:
    for name in openapi3.document_names(ResourceTable(version)):
        document = group_document(name, version)
        assert document["openapi"] == "3.0.0"
        for reference in set(references(document)):
            assert resolve(document, reference)


def test_operations_have_names_of_their_own() -> None:
    ids = [o["operationId"] for item in swagger()["paths"].values() for m, o in item.items() if m != "parameters"]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("path", "method", "name"),
    [
        ("/api/v1/namespaces/{namespace}/pods", "get", "listCoreV1NamespacedPod"),
        ("/api/v1/pods", "get", "listCoreV1PodForAllNamespaces"),
        ("/api/v1/namespaces/{namespace}/pods/{name}", "put", "replaceCoreV1NamespacedPod"),
        ("/api/v1/namespaces/{namespace}/pods/{name}/exec", "post", "connectCoreV1PostNamespacedPodExec"),
        ("/api/v1/nodes/{name}/proxy/{path}", "get", "connectCoreV1GetNodeProxyWithPath"),
        ("/api/v1/namespaces/{name}/finalize", "put", "replaceCoreV1NamespaceFinalize"),
        ("/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale", "patch", "patchAppsV1NamespacedDeploymentScale"),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", "delete", "deleteRbacAuthorizationV1CollectionClusterRole"),
        ("/apis/authorization.k8s.io/v1/subjectaccessreviews", "post", "createAuthorizationV1SubjectAccessReview"),
    ],
)
def test_operations_are_named_as_client_libraries_know_them(path: str, method: str, name: str) -> None:
    assert swagger()["paths"][path][method]["operationId"] == name


def test_kinds_are_found_by_their_patch_operations_and_parameters() -> None:
    """How kubectl finds out whether the server knows dry run and field validation."""
    path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    for document in (swagger(), group_document("apis/apps/v1")):
        patch = document["paths"][path]["patch"]
        assert patch[GVK] == {"group": "apps", "kind": "Deployment", "version": "v1"}
        names = {parameter.get("name") for parameter in patch["parameters"]}
        assert {"dryRun", "fieldValidation", "fieldManager", "force"} <= names


def test_definitions_are_what_kubernetes_publishes() -> None:
    definitions = swagger()["definitions"]
    pod = definitions[POD]
    assert pod["type"] == "object"
    assert pod[GVK] == [{"group": "", "kind": "Pod", "version": "v1"}]
    assert "enum" not in pod["properties"]["kind"]
    assert pod["properties"]["spec"]["$ref"] == "#/definitions/io.k8s.api.core.v1.PodSpec"
    containers = definitions["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert (containers["type"], containers["x-kubernetes-patch-merge-key"]) == ("array", "name")
    assert definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]["format"] == "int-or-string"
    schemas = group_document("api/v1")["components"]["schemas"]
    assert schemas[POD]["properties"]["spec"]["allOf"] == [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}]
    assert schemas["io.k8s.api.core.v1.ContainerPort"]["properties"]["protocol"]["default"] == "TCP"


def test_a_group_document_has_what_it_needs_and_no_more() -> None:
    schemas = group_document("apis/coordination.k8s.io/v1")["components"]["schemas"]
    assert "io.k8s.api.coordination.v1.Lease" in schemas
    assert POD not in schemas


def test_hashes_change_with_the_resources_of_the_group_alone() -> None:
    table = ResourceTable("1.37")
    before = openapi3.index(table)["paths"]
    table.add(widgets({"type": "object"}))
    after = openapi3.index(table)["paths"]
    assert before["apis/apps/v1"] == after["apis/apps/v1"]
    assert "apis/demo.example.com/v1" in after
    table.add(widgets({"type": "object", "description": "another"}))
    assert openapi3.index(table)["paths"]["apis/demo.example.com/v1"] != after["apis/demo.example.com/v1"]


@pytest.mark.parametrize("name", ["apis/nothing.test/v1", "apis/apps/v9", "api/v2", "apps/v1", "apis//v1", ""])
def test_documents_that_do_not_exist(name: str) -> None:
    with pytest.raises(KeyError):
        group_document(name)


def widgets(schema: Any, *subresources: SubresourceInfo) -> ResourceInfo:
    return ResourceInfo(
        group="demo.example.com",
        version="v1",
        resource="widgets",
        kind="Widget",
        list_kind="WidgetList",
        singular="widget",
        subresources=subresources,
        builtin=False,
        extra={"openapi_v3_schema": schema},
    )


def golden_cases() -> Iterator[tuple[str, Any, Any, dict[str, Any]]]:
    """(request, schema, subresources, expected values by path) of the recorded scenarios of one kind."""
    for scenario in json.loads(GOLDEN.read_text())["scenarios"]:
        created = next(step["body"]["spec"] for step in scenario["steps"] if step["do"].startswith("POST"))
        if len(created["versions"]) != 1:
            continue
        version = created["versions"][0]
        for step in scenario["steps"]:
            request = step["do"].removeprefix("GET ")
            if request.startswith("/openapi/") and request != "/openapi/v3":
                yield request, version["schema"]["openAPIV3Schema"], version.get("subresources") or {}, step["expect"]["body"]


def at(value: Any, path: str) -> Any:
    """The value at a golden path: dots separate, a backslash stands for a dot in a key."""
    for part in path.split("."):
        part = part.replace("\\", ".")
        value = value.get(part) if isinstance(value, dict) else value[int(part)] if isinstance(value, list) else None
    return value


@pytest.mark.parametrize(("request_", "schema", "subresources", "expected"), list(golden_cases()))
def test_custom_resources_are_published_as_a_real_server_does(
    request_: str, schema: Any, subresources: Any, expected: dict[str, Any]
) -> None:
    found = []
    if "status" in subresources:
        found.append(SubresourceInfo(name="status", kind="Widget", group="demo.example.com", version="v1"))
    if "scale" in subresources:
        found.append(SubresourceInfo(name="scale", kind="Scale", group="autoscaling", version="v1"))
    table = ResourceTable("1.37")
    table.add(widgets(schema, *found))
    if request_ == "/openapi/v2":
        document = swagger2.document(table, published("1.37"))
    else:
        document = openapi3.document(table, published("1.37"), "apis/demo.example.com/v1")
    for path, value in expected.items():
        actual = at(document, path.replace("${n}", "demo"))
        wanted = json.loads(json.dumps(value).replace("${n}", "demo").replace("<any>", "Demo"))
        assert actual == wanted, path


def test_custom_resources_without_a_schema_take_anything() -> None:
    table = ResourceTable("1.37")
    table.add(widgets(None))
    schema = openapi3.document(table, published("1.37"), "apis/demo.example.com/v1")["components"]["schemas"]["com.example.demo.v1.Widget"]
    assert schema == {"type": "object", GVK: [{"group": "demo.example.com", "kind": "Widget", "version": "v1"}]}


def messages(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a protobuf message: number and value (an int, or bytes)."""
    at_ = 0

    def varint() -> int:
        nonlocal at_
        value = shift = 0
        while True:
            byte = data[at_]
            at_ += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    while at_ < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        else:
            size = 8 if tag & 7 == 1 else varint()
            assert tag & 7 in (1, 2)
            yield tag >> 3, data[at_ : at_ + size]
            at_ += size
    assert at_ == len(data)


def one(data: bytes, number: int) -> Any:
    return next(value for n, value in messages(data) if n == number)


def named(data: bytes, field: int) -> dict[str, bytes]:
    return {one(entry, 1).decode(): one(entry, 2) for n, entry in messages(data) if n == field}


def test_the_protobuf_form_says_the_same() -> None:
    data = gnostic.encode(swagger())
    assert one(data, 1) == b"2.0"
    definitions = named(one(data, 9), 1)
    assert set(definitions) == set(swagger()["definitions"])
    pod = definitions[POD]
    assert one(one(pod, 22), 1) == b"object"
    spec = named(one(pod, 25), 1)["spec"]
    assert one(spec, 1) == b"#/definitions/io.k8s.api.core.v1.PodSpec"
    extension = named(pod, 31)[GVK]
    assert json.loads(one(extension, 2)) == [{"group": "", "kind": "Pod", "version": "v1"}]
    paths = named(one(data, 8), 2)
    assert set(paths) == set(swagger()["paths"])
    patch = one(paths["/api/v1/namespaces/{namespace}/pods/{name}"], 8)
    assert one(patch, 5) == b"patchCoreV1NamespacedPod"
    parameters = [one(item, 1) for number, item in messages(patch) if number == 8 and next(messages(item))[0] == 1]
    queries = {one(one(one(p, 2), 3), 4) for p in parameters if next(messages(p))[0] == 2}
    assert {b"dryRun", b"fieldValidation"} <= queries


def test_numbers_and_booleans_of_the_protobuf_form() -> None:
    document = {
        "definitions": {"a": {"minimum": 1.5, "maxLength": 300, "additionalProperties": True, "items": {"type": "string"}, "enum": ["x"]}}
    }
    schema = named(one(gnostic.encode(document), 9), 1)["a"]
    assert one(schema, 9) == b"\x00\x00\x00\x00\x00\x00\xf8?"
    assert one(schema, 11) == 300
    assert one(one(schema, 21), 2) == 1
    assert one(one(one(one(schema, 23), 1), 22), 1) == b"string"
    assert json.loads(one(one(schema, 20), 2)) == "x"


@pytest.mark.parametrize("version", [KUBERNETES_VERSIONS[0], KUBERNETES_VERSIONS[-1]])
def test_every_field_of_every_kind_can_be_explained(version: str) -> None:
    """What ``kubectl explain --recursive`` walks: from each kind through every property to the bottom, each saying its type."""
    known = swagger(version)["definitions"]
    by_kind = {
        (kind["group"], kind["version"], kind["kind"]): name
        for name, schema in known.items()
        for kind in schema.get("x-kubernetes-group-version-kind", [])
    }
    seen: set[str] = set()

    def walk(schema: dict[str, Any], where: str) -> None:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            if name not in seen:
                seen.add(name)
                walk(known[name], name)
            return
        kind = schema.get("type")
        # what may be anything has no type: raw JSON, and numbers that may be texts have a format
        assert kind or not schema.get("properties"), where
        if kind == "array":
            walk(schema["items"], where + "[]")
        for field, below in (schema.get("properties") or {}).items():
            assert "description" in below or "$ref" in below or below.get("type"), f"{where}.{field}"
            walk(below, f"{where}.{field}")
        if isinstance(schema.get("additionalProperties"), dict):
            walk(schema["additionalProperties"], where + "{}")

    for info in ResourceTable(version):
        name = by_kind[(info.group, info.version, info.kind)]
        assert known[name].get("description"), name
        walk({"$ref": f"#/definitions/{name}"}, info.kind)


@pytest.mark.parametrize("version", [KUBERNETES_VERSIONS[0], KUBERNETES_VERSIONS[-1]])
def test_every_operation_on_objects_says_what_it_does_to_which_kind(version: str) -> None:
    document = swagger(version)
    actions = {"get", "list", "watch", "watchlist", "post", "put", "patch", "delete", "deletecollection", "connect"}
    names = set()
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method == "parameters":
                continue
            assert operation["operationId"] not in names
            names.add(operation["operationId"])
            if path.count("/") > (3 if path.startswith("/api/") else 4):
                assert operation["x-kubernetes-action"] in actions, path
                assert operation["x-kubernetes-group-version-kind"]["kind"], path
