"""Started as controller-runtime's envtest starts kube-apiserver: its flags, its files, its checks."""

from __future__ import annotations

import datetime
import http.client
import json
import os
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.cli.pki import Pki, Subject
from tests.e2e.server_process import free_port
from tests.storage.etcd_process import EtcdProcess

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

COMMAND = (sys.executable, "-m", "apiserver.cli.main", "apiserver")
START_SECONDS_MAX = 60.0


def ask(port: int, method: str, path: str, body: Any = None, *, ca: Path, client: tuple[Path, Path] | None = None) -> tuple[int, Any]:
    context = ssl.create_default_context(cafile=str(ca))
    if client is not None:
        context.load_cert_chain(*client)
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=context)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        return answer.status, json.loads(content) if content.startswith(b"{") else content
    finally:
        connection.close()


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdProcess]:
    with EtcdProcess(tmp_path / "etcd") as process:
        yield process


def test_started_as_envtest_starts_it(tmp_path: Path, etcd: EtcdProcess) -> None:
    """The serving pair, the ServiceAccount key in a certificate and the clients' authority lie in one directory beforehand."""
    certs = tmp_path / "k8s_test_framework"
    certs.mkdir()
    now = datetime.datetime.now(datetime.UTC)
    serving, accounts, clients = (Pki(tmp_path / name, now) for name in ("serving", "accounts", "clients"))
    pair = serving.serving("apiserver", "127.0.0.1", "10.0.0.1")
    for source, name in (
        (pair.certificate, "apiserver.crt"), (pair.key, "apiserver.key"), (accounts.ca.certificate, "sa-signer.crt"),
        (accounts.ca.key, "sa-signer.key"), (clients.ca.certificate, "client-cert-auth-ca.crt"),
    ):  # fmt: skip
        (certs / name).write_bytes(source.read_bytes())
    admin = clients.client("admin", Subject("admin", ("system:masters",)))
    port = free_port()
    arguments = [
        "--allow-privileged=true", "--authorization-mode=RBAC", "--bind-address=127.0.0.1", f"--cert-dir={certs}",
        f"--client-ca-file={certs}/client-cert-auth-ca.crt", "--disable-admission-plugins=ServiceAccount",
        f"--etcd-servers=http://{etcd.target}", f"--secure-port={port}", f"--service-account-issuer=https://127.0.0.1:{port}/",
        f"--service-account-key-file={certs}/sa-signer.crt", f"--service-account-signing-key-file={certs}/sa-signer.key",
        "--service-cluster-ip-range=10.0.0.0/24",
    ]  # fmt: skip
    log = tmp_path / "log.txt"
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    with log.open("wb") as output:
        process = subprocess.Popen([*COMMAND, *arguments], cwd=tmp_path, stdout=output, stderr=output, env=environment)
    try:
        _wait_healthy(process, port, pair.certificate.parent / "ca.crt", log)
        known: dict[str, Any] = {"ca": serving.ca.certificate, "client": (admin.certificate, admin.key)}
        assert ask(port, "GET", "/api/v1/namespaces/default", **known)[0] == 200
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        code, made = ask(port, "POST", "/api/v1/namespaces/default/pods", pod, **known)
        assert code == 201, "no ServiceAccount is asked for"
        assert "serviceAccountName" not in made["spec"]
        account = {"metadata": {"name": "robot"}}
        assert ask(port, "POST", "/api/v1/namespaces/default/serviceaccounts", account, **known)[0] == 201
        code, token = ask(port, "POST", "/api/v1/namespaces/default/serviceaccounts/robot/token", {"spec": {}}, **known)
        assert code == 201 and token["status"]["token"]
        review = {"spec": {"token": token["status"]["token"]}}
        _, reviewed = ask(port, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", review, **known)
        assert reviewed["status"]["authenticated"], "the certificate has the key's other half"
    finally:
        process.terminate()
        assert process.wait(30) == 0, log.read_text()
    assert "--allow-privileged has no effect" in log.read_text()
    assert not (tmp_path / "sampan-data").exists(), "nothing is left where it was started"


def _wait_healthy(process: subprocess.Popen[bytes], port: int, ca: Path, log: Path) -> None:
    """As envtest does, without credentials."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if ask(port, "GET", "/healthz", ca=ca) == (200, b"ok"):
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(log.read_text())


def test_its_question_for_an_older_flag_is_answered() -> None:
    """envtest looks whether there is a port without TLS that it would have to close."""
    told = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True, check=True).stdout
    assert re.search(r"(?m)^\s*--insecure-port\b", told) is None
    assert re.search(r"(?m)^\s*--secure-port\b", told)
