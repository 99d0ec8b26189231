"""The default roles: what they give, and how they are put back."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.authentication.user import UserInfo
from apiserver.authorization.authorizer import Attributes, Decision
from apiserver.authorization.bootstrap import AUTO_UPDATE, Operation, PolicyObject, load_policy, plan_reconciliation, reconcile
from apiserver.authorization.rbac import RbacAuthorizer
from apiserver.authorization.rbac_data import RbacData
from apiserver.authorization.rules import rules_from_json
from apiserver.machinery.objects import deep_copy

POLICY = load_policy()
BY_KEY = {(p.resource, p.namespace, p.name): p for p in POLICY}


def cluster_role(name: str) -> PolicyObject:
    return BY_KEY[("clusterroles", "", name)]


def authorizer() -> RbacAuthorizer:
    data = RbacData()
    for p in POLICY:
        data.object_changed(p.resource, p.namespace, p.name, p.object)
    return RbacAuthorizer(data)


def may(user: UserInfo, verb: str, resource: str, group: str = "", namespace: str = "", name: str = "", subresource: str = "") -> bool:
    a = Attributes(user=user, verb=verb, group=group, resource=resource, namespace=namespace, name=name, subresource=subresource)
    return authorizer().authorize(a)[0] is Decision.ALLOW


def controller(name: str) -> UserInfo:
    return UserInfo(name=f"system:serviceaccount:kube-system:{name}")


def test_every_object_is_labelled_and_unique_and_every_role_reference_leads_somewhere() -> None:
    assert len(BY_KEY) == len(POLICY)
    for p in POLICY:
        assert p.object["metadata"]["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
        assert p.object["metadata"]["annotations"][AUTO_UPDATE] == "true"
        if p.resource.endswith("bindings"):
            reference = p.object["roleRef"]
            key = ("roles", p.namespace) if reference["kind"] == "Role" else ("clusterroles", "")
            assert (*key, reference["name"]) in BY_KEY, p.name


#: the cluster roles that the documentation ("Using RBAC Authorization", default roles) names
DOCUMENTED = """
cluster-admin admin edit view system:kube-scheduler system:volume-scheduler system:kube-controller-manager system:node system:node-proxier
system:auth-delegator system:heapster system:kube-aggregator system:kube-dns system:kubelet-api-admin system:node-bootstrapper
system:node-problem-detector system:persistent-volume-provisioner system:monitoring system:basic-user system:discovery
system:public-info-viewer
"""
DOCUMENTED_CONTROLLERS = """
attachdetach-controller certificate-controller clusterrole-aggregation-controller cronjob-controller daemon-set-controller
deployment-controller disruption-controller endpoint-controller expand-controller generic-garbage-collector horizontal-pod-autoscaler
job-controller namespace-controller node-controller persistent-volume-binder pod-garbage-collector pv-protection-controller
pvc-protection-controller replicaset-controller replication-controller resourcequota-controller root-ca-cert-publisher route-controller
service-account-controller service-controller statefulset-controller ttl-controller
"""


@pytest.mark.parametrize("name", [*DOCUMENTED.split(), *(f"system:controller:{c}" for c in DOCUMENTED_CONTROLLERS.split())])
def test_documented_roles_are_there(name: str) -> None:
    cluster_role(name)


def test_what_they_give() -> None:
    alice = UserInfo(name="alice", groups=("system:authenticated",))
    nobody = UserInfo(name="system:anonymous", groups=("system:unauthenticated",))
    a = authorizer()

    def get(user: UserInfo, path: str) -> bool:
        return a.authorize(Attributes(user=user, verb="get", is_resource_request=False, path=path))[0] is Decision.ALLOW

    assert get(alice, "/apis/apps/v1") and get(alice, "/openapi/v3") and not get(alice, "/metrics")
    assert get(nobody, "/version") and get(nobody, "/healthz") and not get(nobody, "/apis/apps/v1")
    assert get(UserInfo(name="prometheus", groups=("system:monitoring",)), "/metrics")
    assert may(alice, "create", "selfsubjectreviews", "authentication.k8s.io")
    assert not may(alice, "list", "pods", namespace="default")
    assert may(controller("replicaset-controller"), "create", "pods", namespace="ns")
    assert not may(controller("replicaset-controller"), "get", "secrets", namespace="ns")
    assert may(controller("namespace-controller"), "deletecollection", "anything", "of.any.group", namespace="ns")
    assert may(UserInfo(name="system:kube-scheduler"), "create", "pods", namespace="ns", subresource="binding")
    assert may(UserInfo(name="root", groups=("system:masters",)), "escalate", "clusterroles", "rbac.authorization.k8s.io")


def test_missing_objects_are_created_and_there_is_nothing_to_do_then() -> None:
    steps = plan_reconciliation(POLICY, lambda *key: None)
    assert [s.operation for s in steps] == [Operation.CREATE] * len(POLICY)
    cluster: dict[tuple[str, str, str], Any] = {(s.resource, s.namespace, s.name): deep_copy(s.object) for s in steps}
    assert plan_reconciliation(POLICY, lambda *key: cluster.get(key)) == []


def test_what_is_missing_in_a_role_is_added_and_what_is_more_stays() -> None:
    wanted = cluster_role("system:kube-dns")
    found = deep_copy(wanted.object)
    own = {"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"]}
    found["rules"] = [{"verbs": ["list", "watch"], "apiGroups": [""], "resources": ["services"]}, own]
    found["metadata"]["labels"] = {"mine": "yes"}
    before = deep_copy(found)
    step = reconcile(wanted, found)
    assert step is not None and step.operation is Operation.UPDATE
    assert found == before
    texts = [r.text() for r in rules_from_json(step.object["rules"])]
    assert texts[1:] == [
        '{APIGroups:[""], Resources:["nodes"], Verbs:["get"]}',
        '{APIGroups:[""], Resources:["endpoints"], Verbs:["list"]}',
        '{APIGroups:[""], Resources:["endpoints"], Verbs:["watch"]}',
    ]
    assert step.object["metadata"]["labels"] == {"mine": "yes", "kubernetes.io/bootstrapping": "rbac-defaults"}


def test_protected_objects_are_left_alone() -> None:
    wanted = cluster_role("system:kube-dns")
    found = deep_copy(wanted.object)
    found["rules"] = []
    found["metadata"]["annotations"][AUTO_UPDATE] = "false"
    assert reconcile(wanted, found) is None


def test_a_binding_of_another_role_is_made_anew() -> None:
    wanted = BY_KEY[("clusterrolebindings", "", "cluster-admin")]
    found = deep_copy(wanted.object)
    found["roleRef"]["name"] = "view"
    step = reconcile(wanted, found)
    assert step is not None and step.operation is Operation.RECREATE and step.object == wanted.object


def test_missing_subjects_are_added() -> None:
    wanted = BY_KEY[("clusterrolebindings", "", "cluster-admin")]
    found = deep_copy(wanted.object)
    found["subjects"] = [{"kind": "User", "name": "root", "apiGroup": "rbac.authorization.k8s.io"}]
    step = reconcile(wanted, found)
    assert step is not None and [s["name"] for s in step.object["subjects"]] == ["root", "system:masters"]


def test_an_aggregated_role_keeps_the_rules_it_has_gathered() -> None:
    wanted = cluster_role("view")
    found = deep_copy(wanted.object)
    found["rules"] = [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]
    assert reconcile(wanted, found) is None
