"""Tokens of Secrets that were made for their accounts and that nobody uses: marked invalid after ``period``, and deleted after as long
again (kube-controller-manager's ``legacy-serviceaccount-token-cleaner-controller``). The API server notes the days of use in a label of
the Secret, and in a ConfigMap since when it does."""

from __future__ import annotations

import datetime
import enum
import logging
from collections.abc import Callable, Iterator
from typing import Any

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.indexer import BY_NAMESPACE, key
from controllers.client import errors
from controllers.client.interface import DeleteOptions
from controllers.client.resources import CONFIG_MAPS, PODS, SECRETS, SERVICE_ACCOUNTS
from controllers.lib.clock import parse_time
from controllers.lib.context import ControllerContext
from controllers.serviceaccount.tokens import ACCOUNT_NAME, SECRET_TYPE, belongs_to

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 24 * 3600.0
PERIOD = datetime.timedelta(days=365)
TRACKING_NAMESPACE, TRACKING_NAME = "kube-system", "kube-apiserver-legacy-service-account-token-tracking"
LAST_USED = "kubernetes.io/legacy-token-last-used"
INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"
_DAY = datetime.timedelta(days=1)


class Fate(enum.Enum):
    STAYS = "stays"
    MARKED = "marked"
    DELETED = "deleted"


def day_of(text: object) -> datetime.date | None:
    try:
        return datetime.datetime.strptime(str(text), "%Y-%m-%d").date()
    except ValueError:
        return None


def tracked_long_enough(config_map: Object, now: datetime.datetime, period: datetime.timedelta) -> bool:
    """Whether uses have been noted for a whole ``period``."""
    since = day_of(objects.get(config_map, "data", "since"))
    if since is None:
        return False
    begins = datetime.datetime.combine(since, datetime.time(), datetime.UTC) + _DAY
    return now >= begins + period


def fate_of(
    secret: Object, account: Object | None, is_mounted: Callable[[], bool], now: datetime.datetime, period: datetime.timedelta
) -> Fate:
    """Pure. ``account`` None: there is none to which the Secret belongs. ``is_mounted``: whether a pod uses the Secret."""
    if secret.get("type") != SECRET_TYPE or objects.is_being_deleted(secret):
        return Fate.STAYS
    made = parse_time(objects.metadata(secret).get("creationTimestamp"))
    if made is None or made >= now - period:
        return Fate.STAYS
    oldest = (now - period).date()
    labels = objects.labels(secret)
    if LAST_USED in labels:
        used = day_of(labels[LAST_USED])
        if used is None or used >= oldest:
            return Fate.STAYS
    # one that a person made stays: only those are taken away that were made for an account and stand in its list
    if account is None or not any(each.get("name") == objects.name(secret) for each in account.get("secrets") or ()):
        return Fate.STAYS
    if is_mounted():
        return Fate.STAYS
    invalid = day_of(labels.get(INVALID_SINCE))
    if invalid is None:
        return Fate.MARKED
    return Fate.DELETED if invalid < oldest else Fate.STAYS


def secrets_of_pod(pod: Object) -> Iterator[str]:
    """The names of all Secrets that a pod refers to."""
    spec: dict[str, Any] = pod.get("spec") or {}
    for reference in spec.get("imagePullSecrets") or ():
        yield str(reference.get("name") or "")
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(field) or ():
            for source in container.get("envFrom") or ():
                yield str(objects.get(source, "secretRef", "name") or "")
            for variable in container.get("env") or ():
                yield str(objects.get(variable, "valueFrom", "secretKeyRef", "name") or "")
    for volume in spec.get("volumes") or ():
        yield str(objects.get(volume, "secret", "secretName") or objects.get(volume, "azureFile", "secretName") or "")
        for source in objects.get(volume, "projected", "sources", default=()) or ():
            yield str(objects.get(source, "secret", "name") or "")
        for kind in ("cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"):
            yield str(objects.get(volume, kind, "secretRef", "name") or "")
        yield str(objects.get(volume, "csi", "nodePublishSecretRef", "name") or "")


class LegacyTokenCleaner:
    def __init__(self, context: ControllerContext, period: datetime.timedelta = PERIOD) -> None:
        self._api, self._clock, self._period = context.api, context.clock, period
        self._secrets = context.informers.informer(SECRETS)
        self._accounts = context.informers.informer(SERVICE_ACCOUNTS)
        self._pods = context.informers.informer(PODS)

    async def run(self) -> None:
        while True:
            try:
                await self.evaluate()
            except errors.ClientError as error:
                logger.warning("unused tokens could not be looked at: error=%s", error)
            await self._clock.sleep(INTERVAL_SECONDS)

    async def evaluate(self) -> None:
        """Raises ClientError."""
        now = self._clock.now()
        try:
            tracking = await self._api.get(CONFIG_MAPS, TRACKING_NAMESPACE, TRACKING_NAME)
        except errors.StatusError as error:
            if errors.is_not_found(error):
                return
            raise
        if not tracked_long_enough(tracking, now, self._period):
            return
        mounted: dict[str, frozenset[str]] = {}
        for secret in list(self._secrets.indexer.list()):
            namespace = objects.namespace(secret)

            def is_mounted(secret: Object = secret, namespace: str = namespace) -> bool:
                if namespace not in mounted:
                    pods = self._pods.indexer.by_index(BY_NAMESPACE, namespace)
                    mounted[namespace] = frozenset(name for pod in pods for name in secrets_of_pod(pod))
                return objects.name(secret) in mounted[namespace]

            await self._act(secret, fate_of(secret, self._account_of(secret), is_mounted, now, self._period), now)

    def _account_of(self, secret: Object) -> Object | None:
        name = objects.annotations(secret).get(ACCOUNT_NAME, "")
        account = self._accounts.indexer.get(key(objects.namespace(secret), name)) if name else None
        return account if account is not None and belongs_to(secret, account) else None

    async def _act(self, secret: Object, fate: Fate, now: datetime.datetime) -> None:
        namespace, name = objects.namespace(secret), objects.name(secret)
        try:
            if fate is Fate.MARKED:
                today = now.strftime("%Y-%m-%d")
                logger.info("an unused token is marked as invalid: secret=%s/%s", namespace, name)
                await self._api.patch(
                    SECRETS, namespace, name, {"metadata": {"uid": objects.uid(secret), "labels": {INVALID_SINCE: today}}}
                )
            elif fate is Fate.DELETED:
                logger.info("an unused token is deleted: secret=%s/%s", namespace, name)
                version = str(objects.metadata(secret).get("resourceVersion") or "")
                await self._api.delete(SECRETS, namespace, name, DeleteOptions(resource_version=version))
        except errors.StatusError as error:
            if not errors.is_not_found(error) and not errors.is_conflict(error):
                raise
