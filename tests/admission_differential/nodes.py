"""NodeRestriction: every branch, as nodes whose rights RBAC would widen (the plugin's own word is asked for)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.admission_differential.steps import Body, Script, claim, container, pod

NODES = ("system:nodes", "system:authenticated")
ONE: dict[str, Any] = {"user": "system:node:one", "groups": NODES}
TWO: dict[str, Any] = {"user": "system:node:two", "groups": NODES}
NAMELESS: dict[str, Any] = {"user": "system:node:", "groups": NODES}
NOT_OF_THE_GROUP: dict[str, Any] = {"user": "system:node:one", "groups": ("system:authenticated", "acting")}
STRANGER: dict[str, Any] = {"user": "kubelet", "groups": NODES}


def node_restriction() -> Iterator[Script]:
    script = Script("node", "nodes")
    script.open()
    role: Body = {"metadata": {"name": "acting"}, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
    script.create("role", "clusterroles", role, group="rbac.authorization.k8s.io", cluster=True)
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name} for name in ("system:nodes", "acting")]
    binding: Body = {
        "metadata": {"name": "acting"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "acting"},
        "subjects": subjects,
    }
    script.create("binding", "clusterrolebindings", binding, group="rbac.authorization.k8s.io", cluster=True)
    for name in ("one", "two", "three"):
        script.create(f"node {name}", "nodes", {"metadata": {"name": name}}, cluster=True)
    _node_objects(script)
    _pods(script)
    _pod_subresources(script)
    _tokens(script)
    _claims(script)
    _leases_and_csi(script)
    yield script


def _node_objects(script: Script) -> None:
    more: dict[str, Any] = {"cluster": True}
    script.create("create itself", "nodes", {"metadata": {"name": "four"}}, user="system:node:four", groups=NODES, **more)
    script.create("create another", "nodes", {"metadata": {"name": "five"}}, **ONE, **more)
    script.create("create generated", "nodes", {"metadata": {"generateName": "generated-"}}, **ONE, **more)
    script.create("create nameless", "nodes", {"metadata": {"name": "five"}}, **NAMELESS, **more)
    script.create("create by a stranger", "nodes", {"metadata": {"name": "by-stranger"}}, **STRANGER, **more)
    script.create("create by another group", "nodes", {"metadata": {"name": "by-other"}}, **NOT_OF_THE_GROUP, **more)
    labels = (
        "kubernetes.io/hostname", "kubernetes.io/arch", "kubernetes.io/os", "beta.kubernetes.io/arch", "beta.kubernetes.io/os",
        "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type",
        "topology.kubernetes.io/region", "topology.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
        "kubelet.kubernetes.io/x", "a.kubelet.kubernetes.io/x",
        "node.kubernetes.io/x", "a.node.kubernetes.io/x", "node-restriction.kubernetes.io/x", "a.node-restriction.kubernetes.io/x",
        "node-role.kubernetes.io/master", "kubernetes.io/role", "x.kubernetes.io/a", "k8s.io/a", "x.k8s.io/a", "acme.com/a", "plain",
        "notkubernetes.io/a", "node.kubernetes.io/windows-build", "cloud.google.com/x", "kubernetes.io",
    )  # fmt: skip
    for label in labels:
        script.patch(f"label {label}", "nodes", "one", {"metadata": {"labels": {label: "v"}}}, query="?dryRun=All", **ONE, **more)
        body: Body = {"metadata": {"name": "five", "labels": {label: "v"}}}
        script.create(f"create with {label}", "nodes", body, query="?dryRun=All", user="system:node:five", groups=NODES, **more)
    several = {"kubernetes.io/a": "v", "x.k8s.io/b": "v", "kubernetes.io/os": "v"}
    script.patch("several labels", "nodes", "one", {"metadata": {"labels": several}}, **ONE, **more)
    script.create(
        "create with several", "nodes", {"metadata": {"name": "five", "labels": several}}, user="system:node:five", groups=NODES, **more
    )
    script.patch("set by an administrator", "nodes", "one", {"metadata": {"labels": {"x.k8s.io/b": "v"}}}, **more)
    script.patch("take away a label", "nodes", "one", {"metadata": {"labels": {"x.k8s.io/b": None}}}, **ONE, **more)
    script.patch("other change beside the label", "nodes", "one", {"metadata": {"annotations": {"a": "b"}}}, **ONE, **more)
    script.patch("another's", "nodes", "two", {"metadata": {"annotations": {"a": "b"}}}, **ONE, **more)
    script.patch("taints", "nodes", "one", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}, **ONE, **more)
    script.patch("unschedulable", "nodes", "one", {"spec": {"unschedulable": True}}, **ONE, **more)
    script.patch("status", "nodes", "one", {"status": {"nodeInfo": {"kubeletVersion": "v1"}}}, sub="status", **ONE, **more)
    script.patch("status of another", "nodes", "two", {"status": {"phase": "x"}}, sub="status", **ONE, **more)
    script.patch(
        "taints by status", "nodes", "one", {"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}}, sub="status", **ONE, **more
    )
    script.patch("labels by status", "nodes", "one", {"metadata": {"labels": {"kubernetes.io/a": "b"}}}, sub="status", **ONE, **more)
    owner = [{"apiVersion": "v1", "kind": "Node", "name": "two", "uid": "u"}]
    script.patch("owner", "nodes", "one", {"metadata": {"ownerReferences": owner}}, **ONE, **more)
    script.create(
        "created with taints",
        "nodes",
        {"metadata": {"name": "six"}, "spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}},
        user="system:node:six",
        groups=NODES,
        **more,
    )
    script.delete("delete another", "nodes", "two", **ONE, **more)
    script.delete("delete itself", "nodes", "six", user="system:node:six", groups=NODES, **more)
    script.delete("delete dry", "nodes", "one", query="?dryRun=All", **ONE, **more)
    script.add("delete all", "DELETE", "/api/v1/nodes?labelSelector=nothing%3Dhere", **ONE)
    script.patch("nameless changes", "nodes", "one", {"metadata": {"annotations": {"a": "b"}}}, **NAMELESS, **more)
    script.patch(
        "not of the group changes", "nodes", "two", {"spec": {"unschedulable": True}}, query="?dryRun=All", **NOT_OF_THE_GROUP, **more
    )


def _pods(script: Script) -> None:
    mirror = {"kubernetes.io/config.mirror": "x"}
    owner: Body = {"apiVersion": "v1", "kind": "Node", "name": "one", "uid": "00000000-0000-0000-0000-000000000000", "controller": True}
    cases: dict[str, tuple[Body, Body]] = {
        "no mirror": ({}, {"nodeName": "one"}),
        "no node": ({"annotations": mirror}, {}),
        "other node": ({"annotations": mirror}, {"nodeName": "two"}),
        "no owner": ({"annotations": mirror}, {"nodeName": "one"}),
        "two owners": (
            {"annotations": mirror, "ownerReferences": [owner, {**owner, "kind": "Pod", "controller": False}]},
            {"nodeName": "one"},
        ),
        "owner is a pod": ({"annotations": mirror, "ownerReferences": [{**owner, "kind": "Pod"}]}, {"nodeName": "one"}),
        "owner is another node": ({"annotations": mirror, "ownerReferences": [{**owner, "name": "two"}]}, {"nodeName": "one"}),
        "owner of other version": ({"annotations": mirror, "ownerReferences": [{**owner, "apiVersion": "v2"}]}, {"nodeName": "one"}),
        "owner does not control": ({"annotations": mirror, "ownerReferences": [{**owner, "controller": False}]}, {"nodeName": "one"}),
        "owner blocks": ({"annotations": mirror, "ownerReferences": [{**owner, "blockOwnerDeletion": True}]}, {"nodeName": "one"}),
        "owner's uid": ({"annotations": mirror, "ownerReferences": [owner]}, {"nodeName": "one"}),
        "gone owner": ({"annotations": mirror, "ownerReferences": [{**owner, "name": "gone"}]}, {"nodeName": "one"}),
    }
    for name, (metadata, spec) in cases.items():
        made = pod("m", metadata=metadata, **spec)
        made["spec"].pop("automountServiceAccountToken")
        script.create(f"pod {name}", "pods", made, **ONE)
    gone = pod("m", metadata={"annotations": mirror, "ownerReferences": [{**owner, "name": "gone"}]}, nodeName="gone")
    script.create("pod of a node that is not there", "pods", gone, user="system:node:gone", groups=NODES)
    script.create("pod nameless", "pods", pod("m"), **NAMELESS)
    for name in ("one", "two"):
        script.create(f"pod on {name}", "pods", pod(f"on-{name}", container(), nodeName=name))
    script.create("pod on none", "pods", pod("on-none"))
    for name in ("one", "two", "none"):
        script.patch(f"update on {name}", "pods", f"on-{name}", {"metadata": {"labels": {"a": "b"}}}, **ONE)
        script.delete(f"delete dry on {name}", "pods", f"on-{name}", query="?dryRun=All", **ONE)
    script.delete("delete what is gone", "pods", "gone", **ONE)
    script.add("delete collection", "DELETE", script.path("pods") + "?labelSelector=nothing%3Dhere", **ONE)


def _pod_subresources(script: Script) -> None:
    for name in ("one", "two"):
        script.patch(f"status on {name}", "pods", f"on-{name}", {"status": {"phase": "Running"}}, sub="status", **ONE)
        script.patch(f"labels by status on {name}", "pods", f"on-{name}", {"metadata": {"labels": {"a": "b"}}}, sub="status", **ONE)
        eviction = {"metadata": {"name": f"on-{name}"}}
        script.create(f"evict dry on {name}", "pods", eviction, name=f"on-{name}", sub="eviction", query="?dryRun=All", **ONE)
    script.create("evict gone", "pods", {"metadata": {"name": "gone"}}, name="gone", sub="eviction", **ONE)
    script.create("evict with another name", "pods", {"metadata": {"name": "on-two"}}, name="on-one", sub="eviction", **ONE)
    script.create("bind", "pods", {"metadata": {"name": "on-none"}, "target": {"name": "one"}}, name="on-none", sub="binding", **ONE)
    script.create("exec", "pods", None or {}, name="on-one", sub="exec", query="?command=a", **ONE)
    script.create("evict on one", "pods", {"metadata": {"name": "on-one"}}, name="on-one", sub="eviction", **ONE)


def _tokens(script: Script) -> None:
    cases: dict[str, Body] = {
        "bare": {},
        "secret": {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s"}},
        "no name": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1"}},
        "other version": {"boundObjectRef": {"kind": "Pod", "apiVersion": "apps/v1", "name": "on-two", "uid": "u"}},
        "no uid": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "on-two"}},
        "gone": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "gone", "uid": "u"}},
        "wrong uid": {
            "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "on-two", "uid": "00000000-0000-0000-0000-000000000000"}
        },
    }
    for name, spec in cases.items():
        script.create(f"token {name}", "serviceaccounts", {"spec": {"audiences": ["api"], **spec}}, name="default", sub="token", **ONE)
    script.create("account", "serviceaccounts", {"metadata": {"name": "by-node"}}, **ONE)
    script.patch("account update", "serviceaccounts", "by-node", {"metadata": {"labels": {"a": "b"}}}, **ONE)


def _claims(script: Script) -> None:
    script.create("claim", "persistentvolumeclaims", claim("c", storageClassName=""))
    script.create("claim by node", "persistentvolumeclaims", claim("d"), **ONE)
    script.patch("claim update", "persistentvolumeclaims", "c", {"metadata": {"labels": {"a": "b"}}}, **ONE)
    script.delete("claim delete", "persistentvolumeclaims", "c", **ONE)
    condition = {"type": "FileSystemResizePending", "status": "True"}
    script.patch(
        "claim status",
        "persistentvolumeclaims",
        "c",
        {"status": {"capacity": {"storage": "2Gi"}, "conditions": [condition]}},
        sub="status",
        **ONE,
    )
    script.patch("claim phase", "persistentvolumeclaims", "c", {"status": {"phase": "Lost"}}, sub="status", **ONE)
    script.patch("claim label by status", "persistentvolumeclaims", "c", {"metadata": {"labels": {"a": "b"}}}, sub="status", **ONE)
    script.patch("claim modes by status", "persistentvolumeclaims", "c", {"status": {"accessModes": ["ReadOnlyMany"]}}, sub="status", **ONE)


def _leases_and_csi(script: Script) -> None:
    system = Script(script.topic, "kube-node-lease")
    script.create("lease namespace", "namespaces", {"metadata": {"name": "kube-node-lease"}}, cluster=True)
    group: dict[str, Any] = {"group": "coordination.k8s.io"}
    for name, who in (("one", ONE), ("two", ONE), ("nameless", NAMELESS), ("stranger", STRANGER)):
        system.create(f"lease {name}", "leases", {"metadata": {"name": name}, "spec": {"holderIdentity": "x"}}, **group, **who)
    system.create("lease generated", "leases", {"metadata": {"generateName": "generated-"}}, **group, **ONE)
    system.patch("lease update", "leases", "one", {"spec": {"holderIdentity": "y"}}, **group, **ONE)
    system.patch("lease update by two", "leases", "one", {"spec": {"holderIdentity": "y"}}, **group, **TWO)
    system.delete("lease delete by two", "leases", "one", **group, **TWO)
    system.delete("lease delete", "leases", "one", **group, **ONE)
    script.steps += system.steps
    script.create("lease elsewhere", "leases", {"metadata": {"name": "one"}}, **group, **ONE)
    storage: dict[str, Any] = {"group": "storage.k8s.io", "cluster": True}
    for name in ("one", "two"):
        script.create(f"csi node {name}", "csinodes", {"metadata": {"name": name}, "spec": {"drivers": []}}, **storage, **ONE)
    script.patch("csi node update by two", "csinodes", "one", {"metadata": {"labels": {"a": "b"}}}, **storage, **TWO)
    script.delete("csi node delete", "csinodes", "one", **storage, **ONE)
    script.create("other kinds", "configmaps", {"metadata": {"name": "free"}}, **ONE)
