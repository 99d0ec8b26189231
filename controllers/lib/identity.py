"""Credentials of single controllers: each works as its own ServiceAccount, by tokens that are asked for and renewed (TokenRequest API)."""

from __future__ import annotations

import asyncio

from controllers.client import errors
from controllers.client.interface import Api
from controllers.client.resources import SERVICE_ACCOUNTS
from controllers.lib.clock import Clock, parse_time

NAMESPACE = "kube-system"
#: asked for; the server may shorten it
TOKEN_SECONDS = 3600
#: of a token's life, the part after which it is renewed
RENEW_AT = 0.8


class ServiceAccountTokens:
    """``token()`` for one ServiceAccount; makes the account where it is missing. ``api`` must be allowed to create both."""

    def __init__(self, api: Api, name: str, *, clock: Clock) -> None:
        self._api, self._name, self._clock = api, name, clock
        self._token = ""
        self._renew_at = 0.0
        self._lock = asyncio.Lock()

    async def token(self) -> str:
        """A token that is still valid for a while.

        Raises:
            StatusError, ConnectionFailed: none could be had.
        """
        if self._token and self._clock.monotonic() < self._renew_at:
            return self._token
        async with self._lock:
            if not self._token or self._clock.monotonic() >= self._renew_at:
                await self._renew()
        return self._token

    async def _renew(self) -> None:
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": TOKEN_SECONDS}}
        try:
            answer = await self._api.create(SERVICE_ACCOUNTS, NAMESPACE, request, name=self._name, subresource="token")
        except errors.StatusError as error:
            if not errors.is_not_found(error):
                raise
            await self._maybe_create_account()
            answer = await self._api.create(SERVICE_ACCOUNTS, NAMESPACE, request, name=self._name, subresource="token")
        status = answer["status"]
        expires = parse_time(status.get("expirationTimestamp"))
        life = (expires - self._clock.now()).total_seconds() if expires is not None else float(TOKEN_SECONDS)
        self._token = str(status["token"])
        self._renew_at = self._clock.monotonic() + max(life, 1.0) * RENEW_AT

    async def _maybe_create_account(self) -> bool:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": self._name, "namespace": NAMESPACE}}
        try:
            await self._api.create(SERVICE_ACCOUNTS, NAMESPACE, account)
        except errors.StatusError as error:
            if errors.is_already_exists(error):
                return False
            raise
        return True
