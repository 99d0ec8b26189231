"""``Impersonate-User`` and its companions: acting as somebody else, which needs the verb ``impersonate`` on each thing that is taken on
(Kubernetes documentation, "User impersonation")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from apiserver.authentication.user import (
    ALL_AUTHENTICATED,
    ALL_UNAUTHENTICATED,
    ANONYMOUS,
    UserInfo,
    service_account_groups,
    split_service_account_name,
)
from apiserver.authorization.authorizer import Attributes, Authorizer, Decision
from apiserver.authorization.messages import forbidden
from apiserver.machinery import status
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
    found = [(name, value.decode("utf-8", "replace").strip()) for name, value in headers if name.startswith(_PREFIX)]
    if not found:
        return None
    user = next((value for name, value in found if name == _USER), "")
    groups = tuple(value for name, value in found if name == _GROUP)
    uid = next((value for name, value in found if name == _UID), "")
    extra = tuple((unquote(name[len(_EXTRA) :].decode("latin-1").lower()), value) for name, value in found if name.startswith(_EXTRA))
    if not user:
        if not groups and not uid and not extra:
            return None
        told = [f"Group/{g}" for g in groups] + [f"UserExtra/{key}" for key, _ in extra] + ([f"UID/{uid}"] if uid else [])
        raise status.bad_request(f"requested [{' '.join(told)}] without impersonating a user")
    return Wanted(user=user, groups=groups, uid=uid, extra=extra)


class Impersonation:
    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def __call__(self, context: RequestContext, headers: RawHeaders) -> None:
        """Replaces ``context.user`` (kept as ``original_user``). Raises StatusError 400, 403."""
        # nearly no request has such a header: one search over all names is cheaper than a test of each
        if _PREFIX not in b"\n".join(context.headers):
            return
        wanted = wanted_of(headers)
        if wanted is None:
            return
        assert context.user is not None, "impersonation before authentication"
        for attributes in _needed(context.user, wanted):
            decision, reason = self._authorizer.authorize(attributes)
            if decision is not Decision.ALLOW:
                raise forbidden(attributes, reason)
        context.original_user = context.user
        context.user = user_of(wanted)


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


def user_of(wanted: Wanted) -> UserInfo:
    """The user that the request goes on as. Groups that are not said follow from the name."""
    groups = wanted.groups
    account = split_service_account_name(wanted.user)
    if account and not groups:
        groups = service_account_groups(account[0])
    if wanted.user == ANONYMOUS:
        if ALL_UNAUTHENTICATED not in groups:
            groups = (*groups, ALL_UNAUTHENTICATED)
    elif ALL_AUTHENTICATED not in groups and ALL_UNAUTHENTICATED not in groups:
        groups = (*groups, ALL_AUTHENTICATED)
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in wanted.extra:
        extra[key] = (*extra.get(key, ()), value)
    return UserInfo(name=wanted.user, uid=wanted.uid, groups=groups, extra=extra)
