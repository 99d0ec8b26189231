"""A kube-apiserver and this server on one etcd: each reads what the other has written.

Only in long runs, and where ``KUBE_APISERVER`` names the binary of Kubernetes 1.20 or later (Debian's source package ``kubernetes`` builds
one).
"""

from __future__ import annotations

import os
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.apiserver.api import config_in
from tests.apiserver.real_cluster import without_nulls
from tests.e2e.server_process import ServerProcess, free_port
from tests.storage.etcd_process import EtcdProcess

BINARY = os.environ.get("KUBE_APISERVER", "")
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.skipif(not BINARY, reason="KUBE_APISERVER names no kube-apiserver"),
]

OBJECTS = Path(__file__).with_name("kube_objects_1_20.yaml")
START_SECONDS_MAX = 120.0
#: not stored, or changed all the time
PASSED_OVER = ("componentstatuses", "events", "leases")


class KubeApiserver:
    def __init__(self, directory: Path, etcd: str, **more: str) -> None:
        """``more``: flags, with underscores."""
        config = config_in(directory)
        self.port = free_port()
        self._url = f"https://127.0.0.1:{self.port}"
        self._log = (directory / "kube-apiserver.log").open("wb")
        flags = {
            "etcd-servers": f"http://{etcd}",
            "secure-port": self.port,
            "bind-address": "127.0.0.1",
            "cert-dir": directory / "kube",
            "token-auth-file": config.token_auth_file,
            "service-account-key-file": config.service_account_key_file[0],
            "service-account-signing-key-file": config.service_account_signing_key_file,
            "service-account-issuer": config.service_account_issuer[0],
            "service-cluster-ip-range": "10.96.0.0/16",
            "authorization-mode": "RBAC",
            "allow-privileged": "true",
            "advertise-address": "192.0.2.1",
            # it waits for flow control objects that it can read, and those here are of a later version than it knows
            "feature-gates": "APIPriorityAndFairness=false",
            **{name.replace("_", "-"): value for name, value in more.items()},
        }
        command = [BINARY, *(f"--{name}={value}" for name, value in flags.items())]
        self.process = subprocess.Popen(command, stdout=self._log, stderr=subprocess.STDOUT)

    def request(self, path: str) -> Any:
        request = urllib.request.Request(self._url + path, headers={"Authorization": "Bearer admin-token"})
        with urllib.request.urlopen(request, timeout=30, context=ssl._create_unverified_context()) as answer:
            return answer.read()

    def wait_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                self.request("/readyz")
                return
            except (urllib.error.URLError, OSError):
                assert self.process.poll() is None, "it ended"
                assert time.monotonic() < deadline, "it did not become ready"
                time.sleep(0.2)

    def kubectl(self, *arguments: str) -> str:
        command = ["kubectl", "--server", self._url, "--insecure-skip-tls-verify", "--token", "admin-token", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "KUBECONFIG": "/dev/null"})
        assert done.returncode == 0, done.stderr
        return done.stdout

    def lists(self) -> Iterator[str]:
        """The path of each list."""
        groups = ["/api/v1"]
        groups += [f"/apis/{v['groupVersion']}" for g in orjson.loads(self.request("/apis"))["groups"] for v in g["versions"]]
        for group in groups:
            for resource in orjson.loads(self.request(group))["resources"]:
                if "list" in resource["verbs"] and resource["name"] not in PASSED_OVER:
                    yield f"{group}/{resource['name']}"

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        self._log.close()


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdProcess]:
    with EtcdProcess(tmp_path / "etcd") as process:
        process.wait_until_ready()
        yield process


@pytest.fixture
def kube(tmp_path: Path, etcd: EtcdProcess) -> Iterator[KubeApiserver]:
    made = KubeApiserver(tmp_path, etcd.target)
    try:
        made.wait_ready()
        made.kubectl("apply", "-f", str(OBJECTS))
        yield made
    finally:
        made.stop()


def by_name(answer: Any) -> dict[tuple[str, str], Any]:
    return {(i["metadata"].get("namespace", ""), i["metadata"]["name"]): without_nulls(i) for i in answer["items"] or ()}


def test_each_reads_what_the_other_has_written(kube: KubeApiserver, etcd: EtcdProcess, tmp_path: Path) -> None:
    on_etcd = ("--etcd-servers", f"http://{etcd.target}", "--kubernetes-version", "1.25")
    looking = ServerProcess(tmp_path / "looking", *on_etcd, "--read-only")
    looking.start()
    compared = 0
    try:
        groups = looking.request("GET", "/apis")[1]["groups"]
        served = {"/api/v1", *(f"/apis/{version['groupVersion']}" for group in groups for version in group["versions"])}
        for path in kube.lists():
            if path.rpartition("/")[0] not in served:
                continue
            status, ours = looking.request("GET", path)
            if status == 200:  # else it is a version that is served no longer
                theirs = by_name(orjson.loads(kube.request(path)))
                assert by_name(ours) == theirs, path
                compared += len(theirs)
    finally:
        assert looking.stop() == 0
    assert compared > 150  # without controllers there are few

    writing = ServerProcess(tmp_path / "writing", *on_etcd, "--no-controllers")
    writing.start()
    try:
        for path in ("/api/v1/namespaces/refns", "/apis/apps/v1/namespaces/refns/deployments/d", "/api/v1/nodes/n1"):
            _, before = writing.request("GET", path)
            before["metadata"]["labels"] = {**before["metadata"].get("labels", {}), "written": "here"}
            status, after = writing.request("PUT", path, before)
            assert status == 200, after
            assert without_nulls(orjson.loads(kube.request(path))) == without_nulls(after), path
        kube.kubectl("label", "namespace", "refns", "written=there", "--overwrite")
        assert writing.request("GET", "/api/v1/namespaces/refns")[1]["metadata"]["labels"]["written"] == "there"
    finally:
        writing.stop()
