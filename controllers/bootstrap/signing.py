"""``bootstrap-signer``: ``kube-public/cluster-info`` has a signature of each token that may sign, and of no other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.bootstrap import tokens
from controllers.cache.indexer import BY_NAMESPACE, key
from controllers.cache.shared_informer import EventHandler
from controllers.client import errors
from controllers.client.resources import CONFIG_MAPS, SECRETS
from controllers.lib.context import ControllerContext
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

NAMESPACE, NAME = "kube-public", "cluster-info"
CONTENT = "kubeconfig"
SIGNATURE = "jws-kubeconfig-"


def signed(data: Mapping[str, str], signers: Iterable[tuple[str, str]]) -> dict[str, str] | None:
    """The ConfigMap's data with the signatures that it should have; None where they are right, or there is nothing to sign. Pure."""
    content = data.get(CONTENT)
    if content is None:
        return None
    new = {name: text for name, text in data.items() if not name.startswith(SIGNATURE)}
    for token_id, token_secret in signers:
        new[SIGNATURE + token_id] = tokens.detached_signature(content, token_id, token_secret)
    return None if new == data else new


class BootstrapSigner:
    def __init__(self, context: ControllerContext) -> None:
        self._api, self._clock = context.api, context.clock
        self.queue = RateLimitingQueue(context.clock)
        self._secrets = context.informers.informer(SECRETS)
        self._config_maps = context.informers.informer(CONFIG_MAPS)
        self._secrets.add_handler(
            EventHandler(on_add=self._secret_changed, on_update=lambda _, new: self._secret_changed(new), on_delete=self._secret_changed)
        )
        self._config_maps.add_handler(EventHandler(on_add=self._config_map_changed, on_update=lambda _, new: self._config_map_changed(new)))

    async def run(self) -> None:
        await run_workers("bootstrap-signer", self.queue, self.sync, workers=1)

    def _secret_changed(self, secret: Object) -> None:
        if secret.get("type") == tokens.SECRET_TYPE and objects.namespace(secret) == tokens.NAMESPACE:
            self.queue.add(key(NAMESPACE, NAME))

    def _config_map_changed(self, config_map: Object) -> None:
        if (objects.namespace(config_map), objects.name(config_map)) == (NAMESPACE, NAME):
            self.queue.add(key(NAMESPACE, NAME))

    async def sync(self, which: str) -> None:
        config_map = self._config_maps.indexer.get(which)
        if config_map is None:
            return
        new = signed(config_map.get("data") or {}, self._signers(which))
        if new is None:
            return
        try:
            await self._api.update(CONFIG_MAPS, {**config_map, "data": new})
        except errors.StatusError as error:
            # one that has changed comes back
            if not errors.is_not_found(error) and not errors.is_conflict(error):
                raise

    def _signers(self, which: str) -> list[tuple[str, str]]:
        now = self._clock.now()
        secrets = self._secrets.indexer.by_index(BY_NAMESPACE, tokens.NAMESPACE)
        found: list[tuple[str, str]] = []
        for secret in secrets:
            token = tokens.signing_token(secret, now) if secret.get("type") == tokens.SECRET_TYPE else None
            if token is not None:
                found.append(token)
                # its signature ends with it, also where nobody deletes it
                left = tokens.seconds_left(secret, now)
                if left:
                    self.queue.add_after(which, left)
        return sorted(found)
