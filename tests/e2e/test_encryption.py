"""Encryption at rest, with real processes: what is in the store, keys that change, plugins that come and go."""

from __future__ import annotations

import base64
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.server_process import ServerProcess, free_port
from tests.fakes import kms_plugin
from tests.storage.etcd_process import BINARIES

pytestmark = pytest.mark.e2e

SECRETS = "/api/v1/namespaces/default/secrets"


def keyed(cipher: str, *names: str) -> dict[str, Any]:
    return {cipher: {"keys": [{"name": name, "secret": base64.b64encode(name.encode().ljust(32, b".")).decode()} for name in names]}}


class World:
    def __init__(self, directory: Path) -> None:
        self.file = directory / "encryption.yaml"
        self.url = f"http://127.0.0.1:{free_port()}"
        self.server = ServerProcess(
            directory, "--unsafe-no-fsync", "--no-controllers", "--listen-client-urls", self.url,
            "--encryption-provider-config", str(self.file),
        )  # fmt: skip

    def configure(self, *providers: dict[str, Any], resources: tuple[str, ...] = ("secrets",)) -> None:
        document = {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "EncryptionConfiguration",
            "resources": [{"resources": list(resources), "providers": list(providers)}],
        }
        self.file.write_text(yaml.safe_dump(document))

    def restart(self) -> None:
        self.server.stop()
        self.server.start()

    def stored(self, key: str) -> bytes:
        command = [str(BINARIES / "etcdctl"), "--endpoints", self.url, "get", "--print-value-only", f"/registry/{key}"]
        for _ in range(100):  # the client port opens a moment after the server is ready
            done = subprocess.run(command, capture_output=True, timeout=30)
            if done.returncode == 0:
                return done.stdout
            time.sleep(0.1)
        raise AssertionError(done.stderr.decode())

    def text(self, path: str) -> tuple[int, str]:
        connection = self.server.connection()
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.server.token}"})
        answer = connection.getresponse()
        try:
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def create(self, name: str) -> None:
        body = {"metadata": {"name": name}, "stringData": {"password": "hunter2"}}
        assert self.server.request("POST", SECRETS, body)[0] == 201

    def read(self, name: str) -> Any:
        code, found = self.server.request("GET", f"{SECRETS}/{name}")
        return base64.b64decode(found["data"]["password"]) if code == 200 else found["message"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    try:
        yield made
    finally:
        if made.server.process is not None and made.server.process.poll() is None:
            made.server.stop()


def test_keys_are_rotated_and_what_has_no_key_any_more_says_so(world: World) -> None:
    world.configure(keyed("aesgcm", "first"), {"identity": {}})
    world.server.start()
    world.create("a")
    world.create("b")
    assert world.stored("secrets/default/a").startswith(b"k8s:enc:aesgcm:v1:first:")
    assert world.stored("namespaces/default").startswith(b'{"apiVersion"'), "only what is listed"
    log = b"".join(path.read_bytes() for path in world.server.data_dir.rglob("*") if path.is_file() and "member" in path.parts)
    assert b"aHVudGVyMg" not in log and b"k8s:enc:aesgcm" in log, "nothing of it is in the log or the database in the clear"

    world.configure(keyed("secretbox", "second"), keyed("aesgcm", "first"), {"identity": {}})
    world.restart()
    assert world.read("a") == world.read("b") == b"hunter2"
    assert world.stored("secrets/default/a").startswith(b"k8s:enc:aesgcm:v1:first:")
    # kubectl get -o json | kubectl replace -f -
    _, unchanged = world.server.request("GET", f"{SECRETS}/a")
    assert world.server.request("PUT", f"{SECRETS}/a", unchanged)[0] == 200
    assert world.stored("secrets/default/a").startswith(b"k8s:enc:secretbox:v1:second:")
    _, written = world.server.request("GET", f"{SECRETS}/a")
    assert world.server.request("PUT", f"{SECRETS}/a", written)[1]["metadata"]["resourceVersion"] == written["metadata"]["resourceVersion"]

    world.configure(keyed("secretbox", "second"), {"identity": {}})
    world.restart()
    assert world.read("a") == b"hunter2"
    want = (
        'Internal error occurred: unable to transform key "/registry/secrets/default/b": identity transformer tried to read encrypted data'
    )
    assert world.read("b").startswith(want)

    world.configure(keyed("aescbc", "third"))
    world.restart()
    assert world.read("a") == 'Internal error occurred: unable to transform key "/registry/secrets/default/a": no matching prefix found'


def test_a_kms_plugin_by_its_socket(world: World) -> None:
    with tempfile.TemporaryDirectory() as short:  # a socket's path has to be
        socket, key_id = Path(short, "kms.sock"), ["key-1"]
        plugin = kms_plugin.serve(socket, lambda: key_id[0])
        kms = {"kms": {"apiVersion": "v2", "name": "vault", "endpoint": f"unix://{socket}", "timeout": "2s"}}
        world.configure(kms, {"identity": {}}, resources=("secrets", "*.apps"))
        world.server.start()
        world.create("a")
        stored = world.stored("secrets/default/a")
        assert stored.startswith(b"k8s:enc:kms:v2:vault:") and b"key-1" in stored and b"hunter2" not in stored
        assert world.text("/healthz/kms-providers") == (200, "ok")

        key_id[0] = "key-2"
        world.restart()
        assert world.read("a") == b"hunter2"
        world.create("b")
        assert b"key-2" in world.stored("secrets/default/b")

        plugin.stop(None).wait()
        world.restart()
        assert "failed to decrypt DEK, error: rpc error: code = Unavailable" in world.read("a")
        code, found = world.server.request("POST", SECRETS, {"metadata": {"name": "c"}})
        assert code == 500 and found["message"].startswith("Internal error occurred: "), found
        code, text = world.text("/healthz/kms-providers")
        assert code == 500 and "vault" in text
        code, _ = world.server.request("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "c"}})
        assert code == 201, "what is not encrypted goes on"

        plugin = kms_plugin.serve(socket, lambda: key_id[0])
        ends = time.monotonic() + 60.0
        while world.read("a") != b"hunter2" and time.monotonic() < ends:
            time.sleep(0.2)  # it is asked again each ten seconds
        assert world.read("a") == world.read("b") == b"hunter2", "what could not be read is read again"
        world.create("d")
        assert world.text("/healthz/kms-providers") == (200, "ok")
        plugin.stop(None).wait()


def test_a_file_that_cannot_be_used_is_told_in_one_line(world: World) -> None:
    world.configure({"aesgcm": {"keys": [{"name": "a", "secret": "eA=="}]}})
    world.server.launch()
    process = world.server.process
    assert process is not None and process.wait(60) == 1
    assert "expected one of [16 24 32]" in world.server.log.read_text() and "eA==" not in world.server.log.read_text()
    assert json.dumps("REDACTED") in world.server.log.read_text()
