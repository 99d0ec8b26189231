"""What a new user types, with the real kubectl. Each test is one sitting in a namespace of its own."""

from __future__ import annotations

import json
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apiserver.pytest_plugin import SampanServer
from tests.e2e.conftest import Kubectl

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

EXAMPLES = Path(__file__).resolve().parents[2] / "manifests" / "examples"
Eventually = Callable[[Callable[[], Any]], Any]


def web(kubectl: Kubectl, replicas: int = 3) -> None:
    kubectl("create", "deployment", "web", "--image=nginx:1.25", f"--replicas={replicas}")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")


def test_what_the_server_says_of_itself(kubectl: Kubectl) -> None:
    version = kubectl.json("version")
    assert version["serverVersion"]["gitVersion"].startswith("v1.")
    assert "Kubernetes control plane" in kubectl("cluster-info")
    resources = kubectl("api-resources")
    for expected in ("deployments", "configmaps", "customresourcedefinitions", "rolebindings"):
        assert expected in resources
    assert {"v1", "apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1"} <= set(kubectl("api-versions").split())
    assert kubectl("get", "--raw", "/readyz") == "ok"
    assert "[+]ping ok" in kubectl("get", "--raw", "/livez?verbose")


def test_nodes_namespaces_and_pods_are_listed_with_the_usual_columns(kubectl: Kubectl, eventually: Eventually) -> None:
    eventually(lambda: kubectl("get", "nodes").count(" Ready ") >= 2)
    wide = kubectl("get", "nodes", "-o", "wide").splitlines()
    assert wide[0].split()[:4] == ["NAME", "STATUS", "ROLES", "AGE"]
    assert "INTERNAL-IP" in wide[0]
    namespaces = kubectl("get", "ns")
    for expected in ("default", "kube-system", "kube-public", "kube-node-lease"):
        assert expected in namespaces
    kubectl("get", "nodes,ns,pods", "-A", "-o", "wide")


def test_a_deployment_runs_scales_rolls_out_and_back(kubectl: Kubectl, eventually: Eventually) -> None:
    web(kubectl)
    shown = kubectl("get", "deploy,rs,pods")
    assert "3/3" in shown
    assert shown.count("Running") == 3
    kubectl("scale", "deployment/web", "--replicas=5")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert len(kubectl.json("get", "pods")["items"]) == 5
    kubectl("set", "image", "deployment/web", "nginx=nginx:1.26")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    history = kubectl("rollout", "history", "deployment/web")
    assert [line.split()[0] for line in history.splitlines() if line[:1].isdigit()] == ["1", "2"]
    kubectl("rollout", "undo", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    deployment = kubectl.json("get", "deployment", "web")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1.25"
    assert deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"
    kubectl("rollout", "restart", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")


def test_deleting_a_deployment_takes_its_pods(kubectl: Kubectl, eventually: Eventually) -> None:
    web(kubectl)
    kubectl("delete", "deployment", "web")
    eventually(lambda: not kubectl.json("get", "rs,pods")["items"])


def test_orphaned_pods_stay(kubectl: Kubectl, eventually: Eventually) -> None:
    web(kubectl, replicas=1)
    kubectl("delete", "deployment", "web", "--cascade=orphan")
    replica_set = kubectl.json("get", "rs")["items"][0]
    eventually(lambda: not kubectl.json("get", "rs")["items"][0]["metadata"].get("ownerReferences"))
    kubectl("delete", "rs", replica_set["metadata"]["name"], "--cascade=foreground")
    assert not kubectl.json("get", "pods")["items"]


def test_describe_tells_the_story(kubectl: Kubectl, eventually: Eventually) -> None:
    web(kubectl)
    assert "ScalingReplicaSet" in kubectl("describe", "deployment", "web")
    pod = kubectl.json("get", "pods")["items"][0]
    eventually(lambda: "Started" in kubectl("describe", "pod", pod["metadata"]["name"]))
    described = kubectl("describe", "pod", pod["metadata"]["name"])
    assert "Scheduled" in described
    assert "Allocatable:" in kubectl("describe", "node", pod["spec"]["nodeName"])
    events = kubectl("get", "events")
    assert "SuccessfulCreate" in events


def test_labels_annotations_patches_and_edits(kubectl: Kubectl, tmp_path: Path) -> None:
    web(kubectl, replicas=1)
    kubectl("label", "deployment", "web", "tier=front")
    kubectl("annotate", "deployment", "web", "note=a b")
    assert "web" in kubectl("get", "deploy", "-l", "tier=front", "-o", "name")
    assert not kubectl("get", "deploy", "-l", "tier!=front", "-o", "name")
    with_tty = {"spec": {"template": {"spec": {"containers": [{"name": "nginx", "tty": True}]}}}}
    kubectl("patch", "deployment", "web", "--type=strategic", "-p", json.dumps(with_tty))
    kubectl("patch", "deployment", "web", "--type=merge", "-p", '{"metadata":{"labels":{"tier":null}}}')
    kubectl("patch", "deployment", "web", "--type=json", "-p", '[{"op":"replace","path":"/spec/replicas","value":2}]')
    deployment = kubectl.json("get", "deployment", "web")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["tty"] is True
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1.25"
    assert "tier" not in deployment["metadata"]["labels"]
    assert deployment["spec"]["replicas"] == 2
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i "s/replicas: 2/replicas: 1/" "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    kubectl.run("edit", "deployment", "web", EDITOR=str(editor), KUBE_EDITOR=str(editor))
    assert kubectl.json("get", "deployment", "web")["spec"]["replicas"] == 1


def test_apply_is_idempotent_and_diff_sees_changes(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", str(EXAMPLES))
    again = kubectl("apply", "-f", str(EXAMPLES)).splitlines()
    assert again
    assert all(line.endswith("unchanged") for line in again), again
    kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=60s")
    changed = (EXAMPLES / "web.yaml").read_text().replace("nginx:1.25", "nginx:1.27")
    diff = kubectl.run("diff", "-f", "-", stdin=changed, check=False)
    assert diff.returncode == 1, diff.stderr
    assert "+        image: nginx:1.27" in diff.stdout.replace("\t", " ") or "nginx:1.27" in diff.stdout
    kubectl.run("apply", "-f", "-", stdin=changed)
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")


def test_server_side_apply_owns_fields(kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "-f", str(EXAMPLES))
    kubectl("apply", "--server-side", "-f", str(EXAMPLES))
    changed = (EXAMPLES / "web.yaml").read_text().replace("greeting: hello", "greeting: hi")
    refused = kubectl.run("apply", "--server-side", "--field-manager=other", "-f", "-", stdin=changed, check=False)
    assert refused.returncode != 0
    assert ".data.greeting" in refused.stderr
    kubectl.run("apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-", stdin=changed)
    assert kubectl.json("get", "configmap", "web-config")["data"] == {"greeting": "hi"}


def test_watching_shows_changes_in_order(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "c", "--from-literal=n=0")
    with kubectl.start("get", "configmap", "c", "-w", "-o", "jsonpath={.data.n}{'\\n'}") as watching:
        assert watching.stdout is not None
        try:
            seen = [watching.stdout.readline().strip()]
            for number in range(1, 6):
                kubectl("patch", "configmap", "c", "-p", json.dumps({"data": {"n": str(number)}}))
            seen += [watching.stdout.readline().strip() for _ in range(5)]
        finally:
            watching.terminate()
    assert seen == ["0", "1", "2", "3", "4", "5"]


def test_explain_reads_the_published_schemas(kubectl: Kubectl) -> None:
    explained = kubectl("explain", "deployment.spec.strategy", "--recursive")
    assert "rollingUpdate" in explained
    assert "maxSurge" in explained
    assert "Number of desired pods" in kubectl("explain", "deployment.spec.replicas")


def test_what_may_i_do(kubectl: Kubectl) -> None:
    assert "*.*" in kubectl("auth", "can-i", "--list")
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    refused = kubectl.run("auth", "can-i", "create", "pods", "--as=somebody", check=False)
    assert refused.stdout.strip() == "no"
    kubectl("create", "serviceaccount", "robot")
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods")
    kubectl("create", "rolebinding", "robot-reads", "--role=reader", f"--serviceaccount={kubectl.namespace}:robot")
    robot = f"--as=system:serviceaccount:{kubectl.namespace}:robot"
    assert kubectl("auth", "can-i", "list", "pods", robot).strip() == "yes"
    assert kubectl.run("auth", "can-i", "delete", "pods", robot, check=False).stdout.strip() == "no"
    if "selfsubjectreviews" in kubectl("api-resources", "--api-group=authentication.k8s.io"):  # from 1.28 on
        assert "system:serviceaccount" in kubectl("auth", "whoami", robot)
    assert kubectl("create", "token", "robot").count(".") == 2


def test_things_made_by_create_and_expose(kubectl: Kubectl, eventually: Eventually) -> None:
    kubectl("create", "configmap", "settings", "--from-literal=a=1")
    kubectl("create", "secret", "generic", "password", "--from-literal=p=s3cret")
    assert kubectl("get", "secret", "password", "-o", "jsonpath={.data.p}") == "czNjcmV0"
    kubectl("create", "job", "once", "--image=busybox", "--", "true")
    kubectl("wait", "--for=condition=Complete", "job/once", "--timeout=60s")
    web(kubectl, replicas=2)
    kubectl("expose", "deployment", "web", "--port=80")
    assert kubectl("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}").startswith("10.")
    addresses = ("-l", "kubernetes.io/service-name=web", "-o", "jsonpath={.items[*].endpoints[*].addresses[0]}")
    eventually(lambda: len(kubectl("get", "endpointslices", *addresses).split()) == 2)
    kubectl("create", "service", "nodeport", "np", "--tcp=80:80")
    assert 30000 <= int(kubectl("get", "service", "np", "-o", "jsonpath={.spec.ports[0].nodePort}")) <= 32767


def test_ranges_and_addresses_of_services_are_objects(kubectl: Kubectl) -> None:
    assert "10.96.0.0/12" in kubectl("get", "servicecidrs")
    kubectl("create", "service", "clusterip", "ci", "--tcp=80:80")
    ip = kubectl("get", "service", "ci", "-o", "jsonpath={.spec.clusterIP}")
    shown = kubectl("get", "ipaddresses,servicecidrs")
    assert "services/default/kubernetes" in shown
    [line] = [line for line in shown.splitlines() if line.startswith(f"ipaddress.networking.k8s.io/{ip} ")]
    assert line.split()[1] == f"services/{kubectl.namespace}/ci"
    kubectl("delete", "service", "ci")
    assert f"services/{kubectl.namespace}/ci" not in kubectl("get", "ipaddresses")


def test_output_forms(kubectl: Kubectl) -> None:
    for number in range(7):
        kubectl("create", "configmap", f"c{number}", f"--from-literal=n={number}")
    names = [f"c{number}" for number in range(7)]
    listed = kubectl("get", "configmaps", "-o", "custom-columns=N:.metadata.name", "--no-headers", "--chunk-size=2").split()
    assert [name for name in listed if name.startswith("c")] == names
    assert "kind: ConfigMap" in kubectl("get", "configmap", "c1", "-o", "yaml")
    assert kubectl("get", "configmap", "c1", "-o", "jsonpath={.data.n}") == "1"
    assert kubectl("get", "configmap", "-o", "name", "--field-selector=metadata.name=c3").split() == ["configmap/c3"]
    assert kubectl("get", "--raw", f"/api/v1/namespaces/{kubectl.namespace}/configmaps/c1").startswith("{")


def test_a_namespace_is_deleted_with_all_in_it(kubectl: Kubectl) -> None:
    web(kubectl)
    kubectl("create", "configmap", "c", "--from-literal=n=0")
    kubectl("delete", "ns", kubectl.namespace, "--timeout=60s")
    refused = kubectl.run("get", "ns", kubectl.namespace, check=False)
    assert "NotFound" in refused.stderr
    kubectl("create", "ns", kubectl.namespace)
    assert not kubectl.json("get", "deployments,pods,secrets")["items"]


def test_errors_are_kubernetes_words(kubectl: Kubectl) -> None:
    missing = kubectl.run("get", "pod", "nothing", check=False)
    assert 'pods "nothing" not found' in missing.stderr
    unknown = kubectl.run("get", "bogus", check=False)
    assert "the server doesn't have a resource type" in unknown.stderr
    wrong = kubectl.run("create", "-f", "-", stdin='{"apiVersion":"v1","kind":"Pod","metadata":{"name":"A_"},"spec":{}}', check=False)
    assert "spec.containers: Required value" in wrong.stderr
    strict = kubectl.run("create", "-f", "-", stdin='{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"dada":{}}', check=False)
    assert 'unknown field "dada"' in strict.stderr
    kubectl("create", "configmap", "c")
    again = kubectl.run("create", "configmap", "c", check=False)
    assert "already exists" in again.stderr


def test_logs_and_exec_say_why_there_are_none(kubectl: Kubectl) -> None:
    web(kubectl, replicas=1)
    pod = kubectl.json("get", "pods")["items"][0]["metadata"]["name"]
    for refused in (kubectl.run("logs", pod, check=False), kubectl.run("exec", pod, "--", "ls", check=False)):
        assert refused.returncode != 0
        assert "no container" in refused.stderr.lower() or "hollow" in refused.stderr.lower(), refused.stderr


@pytest.fixture
def own_node(sampan: SampanServer, kubectl: Kubectl, eventually: Eventually) -> Any:
    """A hollow node of the test's own, in a process of its own, so that others keep theirs."""
    process = subprocess.Popen(_node_command(sampan, "spare"), stdin=subprocess.DEVNULL)
    try:
        eventually(lambda: " Ready" in kubectl.run("get", "node", "spare", check=False).stdout)
        yield process
    finally:
        process.kill()
        process.wait()
        kubectl.run("delete", "node", "spare", check=False)


def _node_command(sampan: SampanServer, name: str) -> list[str]:
    import sys

    return [sys.executable, "-m", "apiserver.cli.main", "node", name, "--data-dir", str(sampan.kubeconfig.parent)]


def test_cordon_drain_and_uncordon(kubectl: Kubectl, own_node: Any, eventually: Eventually) -> None:
    kubectl("cordon", "spare")
    assert "SchedulingDisabled" in kubectl("get", "node", "spare")
    kubectl("uncordon", "spare")
    manifest = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "here"},
        "spec": {"nodeSelector": {"kubernetes.io/hostname": "spare"}, "containers": [{"name": "c", "image": "i"}]},
    }  # fmt: skip
    kubectl("create", "-f", "-", stdin=json.dumps(manifest))
    kubectl("wait", "--for=condition=Ready", "pod/here", "--timeout=60s")
    kubectl("drain", "spare", "--force", "--ignore-daemonsets", "--timeout=60s")
    assert "here" not in kubectl("get", "pods")
    kubectl("uncordon", "spare")
    assert "SchedulingDisabled" not in kubectl("get", "node", "spare")


def test_an_approved_certificate_lets_its_owner_in(kubectl: Kubectl, sampan: SampanServer, tmp_path: Path, eventually: Eventually) -> None:
    import base64

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "dev"), x509.NameAttribute(NameOID.COMMON_NAME, "joe")])
    asked = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    spec = {
        "request": base64.b64encode(asked.public_bytes(serialization.Encoding.PEM)).decode(),
        "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"],
    }  # fmt: skip
    manifest = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "joe"}, "spec": spec}
    kubectl("create", "-f", "-", stdin=json.dumps(manifest))
    try:
        assert "Pending" in kubectl("get", "csr", "joe")
        kubectl("certificate", "approve", "joe")
        eventually(lambda: "Approved,Issued" in kubectl("get", "csr", "joe"))
        issued = base64.b64decode(kubectl("get", "csr", "joe", "-o", "jsonpath={.status.certificate}"))
    finally:
        kubectl("delete", "csr", "joe")
    (tmp_path / "joe.crt").write_bytes(issued)
    (tmp_path / "joe.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    as_joe = (
        "--kubeconfig=/dev/null", f"--server={sampan.url}", f"--certificate-authority={sampan.ca_file}",
        f"--client-certificate={tmp_path / 'joe.crt'}", f"--client-key={tmp_path / 'joe.key'}",
    )  # fmt: skip
    refused = kubectl.run("get", "pods", *as_joe, check=False)
    assert 'User "joe" cannot list resource "pods"' in refused.stderr


def test_a_rollout_pauses_resumes_restarts_and_returns(kubectl: Kubectl, eventually: Eventually) -> None:
    web(kubectl, replicas=2)
    kubectl("rollout", "pause", "deployment/web")
    kubectl("set", "image", "deployment/web", "nginx=nginx:1.26")
    kubectl("set", "env", "deployment/web", "A=b")
    kubectl("set", "resources", "deployment/web", "--limits=cpu=200m")
    assert "already paused" in kubectl.run("rollout", "pause", "deployment/web", check=False).stderr
    assert len(kubectl.json("get", "replicasets")["items"]) == 1
    kubectl("rollout", "resume", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    kubectl("rollout", "restart", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    kubectl("rollout", "undo", "deployment/web", "--to-revision=1")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    container = kubectl.json("get", "deployment", "web")["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "nginx:1.25" and "env" not in container
    missing = kubectl.run("rollout", "undo", "deployment/web", "--to-revision=77", check=False)
    assert "unable to find specified revision 77" in missing.stderr
    kubectl("autoscale", "deployment", "web", "--min=1", "--max=3", "--cpu-percent=50")
    assert "<unknown>/50%" in kubectl("get", "hpa", "web")


def test_debugging_a_pod_ends_with_the_reason_why_it_cannot(kubectl: Kubectl) -> None:
    kubectl("run", "one", "--image=nginx")
    kubectl("wait", "--for=condition=Ready", "pod/one", "--timeout=60s")
    refused = kubectl.run("debug", "one", "-it", "--image=busybox", "--container=shell", "--", "sh", check=False)
    assert refused.returncode != 0 and "hollow" in refused.stderr
    (state,) = kubectl.json("get", "pod", "one")["status"]["ephemeralContainerStatuses"]
    assert state["name"] == "shell" and "running" in state["state"]
    wrong = kubectl.run("exec", "one", "-c", "nope", "--", "ls", check=False)
    assert "container nope is not valid for pod one" in wrong.stderr


def test_prune_force_and_dry_run(kubectl: Kubectl, tmp_path: Path) -> None:
    one, two = ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": n, "labels": {"set": "p"}}} for n in ("one", "two"))
    (tmp_path / "a.json").write_text(json.dumps(one))
    (tmp_path / "b.json").write_text(json.dumps(two))
    kubectl("apply", "-f", str(tmp_path), "--prune", "-l", "set=p")
    (tmp_path / "b.json").unlink()
    assert "configmap/two pruned" in kubectl("apply", "-f", str(tmp_path), "--prune", "-l", "set=p")
    uid = kubectl("get", "configmap", "one", "-o", "jsonpath={.metadata.uid}")
    kubectl("replace", "--force", "-f", str(tmp_path / "a.json"))
    assert kubectl("get", "configmap", "one", "-o", "jsonpath={.metadata.uid}") != uid
    assert "(server dry run)" in kubectl("delete", "configmap", "one", "--dry-run=server")
    assert "server dry run" in kubectl("create", "deployment", "x", "--image=i", "--dry-run=server")
    assert "NotFound" in kubectl.run("get", "deployment", "x", check=False).stderr
    kubectl("run", "gone", "--image=nginx")
    assert "force deleted" in kubectl("delete", "pod", "gone", "--grace-period=0", "--force", "--wait=false")
    assert "Metrics API not available" in kubectl.run("top", "pods", check=False).stderr
