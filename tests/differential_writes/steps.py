"""What scripts are made of: single requests, the objects that they are about, and where those are."""

from __future__ import annotations

from typing import Any

from tests.differential_writes.client import APPLY, JSON_PATCH, MERGE, STRATEGIC, Step

CM = "/api/v1/namespaces/{ns}/configmaps"
PODS = "/api/v1/namespaces/{ns}/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
SERVICES = "/api/v1/namespaces/{ns}/services"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"


def cm(name: str, data: Any = None, **metadata: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    if data is not None:
        found["data"] = data
    return found


def pod(name: str, **spec: Any) -> dict[str, Any]:
    base = {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {**base, **spec}}


def post(path: str, body: Any, **more: Any) -> Step:
    return Step(method="POST", path=path, body=body, **more)


def put(path: str, body: Any, **more: Any) -> Step:
    return Step(method="PUT", path=path, body=body, **more)


def get(path: str, **more: Any) -> Step:
    return Step(method="GET", path=path, **more)


def delete(path: str, body: Any = None, **more: Any) -> Step:
    return Step(method="DELETE", path=path, body=body, **more)


def merge(path: str, body: Any, **more: Any) -> Step:
    return Step(method="PATCH", path=path, body=body, type=MERGE, **more)


def strategic(path: str, body: Any, **more: Any) -> Step:
    return Step(method="PATCH", path=path, body=body, type=STRATEGIC, **more)


def json_patch(path: str, body: Any, **more: Any) -> Step:
    return Step(method="PATCH", path=path, body=body, type=JSON_PATCH, **more)


def apply(path: str, body: Any, manager: str = "m1", query: str = "", **more: Any) -> Step:
    return Step(method="PATCH", path=path, body=body, type=APPLY, query=f"fieldManager={manager}" + (f"&{query}" if query else ""), **more)


OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "own", "uid": "u-1"}

TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {
        "containers": [
            {
                "name": "c1",
                "image": "i1",
                "ports": [{"containerPort": 53, "protocol": "TCP"}],
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            },
            {"name": "c2", "image": "i2"},
        ]
    },
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE},
}


def spec(**template_spec: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": template_spec}}}


D = DEPLOYMENTS + "/d"
