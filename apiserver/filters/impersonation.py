"""``Impersonate-User`` and its companions: acting as somebody else, which needs the verb ``impersonate`` on each thing that is taken on
(Kubernetes documentation, "User impersonation")."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from apiserver.authentication.user import (
    ALL_AUTHENTICATED,
    ALL_UNAUTHENTICATED,
    ANONYMOUS,
    UserInfo,
    service_account_groups,
    split_service_account_name,
    unescaped_extra_key,
)
from apiserver.authorization.authorizer import Attributes, Authorizer, Decision
from apiserver.authorization.messages import forbidden
from apiserver.filters.authorization import attributes_of
from apiserver.filters.constrained_impersonation import constraint_of
from apiserver.machinery import status
from apiserver.machinery.status import StatusError
from apiserver.request.request_context import RequestContext

RawHeaders = Sequence[tuple[bytes, bytes]]

_PREFIX = b"impersonate-"
_USER = b"impersonate-user"
_GROUP = b"impersonate-group"
_UID = b"impersonate-uid"
_EXTRA = b"impersonate-extra-"
_AUTHENTICATION_GROUP = "authentication.k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the headers ask for, each in the order of the headers."""

    user: str
    groups: tuple[str, ...]
    uid: str
    extra: tuple[tuple[str, str], ...]


def wanted_of(headers: RawHeaders) -> Wanted | None:
    """None where no header is about impersonation. Raises StatusError 400 where something is wanted without a user."""
    found = [(name, value.decode("utf-8", "replace").strip(" \t")) for name, value in headers if name.startswith(_PREFIX)]
    if not found:
        return None
    user = next((value for name, value in found if name == _USER), "")
    groups = tuple(value for name, value in found if name == _GROUP)
    uid = next((value for name, value in found if name == _UID), "")
    extra = tuple((unescaped_extra_key(name[len(_EXTRA) :].decode("latin-1")), value) for name, value in found if name.startswith(_EXTRA))
    if not user:
        if not groups and not uid and not extra:
            return None
        told = [f"Group/{g}" for g in groups] + [f"UserExtra/{key}" for key, _ in extra] + ([f"UID/{uid}"] if uid else [])
        raise status.bad_request(f"requested [{' '.join(told)}] without impersonating a user")
    return Wanted(user=user, groups=groups, uid=uid, extra=extra)


#: users whose last way to impersonate is remembered; beyond it the memory starts anew
REQUESTERS_MAX = 8192


class ImpersonationObserver(Protocol):
    def attempted(self, constraint: str | None, seconds: float) -> None:
        """``constraint``: the verb that allowed it, "" for the verb impersonate; None where it was refused."""

    def checked(self, verb: str, seconds: float, *, allowed: bool) -> None:
        """One question to the authorizer."""


class Impersonation:
    def __init__(
        self,
        authorizer: Authorizer,
        *,
        constrained: bool = False,
        observer: ImpersonationObserver | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``constrained``: the modes of ``constrained_impersonation`` are there beside the verb ``impersonate``. ``now``: a monotonic
        clock, for ``observer``."""
        self._observer = observer
        self._now = now
        self._authorizer = authorizer
        self._constrained = constrained
        #: who impersonated by the verb ``impersonate`` when last allowed: asked about that first, he costs no more than without the modes
        self._by_the_verb: set[str] = set()

    def __call__(self, context: RequestContext, headers: RawHeaders) -> None:
        """Replaces ``context.user`` (kept as ``original_user``). Raises StatusError 400, 403."""
        # nearly no request has such a header: one search over all names is cheaper than a test of each
        if _PREFIX not in b"\n".join(context.headers):
            return
        wanted = wanted_of(headers)
        if wanted is None:
            return
        requester = context.user
        assert requester is not None, "impersonation before authentication"
        began = self._now()
        found: tuple[str, UserInfo] | None = None
        refusal: StatusError | None = None
        if not self._constrained or requester.name in self._by_the_verb:
            refusal = self._refusal(requester, wanted)
        if self._constrained and (refusal is not None or requester.name not in self._by_the_verb):
            found = constraint_of(requester, _as_said(wanted), attributes_of(context), self._allows)
            if found is None:
                refusal = refusal or self._refusal(requester, wanted)
        # where no mode does, what the verb lacks is told: it is the way that has always been there
        refused = found is None and refusal is not None
        if self._observer is not None:
            self._observer.attempted(None if refused else found[0] if found else "", self._now() - began)
        if found is None and refusal is not None:
            raise refusal
        context.original_user = requester
        if found is not None:
            context.impersonation_constraint, context.user = found[0], with_implied_groups(found[1])
            self._by_the_verb.discard(requester.name)
            return
        context.user = user_of(wanted)
        if self._constrained:
            if len(self._by_the_verb) >= REQUESTERS_MAX:
                self._by_the_verb.clear()
            self._by_the_verb.add(requester.name)

    def _refusal(self, requester: UserInfo, wanted: Wanted) -> StatusError | None:
        """Of what the verb ``impersonate`` needs; None where all of it is allowed."""
        for attributes in _needed(requester, wanted):
            decision, reason = self._decide(attributes)
            if decision is not Decision.ALLOW:
                return forbidden(attributes, reason)
        return None

    def _allows(self, attributes: Attributes) -> bool:
        return self._decide(attributes)[0] is Decision.ALLOW

    def _decide(self, attributes: Attributes) -> tuple[Decision, str]:
        began = self._now()
        answer = self._authorizer.authorize(attributes)
        if self._observer is not None:
            self._observer.checked(attributes.verb, self._now() - began, allowed=answer[0] is Decision.ALLOW)
        return answer


def _needed(requester: UserInfo, wanted: Wanted) -> list[Attributes]:
    """What the requester must be allowed, one for each header."""

    def may(resource: str, name: str, *, group: str = "", namespace: str = "", subresource: str = "") -> Attributes:
        return Attributes(
            user=requester,
            verb="impersonate",
            group=group,
            version="v1",
            namespace=namespace,
            resource=resource,
            subresource=subresource,
            name=name,
        )

    account = split_service_account_name(wanted.user)
    needed = [may("serviceaccounts", account[1], namespace=account[0]) if account else may("users", wanted.user)]
    needed += [may("groups", group) for group in wanted.groups]
    needed += [may("userextras", value, group=_AUTHENTICATION_GROUP, subresource=key) for key, value in wanted.extra]
    if wanted.uid:
        needed.append(may("uids", wanted.uid, group=_AUTHENTICATION_GROUP))
    return needed


def _as_said(wanted: Wanted) -> UserInfo:
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in wanted.extra:
        extra[key] = (*extra.get(key, ()), value)
    return UserInfo(name=wanted.user, uid=wanted.uid, groups=wanted.groups, extra=extra)


def user_of(wanted: Wanted) -> UserInfo:
    """The user that the request goes on as. Groups that are not said follow from the name."""
    user = _as_said(wanted)
    account = split_service_account_name(user.name)
    if account and not user.groups:
        user = dataclasses.replace(user, groups=service_account_groups(account[0]))
    return with_implied_groups(user)


def with_implied_groups(user: UserInfo) -> UserInfo:
    """In ``system:authenticated`` or ``system:unauthenticated``, as the name and the other groups say."""
    if user.name == ANONYMOUS:
        missing = ALL_UNAUTHENTICATED not in user.groups
        return dataclasses.replace(user, groups=(*user.groups, ALL_UNAUTHENTICATED)) if missing else user
    if ALL_AUTHENTICATED in user.groups or ALL_UNAUTHENTICATED in user.groups:
        return user
    return dataclasses.replace(user, groups=(*user.groups, ALL_AUTHENTICATED))
