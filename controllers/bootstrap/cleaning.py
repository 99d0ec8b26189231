"""``token-cleaner``: a bootstrap token is deleted when its time is over."""

from __future__ import annotations

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.bootstrap import tokens
from controllers.cache.indexer import key_of
from controllers.cache.shared_informer import EventHandler
from controllers.client import errors
from controllers.client.interface import DeleteOptions
from controllers.client.resources import SECRETS
from controllers.lib.context import ControllerContext
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers


class TokenCleaner:
    def __init__(self, context: ControllerContext) -> None:
        self._api, self._clock = context.api, context.clock
        self.queue = RateLimitingQueue(context.clock)
        self._secrets = context.informers.informer(SECRETS)
        self._secrets.add_handler(EventHandler(on_add=self._enqueue, on_update=lambda _, new: self._enqueue(new)))

    async def run(self) -> None:
        await run_workers("token-cleaner", self.queue, self.sync, workers=1)

    def _enqueue(self, secret: Object) -> None:
        if secret.get("type") != tokens.SECRET_TYPE or objects.namespace(secret) != tokens.NAMESPACE:
            return
        left = tokens.seconds_left(secret, self._clock.now())
        if left is not None:
            self.queue.add_after(key_of(secret), left)

    async def sync(self, key: str) -> None:
        secret = self._secrets.indexer.get(key)
        if secret is None or secret.get("type") != tokens.SECRET_TYPE or objects.is_being_deleted(secret):
            return
        left = tokens.seconds_left(secret, self._clock.now())
        if left is None:
            return
        if left > 0:
            self.queue.add_after(key, left)
            return
        try:
            await self._api.delete(SECRETS, objects.namespace(secret), objects.name(secret), DeleteOptions(uid=objects.uid(secret)))
        except errors.StatusError as error:
            if not errors.is_not_found(error) and not errors.is_conflict(error):
                raise
