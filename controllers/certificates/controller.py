"""The shell: an approved request comes, its certificate or its failure is written."""

from __future__ import annotations

import base64

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.shared_informer import EventHandler
from controllers.certificates import signing
from controllers.certificates.signing import Authority
from controllers.client import errors
from controllers.client.errors import ConfigInvalid
from controllers.client.resources import CERTIFICATE_SIGNING_REQUESTS
from controllers.lib.clock import format_time
from controllers.lib.context import ControllerContext
from controllers.options import ManagerOptions
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

WORKERS = 2
#: of a certificate's serial number, as Go's and OpenSSL's are at most 20 bytes with the highest bit clear
SERIAL_BITS = 127


def has_authority(options: ManagerOptions) -> bool:
    return options.cluster_signing_cert_file is not None and options.cluster_signing_key_file is not None


def authority_of(options: ManagerOptions) -> Authority:
    """The CA that the options name. Raises ConfigInvalid."""
    certificate, key = options.cluster_signing_cert_file, options.cluster_signing_key_file
    assert certificate is not None and key is not None, "has_authority"
    try:
        return signing.load_authority(certificate.read_bytes(), key.read_bytes(), options.cluster_signing_duration)
    except (OSError, ValueError, TypeError) as error:
        raise ConfigInvalid(f"--cluster-signing-cert-file {certificate}, --cluster-signing-key-file {key}: {error}") from error


class SigningController:
    def __init__(self, context: ControllerContext, authority: Authority) -> None:
        self._api, self._clock, self._random, self._authority = context.api, context.clock, context.rng, authority
        self.queue = RateLimitingQueue(context.clock)
        self._requests = context.informers.informer(CERTIFICATE_SIGNING_REQUESTS)
        self._requests.add_handler(EventHandler(on_add=self._on_request, on_update=lambda _, new: self._on_request(new)))

    async def run(self) -> None:
        await run_workers("csr-signing-controller", self.queue, self.sync, workers=WORKERS)

    def _on_request(self, request: Object) -> None:
        if signing.wants_signature(request):
            self.queue.add(objects.name(request))

    async def sync(self, name: str) -> None:
        request = self._requests.indexer.get(name)
        if request is None or not signing.wants_signature(request):
            return
        now = self._clock.now()
        status = dict(request.get("status") or {})
        try:
            pem = signing.sign(request, self._authority, now, self._random.getrandbits(SERIAL_BITS) | 1)
            status["certificate"] = base64.b64encode(pem).decode()
        except signing.RefusedError as refusal:
            stamp = format_time(now)
            failed = {
                "type": "Failed",
                "status": "True",
                "reason": "SignerValidationFailure",
                "message": str(refusal),
                "lastUpdateTime": stamp,
                "lastTransitionTime": stamp,
            }
            status["conditions"] = [*(status.get("conditions") or []), failed]
        try:
            await self._api.update(CERTIFICATE_SIGNING_REQUESTS, {**request, "status": status}, subresource="status")
        except errors.StatusError as error:
            if not errors.is_not_found(error):
                raise
