"""NodeRestriction, the certificate plugins and the chain."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from apiserver.admission import chain
from apiserver.admission.build import build_admission_chain
from apiserver.admission.interfaces import Operation
from apiserver.admission.plugins.certificates import CertificateApproval, CertificateSigning, CertificateSubjectRestriction
from apiserver.admission.plugins.node_restriction import NodeRestriction
from apiserver.admission.plugins.privilege_escalation import PrivilegeEscalation
from apiserver.authentication.user import UserInfo
from apiserver.authorization.authorizer import Attributes, Decision
from apiserver.authorization.rbac import RbacAuthorizer
from apiserver.authorization.rbac_data import RbacData
from apiserver.authorization.static import AlwaysAllow
from apiserver.machinery.status import StatusError
from tests.fakes.admission import pod, request, run
from tests.fakes.object_getter import FakeObjects
from tests.fakes.webhooks import FakeWebhookWorld

NODE = UserInfo(name="system:node:n1", groups=("system:nodes", "system:authenticated"))


class Role:
    """Lets nodes ask for one audience, for one account."""

    def authorize(self, asked: Attributes) -> tuple[Decision, str]:
        found = (asked.verb, asked.group, asked.resource, asked.namespace, asked.name)
        allowed = ("request-serviceaccounts-token-audience", "", "registry.example", "ns", "robot")
        return (Decision.ALLOW if found == allowed else Decision.NO_OPINION), ""


def world() -> FakeObjects:
    objects = FakeObjects()
    objects.add("", "nodes", "n1")
    volumes = [
        {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}, {"serviceAccountToken": {"audience": "vault"}}]}},
        {"name": "inline", "csi": {"driver": "inline.example"}},
        {"name": "claimed", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "e", "ephemeral": {}},
    ]
    objects.add("", "pods", "mine", "ns", spec={"nodeName": "n1", "volumes": volumes})
    for kind in ("inline", "claimed", "ephemeral"):
        objects.add("storage.k8s.io", "csidrivers", f"{kind}.example", spec={"tokenRequests": [{"audience": f"{kind}-audience"}]})
    for claim, driver in (("c", "claimed.example"), ("mine-e", "ephemeral.example")):
        objects.add("", "persistentvolumeclaims", claim, "ns", spec={"volumeName": f"pv-{claim}"})
        objects.add("", "persistentvolumes", f"pv-{claim}", spec={"csi": {"driver": driver}})
    objects.add("", "pods", "other", "ns", spec={"nodeName": "n2"})
    return objects


async def refusal(resource: str, obj: Any, **more: Any) -> str:
    """ "" where a node may."""
    try:
        await run(NodeRestriction(world(), Role()), request(resource, obj, user=NODE, **more))
    except StatusError as error:
        return error.message
    return ""


def mirror(**change: Any) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "uid-n1", "controller": True} | change.pop("owner", {})
    made = pod("m", nodeName="n1", **change)
    made["metadata"] |= {"annotations": {"kubernetes.io/config.mirror": "x"}, "ownerReferences": [owner]}
    return made


NODE_OBJECT = {"metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "n1", "mine": "x"}}}


def labelled(**labels: str) -> dict[str, Any]:
    return {"metadata": {"name": "n1", "labels": {k.replace("__", "/").replace("_", "."): v for k, v in labels.items()}}}


ALLOWED: list[tuple[str, Any, dict[str, Any]]] = [
    ("nodes", NODE_OBJECT, {"namespace": ""}),
    ("nodes", labelled(kubelet_kubernetes_io__x="1"), {"namespace": "", "old": NODE_OBJECT | {"metadata": {"name": "n1"}}}),
    ("nodes", NODE_OBJECT, {"namespace": "", "old": NODE_OBJECT, "subresource": "status"}),
    ("pods", mirror(), {}),
    ("pods", None, {"name": "mine"}),
    ("pods", pod("mine"), {"old": pod("mine", nodeName="n1"), "subresource": "status"}),
    ("pods", {"metadata": {"name": "mine"}}, {"subresource": "eviction"}),
    ("leases", {"metadata": {"name": "n1"}}, {"group": "coordination.k8s.io", "namespace": "kube-node-lease"}),
    ("csinodes", {"metadata": {"name": "n1"}}, {"group": "storage.k8s.io", "namespace": ""}),
    (
        "serviceaccounts",
        {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "mine", "uid": "uid-mine"}}},
        {"subresource": "token", "name": "robot"},
    ),
    ("configmaps", {"metadata": {"name": "x"}}, {}),
]

REFUSED: list[tuple[str, Any, dict[str, Any], str]] = [
    ("nodes", {"metadata": {"name": "n2"}}, {"namespace": ""}, 'node "n1" is not allowed to modify node "n2"'),
    ("nodes", None, {"namespace": "", "name": "n2"}, 'node "n1" is not allowed to modify node "n2"'),
    ("nodes", labelled(node_role_kubernetes_io__x="1"), {"namespace": ""}, "is not allowed to set the following labels"),
    ("nodes", labelled(node_restriction_kubernetes_io__x="1"), {"namespace": "", "old": labelled()}, "is not allowed to modify labels"),
    ("nodes", NODE_OBJECT, {"namespace": "", "old": NODE_OBJECT | {"spec": {"taints": [{"key": "a"}]}}}, "is not allowed to modify taints"),
    ("pods", pod("p", nodeName="n1"), {}, "can only create mirror pods"),
    ("pods", mirror(owner={"uid": "x"}), {}, "UID mismatch"),
    ("pods", mirror(owner={"controller": False}), {}, "a controller owner reference"),
    ("pods", mirror(serviceAccountName="x"), {}, "reference a service account"),
    ("pods", mirror(volumes=[{"secret": {"secretName": "x"}}]), {}, "reference secrets"),
    ("pods", None, {"name": "other"}, "can only delete pods with spec.nodeName set to itself"),
    ("pods", None, {"name": "gone"}, 'pod "gone" not found'),
    ("pods", pod("other"), {"old": pod("other", nodeName="n2"), "subresource": "status"}, "can only update pod status for pods"),
    ("pods", pod("mine"), {"subresource": "binding"}, "unexpected pod subresource"),
    ("pods", {"metadata": {"name": "other"}}, {"subresource": "eviction"}, "can only evict pods"),
    ("leases", {"metadata": {"name": "n2"}}, {"group": "coordination.k8s.io", "namespace": "kube-node-lease"}, "same name as"),
    ("leases", {"metadata": {"name": "n1"}}, {"group": "coordination.k8s.io"}, "can only access leases in the"),
    ("persistentvolumeclaims", {"metadata": {"name": "c"}}, {}, "may only update PVC status"),
    ("serviceaccounts", {"spec": {}}, {"subresource": "token"}, "node requested token not bound to a pod"),
    (
        "serviceaccounts",
        {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "other", "uid": "uid-other"}}},
        {"subresource": "token"},
        "scheduled on a different node",
    ),
]


@pytest.mark.parametrize(("resource", "obj", "more"), ALLOWED)
async def test_a_node_may_do_its_work(resource: str, obj: Any, more: dict[str, Any]) -> None:
    assert await refusal(resource, obj, **more) == ""


@pytest.mark.parametrize(("resource", "obj", "more", "why"), REFUSED)
async def test_a_node_may_do_no_more(resource: str, obj: Any, more: dict[str, Any], why: str) -> None:
    assert why in await refusal(resource, obj, **more)


async def test_others_are_not_concerned() -> None:
    await run(NodeRestriction(world(), Role()), request("nodes", {"metadata": {"name": "n2"}}, namespace=""))


class Grants:
    """An authorizer that allows (verb, name) pairs."""

    def __init__(self, *pairs: tuple[str, str]) -> None:
        self.pairs = pairs

    def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        is_signer = (attributes.group, attributes.resource) == ("certificates.k8s.io", "signers")
        ok = is_signer and (attributes.verb, attributes.name) in self.pairs
        return (Decision.ALLOW if ok else Decision.NO_OPINION), ""


@pytest.mark.parametrize(("granted", "allowed"), [("example.com/a", True), ("example.com/*", True), ("example.com/b", False)])
async def test_signers_are_granted_by_name_or_domain(granted: str, allowed: bool) -> None:
    old = {"metadata": {"name": "r"}, "spec": {"signerName": "example.com/a"}}
    new = old | {"status": {"certificate": "x", "conditions": [{}]}}
    for verb, subresource, plugin in (
        ("approve", "approval", CertificateApproval(Grants(("approve", granted)))),
        ("sign", "status", CertificateSigning(Grants(("sign", granted)))),
    ):
        attributes = request("certificatesigningrequests", new, old, group="certificates.k8s.io", subresource=subresource, namespace="")
        if allowed:
            await run(plugin, attributes)
            continue
        with pytest.raises(StatusError) as caught:
            await run(plugin, attributes)
        assert f'user not permitted to {verb} requests with signerName "example.com/a"' in caught.value.message


@pytest.mark.parametrize(("organization", "allowed"), [("devs", True), ("system:masters", False)])
async def test_nobody_becomes_a_master_by_a_certificate_request(organization: str, allowed: bool) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)])
    pem = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    spec = {"signerName": "kubernetes.io/kube-apiserver-client", "request": base64.b64encode(pem).decode()}
    attributes = request("certificatesigningrequests", {"metadata": {"name": "r"}, "spec": spec}, group="certificates.k8s.io", namespace="")
    if allowed:
        await run(CertificateSubjectRestriction(), attributes)
        return
    with pytest.raises(StatusError, match="with system:masters group is not allowed"):
        await run(CertificateSubjectRestriction(), attributes)


def test_flags_choose_plugins_in_the_order_of_kubernetes() -> None:
    default = chain.enabled_plugins()
    assert default[0] == "NamespaceLifecycle" and default[-1] == "ResourceQuota" and "NodeRestriction" not in default
    chosen = chain.enabled_plugins(["NodeRestriction"], ["PodSecurity"])
    assert chosen.index("ServiceAccount") + 1 == chosen.index("NodeRestriction") and "PodSecurity" not in chosen
    with pytest.raises(ValueError, match="unknown: Nothing"):
        chain.enabled_plugins(["Nothing"])
    with pytest.raises(ValueError, match="both enabled and disabled: Priority"):
        chain.enabled_plugins(["Priority"], ["Priority"])
    assert chain.enabled_plugins(["MutatingAdmissionWebhook"]) == default


async def test_the_whole_chain_on_a_pod() -> None:
    import random

    objects = world()
    objects.add("", "namespaces", "ns")
    objects.add("", "serviceaccounts", "default", "ns")

    class Never:
        async def update_used(self, quota: Any, used: dict[str, str]) -> Any:
            raise AssertionError("there is no quota")

    asked = ("NodeRestriction", "AlwaysPullImages", "ExtendedResourceToleration")
    webhooks = FakeWebhookWorld()
    built = build_admission_chain(objects, AlwaysAllow(), RbacData(), Never(), random.Random(1), webhooks, enable=asked)
    without_policies = [name for name in chain.enabled_plugins(asked) if not name.endswith("AdmissionPolicy")]
    assert built.plugin_names == (*without_policies, "PrivilegeEscalation")
    attributes = request("pods", pod())
    await built.admit(attributes)
    await built.validate(attributes)
    assert attributes.object is not None
    spec = attributes.object["spec"]
    assert spec["serviceAccountName"] == "default" and spec["priority"] == 0 and len(spec["tolerations"]) == 2
    assert attributes.operation is Operation.CREATE


async def test_roles_beyond_their_authors_rights_are_refused_in_admission() -> None:
    data = RbacData()
    plugin = PrivilegeEscalation(RbacAuthorizer(data), data)
    role = {"metadata": {"name": "more"}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}]}
    with pytest.raises(StatusError, match="is attempting to grant RBAC permissions not currently held"):
        await run(plugin, request("roles", role, group="rbac.authorization.k8s.io"))
    await run(plugin, request("roles", role, group="rbac.authorization.k8s.io", user=UserInfo(name="root", groups=("system:masters",))))


@pytest.mark.parametrize(
    ("audiences", "account", "why"),
    [
        ([], "robot", ""),
        (["vault"], "robot", ""),
        (["inline-audience"], "robot", ""),
        (["claimed-audience"], "robot", ""),
        (["ephemeral-audience"], "robot", ""),
        (["registry.example"], "robot", ""),
        (["registry.example"], "other", 'audience "registry.example" not found in pod spec volume, system:node:n1 is not authorized'),
        (["elsewhere"], "robot", 'audience "elsewhere" not found in pod spec volume'),
        (["vault", "inline-audience"], "robot", "node may only request 0 or 1 audiences"),
    ],
)
async def test_tokens_are_for_audiences_that_pods_name(audiences: list[str], account: str, why: str) -> None:
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "mine", "uid": "uid-mine"}
    asked = {"spec": {"audiences": audiences, "boundObjectRef": reference}}
    told = await refusal("serviceaccounts", asked, subresource="token", name=account)
    assert why in told if why else not told
    attributes = request("serviceaccounts", asked, subresource="token", name=account, user=NODE)
    await run(NodeRestriction(world(), Role(), 32), attributes)  # before, all were given


@pytest.mark.parametrize(
    ("signer", "name", "why"),
    [
        ("kubernetes.io/kubelet-serving", "system:node:n1", ""),
        ("kubernetes.io/kubelet-serving", "system:node:n2", "can only create a node CSR with CN=system:node:n1"),
        ("kubernetes.io/kube-apiserver-client-kubelet", "jane", "can only create a node CSR with CN=system:node:n1"),
        ("acme.com/one", "jane", ""),
    ],
)
async def test_a_node_asks_for_certificates_in_its_own_name(signer: str, name: str, why: str) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    text = base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()
    asked = {"metadata": {"name": "r"}, "spec": {"signerName": signer, "request": text}}
    more: dict[str, Any] = {"group": "certificates.k8s.io", "namespace": ""}
    told = await refusal("certificatesigningrequests", asked, **more)
    assert why in told if why else not told
    await run(NodeRestriction(world(), Role(), 30), request("certificatesigningrequests", asked, user=NODE, **more))


async def test_a_node_does_not_say_which_claims_are_a_pods() -> None:
    old = pod("mine", nodeName="n1")
    new = {**old, "status": {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "b"}]}}
    assert await refusal("pods", new, old=old, subresource="status") == (
        'pods "mine" is forbidden: node "n1" cannot update resource claim statues'
    )
    bundles = [{"name": "v", "projected": {"sources": [{"clusterTrustBundle": {"path": "p"}}]}}]
    assert "can not create pods that reference clustertrustbundles" in await refusal("pods", mirror(volumes=bundles))
