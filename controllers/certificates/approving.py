"""Approves the client certificates that kubelets ask for, where their users may have them (kube-controller-manager's ``csrapproving``).

Who may is asked of the API server: create on ``certificatesigningrequests/nodeclient`` for any node's, on ``…/selfnodeclient`` for a node
that renews its own. Requests of other kinds, and of users who may not, are left to people.
"""

from __future__ import annotations

import enum

from cryptography import x509
from cryptography.x509.oid import NameOID

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.shared_informer import EventHandler
from controllers.certificates import signing
from controllers.certificates.signing import RefusedError
from controllers.client import errors
from controllers.client.resources import CERTIFICATE_SIGNING_REQUESTS, SUBJECT_ACCESS_REVIEWS
from controllers.lib.clock import format_time
from controllers.lib.context import ControllerContext
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

WORKERS = 2


class Recognized(enum.Enum):
    """The value is the subresource that the user needs, and what is said of an approval."""

    OWN = ("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.")
    ANY = ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.")


def recognize(request: Object) -> list[Recognized]:
    """What a request may be, the narrower first; empty for one that nobody but people approves. Pure."""
    conditions = {c.get("type") for c in objects.get(request, "status", "conditions", default=[])}
    if conditions & {"Approved", "Denied"} or objects.get(request, "spec", "signerName") != signing.KUBELET_CLIENT:
        return []
    try:
        asked = signing.parse(request)
        signing.check_kubelet_client(asked, set(objects.get(request, "spec", "usages", default=[])))
    except RefusedError:
        return []
    return [Recognized.OWN, Recognized.ANY] if _common_name(asked) == objects.get(request, "spec", "username") else [Recognized.ANY]


def _common_name(asked: x509.CertificateSigningRequest) -> str:
    return str(asked.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


class ApprovingController:
    def __init__(self, context: ControllerContext) -> None:
        self._api, self._clock = context.api, context.clock
        self.queue = RateLimitingQueue(context.clock)
        self._requests = context.informers.informer(CERTIFICATE_SIGNING_REQUESTS)
        self._requests.add_handler(EventHandler(on_add=self._on_request, on_update=lambda _, new: self._on_request(new)))

    async def run(self) -> None:
        await run_workers("csr-approving-controller", self.queue, self.sync, workers=WORKERS)

    def _on_request(self, request: Object) -> None:
        if objects.get(request, "spec", "signerName") == signing.KUBELET_CLIENT and not objects.get(request, "status", "conditions"):
            self.queue.add(objects.name(request))

    async def sync(self, name: str) -> None:
        request = self._requests.indexer.get(name)
        if request is None:
            return
        for recognized in recognize(request):
            subresource, message = recognized.value
            if await self._may(request, subresource):
                await self._approve(request, message)
                return

    async def _may(self, request: Object, subresource: str) -> bool:
        spec = request["spec"]
        attributes = {"group": "certificates.k8s.io", "resource": "certificatesigningrequests", "verb": "create", "version": "*"}
        review = {
            "apiVersion": SUBJECT_ACCESS_REVIEWS.api_version,
            "kind": SUBJECT_ACCESS_REVIEWS.kind,
            "spec": {
                "user": spec.get("username", ""),
                "uid": spec.get("uid", ""),
                "groups": spec.get("groups") or [],
                "extra": spec.get("extra") or {},
                "resourceAttributes": {**attributes, "subresource": subresource},
            },
        }
        answer = await self._api.create(SUBJECT_ACCESS_REVIEWS, "", review)
        return bool(objects.get(answer, "status", "allowed", default=False))

    async def _approve(self, request: Object, message: str) -> None:
        stamp = format_time(self._clock.now())
        condition = {
            "type": "Approved",
            "status": "True",
            "reason": "AutoApproved",
            "message": message,
            "lastUpdateTime": stamp,
            "lastTransitionTime": stamp,
        }
        status = request.get("status") or {}
        approved = {**request, "status": {**status, "conditions": [*(status.get("conditions") or []), condition]}}
        try:
            await self._api.update(CERTIFICATE_SIGNING_REQUESTS, approved, subresource="approval")
        except errors.StatusError as error:
            if not errors.is_not_found(error):
                raise
