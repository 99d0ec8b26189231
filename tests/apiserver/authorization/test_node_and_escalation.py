"""The Node authorizer, escalation checks and access reviews."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.authentication.user import UserInfo
from apiserver.authorization import reviews
from apiserver.authorization.authorizer import Attributes, Decision
from apiserver.authorization.bootstrap import load_policy, node_rules
from apiserver.authorization.escalation import check_binding, check_role
from apiserver.authorization.node import NodeAuthorizer
from apiserver.authorization.node_graph import NodeGraph
from apiserver.authorization.rbac import RbacAuthorizer
from apiserver.authorization.rbac_data import RbacData
from apiserver.authorization.selectors import SelectorRequirement
from apiserver.authorization.static import AlwaysAllow, AlwaysDeny
from apiserver.authorization.union import build_authorizer
from apiserver.machinery.status import StatusError

N1 = UserInfo(name="system:node:n1", groups=("system:nodes", "system:authenticated"))
RULES = node_rules(load_policy())

POD = {
    "metadata": {"name": "p"},
    "spec": {
        "nodeName": "n1",
        "serviceAccountName": "robot",
        "imagePullSecrets": [{"name": "pull"}],
        "containers": [
            {
                "name": "c",
                "envFrom": [{"configMapRef": {"name": "env"}}],
                "env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "key"}}}],
            }
        ],
        "volumes": [
            {"name": "a", "persistentVolumeClaim": {"claimName": "claim"}},
            {"name": "b", "projected": {"sources": [{"secret": {"name": "projected"}}]}},
            {"name": "scratch", "ephemeral": {}},
        ],
    },
}
VOLUME = {"spec": {"claimRef": {"namespace": "ns", "name": "claim"}, "csi": {"nodeStageSecretRef": {"name": "stage", "namespace": "ns"}}}}


def node_world() -> tuple[NodeGraph, NodeAuthorizer]:
    graph = NodeGraph()
    graph.object_changed("", "pods", "ns", "p", POD)
    graph.object_changed("", "persistentvolumes", "", "pv", VOLUME)
    graph.object_changed("storage.k8s.io", "volumeattachments", "", "va", {"spec": {"nodeName": "n1"}})
    return graph, NodeAuthorizer(graph, RULES)


def may(authorizer: NodeAuthorizer, verb: str, resource: str, name: str = "", **more: Any) -> bool:
    fields = {"namespace": "ns"} | more
    return authorizer.authorize(Attributes(user=N1, verb=verb, resource=resource, name=name, **fields))[0] is Decision.ALLOW


@pytest.mark.parametrize(
    ("resource", "name", "more"),
    [
        ("secrets", "pull", {}),
        ("secrets", "key", {}),
        ("secrets", "projected", {}),
        ("secrets", "stage", {}),
        ("configmaps", "env", {}),
        ("persistentvolumeclaims", "claim", {}),
        ("persistentvolumeclaims", "p-scratch", {}),
        ("persistentvolumes", "pv", {"namespace": ""}),
        ("volumeattachments", "va", {"namespace": "", "group": "storage.k8s.io"}),
        ("serviceaccounts", "robot", {}),
        ("pods", "p", {}),
        ("nodes", "n1", {"namespace": ""}),
        ("services", "any", {}),
    ],
)
def test_a_node_reads_what_its_pods_lead_to_and_nothing_else(resource: str, name: str, more: dict[str, Any]) -> None:
    graph, authorizer = node_world()
    assert may(authorizer, "get", resource, name, **more)
    if resource != "services":
        assert not may(authorizer, "get", resource, name + "x", **more)
    if resource not in ("services", "nodes", "volumeattachments"):
        graph.object_changed("", "pods", "ns", "p", None)
        assert not may(authorizer, "get", resource, name, **more)


def test_a_pod_that_moves_or_a_claim_that_is_released_takes_the_right_along() -> None:
    graph, authorizer = node_world()
    graph.object_changed("", "persistentvolumes", "", "pv", {"spec": {}})
    assert not may(authorizer, "get", "persistentvolumes", "pv", namespace="")
    assert not may(authorizer, "get", "secrets", "stage")
    graph.object_changed("", "pods", "ns", "p", {**POD, "spec": {**POD["spec"], "nodeName": "n2"}})  # type: ignore[dict-item]
    assert not may(authorizer, "get", "secrets", "pull")


def test_mirror_pods_give_nothing() -> None:
    graph, authorizer = node_world()
    mirror = {"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}, "spec": POD["spec"]}
    graph.object_changed("", "pods", "ns", "p", mirror)
    assert not may(authorizer, "get", "secrets", "pull")


def test_the_rest_of_what_nodes_do() -> None:
    _, authorizer = node_world()
    leases = {"group": "coordination.k8s.io", "namespace": "kube-node-lease"}
    assert may(authorizer, "update", "leases", "n1", **leases)
    assert may(authorizer, "create", "leases", "", **leases)
    assert not may(authorizer, "update", "leases", "n2", **leases)
    assert not may(authorizer, "update", "leases", "n1", group="coordination.k8s.io", namespace="ns")
    assert may(authorizer, "list", "pods", namespace="")
    assert may(authorizer, "patch", "nodes", "n1", namespace="", subresource="status")
    assert may(authorizer, "create", "serviceaccounts", "robot", subresource="token")
    assert not may(authorizer, "create", "serviceaccounts", "other", subresource="token")
    assert not may(authorizer, "list", "secrets")
    assert not may(authorizer, "delete", "secrets", "pull")
    assert not may(authorizer, "create", "deployments", group="apps")
    decision, reason = authorizer.authorize(Attributes(user=N1, verb="get", resource="secrets", namespace="ns", name="x"))
    assert (decision, reason) == (Decision.NO_OPINION, "no relationship found between node 'n1' and this object")
    other = UserInfo(name="alice")
    assert authorizer.authorize(Attributes(user=other, verb="list", resource="pods"))[0] is Decision.NO_OPINION


def test_modes() -> None:
    union = build_authorizer(["A", "B"], {"A": AlwaysDeny(), "B": AlwaysAllow()})
    assert union.authorize(Attributes(user=N1, verb="get"))[0] is Decision.ALLOW
    union = build_authorizer(["A"], {"A": AlwaysDeny()})
    assert union.authorize(Attributes(user=N1, verb="get")) == (Decision.NO_OPINION, "Everything is forbidden.")
    assert union.authorize(Attributes(user=UserInfo(name="r", groups=("system:masters",)), verb="get"))[0] is Decision.ALLOW
    for modes in ([], ["C"], ["A", "A"]):
        with pytest.raises(ValueError):
            build_authorizer(modes, {"A": AlwaysDeny()})


def test_the_generation_of_a_union_moves_with_every_change_that_counts() -> None:
    data, graph = RbacData(), NodeGraph()
    union = build_authorizer(["Node", "RBAC"], {"Node": NodeAuthorizer(graph, RULES), "RBAC": RbacAuthorizer(data)})
    seen = [union.generation()]

    def moved() -> bool:
        seen.append(union.generation())
        return seen[-1] > seen[-2]

    graph.object_changed("", "pods", "ns", "p", POD)
    assert moved()
    graph.object_changed("", "pods", "ns", "p", {**POD, "status": {"phase": "Running"}})
    assert not moved()
    graph.object_changed("", "pods", "ns", "p", None)
    assert moved()
    data.object_changed("clusterroles", "", "r", {"rules": [rule("get", "pods")]})
    assert moved()


ALICE = UserInfo(name="alice", groups=("devs", "system:authenticated"))


def rule(verbs: str, resources: str, groups: str = "") -> dict[str, Any]:
    return {"verbs": verbs.split(","), "apiGroups": groups.split(","), "resources": resources.split(",")}


def rbac(*rules: dict[str, Any]) -> tuple[RbacData, RbacAuthorizer]:
    data = RbacData()
    data.object_changed("roles", "ns", "own", {"rules": list(rules)})
    subjects = [{"kind": "User", "name": "alice"}]
    data.object_changed("rolebindings", "ns", "b", {"roleRef": {"kind": "Role", "name": "own"}, "subjects": subjects})
    return data, RbacAuthorizer(data)


def role(name: str, *rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns"}, "rules": list(rules), **more}


def test_a_role_may_not_grant_more_than_its_author_has() -> None:
    data, authorizer = rbac(rule("get", "configmaps"))
    check_role(role("fine", rule("get", "configmaps")), None, resource="roles", user=ALICE, authorizer=authorizer, data=data)
    new = role("fine", rule("get,list", "configmaps,secrets"))
    with pytest.raises(StatusError) as caught:
        check_role(new, role("fine"), resource="roles", user=ALICE, authorizer=authorizer, data=data)
    assert caught.value.message == (
        'roles.rbac.authorization.k8s.io "fine" is forbidden: user "alice" (groups=["devs" "system:authenticated"]) '
        "is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["configmaps"], Verbs:["list"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}'
    )
    collected = {**new, "metadata": {**new["metadata"], "finalizers": ["a/b"]}}
    check_role(collected, new, resource="roles", user=ALICE, authorizer=authorizer, data=data)


def test_the_verb_escalate_and_masters_may() -> None:
    data, authorizer = rbac(rule("escalate", "roles", "rbac.authorization.k8s.io"))
    more = role("more", rule("*", "*", "*"))
    check_role(more, None, resource="roles", user=ALICE, authorizer=authorizer, data=data)
    master = UserInfo(name="root", groups=("system:masters",))
    check_role(more, None, resource="roles", user=master, authorizer=RbacAuthorizer(RbacData()), data=RbacData())


def test_an_aggregation_needs_every_right() -> None:
    data, authorizer = rbac()
    aggregating = {"metadata": {"name": "a"}, "aggregationRule": {"clusterRoleSelectors": [{}]}, "rules": None}
    with pytest.raises(StatusError, match="must have cluster-admin privileges to use the aggregationRule"):
        check_role(aggregating, None, resource="clusterroles", user=ALICE, authorizer=authorizer, data=data)


def test_a_binding_needs_the_rights_or_the_verb_bind() -> None:
    data, authorizer = rbac(rule("get", "configmaps"))
    data.object_changed("clusterroles", "", "strong", {"rules": [rule("*", "*", "*")]})
    data.object_changed("clusterroles", "", "weak", {"rules": [rule("get", "configmaps")]})

    def bind(kind: str, name: str) -> None:
        binding = {"metadata": {"name": "b", "namespace": "ns"}, "roleRef": {"kind": kind, "name": name}, "subjects": []}
        check_binding(binding, None, resource="rolebindings", user=ALICE, authorizer=authorizer, data=data)

    bind("ClusterRole", "weak")
    with pytest.raises(StatusError) as caught:
        bind("ClusterRole", "strong")
    assert caught.value.message.startswith('rolebindings.rbac.authorization.k8s.io "b" is forbidden: user "alice"')
    with pytest.raises(StatusError) as caught:
        bind("Role", "gone")
    assert caught.value.message == 'roles.rbac.authorization.k8s.io "gone" not found'
    broken = {"roleRef": {"kind": "ClusterRole", "name": "gone"}, "subjects": [{"kind": "User", "name": "alice"}]}
    data.object_changed("rolebindings", "ns", "broken", broken)
    with pytest.raises(StatusError) as caught:
        bind("ClusterRole", "strong")
    assert caught.value.message.endswith('; resolution errors: [clusterroles.rbac.authorization.k8s.io "gone" not found]')
    data.object_changed("rolebindings", "ns", "broken", None)
    by_name = rule("bind", "clusterroles", "rbac.authorization.k8s.io") | {"resourceNames": ["strong"]}
    data.object_changed("roles", "ns", "own", {"rules": [by_name]})
    bind("ClusterRole", "strong")


def test_access_reviews() -> None:
    data, authorizer = rbac(rule("get", "pods,pods/log"))

    def allowed(**attributes: str) -> bool:
        body = {"spec": {"user": "alice", "resourceAttributes": {"namespace": "ns", "verb": "get", **attributes}}}
        answer: bool = reviews.subject_access_review(body, authorizer)["status"]["allowed"]
        return answer

    assert allowed(resource="pods") and allowed(resource="pods", subresource="log")
    assert not allowed(resource="pod") and not allowed(resource="pods", subresource="status")
    body = {"spec": {"resourceAttributes": {"namespace": "ns", "verb": "get", "resource": "pods"}}}
    answer = reviews.self_subject_access_review(body, ALICE, authorizer)
    reason = 'RBAC: allowed by RoleBinding "b/ns" of Role "own" to User "alice"'
    assert answer["status"] == {"allowed": True, "reason": reason}
    assert answer["metadata"] == {} and answer["kind"] == "SelfSubjectAccessReview"
    rules = reviews.self_subject_rules_review({"spec": {"namespace": "ns"}}, ALICE, data)["status"]
    assert rules == {
        "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "pods/log"]}],
        "nonResourceRules": [],
        "incomplete": False,
    }
    local = {"spec": {"user": "alice", "resourceAttributes": {"namespace": "other", "verb": "get", "resource": "pods"}}}
    with pytest.raises(StatusError, match=r"must match metadata\.namespace"):
        reviews.local_subject_access_review(local, "ns", authorizer)


def test_null_for_the_values_of_an_extra_key_is_no_value() -> None:
    body = {"spec": {"user": "u", "extra": {"a": None}, "resourceAttributes": {"verb": "get", "resource": "pods"}}}
    assert reviews.subject_access_review(body, AlwaysAllow())["status"]["allowed"]


@pytest.mark.parametrize(
    ("spec", "field", "why"),
    [
        ({"user": "u"}, "spec.resourceAttributes", "exactly one of nonResourceAttributes or resourceAttributes must be specified"),
        ({"resourceAttributes": {}}, "spec.user", "at least one of user or group must be specified"),
        (
            {"user": "u", "resourceAttributes": {}, "nonResourceAttributes": {}},
            "spec.nonResourceAttributes",
            "cannot be specified in combination with resourceAttributes",
        ),
    ],
)
def test_reviews_that_ask_nothing_clear(spec: dict[str, Any], field: str, why: str) -> None:
    with pytest.raises(StatusError) as caught:
        reviews.subject_access_review({"spec": spec}, AlwaysAllow())
    assert caught.value.code == 422
    [cause] = caught.value.status["details"]["causes"]
    assert cause["field"] == field and cause["message"].endswith(why)
    assert caught.value.message.startswith(f'.authorization.k8s.io "" is invalid: {field}: ')


def test_a_node_says_which_pods_it_lists_and_reads_its_own_node_only() -> None:
    graph, old = node_world()
    new = NodeAuthorizer(graph, RULES, with_selectors=True)
    own = (SelectorRequirement("spec.nodeName", "In", ("n1",)),)
    other = (SelectorRequirement("spec.nodeName", "In", ("n2",)),)
    negated = (SelectorRequirement("spec.nodeName", "NotIn", ("n1",)),)
    for verb in ("list", "watch"):
        assert may(new, verb, "pods", namespace="", field_selector=own)
        assert may(new, verb, "pods", namespace="", field_selector=(*own, *other)), "each requirement narrows"
        assert not any(may(new, verb, "pods", namespace="", field_selector=selector) for selector in ((), other, negated))
        assert may(old, verb, "pods", namespace=""), "as before 1.32"
        assert may(new, verb, "nodes", "n1", namespace="")
        assert not may(new, verb, "nodes", "n2", namespace="") and not may(new, verb, "nodes", namespace="")
        assert may(old, verb, "nodes", namespace="")
    asked = Attributes(user=N1, verb="list", resource="pods")
    assert new.authorize(asked)[1] == "can only list/watch pods with spec.nodeName field selector"


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        ({"fieldSelector": {}}, "fieldSelector.requirements: Required value: when spec.resourceAttributes.fieldSelector is specified"),
        ({"fieldSelector": {"rawSelector": "a=b", "requirements": [{"key": "a"}]}}, "may not specified at the same time as requirements"),
        ({"fieldSelector": {"requirements": [{"operator": "In", "values": ["a"]}]}}, "requirements[0].key: Required value: must be"),
        ({"fieldSelector": {"requirements": [{"key": "a", "operator": "In"}]}}, "requirements[0].values: Required value"),
        ({"labelSelector": {"requirements": [{"key": "a", "operator": "Exists", "values": ["x"]}]}}, "requirements[0].values: Forbidden"),
        ({"labelSelector": {"requirements": [{"key": "-", "operator": "Exists"}]}}, 'requirements[0].key: Invalid value: "-"'),
    ],
)
def test_selectors_of_reviews_are_checked(selector: dict[str, Any], told: str) -> None:
    body = {"spec": {"user": "bob", "resourceAttributes": {"verb": "list", "resource": "pods", **selector}}}
    with pytest.raises(StatusError) as caught:
        reviews.subject_access_review(body, AlwaysAllow())
    assert caught.value.code == 422 and told in caught.value.message


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        ({"fieldSelector": {"rawSelector": "a"}}, "spec.resourceAttributes.fieldSelector ignored due to parse error"),
        ({"labelSelector": {"rawSelector": "a in"}}, "spec.resourceAttributes.labelSelector ignored due to parse error"),
        ({"fieldSelector": {"requirements": [{"key": "a", "operator": "Newer"}]}}, "is not a valid field selector operator"),
        ({"fieldSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["b", "c"]}]}}, "do not yet support multiple values"),
    ],
)
def test_what_is_not_understood_of_a_selector_narrows_nothing_and_is_told(selector: dict[str, Any], told: str) -> None:
    body = {"spec": {"user": "bob", "resourceAttributes": {"verb": "list", "resource": "pods", **selector}}}
    answer = reviews.subject_access_review(body, AlwaysAllow())
    assert answer["status"]["allowed"] is True and told in answer["status"]["evaluationError"]
