"""Long-lived tokens on request: a Secret of the type ``kubernetes.io/service-account-token`` that names an account is filled with a token
of it, the cluster's CA and the namespace; it goes when its account goes (kube-controller-manager's tokens controller, without the automatic
secrets of old)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.indexer import key
from controllers.cache.shared_informer import EventHandler
from controllers.client import errors
from controllers.client.errors import ConfigInvalid
from controllers.client.interface import DeleteOptions
from controllers.client.resources import SECRETS, SERVICE_ACCOUNTS
from controllers.lib.context import ControllerContext
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

WORKERS = 2
SECRET_TYPE = "kubernetes.io/service-account-token"
ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_UID = "kubernetes.io/service-account.uid"
ISSUER = "kubernetes/serviceaccount"
ISSUER_CLAIMS = "kubernetes.io/serviceaccount"
_BY_ACCOUNT = "account"


class TokenSigner:
    """Signs tokens with the key of a PEM file, which is read when the first one is asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def _key(self) -> Any:
        from cryptography.hazmat.primitives import serialization

        try:
            return serialization.load_pem_private_key(self._path.read_bytes(), password=None)
        except (OSError, ValueError, TypeError) as error:
            raise ConfigInvalid(f"--service-account-private-key-file {self._path}: {error}") from error

    def sign(self, account: Object, secret: Object) -> str:
        """A token for ``account`` that lives as long as ``secret`` holds it."""
        import jwt
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        namespace, name = objects.namespace(account), objects.name(account)
        claims = {
            "iss": ISSUER,
            "sub": f"system:serviceaccount:{namespace}:{name}",
            f"{ISSUER_CLAIMS}/namespace": namespace,
            f"{ISSUER_CLAIMS}/secret.name": objects.name(secret),
            f"{ISSUER_CLAIMS}/service-account.name": name,
            f"{ISSUER_CLAIMS}/service-account.uid": objects.uid(account),
        }
        key_ = self._key
        algorithm = "RS256"
        if isinstance(key_, ec.EllipticCurvePrivateKey):
            algorithm = {256: "ES256", 384: "ES384", 521: "ES512"}[key_.curve.key_size]
        der = key_.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        key_id = base64.urlsafe_b64encode(hashlib.sha256(der).digest()).rstrip(b"=").decode()
        return jwt.encode(claims, key_, algorithm=algorithm, headers={"kid": key_id})


Sign = Callable[[Object, Object], str]


def filled(secret: Object, account: Object, root_ca: str, sign: Sign) -> Object | None:
    """The secret with all that is missing; None where nothing is. A token that is there is left alone."""
    data: dict[str, str] = dict(secret.get("data") or {})
    for name, text in (("ca.crt", root_ca), ("namespace", objects.namespace(secret))):
        encoded = base64.b64encode(text.encode()).decode()
        if text and (name not in data or (name == "ca.crt" and data[name] != encoded)):
            data[name] = encoded
    if not data.get("token"):
        data["token"] = base64.b64encode(sign(account, secret).encode()).decode()
    annotations = {**objects.annotations(secret), ACCOUNT_UID: objects.uid(account)}
    if data == (secret.get("data") or {}) and annotations == objects.annotations(secret):
        return None
    return {**secret, "data": data, "metadata": {**secret["metadata"], "annotations": annotations}}


def belongs_to(secret: Object, account: Object) -> bool:
    """Whether the secret is this account's, and not of an earlier one of the same name."""
    named = objects.annotations(secret)
    return named.get(ACCOUNT_NAME) == objects.name(account) and named.get(ACCOUNT_UID) in (None, "", objects.uid(account))


class TokensController:
    """Keys are those of secrets."""

    def __init__(self, context: ControllerContext, root_ca: str, sign: Sign) -> None:
        self._api, self._root_ca, self._sign = context.api, root_ca, sign
        self.queue = RateLimitingQueue(context.clock)
        self._secrets = context.informers.informer(SECRETS)
        self._accounts = context.informers.informer(SERVICE_ACCOUNTS)
        self._secrets.add_index(_BY_ACCOUNT, _account_keys)
        self._secrets.add_handler(EventHandler(on_add=self._enqueue, on_update=lambda _, new: self._enqueue(new)))
        self._accounts.add_handler(EventHandler(on_add=self._account_changed, on_delete=self._account_changed))

    async def run(self) -> None:
        await run_workers("tokens-controller", self.queue, self.sync, workers=WORKERS)

    def _enqueue(self, secret: Object) -> None:
        if secret.get("type") == SECRET_TYPE:
            self.queue.add(key(objects.namespace(secret), objects.name(secret)))

    def _account_changed(self, account: Object) -> None:
        for secret in self._secrets.indexer.by_index(_BY_ACCOUNT, key(objects.namespace(account), objects.name(account))):
            self._enqueue(secret)

    async def sync(self, secret_key: str) -> None:
        secret = self._secrets.indexer.get(secret_key)
        if secret is None or secret.get("type") != SECRET_TYPE or objects.is_being_deleted(secret):
            return
        account = await self._account_of(secret)
        try:
            if account is None or not belongs_to(secret, account):
                await self._api.delete(SECRETS, objects.namespace(secret), objects.name(secret), DeleteOptions(uid=objects.uid(secret)))
            elif (new := filled(secret, account, self._root_ca, self._sign)) is not None:
                await self._api.update(SECRETS, new)
        except errors.StatusError as error:
            # one that changed or went meanwhile comes back, or does not have to
            if not errors.is_not_found(error) and not errors.is_conflict(error):
                raise

    async def _account_of(self, secret: Object) -> Object | None:
        namespace, name = objects.namespace(secret), objects.annotations(secret).get(ACCOUNT_NAME, "")
        if not name:
            return None
        known = self._accounts.indexer.get(key(namespace, name))
        if known is not None and belongs_to(secret, known):
            return known
        # the account may be newer than what the informer has seen, and a secret is not deleted for that
        try:
            return await self._api.get(SERVICE_ACCOUNTS, namespace, name)
        except errors.StatusError as error:
            if errors.is_not_found(error):
                return None
            raise


def _account_keys(secret: Object) -> list[str]:
    name = objects.annotations(secret).get(ACCOUNT_NAME)
    return [key(objects.namespace(secret), name)] if name and secret.get("type") == SECRET_TYPE else []
