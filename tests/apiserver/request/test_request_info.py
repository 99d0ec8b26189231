"""What paths and methods mean."""

from __future__ import annotations

import pytest

from apiserver.request import request_info
from apiserver.request.request_info import resolve


@pytest.mark.parametrize(
    ("method", "path", "query", "expected"),
    [
        ("GET", "/api/v1/namespaces/ns/pods/p", {}, ("get", "", "v1", "ns", "pods", "", "p")),
        ("GET", "/api/v1/namespaces/ns/pods", {}, ("list", "", "v1", "ns", "pods", "", "")),
        ("GET", "/api/v1/pods", {"watch": ["1"]}, ("watch", "", "v1", "", "pods", "", "")),
        ("GET", "/api/v1/pods", {"watch": ["0"]}, ("list", "", "v1", "", "pods", "", "")),
        ("GET", "/api/v1/watch/namespaces/ns/pods/p", {}, ("watch", "", "v1", "ns", "pods", "", "p")),
        ("HEAD", "/apis/apps/v1/namespaces/ns/deployments/d", {}, ("get", "apps", "v1", "ns", "deployments", "", "d")),
        ("PATCH", "/apis/apps/v1/namespaces/ns/deployments/d/scale", {}, ("patch", "apps", "v1", "ns", "deployments", "scale", "d")),
        ("DELETE", "/api/v1/namespaces/ns/pods", {}, ("deletecollection", "", "v1", "ns", "pods", "", "")),
        ("GET", "/api/v1/namespaces/ns", {}, ("get", "", "v1", "ns", "namespaces", "", "ns")),
        ("PUT", "/api/v1/namespaces/ns/finalize", {}, ("update", "", "v1", "ns", "namespaces", "finalize", "ns")),
        ("GET", "/api/v1/namespaces/ns/status", {}, ("get", "", "v1", "ns", "namespaces", "status", "ns")),
        ("GET", "/api/v1/namespaces", {}, ("list", "", "v1", "", "namespaces", "", "")),
        ("GET", "/api/v1/namespaces/ns/pods/", {}, ("list", "", "v1", "ns", "pods", "", "")),
        # nothing has no name: it is not found, and no other thing is
        ("GET", "/api/v1//namespaces/ns", {}, ("get", "", "v1", "", "", "ns", "namespaces")),
        ("GET", "/api/v1/pods", {"fieldSelector": ["metadata.name=p"]}, ("list", "", "v1", "", "pods", "", "p")),
        ("GET", "/api/v1/pods", {"fieldSelector": ["metadata.name=p,metadata.name=q"]}, ("list", "", "v1", "", "pods", "", "")),
        ("GET", "/api/v1/pods", {"fieldSelector": ["metadata.name!=p"]}, ("list", "", "v1", "", "pods", "", "")),
    ],
)
def test_resource_requests(method: str, path: str, query: dict[str, list[str]], expected: tuple[str, ...]) -> None:
    info = resolve(method, path, query)
    assert info.is_resource_request
    assert (info.verb, info.group, info.version, info.namespace, info.resource, info.subresource, info.name) == expected


@pytest.mark.parametrize(
    "path", ["/", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz", "/metrics", "/version/x/y", "//"]
)
def test_other_requests(path: str) -> None:
    info = resolve("GET", path, {})
    assert (info.is_resource_request, info.verb) == (False, "get")


def test_the_memory_of_paths_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_info, "REMEMBERED_MAX", 10)
    for n in range(50):
        resolve("GET", f"/api/v1/namespaces/ns/pods/p{n}", {})
    assert len(request_info._remembered) <= 10
    assert resolve("GET", "/api/v1/namespaces/ns/pods/p3", {}).name == "p3"
