"""Words in which the requests are put."""

from __future__ import annotations

from typing import Any

from tests.differential.exchange import Ask

NS = "/api/v1/namespaces/answers"
CM = f"{NS}/configmaps"
PODS = f"{NS}/pods"
DEPLOY = "/apis/apps/v1/namespaces/answers/deployments"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"automountServiceAccountToken": False, "containers": [{"name": "c", "image": "i"}]},
}


def config_map(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}, **more}


def prepare(method: str, path: str, body: Any = None) -> Ask:
    return Ask(name=f"prepare {method} {path}", method=method, path=path, body=body, quiet=True)


def get(name: str, path: str, **more: Any) -> Ask:
    return Ask(name=name, method="GET", path=path, **more)


def with_headers(name: str, path: str, method: str = "GET", body: Any = None, **headers: str) -> Ask:
    return Ask(name=name, method=method, path=path, body=body, headers={k.replace("_", "-"): v for k, v in headers.items()})


def patch(name: str, kind: str, path: str, body: Any) -> Ask:
    """``kind``: ``merge-patch+json`` and so on."""
    return Ask(name=name, method="PATCH", path=path, body=body, headers={"Content-Type": f"application/{kind}"})
