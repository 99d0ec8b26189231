"""The real kubectl's table of commands on servers of several Kubernetes versions, one server each."""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.kubectl_table import GROUPS, MANIFESTS
from tests.e2e.server_process import ServerProcess

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

#: the newest in every run, the others in long ones (README): a run of the table takes half a minute of processor
VERSIONS = (pytest.param("1.25", marks=pytest.mark.long), pytest.param("1.32", marks=pytest.mark.long), "1.37")
#: another kubectl than that of the PATH, to run the table with by hand
KUBECTL = os.environ.get("SAMPAN_TEST_KUBECTL", "kubectl")
CALL_SECONDS_MAX = 120
NODE = "node-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    arguments: str
    pattern: str
    succeeds: bool
    manifest: str = ""
    since: int = 0
    client_since: int = 0


def lines(group: str) -> Iterator[Line]:
    for text in group.splitlines():
        if not text or text.startswith("#"):
            continue
        command, mark, pattern = re.split(r" ([|!]) ", text, maxsplit=1)
        wanted = re.match(r"(?:\[1\.(\d+)\] )?(?:\(1\.(\d+)\) )?", command)
        assert wanted is not None, "an empty text matches too"
        arguments, _, manifest = command[wanted.end() :].partition(" < ")
        yield Line(
            arguments=arguments, pattern=pattern, succeeds=mark == "|", manifest=manifest,
            since=int(wanted[1] or 0), client_since=int(wanted[2] or 0),
        )  # fmt: skip


def _minor_of_kubectl() -> int:
    told = subprocess.run([KUBECTL, "version", "--client", "-o", "json"], capture_output=True, check=True).stdout
    return int(json.loads(told)["clientVersion"]["minor"].rstrip("+"))


class Cluster:
    def __init__(self, version: str, directory: Path) -> None:
        self.version = version
        self.minor = int(version.partition(".")[2])
        self.client_minor = _minor_of_kubectl()
        self.server = ServerProcess(directory, "--kubernetes-version", version, "--nodes", "1")
        self._home = directory / "home"
        editor = directory / "editor.sh"
        editor.write_text('#!/bin/sh\nsed -i "s/a: \\"1\\"/a: \\"3\\"/" "$1"\n')
        editor.chmod(0o755)
        self._environment = dict(os.environ, HOME=str(self._home), KUBE_EDITOR=str(editor), KUBECONFIG=str(self.server.kubeconfig))
        kustomization = directory / "kustomization"
        kustomization.mkdir()
        (kustomization / "kustomization.yaml").write_text("configMapGenerator: [{name: made, literals: [a=b]}]\n")
        self.words = {"version": version, "node": NODE, "kustomization": str(kustomization)}

    def run(self, *arguments: str, namespace: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [KUBECTL, "--namespace", namespace, *arguments], input=stdin, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=CALL_SECONDS_MAX, env=self._environment,
        )  # fmt: skip

    def check(self, line: Line, namespace: str, directory: Path) -> str:
        """ "" or what is wrong."""
        words = {**self.words, "ns": namespace, "tmp": str(directory), "url": f"https://127.0.0.1:{self.server.port}"}

        def filled(text: str) -> str:
            return re.sub(r"\{(\w+)\}", lambda found: words.get(found[1], found[0]), text)

        # JSON and templates keep their quotes; blanks inside of an argument are written as underscores
        arguments = [a.replace("_", " ") if a.startswith("--schedule=") else a for a in filled(line.arguments).split(" ")]
        manifest = MANIFESTS[line.manifest] if line.manifest else None
        done = self.run(*arguments, namespace=namespace, stdin=manifest)
        if (done.returncode == 0) != line.succeeds or not re.search(filled(line.pattern), done.stdout):
            return f"kubectl {shlex.join(arguments)}: exit {done.returncode}, wanted {line.pattern}\n{done.stdout[:2000]}"
        return ""


@pytest.fixture(scope="module", params=VERSIONS)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if shutil.which(KUBECTL) is None:
        pytest.fail("these tests need the real kubectl on the PATH")
    found = Cluster(str(request.param), tmp_path_factory.mktemp(f"kubectl-{request.param}"))
    found.server.start()
    try:
        yield found
    finally:
        found.server.stop()


@pytest.mark.parametrize("group", GROUPS)
def test_commands(cluster: Cluster, group: str, tmp_path: Path) -> None:
    cluster.run("create", "namespace", group, namespace="default")
    known = [line for line in lines(GROUPS[group]) if line.since <= cluster.minor and line.client_since <= cluster.client_minor]
    wrong = [told for line in known if (told := cluster.check(line, group, tmp_path))]
    assert not wrong, "\n".join(wrong)


def test_every_kind_is_listed_wide_and_by_the_columns_that_its_table_has(cluster: Cluster) -> None:
    resources = cluster.run("api-resources", "--verbs=list", "-o", "name", namespace="default").stdout.split()
    assert len(resources) > 40
    listed = cluster.run("get", ",".join(resources), "-A", "-o", "wide", "--show-kind", namespace="default")
    assert listed.returncode == 0, listed.stdout[-2000:]
    headers = [line for line in listed.stdout.splitlines() if re.match(r"(NAMESPACE +)?(NAME|LAST SEEN) ", line)]
    shown = " ".join(headers)
    for column in ("NOMINATED NODE", "READINESS GATES", "CONTAINER-RUNTIME", "SELECTOR", "SUBOBJECT", "HOLDER", "CREATED AT"):
        assert column in shown, column


def test_every_field_of_every_kind_is_explained(cluster: Cluster) -> None:
    """Recursively, for the kinds with the largest and the oddest schemas; the others are walked in process."""
    for resource in ("pods", "customresourcedefinitions", "statefulsets", "flowschemas", "events"):
        told = cluster.run("explain", resource, "--recursive", namespace="default")
        assert told.returncode == 0, told.stdout
        assert "FIELDS:" in told.stdout and "metadata" in told.stdout


def test_certificates_are_approved_and_denied(cluster: Cluster) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    asked = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "joe")]))
    pem = asked.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    spec = {"request": base64.b64encode(pem).decode(), "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}
    for name, decision, word in (("good", "approve", "Approved"), ("bad", "deny", "Denied")):
        manifest = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name}, "spec": spec}
        assert cluster.run("create", "-f", "-", namespace="default", stdin=json.dumps(manifest)).returncode == 0
        assert "Pending" in cluster.run("get", "csr", name, namespace="default").stdout
        assert cluster.run("certificate", decision, name, namespace="default").returncode == 0
        assert word in cluster.run("get", "csr", name, namespace="default").stdout
    assert "Denied" in cluster.run("describe", "csr", "bad", namespace="default").stdout


def test_a_proxy_passes_requests_on(cluster: Cluster) -> None:
    import urllib.request

    with subprocess.Popen([KUBECTL, "proxy", "--port=0"], stdout=subprocess.PIPE, text=True, env=cluster._environment) as proxy:
        try:
            assert proxy.stdout is not None
            told = proxy.stdout.readline()
            address = told.rpartition(" ")[2].strip()
            with urllib.request.urlopen(f"http://{address}/api/v1/namespaces/default", timeout=30) as answer:
                assert json.loads(answer.read())["metadata"]["name"] == "default"
        finally:
            proxy.terminate()
