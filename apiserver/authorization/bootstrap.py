"""The default roles and bindings of a cluster, and what to do at start so that they are there (auto-reconciliation).

``reconcile`` compares an object of the policy with the one in the cluster: missing rules, subjects, labels and annotations are added,
nothing is taken away, except that a binding whose role differs is made anew (a roleRef cannot change). An object that says
``rbac.authorization.kubernetes.io/autoupdate: "false"`` is left alone.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from apiserver.authorization.rbac_data import GROUP
from apiserver.authorization.rules import Rule, rules_from_json, uncovered
from apiserver.machinery import objects

AUTO_UPDATE = "rbac.authorization.kubernetes.io/autoupdate"
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_ANNOTATIONS = {AUTO_UPDATE: "true"}
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
_CONTROLLER = "system:controller:"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyObject:
    """``resource``: clusterroles, clusterrolebindings, roles or rolebindings."""

    resource: str
    namespace: str
    name: str
    object: objects.Object


def policy_path() -> Path:
    import manifests

    return Path(manifests.__file__).parent / "bootstrap" / "rbac.json"


def load_policy(path: Path | None = None) -> list[PolicyObject]:
    """All default objects: cluster roles, their bindings, then roles and bindings in namespaces."""
    policy = orjson.loads((path or policy_path()).read_bytes())
    return [
        *_cluster_roles(policy),
        *_cluster_role_bindings(policy),
        *(
            _made("roles", "Role", name, {"rules": [_rule(r) for r in rules]}, namespace=namespace)
            for namespace, roles in policy["roles"].items()
            for name, rules in roles.items()
        ),
        *(
            _binding("rolebindings", "RoleBinding", name, "Role", parts[0], parts[1:], namespace)
            for namespace, bindings in policy["roleBindings"].items()
            for name, parts in bindings.items()
        ),
    ]


def node_rules(policy: list[PolicyObject]) -> tuple[Rule, ...]:
    """The rules of ``system:node``, which the Node authorizer applies."""
    role = next(p for p in policy if p.resource == "clusterroles" and p.name == "system:node")
    return rules_from_json(role.object["rules"])


def _cluster_roles(policy: dict[str, Any]) -> Iterator[PolicyObject]:
    def labels(name: str) -> dict[str, str]:
        target = policy["aggregateTo"].get(name)
        return {_AGGREGATE + target: "true"} if target else {}

    for name in policy["aggregatedClusterRoles"]:
        selector = {"clusterRoleSelectors": [{"matchLabels": {_AGGREGATE + name: "true"}}]}
        yield _made("clusterroles", "ClusterRole", name, {"aggregationRule": selector, "rules": None}, labels(name))
    for name, rules in policy["clusterRoles"].items():
        yield _made("clusterroles", "ClusterRole", name, {"rules": [_rule(r) for r in rules]}, labels(name))
    for name, rules in policy["controllerRoles"].items():
        yield _made("clusterroles", "ClusterRole", _CONTROLLER + name, {"rules": [_rule(r) for r in rules]})


def _cluster_role_bindings(policy: dict[str, Any]) -> Iterator[PolicyObject]:
    for name, subjects in policy["clusterRoleBindings"].items():
        yield _binding("clusterrolebindings", "ClusterRoleBinding", name, "ClusterRole", name, subjects)
    for name in policy["controllerRoles"]:
        role = _CONTROLLER + name
        yield _binding("clusterrolebindings", "ClusterRoleBinding", role, "ClusterRole", role, [f"ServiceAccount/kube-system/{name}"])


def _rule(parts: list[str]) -> dict[str, Any]:
    values = [part.split(",") for part in parts]
    if len(values) == 2:
        return {"verbs": values[0], "nonResourceURLs": values[1]}
    rule: dict[str, Any] = {"verbs": values[0], "apiGroups": values[1], "resources": values[2]}
    if len(values) == 4:
        rule["resourceNames"] = values[3]
    return rule


def _binding(resource: str, kind: str, name: str, role_kind: str, role: str, subjects: list[str], namespace: str = "") -> PolicyObject:
    body: dict[str, Any] = {"roleRef": {"apiGroup": GROUP, "kind": role_kind, "name": role}}
    if subjects:
        body["subjects"] = [_subject(text) for text in subjects]
    return _made(resource, kind, name, body, namespace=namespace)


def _subject(text: str) -> dict[str, str]:
    kind, _, rest = text.partition("/")
    if kind == "ServiceAccount":
        namespace, _, name = rest.partition("/")
        return {"kind": kind, "name": name, "namespace": namespace}
    return {"kind": kind, "apiGroup": GROUP, "name": rest}


def _made(
    resource: str, kind: str, name: str, body: dict[str, Any], labels: dict[str, str] | None = None, namespace: str = ""
) -> PolicyObject:
    metadata: dict[str, Any] = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    metadata |= {"labels": {**_LABELS, **(labels or {})}, "annotations": dict(_ANNOTATIONS)}
    obj = {"kind": kind, "apiVersion": f"{GROUP}/v1", "metadata": metadata, **body}
    return PolicyObject(resource=resource, namespace=namespace, name=name, object=obj)


class Operation(enum.Enum):
    CREATE = "create"
    UPDATE = "update"
    RECREATE = "recreate"  # delete, then create


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    operation: Operation
    resource: str
    namespace: str
    name: str
    object: objects.Object


def plan_reconciliation(policy: list[PolicyObject], existing: Callable[[str, str, str], objects.Object | None]) -> list[Step]:
    """What to do, in order, so that the cluster has the policy. ``existing(resource, namespace, name)`` reads the cluster."""
    steps: list[Step] = []
    for wanted in policy:
        step = reconcile(wanted, existing(wanted.resource, wanted.namespace, wanted.name))
        if step is not None:
            steps.append(step)
    return steps


def reconcile(wanted: PolicyObject, found: objects.Object | None) -> Step | None:
    """None where nothing has to be done. Objects of the answer are new; ``found`` is not changed."""

    def step(operation: Operation, obj: objects.Object) -> Step:
        return Step(operation=operation, resource=wanted.resource, namespace=wanted.namespace, name=wanted.name, object=obj)

    if found is None:
        return step(Operation.CREATE, wanted.object)
    if objects.annotations(found).get(AUTO_UPDATE) == "false":
        return None
    new = objects.deep_copy(found)
    if wanted.resource in ("rolebindings", "clusterrolebindings"):
        if found.get("roleRef") != wanted.object["roleRef"]:
            return step(Operation.RECREATE, wanted.object)
        _add_subjects(new, wanted.object)
    else:
        _add_rules(new, wanted.object)
    _add_metadata(new, wanted.object)
    return step(Operation.UPDATE, new) if new != found else None


def _add_metadata(new: objects.Object, wanted: objects.Object) -> None:
    # what is there wins: an administrator may have said otherwise on purpose
    for field in ("labels", "annotations"):
        merged = {**wanted["metadata"][field], **(new["metadata"].get(field) or {})}
        if merged != new["metadata"].get(field):
            new["metadata"][field] = merged


def _add_rules(new: objects.Object, wanted: objects.Object) -> None:
    if wanted.get("aggregationRule"):
        selectors = objects.get(new, "aggregationRule", "clusterRoleSelectors", default=[])
        missing_selectors = [s for s in wanted["aggregationRule"]["clusterRoleSelectors"] if s not in selectors]
        if missing_selectors:
            new["aggregationRule"] = {**(new.get("aggregationRule") or {}), "clusterRoleSelectors": [*selectors, *missing_selectors]}
        return
    missing = uncovered(rules_from_json(new.get("rules")), rules_from_json(wanted.get("rules")))
    if missing:
        new["rules"] = [*(new.get("rules") or []), *(rule.to_json() for rule in missing)]


def _add_subjects(new: objects.Object, wanted: objects.Object) -> None:
    def key(subject: dict[str, str]) -> tuple[str, ...]:
        return (subject.get("kind", ""), subject.get("name", ""), subject.get("namespace", ""))

    there = {key(subject) for subject in new.get("subjects") or ()}
    missing = [subject for subject in wanted.get("subjects") or () if key(subject) not in there]
    if missing:
        new["subjects"] = [*(new.get("subjects") or []), *missing]
