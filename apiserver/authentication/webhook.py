"""Tokens that another server knows (``--authentication-token-webhook-config-file``): a TokenReview is posted, its status is the answer.

What it said is remembered, good or bad, for ``--authentication-token-webhook-cache-ttl``, by a keyed hash of the token; that it could not
be reached is not remembered.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from apiserver.authentication.interfaces import AuthenticationError, TokenAuthentication, TokenObserver
from apiserver.authentication.user import UserInfo, check_encodable
from apiserver.machinery import objects
from apiserver.outbound.json_client import OutboundError
from apiserver.request.unanswered import RemoteAnswers

logger = logging.getLogger(__name__)

#: answers remembered; the longest unused goes first
ENTRIES_MAX = 8192
#: what a user of a webhook may have: more is no directory's answer but a mistake
GROUPS_MAX = 10_000

VERSIONS = ("v1", "v1beta1")


class Reviewer(Protocol):
    def __call__(self, review: dict[str, Any]) -> Awaitable[Any]:
        """Posts a review; answers what came back. Raises OutboundError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """``user`` None: the webhook does not know the token, for the reason in ``error`` if it gave one."""

    user: UserInfo | None = None
    audiences: tuple[str, ...] = ()
    error: str = ""
    lasting: bool = True


class WebhookTokenAuthenticator:
    def __init__(
        self,
        review: Reviewer,
        *,
        version: str,
        api_audiences: tuple[str, ...],
        cache_ttl_seconds: float,
        now: Callable[[], float],
        observer: TokenObserver | None = None,
    ) -> None:
        """``now``: a monotonic clock in seconds. ``version`` of the TokenReview: v1 or v1beta1."""
        assert version in VERSIONS, version
        self._review = review
        self._now = now
        self._observer = observer
        self._api_version = f"authentication.k8s.io/{version}"
        self._api_audiences = api_audiences
        self._hash_key = secrets.token_bytes(32)
        self._answers: RemoteAnswers[_Answer] = RemoteAnswers(
            now=now,
            entries_max=ENTRIES_MAX,
            ttl_seconds=lambda answer: cache_ttl_seconds if answer.lasting else 0.0,
            overloaded=lambda: _Answer(error="too many token reviews are under way", lasting=False),
        )

    def authenticate_token(self, token: str, audiences: tuple[str, ...] = ()) -> TokenAuthentication | None:
        """Raises AuthenticationError for a token that the webhook refuses with a reason, Unanswered where it has to be asked first."""
        wanted = audiences or self._api_audiences
        digest = hashlib.blake2b(token.encode(), key=self._hash_key, digest_size=32).digest()
        answer = self._answers.get((digest, wanted), lambda: self._ask(token, wanted), self._observer.hit if self._observer else None)
        if answer.user is None:
            if answer.error:
                raise AuthenticationError(answer.error)
            return None
        # one that knows nothing of audiences means this API server's
        known = answer.audiences or self._api_audiences
        common = tuple(audience for audience in wanted if audience in known)
        if wanted and not common:
            return None
        return TokenAuthentication(user=answer.user, audiences=common)

    async def _ask(self, token: str, audiences: tuple[str, ...]) -> _Answer:
        spec: dict[str, Any] = {"token": token}
        if audiences:
            spec["audiences"] = list(audiences)
        review = {"kind": "TokenReview", "apiVersion": self._api_version, "metadata": objects.unstored_metadata(), "spec": spec}
        began = self._now()
        good = False
        try:
            answer = _read(await self._review(review))
            good = True
            return answer
        except OutboundError as error:
            logger.warning("the token webhook gave no answer: %s", error)
            return _Answer(error=f"token webhook: {error}", lasting=False)
        except ValueError as error:
            logger.warning("the token webhook gave an answer that cannot be used: %s", error)
            return _Answer(error=f"token webhook: {error}", lasting=False)
        finally:
            if self._observer is not None:
                self._observer.fetched(self._now() - began, good=good)

    def waiting(self) -> tuple[int, int]:
        """(questions under way, requests that wait for one of them)."""
        return self._answers.pending, self._answers.waiting


def _read(review: Any) -> _Answer:
    """Raises ValueError for what is no TokenReview."""
    status = review.get("status") if isinstance(review, dict) else None
    if not isinstance(status, dict):
        raise ValueError("it is no TokenReview with a status")
    error = status.get("error") or ""
    authenticated = status.get("authenticated", False)
    if not isinstance(authenticated, bool):
        raise ValueError("it does not say whether the token is authentic")
    if not authenticated:
        return _Answer(error=str(error)[:1024].encode(errors="replace").decode())
    user = status.get("user")
    if not isinstance(user, dict):
        raise ValueError("it has no user")
    name, uid, extra = user.get("username") or "", user.get("uid") or "", user.get("extra") or {}
    if not isinstance(name, str) or not isinstance(uid, str) or not isinstance(extra, dict):
        raise ValueError("its user is none")
    found = UserInfo(
        name=name,
        uid=uid,
        groups=_texts(user.get("groups"), "groups"),
        extra={str(key): _texts(values, "extra") for key, values in extra.items()},
    )
    check_encodable(found)
    return _Answer(user=found, audiences=_texts(status.get("audiences"), "audiences"))


def _texts(value: Any, what: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > GROUPS_MAX or not all(isinstance(text, str) for text in value):
        raise ValueError(f"its {what} are no list of texts")
    return tuple(value)
