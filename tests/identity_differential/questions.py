"""The questions, in order; later ones rest on what earlier ones made. ``as``: admin, alice, nobody, or ``token:…``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1"
DEFAULT = "/api/v1/namespaces/default"
RULE = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}


@dataclass(frozen=True, slots=True)
class Question:
    name: str
    method: str
    path: str
    body: Any = None
    user: str = "alice"
    headers: tuple[tuple[str, str], ...] = field(default=())


def role(name: str, *rules: dict[str, Any], namespace: str = "default") -> dict[str, Any]:
    kind = "Role" if namespace else "ClusterRole"
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": list(rules)}


def binding(name: str, kind: str, role_name: str, *subjects: dict[str, str], namespace: str = "default") -> dict[str, Any]:
    made = "RoleBinding" if namespace else "ClusterRoleBinding"
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role_name}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": made,
        "metadata": metadata,
        "roleRef": reference,
        "subjects": list(subjects),
    }


ALICE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}
BOB = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}
GROUP = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "testers"}
ROBOT = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}


def questions() -> Iterator[Question]:
    yield from _refusals()
    yield from _tokens()
    yield from _impersonation()
    yield from _reviews()
    yield from _roles()
    yield from _escalation()


def _refusals() -> Iterator[Question]:
    paths = (
        "/api/v1/pods", f"{DEFAULT}/pods", f"{DEFAULT}/pods/p", f"{DEFAULT}/pods/p/log", f"{DEFAULT}/pods/p/status", "/api/v1/nodes",
        "/api/v1/nodes/n", "/api/v1/nodes/n/proxy/", "/apis/apps/v1/deployments", "/apis/apps/v1/namespaces/x/deployments/d/scale",
        "/api/v1/namespaces", "/api/v1/namespaces/default", "/api/v1/namespaces/default/status", "/metrics", "/logs", "/",
        "/apis/nothing.example/v1/things", "/apis/nothing.example/v1/namespaces/x/things/y/z", "/api/v1/watch/pods",
        f"{DEFAULT}/pods?watch=1", f"{DEFAULT}/pods?fieldSelector=metadata.name%3Dp", f"{DEFAULT}/services/s/proxy/a/b",
        "/healthz", "/livez", "/readyz", "/version", "/api", "/apis", "/openapi/v2", "/api/v1", "/apis/apps", "/apis/apps/v1",
        "/.well-known/openid-configuration", "/openid/v1/jwks", "/metrics/", "/healthz/../metrics", "/%2e%2e/metrics", "//metrics",
        "/api/v1/namespaces/default/pods/%2e%2e/secrets", "/API/v1/pods", "/api/v1/PODS", "/api/v1/pods%2f", "/nowhere",
    )  # fmt: skip
    for path in paths:
        for user in ("alice", "nobody"):
            yield Question(f"GET {path} by {user}", "GET", path, user=user)
    for method, path in (
        ("POST", f"{DEFAULT}/pods"), ("PUT", f"{DEFAULT}/pods/p"), ("PATCH", f"{DEFAULT}/pods/p"), ("DELETE", f"{DEFAULT}/pods/p"),
        ("DELETE", f"{DEFAULT}/pods"), ("POST", f"{DEFAULT}/pods/p/eviction"), ("POST", f"{DEFAULT}/pods/p/exec"),
        ("POST", f"{DEFAULT}/serviceaccounts/robot/token"), ("POST", "/api/v1/namespaces"), ("PUT", "/api/v1/namespaces/x/finalize"),
        ("POST", f"{REVIEWS}/subjectaccessreviews"), ("POST", "/apis/authentication.k8s.io/v1/tokenreviews"), ("POST", "/healthz"),
        ("OPTIONS", f"{DEFAULT}/pods"), ("DELETE", "/metrics"), ("POST", f"{RBAC}/clusterroles"), ("POST", f"{DEFAULT}/bindings"),
    ):  # fmt: skip
        yield Question(f"{method} {path}", method, path, {} if method in ("POST", "PUT", "PATCH") else None)


def _tokens() -> Iterator[Question]:
    for number, header in enumerate(
        ("Bearer wrong", "Bearer ", "Bearer", "Basic YWxpY2U6eA==", "bearer wrong", "Bearer a.b.c", "Negotiate x",
         "Bearer abcdef.0123456789abcdef",
         "Bearer eyJhbGciOiJub25lIn0.eyJpc3MiOiJrdWJlcm5ldGVzL3NlcnZpY2VhY2NvdW50In0.", "Bearer " + "x" * 5000)
    ):  # fmt: skip
        yield Question(f"token {number}", "GET", f"{DEFAULT}/pods", user="nobody", headers=(("Authorization", header),))
        yield Question(f"token {number} healthz", "GET", "/healthz", user="nobody", headers=(("Authorization", header),))
    reviews = "/apis/authentication.k8s.io/v1/tokenreviews"
    for body in ({}, {"spec": {}}, {"spec": {"token": ""}}, {"spec": {"token": "wrong"}}, {"spec": {"token": "wrong", "audiences": ["x"]}}):
        yield Question(f"token review {body}", "POST", reviews, body, user="admin")
    path = f"{DEFAULT}/serviceaccounts"
    yield Question("account", "POST", path, {"metadata": {"name": "robot"}}, user="admin")
    for spec in (
        {"expirationSeconds": 1}, {"expirationSeconds": 599}, {"expirationSeconds": 2**33},
        {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "x"}},
        {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "gone"}},
        {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "gone"}},
        {"boundObjectRef": {"kind": "Pod", "apiVersion": "apps/v1", "name": "gone"}},
    ):  # fmt: skip
        yield Question(f"token request {spec}", "POST", f"{path}/robot/token", {"spec": {"audiences": ["api"], **spec}}, user="admin")
    yield Question("token of nobody", "POST", f"{path}/gone/token", {"spec": {"audiences": ["api"]}}, user="admin")
    yield Question(
        "token of another", "POST", f"{path}/robot/token", {"metadata": {"name": "x"}, "spec": {"audiences": ["a"]}}, user="admin"
    )


def _impersonation() -> Iterator[Question]:
    wanted: tuple[tuple[tuple[str, str], ...], ...] = (
        (("Impersonate-User", "bob"),),
        (("Impersonate-User", "bob"), ("Impersonate-Group", "system:masters")),
        (("Impersonate-User", "bob"), ("Impersonate-Group", "testers"), ("Impersonate-Group", "ops")),
        (("Impersonate-User", "bob"), ("Impersonate-Extra-Scope", "read")),
        (("Impersonate-User", "bob"), ("Impersonate-Extra-Acme.Com%2FScope", "read")),
        (("Impersonate-User", "system:serviceaccount:default:robot"),),
        (("Impersonate-User", "system:serviceaccount:default"),),
        (("Impersonate-User", "system:serviceaccount::robot"),),
        (("Impersonate-User", "system:anonymous"),),
        (("Impersonate-User", "system:node:n1"), ("Impersonate-Group", "system:nodes")),
        (("Impersonate-User", ""),),
    )
    for headers in wanted:
        for user in ("admin", "alice", "nobody"):
            for path in (f"{DEFAULT}/secrets", f"{DEFAULT}/secrets/s", "/metrics"):
                yield Question(f"{headers} by {user} GET {path}", "GET", path, user=user, headers=headers)


def _reviews() -> Iterator[Question]:
    asked: tuple[dict[str, Any], ...] = (
        {},
        {"user": "bob"},
        {"resourceAttributes": {"verb": "get", "resource": "pods"}},
        {"user": "bob", "resourceAttributes": {"verb": "get", "resource": "pods"}},
        {"groups": ["system:masters"], "resourceAttributes": {"verb": "get", "resource": "pods"}},
        {"user": "bob", "groups": ["system:masters"], "nonResourceAttributes": {"verb": "get", "path": "/metrics"}},
        {"user": "bob", "nonResourceAttributes": {"verb": "get", "path": "/healthz"}},
        {"user": "system:anonymous", "groups": ["system:unauthenticated"], "nonResourceAttributes": {"verb": "get", "path": "/healthz"}},
        {"user": "bob", "resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"verb": "get", "path": "/x"}},
        {"user": "system:kube-scheduler", "resourceAttributes": {"verb": "create", "resource": "pods", "subresource": "binding"}},
        {"user": "system:kube-controller-manager", "resourceAttributes": {"verb": "list", "resource": "secrets"}},
        {"user": "system:node:n1", "groups": ["system:nodes"], "resourceAttributes": {"verb": "get", "resource": "secrets", "name": "s",
                                                                                        "namespace": "default"}},
        {"user": "system:node:n1", "groups": ["system:nodes"], "resourceAttributes": {"verb": "list", "resource": "secrets"}},
        {"user": "system:node:n1", "groups": ["system:nodes"], "resourceAttributes": {"verb": "create", "resource": "nodes"}},
        {"user": "system:node:", "groups": ["system:nodes"], "resourceAttributes": {"verb": "create", "resource": "nodes"}},
        {"user": "system:node:n1", "resourceAttributes": {"verb": "create", "resource": "nodes"}},
        {"user": "bob", "extra": {"a": ["b"]}, "uid": "u", "resourceAttributes": {"verb": "*", "group": "*", "resource": "*"}},
    )  # fmt: skip
    for spec in asked:
        yield Question(f"subject access {spec}", "POST", f"{REVIEWS}/subjectaccessreviews", {"spec": spec}, user="admin")
        for user in ("alice", "nobody"):
            yield Question(f"self access {spec} {user}", "POST", f"{REVIEWS}/selfsubjectaccessreviews", {"spec": spec}, user=user)
        local = f"{REVIEWS}/namespaces/default/localsubjectaccessreviews"
        yield Question(f"local access {spec}", "POST", local, {"spec": spec}, user="admin")
        inside = {**spec, "resourceAttributes": {**(spec.get("resourceAttributes") or {}), "namespace": "default"}}
        yield Question(f"local access inside {spec}", "POST", local, {"spec": inside}, user="admin")
    named = {"metadata": {"name": "x"}, "spec": {"user": "bob", "resourceAttributes": {"verb": "get", "resource": "pods"}}}
    yield Question("named access review", "POST", f"{REVIEWS}/subjectaccessreviews", named, user="admin")
    for spec in ({}, {"namespace": ""}):
        yield Question(f"rules review {spec}", "POST", f"{REVIEWS}/selfsubjectrulesreviews", {"spec": spec})
    for kind in ("subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"):
        for method in ("GET", "PUT", "DELETE"):
            yield Question(f"{method} {kind}", method, f"{REVIEWS}/{kind}", {} if method == "PUT" else None, user="admin")


def _roles() -> Iterator[Question]:
    names = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["cm-a"], "verbs": ["get", "list", "patch"]}
    made = (
        (f"{RBAC}/namespaces/default/roles", role("named", names)),
        (f"{RBAC}/namespaces/default/roles", role("podsonly", {"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]})),
        (f"{RBAC}/namespaces/default/roles", role("logs", {"apiGroups": [""], "resources": ["*/log"], "verbs": ["get"]})),
        (f"{RBAC}/clusterroles", role("paths", {"nonResourceURLs": ["/metrics", "/logs/*"], "verbs": ["get"]}, namespace="")),
        (f"{RBAC}/namespaces/default/rolebindings", binding("named", "Role", "named", ALICE)),
        (f"{RBAC}/namespaces/default/rolebindings", binding("gone", "Role", "gone", ALICE, BOB)),
        (f"{RBAC}/clusterrolebindings", binding("paths", "ClusterRole", "paths", ALICE, GROUP, ROBOT, namespace="")),
        (f"{DEFAULT}/configmaps", {"metadata": {"name": "cm-a"}}),
        (f"{DEFAULT}/configmaps", {"metadata": {"name": "cm-b"}}),
    )
    for number, (path, body) in enumerate(made):
        yield Question(f"make {number}", "POST", path, body, user="admin")
    configmaps = f"{DEFAULT}/configmaps"
    for path in (f"{configmaps}/cm-a", f"{configmaps}/cm-b", configmaps, f"{configmaps}?fieldSelector=metadata.name%3Dcm-a",
                 f"{configmaps}?fieldSelector=metadata.name%3Dcm-b", f"{DEFAULT}/pods", "/metrics", "/logs/a", "/logs",
                 "/log"):  # fmt: skip
        yield Question(f"named GET {path}", "GET", path)
    yield Question("named POST", "POST", configmaps, {"metadata": {"name": "cm-a"}})
    yield Question("podsonly", "POST", f"{RBAC}/namespaces/default/rolebindings", binding("pods", "Role", "podsonly", ALICE), user="admin")
    for path in (f"{DEFAULT}/pods", f"{DEFAULT}/pods/p", f"{DEFAULT}/pods/p/log", f"{DEFAULT}/pods/p/status"):
        yield Question(f"podsonly GET {path}", "GET", path)
    yield Question("logs", "POST", f"{RBAC}/namespaces/default/rolebindings", binding("logs", "Role", "logs", ALICE), user="admin")
    yield Question("logs GET", "GET", f"{DEFAULT}/pods/p/log")
    for name in ("cm-a", "", "cm-b"):
        attributes = {"verb": "get", "resource": "configmaps", "namespace": "default", "name": name}
        yield Question(f"can-i {name}", "POST", f"{REVIEWS}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": attributes}})
    yield Question("rules", "POST", f"{REVIEWS}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})


def _escalation() -> Iterator[Question]:
    roles, bindings = f"{RBAC}/namespaces/default/roles", f"{RBAC}/namespaces/default/rolebindings"
    writes = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["create", "update", "patch", "get", "delete"]}
    yield Question("may write roles", "POST", f"{RBAC}/clusterroles", role("writer", writes, namespace=""), user="admin")
    made = binding("writer", "ClusterRole", "writer", ALICE, namespace="")
    yield Question("alice may write roles", "POST", f"{RBAC}/clusterrolebindings", made, user="admin")
    secrets = {"apiGroups": [""], "resources": ["secrets", "pods/exec"], "verbs": ["get", "create"]}
    for name, rules in (
        ("secrets", [secrets]),
        ("within", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
        ("beyond", [{"apiGroups": ["", "apps"], "resources": ["pods", "deployments"], "verbs": ["get", "list"]}]),
        ("everything", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]),
        ("names", [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["cm-a", "cm-b"], "verbs": ["get"]}]),
        ("two", [secrets, {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["watch"]}]),
        ("empty", []),
    ):
        yield Question(f"escalate {name}", "POST", roles, role(name, *rules))
    paths = role("morepaths", {"nonResourceURLs": ["/metrics", "/secret/*"], "verbs": ["get", "post"]}, namespace="")
    yield Question("escalate paths", "POST", f"{RBAC}/clusterroles", paths)
    aggregated = {**role("sum", namespace=""), "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
    yield Question("escalate aggregation", "POST", f"{RBAC}/clusterroles", aggregated)
    patch = (("Content-Type", "application/merge-patch+json"),)
    yield Question("escalate by patch", "PATCH", f"{roles}/within", {"rules": [secrets]}, headers=patch)
    yield Question("keep by patch", "PATCH", f"{roles}/within", {"metadata": {"labels": {"a": "b"}}}, headers=patch)
    for name, kind, target in (
        ("admin", "ClusterRole", "cluster-admin"), ("view", "ClusterRole", "view"), ("none", "Role", "missing"),
        ("nocluster", "ClusterRole", "missing"), ("own", "Role", "within"), ("podrole", "Role", "podsonly"),
    ):  # fmt: skip
        yield Question(f"bind {name}", "POST", bindings, binding(f"b-{name}", kind, target, BOB))
    yield Question("bind cluster", "POST", f"{RBAC}/clusterrolebindings", binding("b", "ClusterRole", "edit", BOB, namespace=""))
    allowed = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "resourceNames": ["view"], "verbs": ["bind"]}
    escalates = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["escalate"]}
    yield Question("may bind and escalate", "PUT", f"{RBAC}/clusterroles/writer", role("writer", writes, allowed, escalates, namespace=""),
                   user="admin")  # fmt: skip
    yield Question("bind view now", "POST", bindings, binding("b-view", "ClusterRole", "view", BOB))
    yield Question("bind edit still not", "POST", bindings, binding("b-edit", "ClusterRole", "edit", BOB))
    yield Question("escalate now", "POST", roles, role("secrets", secrets))
    for body in (
        binding("bad", "Role", ""), {**binding("bad", "Role", "x"), "roleRef": {}}, binding("bad", "Thing", "x", ALICE),
        binding("bad", "Role", "x", {"kind": "Robot", "name": "x"}), binding("bad", "Role", "x", {"kind": "ServiceAccount", "name": "x"}),
        binding("bad", "Role", "x", {"kind": "User", "name": ""}),
        binding("bad", "Role", "x", {"kind": "User", "name": "x", "apiGroup": "y"}),
    ):  # fmt: skip
        yield Question(f"invalid binding {body}", "POST", bindings, body, user="admin")
    for rule in (
        {}, {"verbs": ["get"]}, {"verbs": ["get"], "resources": ["pods"]}, {"verbs": ["get"], "apiGroups": [""]},
        {"verbs": ["get"], "nonResourceURLs": ["/x"]}, {"verbs": [], "apiGroups": [""], "resources": ["pods"]},
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "nonResourceURLs": ["/x"]},
    ):  # fmt: skip
        yield Question(f"invalid role {rule}", "POST", roles, role("bad", rule), user="admin")
        yield Question(f"invalid cluster role {rule}", "POST", f"{RBAC}/clusterroles", role("bad", rule, namespace=""), user="admin")
    changed = binding("named", "Role", "podsonly", ALICE)
    yield Question("roleRef stays", "PUT", f"{bindings}/named", changed, user="admin")
