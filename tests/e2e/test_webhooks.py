"""Admission webhooks as their authors write and install them: kopf's server, a manifest with a Service; and the field cases of quotas."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.pytest_plugin import SampanServer
from tests.fakes.webhook_server import AUTHORITY

pytestmark = pytest.mark.e2e

OPERATOR = """
import kopf


@kopf.on.startup()
def configure(settings, **_):
    settings.admission.managed = "auto.kopf.dev"
    settings.admission.server = kopf.WebhookServer(
        addr="127.0.0.1", port={port}, certfile="server.crt", pkeyfile="server.key", cafile="ca.crt"
    )


@kopf.on.validate("", "v1", "configmaps", labels={{"watched": "yes"}})
def check(body, warnings, **_):
    warnings.append("kopf looked at it")
    if body.get("data", {{}}).get("color") == "red":
        raise kopf.AdmissionError("red is not allowed", code=422)


@kopf.on.mutate("", "v1", "configmaps", labels={{"watched": "yes"}}, operation="CREATE")
def complete(patch, **_):
    patch.metadata.annotations["completed-by"] = "kopf"
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_kopf_admits_what_its_handlers_say(sampan: SampanServer, tmp_path: Path, kubectl: Any, eventually: Any) -> None:
    key, certificate = AUTHORITY.pair()
    for name, content in (("server.key", key), ("server.crt", certificate), ("ca.crt", AUTHORITY.pem)):
        (tmp_path / name).write_bytes(content)
    script = tmp_path / "admitting.py"
    script.write_text(OPERATOR.format(port=free_port()))
    with (tmp_path / "log.txt").open("wb") as log:
        operator = subprocess.Popen(
            [sys.executable, "-m", "kopf", "run", "--namespace", kubectl.namespace, "--standalone", str(script)],
            env=dict(os.environ, KUBECONFIG=str(sampan.kubeconfig)), cwd=tmp_path, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def manifest(name: str, color: str) -> str:
        metadata = {"name": name, "labels": {"watched": "yes"}}
        return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"color": color}})

    try:
        installed = ("get", "validatingwebhookconfiguration,mutatingwebhookconfiguration", "-o", "name")
        eventually(lambda: operator.poll() is None and kubectl(*installed).count("auto.kopf.dev") == 2)

        def refused() -> bool:
            assert operator.poll() is None, (tmp_path / "log.txt").read_text()
            done = kubectl.run("create", "-f", "-", stdin=manifest("r", "red"), check=False)
            return done.returncode == 1 and "denied the request: red is not allowed" in done.stderr

        eventually(refused)
        done = kubectl.run("create", "-f", "-", stdin=manifest("g", "green"))
        assert "Warning: kopf looked at it" in done.stderr
        assert kubectl.json("get", "configmap", "g")["metadata"]["annotations"]["completed-by"] == "kopf"
    finally:
        operator.terminate()
        operator.wait(30)
        kubectl.run("delete", "validatingwebhookconfiguration,mutatingwebhookconfiguration", "auto.kopf.dev", check=False)


class Denying(http.server.BaseHTTPRequestHandler):
    """Refuses what has the label ``bad``."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = review["request"]
        bad = "bad" in (asked["object"]["metadata"].get("labels") or {})
        response = {"uid": asked["uid"], "allowed": not bad, "status": {"message": f"{asked['name']} is bad"}}
        body = json.dumps({"kind": review["kind"], "apiVersion": review["apiVersion"], "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Not on the terminal."""


@contextlib.contextmanager
def denying(name: str) -> Iterator[int]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Denying)
    server.socket = AUTHORITY.context(name).wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


MANIFEST = """
apiVersion: v1
kind: Service
metadata: {{name: guard}}
spec: {{type: ExternalName, externalName: localhost}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: guard-{namespace}}}
webhooks:
- name: guard.example.com
  clientConfig:
    service: {{namespace: {namespace}, name: guard, port: {port}, path: /guard}}
    caBundle: {bundle}
  rules:
  - {{apiGroups: ["apps"], apiVersions: ["v1"], resources: ["deployments"], operations: ["CREATE", "UPDATE"]}}
  namespaceSelector:
    matchLabels: {{kubernetes.io/metadata.name: {namespace}}}
  admissionReviewVersions: ["v1"]
  sideEffects: None
"""


def test_a_webhook_is_installed_by_manifest_and_called_through_its_service(kubectl: Any) -> None:
    namespace = kubectl.namespace
    with denying(f"guard.{namespace}.svc") as port:
        kubectl("apply", "-f", "-", stdin=MANIFEST.format(namespace=namespace, port=port, bundle=AUTHORITY.bundle))
        try:
            kubectl("create", "deployment", "web", "--image=nginx")
            done = kubectl.run("label", "deployment", "web", "bad=yes", check=False)
            assert done.returncode == 1
            assert 'admission webhook "guard.example.com" denied the request: web is bad' in done.stderr
            assert kubectl.run("label", "deployment", "web", "bad=yes", "--dry-run=server", check=False).returncode == 1
        finally:
            kubectl("delete", "validatingwebhookconfiguration", f"guard-{namespace}")
        kubectl("label", "deployment", "web", "bad=yes")


def test_r1_quota_exceeded(kubectl: Any, eventually: Any) -> None:
    """Field case R1: the third is refused with what was requested, used and limited; nothing is charged for it."""
    used = len(kubectl.json("get", "configmaps")["items"])
    limit = str(used + 2)
    kubectl("create", "quota", "q", f"--hard=count/configmaps={limit}")
    eventually(lambda: kubectl.json("get", "quota", "q").get("status", {}).get("used"))
    kubectl("create", "configmap", "a")
    kubectl("create", "configmap", "b")
    done = kubectl.run("create", "configmap", "c", check=False)
    assert (done.returncode == 1 and "(Forbidden)" in done.stderr) or "forbidden" in done.stderr
    text = f"exceeded quota: q, requested: count/configmaps=1, used: count/configmaps={limit}, limited: count/configmaps={limit}"
    assert text in done.stderr
    assert kubectl.json("get", "quota", "q")["status"]["used"]["count/configmaps"] == limit


def test_r2_pod_without_the_limited_resource(kubectl: Any, eventually: Any) -> None:
    """Field case R2: the pod is refused, and a Deployment says why it has none."""
    kubectl("create", "quota", "q", "--hard=limits.cpu=1")
    eventually(lambda: kubectl.json("get", "quota", "q").get("status", {}).get("used"))
    done = kubectl.run("run", "p", "--image=nginx", check=False)
    assert done.returncode == 1 and "failed quota: q: must specify limits.cpu" in done.stderr
    kubectl("create", "deployment", "web", "--image=nginx")

    def told() -> bool:
        sets = kubectl.json("get", "replicasets")["items"]
        conditions = [c for found in sets for c in found.get("status", {}).get("conditions") or ()]
        return any(c["type"] == "ReplicaFailure" and c["status"] == "True" and "failed quota: q" in c["message"] for c in conditions)

    eventually(told)
    eventually(lambda: "FailedCreate" in kubectl("get", "events"))
