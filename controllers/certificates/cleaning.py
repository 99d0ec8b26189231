"""Deletes requests that have had their time (kube-controller-manager's ``csrcleaner``): an hour after they were approved, refused or
failed, a day after they were made and nobody decided, and when the certificate that they led to has expired.
"""

from __future__ import annotations

import base64
import binascii
import datetime

from cryptography import x509

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.shared_informer import EventHandler
from controllers.client import errors
from controllers.client.interface import DeleteOptions
from controllers.client.resources import CERTIFICATE_SIGNING_REQUESTS
from controllers.lib.clock import parse_time
from controllers.lib.context import ControllerContext
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

DECIDED = datetime.timedelta(hours=1)
PENDING = datetime.timedelta(hours=24)


def goes_at(request: Object) -> datetime.datetime | None:
    """When a request is to be deleted; None where its times cannot be read. Pure."""
    times = []
    conditions = objects.get(request, "status", "conditions", default=[]) or []
    for condition in conditions:
        if condition.get("type") in ("Approved", "Denied", "Failed"):
            decided = parse_time(condition.get("lastUpdateTime") or condition.get("lastTransitionTime"))
            if decided is not None:
                times.append(decided + DECIDED)
    if not conditions:
        made = parse_time(objects.metadata(request).get("creationTimestamp"))
        if made is not None:
            times.append(made + PENDING)
    expires = _expires(request)
    if expires is not None:
        times.append(expires)
    return min(times, default=None)


def _expires(request: Object) -> datetime.datetime | None:
    """Of the certificate that was given."""
    encoded = objects.get(request, "status", "certificate")
    if not encoded:
        return None
    try:
        return x509.load_pem_x509_certificate(base64.b64decode(encoded, validate=True)).not_valid_after_utc
    except (ValueError, binascii.Error):
        return None


class CleaningController:
    def __init__(self, context: ControllerContext) -> None:
        self._api, self._clock = context.api, context.clock
        self.queue = RateLimitingQueue(context.clock)
        self._requests = context.informers.informer(CERTIFICATE_SIGNING_REQUESTS)
        self._requests.add_handler(EventHandler(on_add=self._on_request, on_update=lambda _, new: self._on_request(new)))

    async def run(self) -> None:
        await run_workers("csr-cleaner-controller", self.queue, self.sync, workers=1)

    def _on_request(self, request: Object) -> None:
        when = goes_at(request)
        if when is not None:
            self.queue.add_after(objects.name(request), max(0.0, (when - self._clock.now()).total_seconds()))

    async def sync(self, name: str) -> None:
        request = self._requests.indexer.get(name)
        when = None if request is None else goes_at(request)
        if request is None or when is None:
            return
        left = (when - self._clock.now()).total_seconds()
        if left > 0:
            self.queue.add_after(name, left)
            return
        options = DeleteOptions(uid=objects.uid(request))
        try:
            await self._api.delete(CERTIFICATE_SIGNING_REQUESTS, "", name, options)
        except errors.StatusError as error:
            if not errors.is_not_found(error) and not errors.is_conflict(error):
                raise
