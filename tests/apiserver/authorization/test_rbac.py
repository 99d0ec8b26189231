"""RBAC decisions against a twin that is obviously right, over all small inputs, and against the wordings of a real API server."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from apiserver.authentication.user import UserInfo
from apiserver.authorization.authorizer import Attributes, Decision
from apiserver.authorization.rbac import RbacAuthorizer
from apiserver.authorization.rbac_data import RbacData

USER = UserInfo(name="alice", groups=("devs", "system:authenticated"))


def subject(kind: str, name: str, namespace: str = "") -> dict[str, str]:
    return {"kind": kind, "name": name} | ({"namespace": namespace} if namespace else {})


def data_of(*objects: tuple[str, str, str, dict[str, Any]]) -> RbacData:
    data = RbacData()
    for resource, namespace, name, obj in objects:
        data.object_changed(resource, namespace, name, obj)
    return data


def binding(role_kind: str, role: str, *subjects: dict[str, str]) -> dict[str, Any]:
    return {"roleRef": {"kind": role_kind, "name": role}, "subjects": list(subjects)}


def rule(verbs: str, resources: str, groups: str = "", names: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {"verbs": verbs.split(","), "apiGroups": groups.split(","), "resources": resources.split(",")}
    if names:
        out["resourceNames"] = names.split(",")
    return out


def bound(*rules: dict[str, Any]) -> RbacAuthorizer:
    """Alice has these rules in the namespace ns."""
    to_alice = binding("Role", "r", subject("User", "alice"))
    data = data_of(("roles", "ns", "r", {"rules": list(rules)}), ("rolebindings", "ns", "b", to_alice))
    return RbacAuthorizer(data)


def twin_allows(rules: tuple[dict[str, Any], ...], a: Attributes) -> bool:
    """The documentation's sentence, word for word: each field must list the value or ``*``."""
    resource = a.resource + ("/" + a.subresource if a.subresource else "")
    for r in rules:
        ok = any(v in ("*", a.verb) for v in r["verbs"]) and any(g in ("*", a.group) for g in r["apiGroups"])
        wildcards = ["*", resource] + (["*/" + a.subresource] if a.subresource else [])
        ok = ok and any(x in wildcards for x in r["resources"])
        if ok and (not r.get("resourceNames") or a.name in r["resourceNames"]):
            return True
    return False


def _rules() -> Iterator[dict[str, Any]]:
    for verbs, groups, resources, names in itertools.product(
        ("get", "*", "list,get"), ("", "apps", "*"), ("pods", "pods/log", "*/log", "*", "pods/*"), ("", "a", "a,b")
    ):
        yield rule(verbs, resources, groups, names)


def _questions() -> Iterator[Attributes]:
    for verb, group, resource, subresource, name in itertools.product(
        ("get", "list"), ("", "apps"), ("pods", "jobs"), ("", "log"), ("", "a", "c")
    ):
        yield Attributes(user=USER, verb=verb, group=group, resource=resource, subresource=subresource, name=name, namespace="ns")


def test_every_small_rule_decides_as_the_twin_does() -> None:
    questions = list(_questions())
    for one in _rules():
        authorizer = bound(one)
        for question in questions:
            allowed = authorizer.authorize(question)[0] is Decision.ALLOW
            assert allowed == twin_allows((one,), question), (one, question)


def test_pairs_of_rules_decide_as_the_twin_does() -> None:
    questions = list(_questions())
    rules = list(_rules())[::7]
    for pair in itertools.permutations(rules, 2):
        authorizer = bound(*pair)
        for question in questions:
            allowed = authorizer.authorize(question)[0] is Decision.ALLOW
            assert allowed == twin_allows(pair, question), (pair, question)


@pytest.mark.parametrize(
    ("pattern", "path", "allowed"),
    [
        ("/logs/*", "/logs/x/y", True),
        ("/logs/*", "/logs", False),
        ("/logs*", "/logs", True),
        ("*", "/anything", True),
        ("/api", "/apis", False),
        ("/a*b", "/axb", False),
    ],
)
def test_paths(pattern: str, path: str, allowed: bool) -> None:
    data = data_of(
        ("clusterroles", "", "r", {"rules": [{"verbs": ["get"], "nonResourceURLs": [pattern]}]}),
        ("clusterrolebindings", "", "b", binding("ClusterRole", "r", subject("User", "alice"))),
    )
    question = Attributes(user=USER, verb="get", is_resource_request=False, path=path)
    assert (RbacAuthorizer(data).authorize(question)[0] is Decision.ALLOW) == allowed


def test_paths_in_a_namespaced_role_give_nothing() -> None:
    authorizer = bound({"verbs": ["*"], "nonResourceURLs": ["*"]})
    assert authorizer.authorize(Attributes(user=USER, verb="get", is_resource_request=False, path="/x"))[0] is Decision.NO_OPINION


def question(user: UserInfo, namespace: str = "ns") -> Attributes:
    return Attributes(user=user, verb="get", resource="pods", namespace=namespace)


ROBOT = UserInfo(name="system:serviceaccount:ns:robot")
SUBJECTS = [
    (subject("User", "alice"), USER, 'User "alice"'),
    (subject("Group", "devs"), USER, 'Group "devs"'),
    (subject("ServiceAccount", "robot"), ROBOT, 'ServiceAccount "robot/ns"'),
    (subject("ServiceAccount", "robot", "ns"), ROBOT, 'ServiceAccount "robot/ns"'),
]


@pytest.mark.parametrize(("of", "user", "told"), SUBJECTS)
def test_the_reason_names_binding_role_and_subject(of: dict[str, str], user: UserInfo, told: str) -> None:
    data = data_of(
        ("roles", "ns", "reader", {"rules": [rule("get", "pods")]}),
        ("rolebindings", "ns", "some", binding("Role", "reader", subject("User", "nobody"), of)),
    )
    reason = f'RBAC: allowed by RoleBinding "some/ns" of Role "reader" to {told}'
    assert RbacAuthorizer(data).authorize(question(user)) == (Decision.ALLOW, reason)
    assert RbacAuthorizer(data).authorize(question(user, "other"))[0] is Decision.NO_OPINION


def test_a_cluster_role_bound_in_a_namespace_counts_there_only() -> None:
    data = data_of(
        ("clusterroles", "", "reader", {"rules": [rule("get", "pods")]}),
        ("rolebindings", "ns", "b", binding("ClusterRole", "reader", subject("User", "alice"))),
    )
    authorizer = RbacAuthorizer(data)
    assert authorizer.authorize(question(USER))[0] is Decision.ALLOW
    assert authorizer.authorize(question(USER, "other"))[0] is Decision.NO_OPINION
    assert authorizer.authorize(question(USER, ""))[0] is Decision.NO_OPINION


def test_a_service_account_without_namespace_in_a_cluster_binding_is_nobody() -> None:
    data = data_of(
        ("clusterroles", "", "reader", {"rules": [rule("get", "pods")]}),
        ("clusterrolebindings", "", "b", binding("ClusterRole", "reader", subject("ServiceAccount", "robot"))),
    )
    assert RbacAuthorizer(data).authorize(question(ROBOT))[0] is Decision.NO_OPINION


def test_a_missing_role_is_told() -> None:
    data = data_of(("clusterrolebindings", "", "b", binding("ClusterRole", "gone", subject("User", "alice"))))
    reason = 'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found'
    assert RbacAuthorizer(data).authorize(question(USER)) == (Decision.NO_OPINION, reason)


def test_remembered_decisions_follow_every_change() -> None:
    data = RbacData()
    authorizer = RbacAuthorizer(data)

    def allowed() -> bool:
        return authorizer.authorize(question(USER))[0] is Decision.ALLOW

    assert not allowed()
    data.object_changed("roles", "ns", "r", {"rules": [rule("get", "pods")]})
    assert not allowed()
    data.object_changed("rolebindings", "ns", "b", binding("Role", "r", subject("User", "alice")))
    assert allowed()
    data.object_changed("roles", "ns", "r", {"rules": [rule("list", "pods")]})
    assert not allowed()
    data.object_changed("roles", "ns", "r", {"rules": [rule("get", "pods")]})
    assert allowed()
    data.object_changed("rolebindings", "ns", "b", None)
    assert not allowed()


def test_a_change_that_changes_nothing_keeps_what_is_remembered() -> None:
    data = data_of(("roles", "ns", "r", {"rules": [rule("get", "pods")]}))
    before = data.generation
    data.object_changed("roles", "ns", "r", {"metadata": {"labels": {"a": "b"}}, "rules": [rule("get", "pods")]})
    assert data.generation == before


def test_names_choose_among_rules() -> None:
    authorizer = bound(rule("get,list,create", "configmaps", names="mine"))

    def allowed(verb: str, name: str) -> bool:
        attributes = Attributes(user=USER, verb=verb, resource="configmaps", namespace="ns", name=name)
        return authorizer.authorize(attributes)[0] is Decision.ALLOW

    assert allowed("get", "mine")
    assert not allowed("get", "other")
    assert not allowed("list", "")
    assert allowed("list", "mine")
    assert not allowed("create", "")
