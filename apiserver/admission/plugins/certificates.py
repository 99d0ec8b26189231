"""CertificateApproval, CertificateSigning, CertificateSubjectRestriction, ClusterTrustBundleAttest: who may approve and sign certificate
requests of which signer, and name its roots."""

from __future__ import annotations

import base64
import binascii

from cryptography import x509
from cryptography.x509.oid import NameOID

from apiserver.admission.interfaces import AdmissionAttributes, Operation
from apiserver.admission.plugin import Plugin, forbidden, new_object
from apiserver.authentication.user import MASTERS, UserInfo
from apiserver.authorization.authorizer import Attributes, Authorizer, Decision
from apiserver.machinery import objects
from apiserver.request.unanswered import settled

_GROUP = "certificates.k8s.io"
_REQUESTS = frozenset(((_GROUP, "certificatesigningrequests"),))
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"


def may_use_signer(authorizer: Authorizer, user: UserInfo, verb: str, signer: str) -> bool:
    """Whether a user may ``approve`` or ``sign`` for a signer: by its name, or by ``domain/*``."""
    domain = signer.split("/", 1)[0]
    for name in (signer, f"{domain}/*"):
        attributes = Attributes(user=user, verb=verb, group=_GROUP, version="*", resource="signers", name=name)
        if authorizer.authorize(attributes)[0] is Decision.ALLOW:
            return True
    return False


class CertificateApproval(Plugin):
    name = "CertificateApproval"
    operations = frozenset((Operation.UPDATE,))
    resources = _REQUESTS
    subresources = frozenset(("approval",))

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def validate(self, attributes: AdmissionAttributes) -> None:
        # the old object's signer: the update may try to name another
        signer = str(objects.get(attributes.old_object, "spec", "signerName", default=""))
        if not await settled(lambda: may_use_signer(self._authorizer, attributes.user, "approve", signer)):
            raise forbidden(attributes, f'user not permitted to approve requests with signerName "{signer}"')


class CertificateSigning(Plugin):
    name = "CertificateSigning"
    operations = frozenset((Operation.UPDATE,))
    resources = _REQUESTS
    subresources = frozenset(("status",))

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def validate(self, attributes: AdmissionAttributes) -> None:
        new = new_object(attributes).get("status") or {}
        old = (attributes.old_object or {}).get("status") or {}
        if new.get("certificate") == old.get("certificate") and (new.get("conditions") or []) == (old.get("conditions") or []):
            return
        signer = str(objects.get(attributes.old_object, "spec", "signerName", default=""))
        if not await settled(lambda: may_use_signer(self._authorizer, attributes.user, "sign", signer)):
            raise forbidden(attributes, f'user not permitted to sign requests with signerName "{signer}"')


class ClusterTrustBundleAttest(Plugin):
    """Who says that certificates are a signer's roots has to be allowed to say so."""

    name = "ClusterTrustBundleAttest"
    operations = frozenset((Operation.CREATE, Operation.UPDATE))
    resources = frozenset(((_GROUP, "clustertrustbundles"),))

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def validate(self, attributes: AdmissionAttributes) -> None:
        spec = new_object(attributes).get("spec") or {}
        old = None if attributes.old_object is None else attributes.old_object.get("spec") or {}
        signer = str(spec.get("signerName") or "")
        if old is not None and signer != str(old.get("signerName") or ""):
            raise forbidden(attributes, "changing signerName is forbidden")
        if not signer or spec == old:  # storage migration and garbage collection write without a change
            return
        if not await settled(lambda: may_use_signer(self._authorizer, attributes.user, "attest", signer)):
            raise forbidden(attributes, f'user not permitted to attest for signerName "{signer}"')


class CertificateSubjectRestriction(Plugin):
    """Nobody becomes an administrator by a certificate request."""

    name = "CertificateSubjectRestriction"
    operations = frozenset((Operation.CREATE,))
    resources = _REQUESTS

    async def validate(self, attributes: AdmissionAttributes) -> None:
        spec = new_object(attributes).get("spec") or {}
        if spec.get("signerName") != CLIENT_SIGNER:
            return
        try:
            request = x509.load_pem_x509_csr(base64.b64decode(str(spec.get("request") or "")))
        except (ValueError, binascii.Error) as error:
            raise forbidden(attributes, f"failed to parse CSR: {error}") from error
        if any(a.value == MASTERS for a in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)):
            raise forbidden(attributes, f"use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed")
