"""Constrained impersonation (KEP-5284, from 1.36 on): acting as somebody else for some requests only.

Beside the verb ``impersonate``, which allows everything that the other may do, there are modes, each with two questions: whether the
requester may take on that user (``impersonate:MODE`` on what is taken on), and whether for such a request (``impersonate-on:MODE:VERB`` on
what is requested). Example: a service account of a node's agent that may ``impersonate:associated-node`` and
``impersonate-on:associated-node:list`` pods lists pods as the node that its own token is bound to, and does nothing else as that node.

associated-node   the node on which the requesting service account's pod runs
arbitrary-node    any node
serviceaccount    a service account
user-info         users that are neither, with groups, uid and extra; never ``system:masters``

For nodes and service accounts only the name may be said: the rest follows from it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from apiserver.authentication.user import MASTERS, NODES, UserInfo, node_of_name, service_account_groups, split_service_account_name
from apiserver.authorization.authorizer import Attributes
from apiserver.machinery.names import dns1123_subdomain

GROUP = "authentication.k8s.io"
#: from so many groups or extra values on, the right to all of them is asked for first
MANY = 4
#: key of the requester's extra that the credential of a pod has
NODE_NAME_KEY = "authentication.kubernetes.io/node-name"
_ASSOCIATED_KEYS = "authentication.kubernetes.io/associated-node-keys"

Allowed = Callable[[Attributes], bool]


def constraint_of(requester: UserInfo, wanted: UserInfo, request: Attributes, allowed: Allowed) -> tuple[str, UserInfo] | None:
    """The first mode that lets ``requester`` make ``request`` as ``wanted`` (what the headers say and no more): its verb, and the user
    with the groups that follow from the name. None where none does."""
    for mode, asked_as, user in _modes(requester, wanted):
        on = dataclasses.replace(request, user=asked_as, verb=f"impersonate-on:{mode}:{request.verb}")
        if not allowed(on):
            continue
        if _may_take_on(mode, asked_as, wanted, allowed):
            return f"impersonate:{mode}", user
    return None


def _modes(requester: UserInfo, wanted: UserInfo) -> Iterator[tuple[str, UserInfo, UserInfo]]:
    """(mode, who is asked about, who it would be) of the modes that are for such a user at all."""
    node = node_of_name(wanted.name)
    account = split_service_account_name(wanted.name)
    only_name = not wanted.uid and not wanted.groups and not wanted.extra
    if node:
        if only_name:
            as_node = dataclasses.replace(wanted, groups=(NODES,))
            if split_service_account_name(requester.name) and requester.extra.get(NODE_NAME_KEY) == (node,):
                # one question for all nodes: the authorizer is not told which
                keys = {_ASSOCIATED_KEYS: tuple(sorted(requester.extra))}
                yield "associated-node", dataclasses.replace(requester, extra=keys), as_node
            yield "arbitrary-node", requester, as_node
    elif account:
        if only_name:
            yield "serviceaccount", requester, dataclasses.replace(wanted, groups=service_account_groups(account[0]))
    else:
        yield "user-info", requester, wanted


def _may_take_on(mode: str, requester: UserInfo, wanted: UserInfo, allowed: Allowed) -> bool:
    verb = f"impersonate:{mode}"

    def may(resource: str, name: str, *, namespace: str = "", subresource: str = "") -> bool:
        return allowed(
            Attributes(
                user=requester,
                verb=verb,
                group=GROUP,
                version="v1",
                namespace=namespace,
                resource=resource,
                subresource=subresource,
                name=name,
            )
        )

    node = node_of_name(wanted.name)
    account = split_service_account_name(wanted.name)
    if node:
        return may("nodes", "*" if mode == "associated-node" else node)
    if account:
        return may("serviceaccounts", account[1], namespace=account[0])
    if not may("users", wanted.name) or (wanted.uid and not may("uids", wanted.uid)):
        return False
    if "" in wanted.groups or MASTERS in wanted.groups or not all(_is_usable(key, values) for key, values in wanted.extra.items()):
        return False
    if wanted.groups and not (len(wanted.groups) >= MANY and may("groups", "*")):
        if not all(may("groups", group) for group in wanted.groups):
            return False
    values = [(key, value) for key, told in wanted.extra.items() for value in told]
    if max(len(values), len(wanted.extra)) >= MANY and may("userextras", "*", subresource="*"):
        return True
    return all(may("userextras", value, subresource=key) for key, value in values)


def _is_usable(key: str, values: tuple[str, ...]) -> bool:
    """``example.org/path`` in lower case, with values that say something."""
    domain, slash, path = key.partition("/")
    return bool(slash and path and values) and not dns1123_subdomain(domain) and key == key.lower() and "" not in values
