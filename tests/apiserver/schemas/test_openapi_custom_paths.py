"""The requests on a custom kind as its documents tell them; the facts are those of apiextensions-apiserver 1.36."""

from __future__ import annotations

from apiserver.resources.resource_info import ResourceInfo, SubresourceInfo
from apiserver.schemas.openapi import openapi3, operations

COLLECTION = "/apis/example.com/v1/namespaces/{namespace}/widgets"
OWN = ("example.com", "v1", "Widget")


def widgets() -> ResourceInfo:
    return ResourceInfo(
        group="example.com",
        version="v1",
        resource="widgets",
        kind="Widget",
        list_kind="WidgetList",
        namespaced=True,
        builtin=False,
        verbs=("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"),
        subresources=(
            SubresourceInfo(name="status", kind="Widget", group="example.com", version="v1"),
            SubresourceInfo(name="scale", kind="Scale", group="autoscaling", version="v1"),
        ),
    )


def test_what_the_requests_on_a_custom_kind_take_and_answer() -> None:
    found = {(o.path.removeprefix(COLLECTION), o.method): o for o in operations.operations(widgets())}
    listing = found[("", "get")]
    assert (listing.description, listing.watches) == ("list objects of kind Widget", False)
    assert found[("", "delete")].query == listing.query
    assert found[("", "delete")].body == ""
    assert found[("/{name}", "get")].query == ("resourceVersion",)
    assert found[("/{name}", "patch")].codes == ("200",)
    assert found[("/{name}/scale", "put")].kind == OWN
    assert found[("/{name}/scale", "put")].body == "io.k8s.api.autoscaling.v1.Scale"


def test_parameters_of_all_operations_of_a_path_stand_with_the_path() -> None:
    paths = openapi3._paths(operations.operations(widgets()))
    everywhere = paths["/apis/example.com/v1/widgets"]
    assert [p["name"] for p in everywhere["parameters"]] == sorted(["pretty", *operations._LIST])
    assert "parameters" not in everywhere["get"]
    assert [p["name"] for p in paths[COLLECTION]["parameters"]] == ["namespace", "pretty"]
    assert sorted(paths[COLLECTION + "/{name}"]["delete"]["requestBody"]["content"]) == ["application/json", "application/yaml"]
