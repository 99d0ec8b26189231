"""From a key to a working kubeconfig, by the real kubectl: request, approve, certificate, and what the user may then do."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from apiserver.pytest_plugin import SampanServer
from tests.e2e.conftest import Kubectl

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

Eventually = Callable[[Callable[[], Any]], Any]


def request(name: str, key: ec.EllipticCurvePrivateKey, common: str, organization: str, **spec: Any) -> str:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization), x509.NameAttribute(NameOID.COMMON_NAME, common)]
    asked = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(parts)).sign(key, hashes.SHA256())
    whole = {
        "request": base64.b64encode(asked.public_bytes(serialization.Encoding.PEM)).decode(),
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
        **spec,
    }
    return json.dumps(
        {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name}, "spec": whole}
    )


def test_a_request_becomes_a_working_kubeconfig(
    kubectl: Kubectl, sampan: SampanServer, sampan_namespace: str, tmp_path: Path, eventually: Eventually
) -> None:
    name = f"jane-{sampan_namespace}"
    key = ec.generate_private_key(ec.SECP256R1())
    kubectl("apply", "-f", "-", stdin=request(name, key, name, "devs", expirationSeconds=3600))
    assert "Pending" in kubectl("get", "csr", name)
    assert kubectl("certificate", "approve", name) == f"certificatesigningrequest.certificates.k8s.io/{name} approved\n"
    pem = base64.b64decode(eventually(lambda: kubectl("get", "csr", name, "-o", "jsonpath={.status.certificate}")))
    assert "Approved,Issued" in kubectl("get", "csr", name)
    assert "60m" in kubectl("get", "csr", name)

    (tmp_path / "jane.crt").write_bytes(pem)
    pkcs8, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (tmp_path / "jane.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, pkcs8, plain))
    config = tmp_path / "jane.kubeconfig"
    jane = Kubectl(config, sampan_namespace, tmp_path / "home")
    kubectl.run("config", "set-cluster", "sampan", f"--server={sampan.url}", f"--certificate-authority={sampan.ca_file}",
                "--embed-certs", KUBECONFIG=str(config))  # fmt: skip
    jane(
        "config",
        "set-credentials",
        "jane",
        f"--client-certificate={tmp_path}/jane.crt",
        f"--client-key={tmp_path}/jane.key",
        "--embed-certs",
    )
    jane("config", "set-context", "jane", "--cluster=sampan", "--user=jane", f"--namespace={sampan_namespace}")
    jane("config", "use-context", "jane")

    who = json.loads(jane("auth", "whoami", "-o", "json"))["status"]["userInfo"]
    assert (who["username"], who["groups"]) == (name, ["devs", "system:authenticated"])
    refused = jane.run("get", "configmaps", check=False)
    assert f'User "{name}" cannot list resource "configmaps"' in refused.stderr
    kubectl("create", "rolebinding", "devs", "--clusterrole=view", "--group=devs")
    assert "kube-root-ca.crt" in eventually(lambda: jane.run("get", "configmaps", check=False).stdout)
    assert jane.run("create", "configmap", "x", check=False).returncode != 0


def test_a_request_that_is_denied_or_wrong_gets_no_certificate(kubectl: Kubectl, sampan_namespace: str, eventually: Eventually) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    denied, wrong = f"denied-{sampan_namespace}", f"wrong-{sampan_namespace}"
    kubectl("apply", "-f", "-", stdin=request(denied, key, "joe", "devs"))
    assert kubectl("certificate", "deny", denied) == f"certificatesigningrequest.certificates.k8s.io/{denied} denied\n"
    assert "Denied" in kubectl("get", "csr", denied)
    # once decided it stays so
    refused = kubectl.run("certificate", "approve", denied, check=False)
    assert refused.returncode != 0
    # an approval of what the signer's rules do not allow ends as a failure that says why
    kubectl("apply", "-f", "-", stdin=request(wrong, key, "joe", "devs", usages=["client auth", "server auth"]))
    kubectl("certificate", "approve", wrong)
    failed = eventually(lambda: kubectl("get", "csr", wrong, "-o", "jsonpath={.status.conditions[?(@.type=='Failed')].message}"))
    assert failed == "invalid usage for client certificate: server auth"
    assert "Approved,Failed" in kubectl("get", "csr", wrong)
    # nobody gets into system:masters this way
    masters = kubectl.run("apply", "-f", "-", stdin=request(f"m-{sampan_namespace}", key, "joe", "system:masters"), check=False)
    assert "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed" in masters.stderr


def test_a_kubelets_request_is_approved_by_itself(kubectl: Kubectl, sampan_namespace: str, eventually: Eventually) -> None:
    """As kubeadm sets it up: bootstrappers may ask for any node's first certificate."""
    name, user = f"node-{sampan_namespace}", f"bootstrapper-{sampan_namespace}"
    kubectl("create", "clusterrolebinding", f"{user}-asks", "--clusterrole=system:node-bootstrapper", f"--user={user}")
    role = "system:certificates.k8s.io:certificatesigningrequests:nodeclient"
    kubectl("create", "clusterrolebinding", user, f"--clusterrole={role}", f"--user={user}")
    key = ec.generate_private_key(ec.SECP256R1())
    asked = request(
        name, key, "system:node:n", "system:nodes",
        signerName="kubernetes.io/kube-apiserver-client-kubelet", usages=["client auth", "digital signature"],
    )  # fmt: skip
    kubectl("create", "-f", "-", f"--as={user}", stdin=asked)
    assert eventually(lambda: "Approved,Issued" in kubectl("get", "csr", name))
    message = kubectl("get", "csr", name, "-o", "jsonpath={.status.conditions[0].message}")
    assert message == "Auto approving kubelet client certificate after SubjectAccessReview."
    kubectl("delete", "clusterrolebinding", user, f"{user}-asks")
