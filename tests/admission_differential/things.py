"""Namespaces, nodes, storage, ingresses, certificates: the plugins that look at one kind each."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterator

from tests.admission_differential.requests_for_certificates import REQUESTS
from tests.admission_differential.steps import Body, Script, claim, pod

NODES = ("system:nodes", "system:authenticated")


def lifecycle() -> Iterator[Script]:
    script = Script("lifecycle", "living")
    config_map: Body = {"metadata": {"name": "c"}}
    script.create("before", "configmaps", config_map)
    script.create("dry run before", "configmaps", config_map, query="?dryRun=All")
    script.patch("patch before", "configmaps", "c", {"data": {"a": "b"}})
    script.delete("delete before", "configmaps", "c")
    script.open()
    script.create("now", "configmaps", config_map)
    script.create("a pod of a class", "pods", pod("p"))
    script.patch("finalizer", "configmaps", "c", {"metadata": {"finalizers": ["acme.com/wait"]}})
    for name in ("default", "kube-system", "kube-public", "kube-node-lease", "nowhere"):
        script.delete(f"delete namespace {name} dry", "namespaces", name, query="?dryRun=All", cluster=True)
    script.delete("terminate", "namespaces", "living", cluster=True)
    script.create("create in terminating", "configmaps", {"metadata": {"name": "d"}})
    script.create("dry create in terminating", "configmaps", {"metadata": {"name": "d"}}, query="?dryRun=All")
    script.create("generated in terminating", "configmaps", {"metadata": {"generateName": "generated-"}})
    script.create("pod in terminating", "pods", pod("q"))
    script.create("token in terminating", "serviceaccounts", {"spec": {}}, name="default", sub="token")
    script.create("lease in terminating", "leases", {"metadata": {"name": "l"}}, group="coordination.k8s.io")
    script.create(
        "review in terminating",
        "localsubjectaccessreviews",
        {
            "metadata": {"namespace": "living"},
            "spec": {"user": "u", "resourceAttributes": {"namespace": "living", "verb": "get", "resource": "pods"}},
        },
        group="authorization.k8s.io",
    )
    script.patch("update in terminating", "configmaps", "c", {"data": {"x": "y"}})
    script.create("eviction in terminating", "pods", {"metadata": {"name": "p"}}, name="p", sub="eviction")
    script.delete("delete in terminating", "pods", "p", query="?gracePeriodSeconds=0")
    script.create("again", "namespaces", {"metadata": {"name": "living"}}, cluster=True)
    yield script
    other = Script("lifecycle nowhere", "nowhere")
    for name, resource, group, body in (
        ("pod", "pods", "", pod("p")),
        ("event", "events", "", {"metadata": {"name": "e"}, "involvedObject": {"namespace": "nowhere"}}),
        ("deployment", "deployments", "apps", {"metadata": {"name": "d"}}),
        ("role", "roles", "rbac.authorization.k8s.io", {"metadata": {"name": "r"}}),
    ):
        other.create(name, resource, body, group=group)
    other.create("binding", "bindings", {"metadata": {"name": "p"}, "target": {"name": "n"}})
    other.create("token", "serviceaccounts", {"spec": {}}, name="default", sub="token")
    yield other


def node_taints() -> Iterator[Script]:
    script = Script("taints")
    key = "node.kubernetes.io/not-ready"
    said: dict[str, list[Body]] = {
        "none": [],
        "same": [{"key": key, "effect": "NoSchedule"}],
        "value": [{"key": key, "effect": "NoSchedule", "value": "x"}],
        "execute": [{"key": key, "effect": "NoExecute"}],
        "other": [{"key": "a", "effect": "NoSchedule"}],
    }
    for name, taints in said.items():
        script.create(name, "nodes", {"metadata": {"name": f"taint-{name}"}, "spec": {"taints": taints}})
    script.patch("update", "nodes", "taint-none", {"spec": {"taints": []}})
    script.create("by a node", "nodes", {"metadata": {"name": "own"}}, user="system:node:own", groups=NODES)
    yield script


def storage() -> Iterator[Script]:
    yield _storage_classes()
    yield _resizing()


def _storage_classes() -> Script:
    script = Script("storage", "storage")
    script.open()
    group: Body = {"group": "storage.k8s.io", "cluster": True}
    current, beta = "storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"
    script.create("no default", "persistentvolumeclaims", claim("none"))
    script.create("class plain", "storageclasses", {"metadata": {"name": "plain"}, "provisioner": "acme.com/a"}, **group)
    script.create("still no default", "persistentvolumeclaims", claim("still"))
    script.create(
        "class false",
        "storageclasses",
        {"metadata": {"name": "false", "annotations": {current: "false"}}, "provisioner": "acme.com/a"},
        **group,
    )
    script.create("false is none", "persistentvolumeclaims", claim("false"))
    script.create(
        "class beta", "storageclasses", {"metadata": {"name": "beta", "annotations": {beta: "true"}}, "provisioner": "acme.com/a"}, **group
    )
    old = {"volume.beta.kubernetes.io/storage-class": "plain"}
    claims: dict[str, Body] = {
        "bare": claim("bare"),
        "empty": claim("empty", storageClassName=""),
        "named": claim("named", storageClassName="plain"),
        "gone": claim("gone", storageClassName="gone"),
        "annotated": claim("annotated", metadata={"annotations": old}),
        "annotated-empty": claim("annotated-empty", metadata={"annotations": {"volume.beta.kubernetes.io/storage-class": ""}}),
        "finalizer": claim("finalizer", metadata={"finalizers": ["kubernetes.io/pvc-protection"]}),
        "finalizers": claim("finalizers", metadata={"finalizers": ["acme.com/a"]}),
        "of-volume": claim("of-volume", volumeName="v"),
    }
    for name, body in claims.items():
        script.create(name, "persistentvolumeclaims", body)
    script.create("dry", "persistentvolumeclaims", claim("dry"), query="?dryRun=All")
    script.patch("no finalizer by update", "persistentvolumeclaims", "bare", {"metadata": {"finalizers": []}})
    script.patch("class by update", "persistentvolumeclaims", "empty", {"spec": {"storageClassName": None}})
    volume: Body = {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}}
    script.create("volume", "persistentvolumes", {"metadata": {"name": "pv"}, **volume}, cluster=True)
    script.create(
        "volume with finalizers", "persistentvolumes", {"metadata": {"name": "pf", "finalizers": ["acme.com/a"]}, **volume}, cluster=True
    )
    script.create(
        "volume has it",
        "persistentvolumes",
        {"metadata": {"name": "ph", "finalizers": ["kubernetes.io/pv-protection"]}, **volume},
        cluster=True,
    )
    script.delete("delete a volume", "persistentvolumes", "pv", cluster=True)
    script.delete("delete a claim", "persistentvolumeclaims", "named")
    script.get("claim is kept", "persistentvolumeclaims", "named")
    script.patch("finalizer off", "persistentvolumeclaims", "named", {"metadata": {"finalizers": None}})
    script.get("claim is gone", "persistentvolumeclaims", "named")
    return script


def _resizing() -> Script:
    script = Script("resize", "resize")
    script.open()
    group: Body = {"group": "storage.k8s.io", "cluster": True}
    claims = "persistentvolumeclaims"
    for name, allows in (("grows", True), ("stays", False), ("silent", None)):
        body: Body = {"metadata": {"name": name}, "provisioner": "acme.com/a", "allowVolumeExpansion": allows}
        script.create(f"class {name}", "storageclasses", body, **group)
    bound: Body = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
    for of in ("grows", "stays", "silent", "gone", ""):
        name = f"of-{of or 'none'}"
        script.create(f"claim {name}", claims, claim(name, storageClassName=of, volumeName="v"))
        grown: Body = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
        script.patch(f"grow pending {name}", claims, name, grown)
        script.patch(f"bind {name}", claims, name, bound, sub="status")
        script.patch(f"grow {name}", claims, name, grown)
        script.patch(f"grow dry {name}", claims, name, {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}, query="?dryRun=All")
        script.patch(f"same {name}", claims, name, {"spec": {"resources": {"requests": {"storage": "2048Mi"}}}})
        script.patch(f"shrink {name}", claims, name, {"spec": {"resources": {"requests": {"storage": "512Mi"}}}})
    old = {"volume.beta.kubernetes.io/storage-class": "grows"}
    script.create("annotated", claims, claim("annotated", metadata={"annotations": old}, volumeName="v"))
    script.patch("bind annotated", claims, "annotated", bound, sub="status")
    script.patch("grow annotated", claims, "annotated", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
    script.patch(
        "grow and change class", claims, "of-grows", {"spec": {"storageClassName": "stays", "resources": {"requests": {"storage": "9Gi"}}}}
    )
    return script


def ingress_class() -> Iterator[Script]:
    script = Script("ingress", "ingress")
    script.open()
    group: Body = {"group": "networking.k8s.io"}
    default = {"ingressclass.kubernetes.io/is-default-class": "true"}
    spec: Body = {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}
    script.create("none", "ingresses", {"metadata": {"name": "none"}, "spec": spec}, **group)
    for name, marks in (("plain", {}), ("false", {"ingressclass.kubernetes.io/is-default-class": "false"}), ("default", default)):
        body: Body = {"metadata": {"name": name, "annotations": marks}, "spec": {"controller": "acme.com/a"}}
        script.create(f"class {name}", "ingressclasses", body, cluster=True, **group)
        script.create(f"after {name}", "ingresses", {"metadata": {"name": f"after-{name}"}, "spec": spec}, **group)
    script.create("dry", "ingresses", {"metadata": {"name": "dry"}, "spec": spec}, query="?dryRun=All", **group)
    script.create("named", "ingresses", {"metadata": {"name": "named"}, "spec": {**spec, "ingressClassName": "plain"}}, **group)
    script.create("gone", "ingresses", {"metadata": {"name": "gone"}, "spec": {**spec, "ingressClassName": "gone"}}, **group)
    for value in ("nginx", ""):
        metadata: Body = {"name": f"annotated-{value or 'empty'}", "annotations": {"kubernetes.io/ingress.class": value}}
        script.create(f"annotated {value}", "ingresses", {"metadata": metadata, "spec": spec}, **group)
    script.patch("update", "ingresses", "none", {"metadata": {"labels": {"a": "b"}}}, **group)
    script.patch("class away", "ingresses", "after-default", {"spec": {"ingressClassName": None}}, **group)
    yield script


_SIGNERS = (
    "kubernetes.io/kube-apiserver-client",
    "kubernetes.io/kubelet-serving",
    "acme.com/one",
    "acme.com/two",
    "kubernetes.io/legacy-unknown",
)


def certificates() -> Iterator[Script]:
    script = Script("certificates")
    group: Body = {"group": "certificates.k8s.io"}
    rbac: Body = {"group": "rbac.authorization.k8s.io"}
    requests = "certificatesigningrequests"
    everything: Body = {
        "metadata": {"name": "certifying"},
        "rules": [
            {"apiGroups": ["certificates.k8s.io"], "resources": [requests, f"{requests}/approval", f"{requests}/status"], "verbs": ["*"]}
        ],
    }
    script.create("role", "clusterroles", everything, **rbac)
    for user, verb, name in (
        ("approver", "approve", "acme.com/one"),
        ("wide", "approve", "acme.com/*"),
        ("signer", "sign", "acme.com/one"),
        ("star", "sign", "*"),
        ("nothing", "", ""),
    ):
        role: Body = {"metadata": {"name": f"of-{user}"}, "rules": []}
        if verb:
            role["rules"] = [{"apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "resourceNames": [name], "verbs": [verb]}]
        script.create(f"role {user}", "clusterroles", role, **rbac)
        for of in ("certifying", f"of-{user}"):
            binding: Body = {
                "metadata": {"name": f"{user}-{of}"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": of},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
            }
            script.create(f"binding {user} {of}", "clusterrolebindings", binding, **rbac)
    for who, signer in itertools.product(REQUESTS, _SIGNERS):
        name = f"{who}-{signer.replace('/', '-')}"
        usages = ["digital signature", "key encipherment", "server auth" if signer.endswith("serving") else "client auth"]
        spec: Body = {"request": base64.b64encode(REQUESTS[who].encode()).decode(), "signerName": signer, "usages": usages}
        script.create(f"request {name}", requests, {"metadata": {"name": name}, "spec": spec}, **group)
    approved: Body = {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "r", "message": "m"}]}}
    failed: Body = {"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "r", "message": "m"}]}}
    for user, signer in itertools.product(("approver", "wide", "signer", "nothing"), ("acme.com/one", "acme.com/two")):
        name = f"plain-{signer.replace('/', '-')}"
        script.patch(f"approve {signer} by {user}", requests, name, approved, sub="approval", user=user, query="?dryRun=All", **group)
        renamed: Body = {**approved, "spec": {"signerName": "acme.com/one"}}
        script.patch(
            f"approve renamed {signer} by {user}", requests, name, renamed, sub="approval", user=user, query="?dryRun=All", **group
        )
    for user, signer in itertools.product(("approver", "signer", "star", "nothing"), ("acme.com/one", "acme.com/two")):
        name = f"plain-{signer.replace('/', '-')}"
        for what, body in (("fail", failed), ("label", {"metadata": {"labels": {"a": "b"}}})):
            script.patch(f"{what} {signer} by {user}", requests, name, body, sub="status", user=user, query="?dryRun=All", **group)
    script.patch("approve by the administrator", requests, "plain-acme.com-one", approved, sub="approval", **group)
    yield script
