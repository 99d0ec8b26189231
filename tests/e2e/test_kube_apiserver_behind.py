"""A real kube-apiserver as the extension API server behind this one: it serves a group of custom resources, kubectl uses them here.

Only in long runs, and where ``KUBE_APISERVER`` names its binary (1.20 or later).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Kubectl
from tests.e2e.custom_resources import gadgets
from tests.e2e.server_process import ServerProcess
from tests.e2e.test_beside_kube_apiserver import BINARY, KubeApiserver
from tests.storage.etcd_process import EtcdProcess

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.skipif(not BINARY, reason="KUBE_APISERVER names no kube-apiserver"),
]

GROUP = "far.example.com"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    found = ServerProcess(tmp_path / "front", "--nodes", "0", users={"alice": ("devs",)})
    found.start()
    yield found
    found.kill()


@pytest.fixture
def far(tmp_path: Path, server: ServerProcess) -> Iterator[KubeApiserver]:
    """It believes our front proxy who the user is."""
    (tmp_path / "far").mkdir()
    with EtcdProcess(tmp_path / "etcd") as etcd:
        etcd.wait_until_ready()
        found = KubeApiserver(
            tmp_path / "far",
            etcd.target,
            requestheader_client_ca_file=str(server.data_dir / "pki" / "front-proxy-ca.crt"),
            requestheader_allowed_names="front-proxy-client",
            requestheader_username_headers="X-Remote-User",
            requestheader_group_headers="X-Remote-Group",
            requestheader_extra_headers_prefix="X-Remote-Extra-",
        )
        try:
            found.wait_ready()
            yield found
        finally:
            found.stop()


def test_kubectl_uses_what_a_real_server_behind_this_one_serves(server: ServerProcess, far: KubeApiserver, tmp_path: Path) -> None:
    definition = tmp_path / "definition.json"
    definition.write_text(json.dumps(gadgets(GROUP)))
    far.kubectl("apply", "-f", str(definition))
    kubectl = Kubectl(server.kubeconfig, "default", tmp_path)
    kubectl("create", "service", "externalname", "far", "--external-name=localhost")
    spec = {"group": GROUP, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10, "insecureSkipTLSVerify": True}
    spec["service"] = {"namespace": "default", "name": "far", "port": far.port}
    made = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": f"v1.{GROUP}"}, "spec": spec}
    kubectl("apply", "-f", "-", stdin=json.dumps(made))
    kubectl("wait", "--for=condition=Available", f"apiservice/v1.{GROUP}", "--timeout=60s")
    gadget = {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": {"name": "one"}, "spec": {"color": "red"}}
    assert kubectl("apply", "--validate=false", "-f", "-", stdin=json.dumps(gadget)) == f"gadget.{GROUP}/one created\n"
    assert "one" in far.kubectl("get", "gadgets")
    watch = kubectl.start("get", "gadgets", "-w", "--output-watch-events", "-o", "jsonpath={.type} {.object.spec.color}{'\\n'}")
    assert watch.stdout is not None
    try:
        assert watch.stdout.readline() == "ADDED red\n"
        far.kubectl("patch", "gadget", "one", "--type=merge", "-p", '{"spec":{"color":"blue"}}')
        assert watch.stdout.readline() == "MODIFIED blue\n"
    finally:
        watch.kill()
        watch.wait()
    # both servers are asked whether a user may: this one first, then the other, which knows nothing of the roles here
    refused = kubectl.run("get", "gadgets", "--as=alice", check=False)
    assert f'gadgets.{GROUP} is forbidden: User "alice" cannot list resource' in refused.stderr
    kubectl("create", "clusterrole", "reader", "--verb=list", f"--resource=gadgets.{GROUP}")
    kubectl("create", "clusterrolebinding", "reader", "--clusterrole=reader", "--user=alice")
    assert "is forbidden" in kubectl.run("get", "gadgets", "--as=alice", check=False).stderr
    far.kubectl("create", "clusterrole", "reader", "--verb=list", f"--resource=gadgets.{GROUP}")
    far.kubectl("create", "clusterrolebinding", "reader", "--clusterrole=reader", "--user=alice")
    assert "one" in kubectl("get", "gadgets", "--as=alice")
    assert kubectl("delete", "gadget", "one") == f'gadget.{GROUP} "one" deleted\n'
