"""What a node may ask tokens and certificates for (a part of NodeRestriction): audiences that its pods name, and its own name."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from apiserver.admission.interfaces import AdmissionAttributes, ObjectGetter
from apiserver.admission.plugin import forbidden, new_object
from apiserver.authorization.authorizer import Attributes, Authorizer, Decision
from apiserver.machinery import objects
from apiserver.request.unanswered import settled

#: the verb by which a role lets a node ask for an audience that no pod names; the resource is the audience, the name the account's
AUDIENCE_VERB = "request-serviceaccounts-token-audience"
_NODE_SIGNERS = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet")


async def check_audience(attributes: AdmissionAttributes, pod: objects.Object, getter: ObjectGetter, authorizer: Authorizer) -> None:
    """Raises StatusError 403 for an audience that neither the pod's volumes name nor a role allows."""
    asked = objects.get(new_object(attributes), "spec", "audiences", default=())
    if len(asked) > 1:
        raise forbidden(attributes, "node may only request 0 or 1 audiences")
    audience = str(asked[0]) if asked else ""
    if audience in _audiences_of(pod, getter):
        return
    question = Attributes(
        user=attributes.user,
        verb=AUDIENCE_VERB,
        version="v1",
        namespace=attributes.namespace,
        resource=audience,
        name=attributes.name,
    )
    decision, _ = await settled(lambda: authorizer.authorize(question))
    if decision is not Decision.ALLOW:
        what = f'audience "{audience}" not found in pod spec volume'
        raise forbidden(attributes, f"{what}, {attributes.user.name} is not authorized to request tokens for this audience")


def _audiences_of(pod: objects.Object, getter: ObjectGetter) -> Iterator[str]:
    """Of projected tokens, and of the drivers of volumes that want tokens."""
    namespace = objects.namespace(pod)
    for volume in objects.get(pod, "spec", "volumes", default=()):
        for source in objects.get(volume, "projected", "sources", default=()):
            token = source.get("serviceAccountToken")
            if token is not None:
                yield str(token.get("audience") or "")
        claim = str(objects.get(volume, "persistentVolumeClaim", "claimName", default=""))
        if volume.get("ephemeral") is not None:
            claim = f"{objects.name(pod)}-{volume.get('name')}"
        driver = str(objects.get(volume, "csi", "driver", default="")) or _driver_of(getter, namespace, claim)
        found = getter.get("storage.k8s.io", "csidrivers", "", driver) if driver else None
        for request in objects.get(found, "spec", "tokenRequests", default=()):
            yield str(request.get("audience") or "")


def _driver_of(getter: ObjectGetter, namespace: str, claim: str) -> str:
    found = getter.get("", "persistentvolumeclaims", namespace, claim) if claim else None
    name = str(objects.get(found, "spec", "volumeName", default=""))
    volume = getter.get("", "persistentvolumes", "", name) if name else None
    return str(objects.get(volume, "spec", "csi", "driver", default=""))


def check_certificate_request(attributes: AdmissionAttributes, node: str) -> None:
    """Raises StatusError 403 where a node asks for a node's certificate in another name."""
    spec = new_object(attributes).get("spec") or {}
    if spec.get("signerName") not in _NODE_SIGNERS:
        return
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        request = x509.load_pem_x509_csr(base64.b64decode(str(spec.get("request") or "")))
    except (ValueError, binascii.Error) as error:
        raise forbidden(attributes, f"unable to parse csr: {error}") from error
    names = [attribute.value for attribute in request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if names != [f"system:node:{node}"]:
        raise forbidden(attributes, f"can only create a node CSR with CN=system:node:{node}")
