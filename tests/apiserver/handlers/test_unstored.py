"""What no object is behind: component statuses, and the streams of pods whose nodes run no containers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.api import Api

PODS = "/api/v1/namespaces/ns-a/pods"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}


async def test_component_statuses_are_a_table_for_kubectl(api: Api) -> None:
    for path in ("/api/v1/componentstatuses", "/api/v1/componentstatuses/etcd-0"):
        table = (await api.get(path, headers=TABLE)).json
        assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Status", "Message", "Error"]
        assert [row["cells"] for row in table["rows"]] == [["etcd-0", "Healthy", "ok", ""]]
    assert (await api.get("/api/v1/componentstatuses/scheduler", headers=TABLE)).status == 404


async def pod(api: Api, *containers: str, node: str = "n", **spec: Any) -> None:
    listed = [{"name": c, "image": "i"} for c in containers]
    await api.created(PODS, {"metadata": {"name": "p"}, "spec": {"containers": listed, "nodeName": node, **spec}})


@pytest.mark.parametrize("stream", ["log", "exec", "attach"])
async def test_a_stream_names_a_container_of_the_pod(api: Api, stream: str) -> None:
    await pod(api, "one", "two", initContainers=[{"name": "first", "image": "i"}])
    asked = {
        "": (400, "a container name must be specified for pod p, choose one of: [first one two]"),
        "three": (400, "container three is not valid for pod p"),
        "two": (501, "the nodes of this cluster are hollow, they run no containers"),
        "first": (501, "the nodes of this cluster are hollow, they run no containers"),
    }
    for container, (code, message) in asked.items():
        answer = await api.get(f"{PODS}/p/{stream}", query={"container": container, "command": "ls"})
        assert answer.status == code and message in answer.message


@pytest.mark.parametrize("stream", ["log", "exec", "attach", "portforward"])
async def test_a_pod_without_a_node_has_no_streams(api: Api, stream: str) -> None:
    await pod(api, "only", node="")
    answer = await api.get(f"{PODS}/p/{stream}")
    assert (answer.status, answer.message) == (400, "pod p does not have a host assigned")
