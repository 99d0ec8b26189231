"""Programs as their authors write them, on a custom resource of two versions with a conversion webhook and admission webhooks, whose
server is started again while they work: an operator in kopf, a client in kr8s, and a controller with leader election and finalizers."""

from __future__ import annotations

import base64
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

ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def convert(obj: dict[str, Any], api_version: str) -> dict[str, Any]:
    """``spec.old`` in v1 is ``spec.new`` in v2."""
    before, after = ("old", "new") if api_version.endswith("v2") else ("new", "old")
    spec = dict(obj.get("spec") or {})
    if before in spec:
        spec[after] = spec.pop(before)
    return {**obj, "apiVersion": api_version, "spec": spec}


class Webhooks(http.server.BaseHTTPRequestHandler):
    """Converts; sets a label; refuses what is ``bad``. A connection for each, so that none is left when the server stops."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = review["request"]
        response: dict[str, Any] = {"uid": asked["uid"]}
        if self.path.startswith("/convert"):
            objects = [convert(obj, asked["desiredAPIVersion"]) for obj in asked["objects"]]
            response |= {"result": {"status": "Success"}, "convertedObjects": objects}
        elif self.path.startswith("/mutate"):
            labels = {**(asked["object"]["metadata"].get("labels") or {}), "seen": "yes"}
            patch = json.dumps([{"op": "add", "path": "/metadata/labels", "value": labels}]).encode()
            response |= {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(patch).decode()}
        else:
            bad = asked["object"]["spec"].get("new") == "bad"  # whatever the version of the request: this webhook is asked at v2
            response |= {"allowed": not bad, "status": {"message": "bad is not allowed"}}
        body = json.dumps({"kind": review["kind"], "apiVersion": review["apiVersion"], "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Not on the terminal."""


@contextlib.contextmanager
def webhooks(port: int) -> Iterator[None]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Webhooks)
    server.socket = AUTHORITY.context().wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def install(kubectl: Any, group: str, port: int) -> None:
    def schema(field: str) -> dict[str, Any]:
        spec = {"type": "object", "properties": {field: {"type": "string"}}}
        return {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": ANYTHING}}}

    versions = [
        {"name": v, "served": True, "storage": v == "v1", "schema": schema(f), "subresources": {"status": {}}}
        for v, f in (("v1", "old"), ("v2", "new"))
    ]

    def config(path: str) -> dict[str, Any]:
        return {"url": f"https://127.0.0.1:{port}/{path}", "caBundle": AUTHORITY.bundle}

    conversion = {"strategy": "Webhook", "webhook": {"clientConfig": config("convert"), "conversionReviewVersions": ["v1"]}}
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": versions, "conversion": conversion}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    kubectl("apply", "-f", "-", stdin=json.dumps({**crd, "metadata": {"name": f"widgets.{group}"}, "spec": spec}))
    rule = {"apiGroups": [group], "apiVersions": ["v2"], "resources": ["widgets"], "operations": ["CREATE", "UPDATE"]}
    for kind, path in (("MutatingWebhookConfiguration", "mutate"), ("ValidatingWebhookConfiguration", "validate")):
        hook = {"name": f"{path}.{group}", "clientConfig": config(path), "rules": [rule], "matchPolicy": "Equivalent"}
        hook |= {"admissionReviewVersions": ["v1"], "sideEffects": "None"}
        head = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": group}}
        kubectl("apply", "-f", "-", stdin=json.dumps({**head, "webhooks": [hook]}))
    kubectl("wait", "--for=condition=Established", f"crd/widgets.{group}", "--timeout=30s")


KOPF = """
import kopf


@kopf.on.startup()
def configure(settings, **_):
    settings.persistence.finalizer = "{group}/kopf"


@kopf.on.create("{group}", "v2", "widgets")
@kopf.on.update("{group}", "v2", "widgets", field="spec.new")
def handle(spec, patch, **_):
    patch.status["handled"] = spec["new"]


@kopf.on.delete("{group}", "v2", "widgets")
def forget(**_):
    pass
"""

CONTROLLER = """
import os, sys, threading, time, uuid

from kubernetes import client, config, watch
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock

GROUP, NAMESPACE, FINALIZER = sys.argv[1], sys.argv[2], "controller.example.com/done"
config.load_kube_config()
custom, core = client.CustomObjectsApi(), client.CoreV1Api()
where = (GROUP, "v1", NAMESPACE, "widgets")


def reconcile(widget):
    name, meta = widget["metadata"]["name"], widget["metadata"]
    finalizers = meta.get("finalizers") or []
    if meta.get("deletionTimestamp"):
        if FINALIZER in finalizers:
            body = {{"metadata": {{"finalizers": [f for f in finalizers if f != FINALIZER], "resourceVersion": meta["resourceVersion"]}}}}
            custom.patch_namespaced_custom_object(*where, name, body)
        return
    if FINALIZER not in finalizers:
        body = {{"metadata": {{"finalizers": [*finalizers, FINALIZER], "resourceVersion": meta["resourceVersion"]}}}}
        custom.patch_namespaced_custom_object(*where, name, body)
        return
    owner = {{"apiVersion": widget["apiVersion"], "kind": "Widget", "name": name, "uid": meta["uid"], "controller": True}}
    child = {{"metadata": {{"name": "of-" + name, "ownerReferences": [owner]}}, "data": {{"old": widget["spec"]["old"]}}}}
    try:
        core.create_namespaced_config_map(NAMESPACE, child)
    except client.ApiException as error:
        if error.status != 409:
            raise
        core.patch_namespaced_config_map("of-" + name, NAMESPACE, {{"data": child["data"]}})
    if (widget.get("status") or {{}}).get("copied") != widget["spec"]["old"]:
        custom.patch_namespaced_custom_object_status(*where, name, {{"status": {{"copied": widget["spec"]["old"]}}}})


def lead():
    while True:
        try:
            listed = custom.list_namespaced_custom_object(*where)
            for widget in listed["items"]:
                reconcile(widget)
            since = listed["metadata"]["resourceVersion"]
            for event in watch.Watch().stream(
                custom.list_namespaced_custom_object, *where, resource_version=since, timeout_seconds=20
            ):
                if event["type"] in ("ADDED", "MODIFIED"):
                    reconcile(event["object"])
        except Exception as error:  # conflicts, webhooks that are away: list again
            print("again:", str(error)[:300], flush=True)
            time.sleep(0.2)


lock = ConfigMapLock("leader", NAMESPACE, str(uuid.uuid4()))
leaderelection.LeaderElection(
    electionconfig.Config(lock, lease_duration=5, renew_deadline=4, retry_period=1, onstarted_leading=lead, onstopped_leading=None)
).run()
"""


@contextlib.contextmanager
def program(directory: Path, name: str, sampan: SampanServer, *command: str) -> Iterator[None]:
    with (directory / f"{name}.log").open("wb") as log:
        running = subprocess.Popen(
            [sys.executable, *command],
            env=dict(os.environ, KUBECONFIG=str(sampan.kubeconfig)), cwd=directory, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield
        assert running.poll() is None, (directory / f"{name}.log").read_text()
    finally:
        running.terminate()
        running.wait(30)


def test_operators_work_while_the_webhooks_are_started_again(sampan: SampanServer, tmp_path: Path, kubectl: Any, eventually: Any) -> None:
    namespace = kubectl.namespace
    group = f"{namespace}.operators.test"
    port = free_port()
    (tmp_path / "widgets_operator.py").write_text(KOPF.format(group=group))
    (tmp_path / "controller.py").write_text(CONTROLLER.format())

    def widget(name: str, version: str, **spec: str) -> str:
        return json.dumps({"apiVersion": f"{group}/{version}", "kind": "Widget", "metadata": {"name": name}, "spec": spec})

    def status(name: str) -> dict[str, Any]:
        return kubectl.json("get", f"widgets.v1.{group}", name).get("status") or {}

    def done(name: str, value: str) -> bool:
        found = status(name)
        return found.get("handled") == value and found.get("copied") == value

    kopf = ("-m", "kopf", "run", "--namespace", namespace, "--standalone", "widgets_operator.py")
    try:
        with (
            contextlib.ExitStack() as first,
            program(tmp_path, "kopf", sampan, *kopf),
            program(tmp_path, "controller", sampan, "controller.py", group, namespace),
        ):
            first.enter_context(webhooks(port))
            install(kubectl, group, port)
            kubectl("create", "-f", "-", stdin=widget("a", "v1", old="1"))
            kubectl("create", "-f", "-", stdin=widget("b", "v2", new="2"))
            eventually(lambda: done("a", "1") and done("b", "2"))
            refused = kubectl.run("create", "-f", "-", stdin=widget("c", "v1", old="bad"), check=False)
            assert f'admission webhook "validate.{group}" denied the request: bad is not allowed' in refused.stderr
            assert kubectl.json("get", f"widgets.v2.{group}", "a")["metadata"]["labels"] == {"seen": "yes"}
            first.close()
            written = kubectl.run("patch", f"widgets.v1.{group}", "a", "--type=merge", "-p", '{"spec":{"old":"3"}}', check=False)
            assert written.returncode == 1 and "connection refused" in written.stderr
            with webhooks(port):
                kubectl("patch", f"widgets.v1.{group}", "a", "--type=merge", "-p", '{"spec":{"old":"3"}}')
                eventually(lambda: done("a", "3"))
                assert kubectl.json("get", "configmap", "of-a")["data"] == {"old": "3"}
                _kr8s(sampan, namespace, group)
                kubectl("delete", f"widgets.v2.{group}", "a", "b", "--wait=false")
                eventually(lambda: not kubectl.json("get", f"widgets.v1.{group}")["items"])
                eventually(lambda: kubectl.run("get", "configmap", "of-a", check=False).returncode == 1)
    finally:
        for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
            kubectl("delete", kind, group, "--ignore-not-found")
        kubectl("delete", f"crd/widgets.{group}", "--wait=false", "--ignore-not-found")


def _kr8s(sampan: SampanServer, namespace: str, group: str) -> None:
    """A client of v2 sees, and changes, what was written at v1."""
    import kr8s
    from kr8s.objects import new_class

    api = kr8s.api(kubeconfig=str(sampan.kubeconfig), namespace=namespace)
    made = new_class("Widget", f"{group}/v2", namespaced=True, plural="widgets")
    found = made.get("a", namespace=namespace, api=api)
    assert found.raw["spec"] == {"new": "3"}
    found.patch({"metadata": {"annotations": {"by": "kr8s"}}})
    assert made.get("a", namespace=namespace, api=api).raw["metadata"]["annotations"]["by"] == "kr8s"
