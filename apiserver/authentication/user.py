"""Users as authentication answers them (apiserver ``authentication/user``)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import unquote

from apiserver.machinery.names import dns1123_label, dns1123_subdomain


@dataclass(frozen=True, slots=True, kw_only=True)
class UserInfo:
    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict)


def check_encodable(user: UserInfo) -> None:
    """Raises ValueError for a user whom no answer and no log could name: JSON may hold halves of surrogate pairs, UTF-8 may not."""
    for text in (user.name, user.uid, *user.groups, *user.extra, *(value for values in user.extra.values() for value in values)):
        text.encode()


ANONYMOUS = "system:anonymous"
ALL_AUTHENTICATED = "system:authenticated"
ALL_UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"

SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"
ALL_SERVICE_ACCOUNTS = "system:serviceaccounts"
NODE_PREFIX = "system:node:"
NODES = "system:nodes"


def service_account_name(namespace: str, name: str) -> str:
    """The user name of a service account."""
    return f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, ...]:
    return (ALL_SERVICE_ACCOUNTS, f"{ALL_SERVICE_ACCOUNTS}:{namespace}")


def split_service_account_name(user_name: str) -> tuple[str, str] | None:
    """(namespace, name) of a service account's user name, None for other names, and for those that no service account can have."""
    if not user_name.startswith(SERVICE_ACCOUNT_PREFIX):
        return None
    parts = user_name[len(SERVICE_ACCOUNT_PREFIX) :].split(":")
    if len(parts) != 2 or dns1123_label(parts[0]) or dns1123_subdomain(parts[1]):
        return None
    return parts[0], parts[1]


def node_name(user: UserInfo) -> str | None:
    """The node that a user is (``system:node:NAME`` in the group ``system:nodes``), None for users that are no nodes."""
    if not user.name.startswith(NODE_PREFIX) or NODES not in user.groups:
        return None
    return user.name[len(NODE_PREFIX) :]


def node_of_name(user_name: str) -> str:
    """The node of a user name, whatever groups its user is in; "" for other names, and for those that no node can have."""
    name = user_name.removeprefix(NODE_PREFIX)
    return name if name != user_name and not dns1123_subdomain(name) else ""


_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")


def unescaped_extra_key(encoded: str) -> str:
    """The key of ``UserInfo.extra`` that the end of a header's name tells, in lower case and with escapes; one with a bad escape is
    taken as it is."""
    encoded = encoded.lower()
    return encoded if _BAD_ESCAPE.search(encoded) else unquote(encoded)
