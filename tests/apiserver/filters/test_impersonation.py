"""Impersonation: what the headers say, and what of it is allowed (KEP-5284 for the modes)."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.authentication.user import MASTERS, UserInfo
from apiserver.authorization.authorizer import Attributes
from apiserver.authorization.rbac import RbacAuthorizer
from apiserver.authorization.rbac_data import RbacData
from apiserver.authorization.union import build_authorizer
from apiserver.filters.impersonation import Impersonation, wanted_of
from apiserver.machinery.status import StatusError
from apiserver.request.request_context import RequestContext, RequestInfo

AGENT = "system:serviceaccount:kube-system:agent"
AGENTS_NODE: dict[str, tuple[str, ...]] = {
    "authentication.kubernetes.io/node-name": ("n1",),
    "authentication.kubernetes.io/pod-name": ("agent-x",),
}


class World:
    """RBAC with one user who asks."""

    def __init__(self, *rules: dict[str, Any], user: UserInfo | None = None, constrained: bool = True) -> None:
        self.user = user or UserInfo(name="alice", groups=("devs",))
        data = RbacData()
        data.object_changed("clusterroles", "", "r", {"rules": list(rules)})
        subjects = [{"kind": "User", "name": self.user.name}]
        data.object_changed("clusterrolebindings", "", "b", {"roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": subjects})
        self.filter = Impersonation(build_authorizer(["RBAC"], {"RBAC": RbacAuthorizer(data)}), constrained=constrained)

    def act(self, *headers: tuple[str, str], verb: str = "list", resource: str = "pods") -> RequestContext:
        """Raises StatusError."""
        raw = [(name.lower().encode(), value.encode()) for name, value in headers]
        info = RequestInfo(is_resource_request=True, path="/", verb=verb, version="v1", namespace="ns", resource=resource)
        context = RequestContext(info=info, method="GET", query={}, headers=dict(raw), audit_id="", received_at=0, user=self.user)
        self.filter(context, raw)
        return context


def rule(verbs: str, resources: str, group: str = "authentication.k8s.io", names: str = "") -> dict[str, Any]:
    made: dict[str, Any] = {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split()}
    return made | ({"resourceNames": names.split()} if names else {})


def on(mode: str, verb: str = "list", resource: str = "pods") -> dict[str, Any]:
    return rule(f"impersonate-on:{mode}:{verb}", resource, "")


def test_a_user_for_one_kind_of_request() -> None:
    world = World(rule("impersonate:user-info", "users", names="bob"), on("user-info"))
    context = world.act(("Impersonate-User", "bob"))
    assert context.user == UserInfo(name="bob", groups=("system:authenticated",))
    assert context.original_user == world.user and context.impersonation_constraint == "impersonate:user-info"
    for other in ({"verb": "get"}, {"resource": "secrets"}):
        with pytest.raises(StatusError) as refused:
            world.act(("Impersonate-User", "bob"), **other)
        assert 'cannot impersonate resource "users"' in refused.value.message
    with pytest.raises(StatusError):
        world.act(("Impersonate-User", "eve"))


def test_before_the_modes_such_rights_are_worth_nothing() -> None:
    with pytest.raises(StatusError):
        World(rule("impersonate:user-info", "users"), on("user-info"), constrained=False).act(("Impersonate-User", "bob"))


def test_what_goes_with_a_user_needs_rights_of_its_own() -> None:
    headers = (("Impersonate-User", "bob"), ("Impersonate-Group", "ops"), ("Impersonate-Uid", "7"), ("Impersonate-Extra-acme.com%2Fp", "x"))
    rights = [rule("impersonate:user-info", what) for what in ("users", "groups", "uids", "userextras/acme.com/p")]
    context = World(*rights, on("user-info")).act(*headers)
    assert context.user is not None and (context.user.groups, context.user.uid) == (("ops", "system:authenticated"), "7")
    assert context.user.extra == {"acme.com/p": ("x",)}
    for lacking in range(4):
        with pytest.raises(StatusError):
            World(*rights[:lacking], *rights[lacking + 1 :], on("user-info")).act(*headers)


@pytest.mark.parametrize(
    "header",
    [
        ("Impersonate-Group", MASTERS),
        ("Impersonate-Group", ""),
        ("Impersonate-Extra-plain", "x"),
        ("Impersonate-Extra-acme.com%2Fp", ""),
        ("Impersonate-Extra-", "x"),
    ],
)
def test_no_mode_gives_what_would_be_everything_or_nothing(header: tuple[str, str]) -> None:
    everything = rule("impersonate:user-info", "*")
    with pytest.raises(StatusError):
        World(everything, on("user-info")).act(("Impersonate-User", "bob"), header)


def test_nodes_and_accounts_are_no_users() -> None:
    """The right to be any user is not that to be a node."""
    world = World(rule("impersonate:user-info", "*"), on("user-info"))
    for name in ("system:node:n1", "system:serviceaccount:ns:robot"):
        with pytest.raises(StatusError):
            world.act(("Impersonate-User", name))
    # what no node and no account can be called is a user like others
    assert world.act(("Impersonate-User", "system:serviceaccount:NS:robot")).impersonation_constraint == "impersonate:user-info"


def test_a_service_account_by_its_name_only() -> None:
    world = World(rule("impersonate:serviceaccount", "serviceaccounts"), on("serviceaccount"))
    context = world.act(("Impersonate-User", "system:serviceaccount:ns:robot"))
    assert context.user is not None
    assert context.user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")
    with pytest.raises(StatusError):
        world.act(("Impersonate-User", "system:serviceaccount:ns:robot"), ("Impersonate-Group", "devs"))


def test_an_agent_acts_as_the_node_of_its_own_pod() -> None:
    user = UserInfo(name=AGENT, groups=(), extra=AGENTS_NODE)
    world = World(rule("impersonate:associated-node", "nodes"), on("associated-node"), user=user)
    context = world.act(("Impersonate-User", "system:node:n1"))
    assert context.user == UserInfo(name="system:node:n1", groups=("system:nodes", "system:authenticated"))
    assert context.impersonation_constraint == "impersonate:associated-node"
    for wanted in (("system:node:n2",), ("system:node:n1", ("Impersonate-Group", "system:nodes"))):
        with pytest.raises(StatusError):
            world.act(("Impersonate-User", wanted[0]), *wanted[1:])
    # a right to one node by its name is none to all of them, and nobody else has a node of his own
    with pytest.raises(StatusError):
        World(rule("impersonate:associated-node", "nodes", names="n1"), on("associated-node"), user=user).act(
            ("Impersonate-User", "system:node:n1")
        )
    someone = UserInfo(name="alice", extra=AGENTS_NODE)
    with pytest.raises(StatusError):
        World(rule("impersonate:associated-node", "nodes"), on("associated-node"), user=someone).act(("Impersonate-User", "system:node:n1"))


def test_any_node() -> None:
    world = World(rule("impersonate:arbitrary-node", "nodes", names="n1"), on("arbitrary-node", "get"))
    assert world.act(("Impersonate-User", "system:node:n1"), verb="get").impersonation_constraint == "impersonate:arbitrary-node"
    with pytest.raises(StatusError):
        world.act(("Impersonate-User", "system:node:n2"), verb="get")


def test_the_verb_impersonate_goes_on_and_is_asked_first_where_it_was_used() -> None:
    asked: list[str] = []
    world = World(rule("impersonate", "users", ""))
    authorize = world.filter._authorizer.authorize

    class Noting:
        def authorize(self, attributes: Attributes) -> Any:
            asked.append(attributes.verb)
            return authorize(attributes)

    world.filter._authorizer = Noting()
    for _ in range(2):
        assert world.act(("Impersonate-User", "bob")).impersonation_constraint == ""
    assert asked == ["impersonate-on:user-info:list", "impersonate", "impersonate"]


@pytest.mark.parametrize(
    ("name", "key"),
    [("Acme.Com%2FScope", "acme.com/scope"), ("a%2", "a%2"), ("%zz%2Fb", "%zz%2fb"), ("%E2%82%AC", "€")],
)
def test_keys_of_extra_are_unescaped_as_a_whole_or_not_at_all(name: str, key: str) -> None:
    wanted = wanted_of([(b"impersonate-user", b"bob"), (f"impersonate-extra-{name.lower()}".encode(), b"x")])
    assert wanted is not None and wanted.extra == ((key, "x"),)
