"""The plugins that are off by default, all on at once: what each does to pods, and what it refuses."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from tests.admission_differential.steps import Body, Script, container, pod

PLUGINS = (
    "AlwaysAdmit", "NamespaceExists", "LimitPodHardAntiAffinityTopology", "AlwaysPullImages", "PodNodeSelector", "PodTolerationRestriction",
    "ExtendedResourceToleration", "OwnerReferencesPermissionEnforcement",
)  # fmt: skip
_SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"
_DEFAULTS = "scheduler.alpha.kubernetes.io/defaultTolerations"
_ALLOWED = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"


def optional() -> Iterator[Script]:
    yield _images()
    yield _devices()
    yield _anti_affinity()
    yield from _node_selectors()
    yield from _tolerations()
    yield _owners()
    nowhere = Script("exists", "nowhere-at-all")
    nowhere.create("create", "configmaps", {"metadata": {"name": "c"}})
    nowhere.patch("patch", "configmaps", "c", {"data": {"a": "b"}})
    nowhere.delete("delete", "configmaps", "c")
    nowhere.add("delete collection", "DELETE", nowhere.path("configmaps"))
    yield nowhere


def _images() -> Script:
    script = Script("pull", "images")
    script.open()
    for policy in ("Never", "IfNotPresent", "Always", None):
        one = container("a", imagePullPolicy=policy)
        made = pod(f"p-{policy}".lower(), one, container("b"), initContainers=[container("i", imagePullPolicy=policy)])
        script.create(f"policy {policy}", "pods", made)
    script.patch(
        "image", "pods", "p-never", {"spec": {"containers": [container("a", imagePullPolicy="Always"), {"name": "b", "image": "j"}]}}
    )
    script.patch("label", "pods", "p-never", {"metadata": {"labels": {"a": "b"}}})
    return script


def _devices() -> Script:
    script = Script("device", "devices")
    script.open()
    asked: dict[str, Body] = {
        "one": {"acme.com/gpu": "1"},
        "two": {"acme.com/gpu": "1", "example.com/fpga": "2"},
        "zero": {"acme.com/gpu": "0"},
        "native": {"cpu": "1", "hugepages-2Mi": "2Mi", "memory": "1Gi"},
        "domain": {"kubernetes.io/x": "1"},
    }
    for name, requests in asked.items():
        script.create(name, "pods", pod(name, container(requests=requests, limits=requests)))
        script.create(f"{name} init", "pods", pod(f"{name}-init", container(), initContainers=[container("i", requests, requests)]))
    has = [{"key": "acme.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    for name, tolerations in (("there", has), ("other effect", [{**has[0], "effect": "NoExecute"}]), ("any", [{"operator": "Exists"}])):
        script.create(
            name, "pods", pod(name.replace(" ", "-"), container(requests=asked["one"], limits=asked["one"]), tolerations=tolerations)
        )
    script.patch("update", "pods", "one", {"metadata": {"labels": {"a": "b"}}})
    return script


def _anti_affinity() -> Script:
    script = Script("anti affinity", "affinities")
    script.open()
    required, preferred = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
    for name, kind, key in (
        ("host", "podAntiAffinity", "kubernetes.io/hostname"), ("zone", "podAntiAffinity", "topology.kubernetes.io/zone"),
        ("affinity", "podAffinity", "topology.kubernetes.io/zone"),
    ):  # fmt: skip
        term: Body = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": key}
        script.create(name, "pods", pod(name, affinity={kind: {required: [term]}}))
        script.create(
            f"{name} preferred", "pods", pod(f"{name}-preferred", affinity={kind: {preferred: [{"weight": 1, "podAffinityTerm": term}]}})
        )
    host = {"topologyKey": "kubernetes.io/hostname"}
    both = {"podAntiAffinity": {required: [host, {"topologyKey": "rack"}]}}
    script.create("second term", "pods", pod("second", affinity=both))
    script.create("generated", "pods", pod("generated-", affinity=both))
    return script


def _node_selectors() -> Iterator[Script]:
    for name, selector in (
        ("none", None),
        ("plain", "env=test"),
        ("two", "env=test,disk=ssd"),
        ("set", "env in (a, b)"),
        ("bad", "a=b=c"),
        ("empty", ""),
    ):
        script = Script(f"selector {name}", f"selector-{name}")
        script.open(annotations={} if selector is None else {_SELECTOR: selector})
        for own, said in (("none", {}), ("same", {"env": "test"}), ("conflict", {"env": "prod"}), ("more", {"os": "linux"})):
            script.create(own, "pods", pod(own, nodeSelector=said))
        script.patch("update", "pods", "none", {"metadata": {"labels": {"a": "b"}}})
        yield script


def _tolerations() -> Iterator[Script]:
    default = '[{"operator": "Exists", "effect": "NoSchedule", "key": "dedicated"}]'
    allowed = '[{"operator": "Exists", "effect": "NoExecute"}, {"operator": "Exists", "effect": "NoSchedule", "key": "dedicated"}]'
    namespaces: dict[str, dict[str, str]] = {
        "default": {_DEFAULTS: default},
        "allowed": {_ALLOWED: allowed},
        "both": {_DEFAULTS: default, _ALLOWED: allowed},
        "nothing": {_DEFAULTS: "[]", _ALLOWED: "[]"},
        "empty": {_DEFAULTS: "", _ALLOWED: ""},
        "bad": {_DEFAULTS: "{"},
        "badly": {_ALLOWED: '{"a": 1}'},
        "narrow": {_ALLOWED: '[{"key": "a", "operator": "Equal", "value": "b"}]'},
        "short": {_ALLOWED: '[{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}]'},
    }
    said: dict[str, list[Body]] = {
        "none": [],
        "dedicated": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}],
        "dedicated-wider": [{"key": "dedicated", "operator": "Exists"}],
        "dedicated-value": [{"key": "dedicated", "operator": "Equal", "value": "x", "effect": "NoSchedule"}],
        "all": [{"operator": "Exists"}],
        "other": [{"key": "a", "operator": "Equal", "value": "b"}],
    }
    for name, marks in namespaces.items():
        script = Script(f"tolerations {name}", f"tolerations-{name}")
        script.open(annotations=marks)
        for (own, tolerations), busy in itertools.product(said.items(), (False, True)):
            made = pod(f"{own}-{str(busy).lower()}", container(requests={"cpu": "1m"} if busy else None), tolerations=tolerations)
            script.create(f"{own} {busy}", "pods", made)
        script.patch("label", "pods", "none-false", {"metadata": {"labels": {"a": "b"}}})
        more = [{"key": "n", "operator": "Exists"}]
        script.patch("more by update", "pods", "none-false", {"spec": {"tolerations": more}})
        yield script


def _owners() -> Script:
    script = Script("owner", "owners")
    script.open()
    rbac: dict[str, Any] = {"group": "rbac.authorization.k8s.io", "cluster": True}
    writer: dict[str, Any] = {"user": "writer"}
    deleter: dict[str, Any] = {"user": "deleter"}
    wide: dict[str, Any] = {"user": "wide"}
    for user, rules in (
        ("writer", [("", ["configmaps"], ["get", "create", "update", "patch"])]),
        ("deleter", [("", ["configmaps"], ["*"])]),
        (
            "wide",
            [
                ("", ["configmaps"], ["*"]),
                ("", ["pods", "nodes/finalizers"], ["delete", "update"]),
                ("apps", ["replicasets/finalizers"], ["update"]),
            ],
        ),
    ):
        role: Body = {"metadata": {"name": user}, "rules": [{"apiGroups": [g], "resources": r, "verbs": v} for g, r, v in rules]}
        script.create(f"role {user}", "clusterroles", role, **rbac)
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user}
        script.create(
            f"binding {user}", "clusterrolebindings", {"metadata": {"name": user}, "roleRef": reference, "subjects": [subject]}, **rbac
        )
    owner: Body = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    blocks: Body = {**owner, "blockOwnerDeletion": True}
    for who, name in ((writer, "writer"), (deleter, "deleter"), (wide, "wide"), ({}, "administrator")):
        for what, references in (
            ("no", None), ("plain", [owner]), ("blocking", [blocks]),
            ("replicaset", [{**blocks, "apiVersion": "apps/v1", "kind": "ReplicaSet"}]),
            ("node", [{**blocks, "kind": "Node"}]), ("unknown", [{**blocks, "apiVersion": "acme.com/v1", "kind": "Thing"}]),
            ("bad version", [{**blocks, "apiVersion": "a/b/c"}]),
            ("old version", [{**blocks, "apiVersion": "apps/v1beta9", "kind": "ReplicaSet"}]),
        ):  # fmt: skip
            named = f"{name}-{what}".replace(" ", "-")
            script.create(f"{what} by {name}", "configmaps", {"metadata": {"name": named, "ownerReferences": references}}, **who)
    script.create("to change", "configmaps", {"metadata": {"name": "c", "ownerReferences": [owner]}})
    for who, name in ((writer, "writer"), (deleter, "deleter"), (wide, "wide")):
        for what, references in (("same", [owner]), ("blocks", [blocks]), ("none", []), ("other", [{**owner, "uid": "v"}])):
            body: Body = {"metadata": {"ownerReferences": references}}
            script.patch(f"change to {what} by {name}", "configmaps", "c", body, query="?dryRun=All", **who)
        script.patch(f"other change by {name}", "configmaps", "c", {"data": {"a": name}}, **who)
    return script


def provisioning() -> Iterator[Script]:
    script = Script("provision", "made-for-it")
    script.patch("patch makes none", "configmaps", "c", {"data": {"a": "b"}})
    script.delete("delete makes none", "configmaps", "c")
    script.get("none yet", "namespaces", "made-for-it", cluster=True)
    script.create("create", "configmaps", {"metadata": {"name": "c"}})
    script.get("namespace", "namespaces", "made-for-it", cluster=True)
    script.create("again", "configmaps", {"metadata": {"name": "d"}})
    script.delete("terminate", "namespaces", "made-for-it", cluster=True)
    script.create("in the terminating", "configmaps", {"metadata": {"name": "e"}})
    yield script
    dry = Script("provision dry", "made-dry")
    dry.create("dry run", "configmaps", {"metadata": {"name": "c"}}, query="?dryRun=All")
    dry.get("after a dry run", "namespaces", "made-dry", cluster=True)
    dry.create("invalid", "configmaps", {"metadata": {"name": "Not Valid"}})
    dry.get("after an invalid one", "namespaces", "made-dry", cluster=True)
    yield dry


def denying() -> Iterator[Script]:
    script = Script("deny", "default")
    script.create("create", "configmaps", {"metadata": {"name": "c"}})
    script.create("invalid", "configmaps", {"metadata": {"name": "Not Valid"}})
    script.patch("patch what is gone", "configmaps", "c", {"data": {"a": "b"}})
    script.patch("patch", "namespaces", "default", {"metadata": {"labels": {"a": "b"}}}, cluster=True)
    script.delete("delete", "namespaces", "kube-node-lease", cluster=True)
    script.create("review", "selfsubjectaccessreviews", {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}},
                  group="authorization.k8s.io", cluster=True)  # fmt: skip
    script.get("read", "namespaces", "default", cluster=True)
    yield script
