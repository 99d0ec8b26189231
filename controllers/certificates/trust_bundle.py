"""Publishes the cluster's CA as a ClusterTrustBundle of the signer ``kubernetes.io/kube-apiserver-serving``, and takes away the bundles of
earlier CAs (kube-controller-manager's ``kube-apiserver-serving-clustertrustbundle-publisher-controller``)."""

from __future__ import annotations

import hashlib

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.shared_informer import EventHandler
from controllers.client import errors
from controllers.client.resources import CLUSTER_TRUST_BUNDLES
from controllers.lib.context import ControllerContext
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

SIGNER = "kubernetes.io/kube-apiserver-serving"


def bundle_of(root_ca: str) -> Object:
    """Its name tells one CA from another."""
    digest = hashlib.sha256(root_ca.encode()).digest()[:12].hex()
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "ClusterTrustBundle",
        "metadata": {"name": f"{SIGNER.replace('/', ':')}:{digest}"},
        "spec": {"signerName": SIGNER, "trustBundle": root_ca},
    }


class TrustBundlePublisher:
    """``root_ca`` is PEM text."""

    def __init__(self, context: ControllerContext, root_ca: str) -> None:
        self._api, self._wanted = context.api, bundle_of(root_ca)
        self.queue = RateLimitingQueue(context.clock)
        self._bundles = context.informers.informer(CLUSTER_TRUST_BUNDLES)
        self._bundles.add_handler(
            EventHandler(on_add=self._on_bundle, on_update=lambda _, new: self._on_bundle(new), on_delete=self._on_bundle)
        )

    async def run(self) -> None:
        self.queue.add(SIGNER)
        await run_workers("clustertrustbundle-publisher", self.queue, self.sync, workers=1)

    def _on_bundle(self, bundle: Object) -> None:
        if objects.get(bundle, "spec", "signerName") == SIGNER:
            self.queue.add(SIGNER)

    async def sync(self, signer: str) -> None:
        name = objects.name(self._wanted)
        existing = self._bundles.indexer.get(name)
        try:
            if existing is None:
                await self._api.create(CLUSTER_TRUST_BUNDLES, "", self._wanted)
            elif existing.get("spec") != self._wanted["spec"]:
                await self._api.update(CLUSTER_TRUST_BUNDLES, {**existing, "spec": self._wanted["spec"]})
        except errors.StatusError as error:
            if not errors.is_already_exists(error):
                raise
        for bundle in list(self._bundles.indexer.list()):
            if objects.get(bundle, "spec", "signerName") == signer and objects.name(bundle) != name:
                try:
                    await self._api.delete(CLUSTER_TRUST_BUNDLES, "", objects.name(bundle))
                except errors.StatusError as error:
                    if not errors.is_not_found(error):
                        raise
