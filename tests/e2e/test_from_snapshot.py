"""A backup of a real cluster, verified: opened in one step, looked at with kubectl, and nothing in it touched."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import api as storage_api
from storage.config import MemberConfig
from storage.member.member import Member
from storage.snapshot import restore, save
from tests.apiserver import real_cluster
from tests.e2e.conftest import Kubectl
from tests.e2e.server_process import ServerProcess

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

#: beside what the cluster had: what its API server could not have read either, or another server's
FURTHER = {
    "/registry/secrets/shop/locked": b"k8s:enc:kms:v2:vault:\x00\x01\x02",
    "/registry/configmaps/shop/torn": b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x7f",
    "/registry/podsecuritypolicy/old": b"k8s\0\x0a\x23\x0a\x0epolicy/v1beta1\x12\x11PodSecurityPolicy",
    "/registry/unknown.example.com/things/shop/a": b'{"apiVersion":"unknown.example.com/v1","kind":"Thing","metadata":{"name":"a"}}',
}


async def with_more(directory: Path) -> Path:
    """The cluster's snapshot with FURTHER in it, as ``etcdctl snapshot save`` would have given it."""
    config = MemberConfig(data_dir=directory / "member", unsafe_no_fsync=True, expire_leases=False)
    restore.restore(real_cluster.unpacked(directory), restore.RestoreOptions(config=config))
    member = Member(config)
    await member.start()
    try:
        for key, value in FURTHER.items():
            await member.put(storage_api.PutRequest(key=key.encode(), value=value))
    finally:
        await member.stop()
    await save.save_from_data_dir(config, directory / "backup.db")
    return directory / "backup.db"


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return asyncio.run(with_more(tmp_path_factory.mktemp("backup")))


@pytest.fixture(scope="module")
def looking(backup: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path_factory.mktemp("looking"), "--from-snapshot", str(backup), "--read-only")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def kubectl(looking: ServerProcess, tmp_path: Path) -> Kubectl:
    return Kubectl(looking.kubeconfig, "shop", tmp_path)


def test_it_says_what_is_in_it(looking: ServerProcess) -> None:
    said = looking.log.read_text()
    assert "299 objects were read:" not in said, "a gadget is one too"
    assert "300 objects were read:" in said
    assert "pods 7," in said and "demo.example.com/gadgets 1," in said
    assert "1 objects are encrypted and left alone (secrets 1):" in said
    assert 'unable to transform key "/registry/secrets/shop/locked": identity transformer tried to read encrypted data' in said
    assert "(provider kms v2, key vault)" in said
    assert "1 objects are damaged and left alone (configmaps 1):" in said
    assert "2 keys of resources that are not served here are left alone:\n  podsecuritypolicy 1, unknown.example.com/things 1" in said


def test_kubectl_shows_every_object(kubectl: Kubectl) -> None:
    everything = kubectl("get", "all", "--all-namespaces")
    for line in ("pod/db-0", "service/web", "deployment.apps/web", "statefulset.apps/db", "job.batch/once", "horizontalpodautoscaler"):
        assert line in everything, line
    resources = kubectl("api-resources", "--verbs=list", "-o", "name").split()
    names = kubectl("get", ",".join(resources), "--all-namespaces", "-o", "name").split()
    assert len(names) >= 300
    assert "colour: green" in kubectl("get", "gadget", "one", "-o", "yaml")
    assert "Controlled By:    StatefulSet/db" in kubectl("describe", "pod", "db-0")
    assert "nodes" in kubectl("describe", "clusterrole", "system:node")


def run(server: ServerProcess, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(["kubectl", "--kubeconfig", str(server.kubeconfig), *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_what_cannot_be_read_is_told_and_hides_nothing(looking: ServerProcess) -> None:
    status, out, err = run(looking, "get", "secrets", "-n", "shop", "-o", "name")
    assert status == 0 and out.split() == ["secret/default-token-qt54k", "secret/keys"]
    assert "Warning: 1 of secrets cannot be read and are missing here (1 encrypted)" in err
    status, _, err = run(looking, "get", "secret", "-n", "shop", "locked")
    assert status == 1
    assert "Error from server (InternalError): Internal error occurred: unable to transform key" in err
    status, _, err = run(looking, "delete", "pod", "-n", "shop", "db-0")
    assert status == 1
    assert "(MethodNotAllowed)" in err and "--read-only" in err


def test_the_file_is_as_it_was_and_another_start_is_refused(backup: Path, looking: ServerProcess, tmp_path: Path) -> None:
    before = hashlib.sha256(backup.read_bytes()).hexdigest()
    again = ServerProcess(looking.data_dir.parent, "--from-snapshot", str(backup))
    again.launch()
    assert again.process is not None and again.process.wait(30) != 0
    assert hashlib.sha256(backup.read_bytes()).hexdigest() == before


def test_controllers_go_on_with_it_and_leave_what_they_cannot_read(backup: Path, tmp_path: Path, eventually: object) -> None:
    """The namespace goes but for what is encrypted in it, and says why; what is of no kind here is not even looked at."""
    server = ServerProcess(tmp_path, "--from-snapshot", str(backup))
    server.start()
    try:
        status, _ = server.request("DELETE", "/api/v1/namespaces/shop")
        assert status == 200
        status, gadget = server.request("GET", "/apis/demo.example.com/v1/namespaces/shop/gadgets/one")
        assert status == 200 and gadget["metadata"]["finalizers"] == ["demo.example.com/hold"]

        def stuck() -> bool:
            _, namespace = server.request("GET", "/api/v1/namespaces/shop")
            conditions = {each["type"]: each for each in namespace["status"].get("conditions", ())}
            failure = conditions.get("NamespaceDeletionContentFailure", {})
            return failure.get("status") == "True" and "unable to transform key" in failure["message"]

        assert eventually(stuck, 240.0)  # type: ignore[operator]
        assert eventually(lambda: not server.request("GET", "/apis/apps/v1/namespaces/shop/deployments")[1]["items"])  # type: ignore[operator]
        status, answer = server.request("GET", "/api/v1/namespaces/shop/secrets/locked")
        assert (status, answer["reason"]) == (500, "InternalError")
    finally:
        server.stop()
    assert asyncio.run(values(server.data_dir)) == FURTHER


async def values(data_dir: Path) -> dict[str, bytes]:
    member = Member(MemberConfig(data_dir=data_dir))
    await member.start()
    try:
        found = {}
        for key in FURTHER:
            answer = await member.range(storage_api.RangeRequest(key=key.encode()))
            found[key] = answer.kvs[0].value
        return found
    finally:
        await member.stop()
