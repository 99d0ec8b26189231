"""The FlowSchemas and PriorityLevelConfigurations that every cluster has, and how they are kept.

*Mandatory* ones (``exempt``, ``catch-all``) are put right whatever was done to them. *Suggested* ones are made where they are missing, and
kept as they should be unless an administrator took them over: with the annotation ``apf.kubernetes.io/autoupdate-spec`` ``false``, or,
where it was taken away, by having changed the spec (``metadata.generation`` is no longer 1). One of an earlier release, which the
annotation still calls ours, is deleted ("API Priority and Fairness", "Maintenance of the Mandatory and Suggested Configuration Objects").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.authentication import user
from apiserver.machinery.objects import Object

AUTO_UPDATE = "apf.kubernetes.io/autoupdate-spec"
GROUP = "flowcontrol.apiserver.k8s.io"
LEVELS = "prioritylevelconfigurations"
SCHEMAS = "flowschemas"

CONTROLLER_MANAGER = "system:kube-controller-manager"
SCHEDULER = "system:kube-scheduler"

#: the first minor whose levels lend seats
LENDING_SINCE = 26
#: the first minor in which the exempt level has shares
EXEMPT_SHARES_SINCE = 28
#: the last minor with schemas for leader election by other objects than leases
OLD_ELECTION_UNTIL = 33
_NEWEST = 10_000

_ANY = ["*"]
_EVERYBODY = (user.ALL_UNAUTHENTICATED, user.ALL_AUTHENTICATED)


def _level(name: str, **spec: Any) -> Object:
    return {"kind": "PriorityLevelConfiguration", "metadata": {"name": name, "annotations": {AUTO_UPDATE: "true"}}, "spec": spec}


def _limited(name: str, shares: int, lendable: int, queues: int, hand_size: int, minor: int) -> Object:
    """``queues`` 0: no queues."""
    response: Object = {"type": "Reject"}
    if queues:
        response = {"type": "Queue", "queuing": {"queues": queues, "handSize": hand_size, "queueLengthLimit": 50}}
    if minor < LENDING_SINCE:
        return _level(name, type="Limited", limited={"assuredConcurrencyShares": shares, "limitResponse": response})
    limited = {"nominalConcurrencyShares": shares, "lendablePercent": lendable, "limitResponse": response}
    return _level(name, type="Limited", limited=limited)


def mandatory_levels(minor: int = _NEWEST) -> list[Object]:
    exempt = _level("exempt", type="Exempt")
    if minor >= EXEMPT_SHARES_SINCE:
        exempt["spec"]["exempt"] = {"nominalConcurrencyShares": 0, "lendablePercent": 0}
    return [exempt, _limited("catch-all", 5, 0, 0, 0, minor)]


def suggested_levels(minor: int = _NEWEST) -> list[Object]:
    return [
        _limited("system", 30, 33, 64, 6, minor),
        _limited("node-high", 40, 25, 64, 6, minor),
        _limited("leader-election", 10, 0, 16, 4, minor),
        _limited("workload-high", 40, 50, 128, 6, minor),
        _limited("workload-low", 100, 90, 128, 6, minor),
        _limited("global-default", 20, 50, 128, 6, minor),
    ]


def _schema(name: str, level: str, precedence: int, distinguisher: str, rule: Object) -> Object:
    spec: Object = {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence, "rules": [rule]}
    if distinguisher:
        spec["distinguisherMethod"] = {"type": distinguisher}
    return {"kind": "FlowSchema", "metadata": {"name": name, "annotations": {AUTO_UPDATE: "true"}}, "spec": spec}


def _groups(*names: str) -> list[Object]:
    return [{"kind": "Group", "group": {"name": name}} for name in names]


def _users(*names: str) -> list[Object]:
    return [{"kind": "User", "user": {"name": name}} for name in names]


def _system_accounts(*names: str) -> list[Object]:
    return [{"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": name}} for name in names]


def _on(verbs: list[str], group: str, resources: list[str], *, cluster: bool = False) -> Object:
    """A rule about resources in every namespace; ``cluster``: and in none."""
    rule: Object = {"verbs": verbs, "apiGroups": [group], "resources": resources, "namespaces": _ANY}
    return {**rule, "clusterScope": True} if cluster else rule


def _all_of(subjects: list[Object]) -> Object:
    """A rule about everything that somebody does."""
    return {
        "subjects": subjects,
        "resourceRules": [_on(_ANY, "*", _ANY, cluster=True)],
        "nonResourceRules": [{"verbs": _ANY, "nonResourceURLs": _ANY}],
    }


def mandatory_schemas() -> list[Object]:
    return [
        _schema("exempt", "exempt", 1, "", _all_of(_groups(user.MASTERS))),
        _schema("catch-all", "catch-all", 10_000, "ByUser", _all_of(_groups(*_EVERYBODY))),
    ]


def suggested_schemas(minor: int = _NEWEST) -> list[Object]:
    probes = {
        "subjects": _groups(*_EVERYBODY),
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}],
    }
    change = ["get", "create", "update"]
    leases = _on(change, "coordination.k8s.io", ["leases"])
    election = {"subjects": [*_users(CONTROLLER_MANAGER, SCHEDULER), *_system_accounts("*")], "resourceRules": [leases]}
    nodes = {
        "subjects": _groups(user.NODES),
        "resourceRules": [_on(_ANY, "", ["nodes", "nodes/status"], cluster=True), _on(_ANY, "coordination.k8s.io", ["leases"])],
    }
    out = [
        _schema("probes", "exempt", 2, "", probes),
        _schema("system-leader-election", "leader-election", 100, "ByUser", election),
        _schema("system-node-high", "node-high", 400, "ByUser", nodes),
        _schema("system-nodes", "system", 500, "ByUser", _all_of(_groups(user.NODES))),
        _schema("kube-controller-manager", "workload-high", 800, "ByNamespace", _all_of(_users(CONTROLLER_MANAGER))),
        _schema("kube-scheduler", "workload-high", 800, "ByNamespace", _all_of(_users(SCHEDULER))),
        _schema("kube-system-service-accounts", "workload-high", 900, "ByNamespace", _all_of(_system_accounts("*"))),
        _schema("service-accounts", "workload-low", 9000, "ByUser", _all_of(_groups(user.ALL_SERVICE_ACCOUNTS))),
        _schema("global-default", "global-default", 9900, "ByUser", _all_of(_groups(*_EVERYBODY))),
    ]
    if minor <= OLD_ELECTION_UNTIL:
        endpoints = {
            "subjects": [*_users(CONTROLLER_MANAGER), *_system_accounts("endpoint-controller", "endpointslicemirroring-controller")],
            "resourceRules": [_on(change, "", ["endpoints"])],
        }
        by_others = {"subjects": _system_accounts("*"), "resourceRules": [_on(change, "", ["endpoints", "configmaps"]), leases]}
        out += [
            _schema("endpoint-controller", "workload-high", 150, "ByUser", endpoints),
            _schema("workload-leader-election", "leader-election", 200, "ByUser", by_others),
        ]
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be written. ``replace``: current objects with the spec and annotation that they should have."""

    create: tuple[Object, ...]
    replace: tuple[Object, ...]
    delete: tuple[str, ...]


def plan(mandatory: Iterable[Object], suggested: Iterable[Object], current: Mapping[str, Object]) -> Plan:
    """``current``: by name. Objects are compared as they are once defaults are filled in, so the wanted ones must have them."""
    create: list[Object] = []
    replace: list[Object] = []
    wanted: set[str] = set()
    for objs, is_mandatory in ((mandatory, True), (suggested, False)):
        for obj in objs:
            name = obj["metadata"]["name"]
            wanted.add(name)
            found = current.get(name)
            if found is None:
                create.append(obj)
            elif (changed := _put_right(found, obj, is_mandatory)) is not None:
                replace.append(changed)
    gone = tuple(sorted(name for name, obj in current.items() if name not in wanted and _is_ours(obj)))
    return Plan(create=tuple(create), replace=tuple(replace), delete=gone)


def _is_ours(obj: Object) -> bool:
    return bool((obj["metadata"].get("annotations") or {}).get(AUTO_UPDATE) == "true")


def _put_right(found: Object, wanted: Object, is_mandatory: bool) -> Object | None:
    """The object as it should be; None where it is so, or not ours to change."""
    metadata = found["metadata"]
    annotations = metadata.get("annotations") or {}
    said = annotations.get(AUTO_UPDATE)
    ours = is_mandatory or (said == "true" if said in ("true", "false") else metadata.get("generation") == 1)
    annotation = "true" if ours else "false"
    spec = wanted["spec"]
    if is_mandatory and "exempt" in spec and (found.get("spec") or {}).get("exempt") is not None:
        spec = {**spec, "exempt": found["spec"]["exempt"]}  # what the exempt level lends is an administrator's
    same_spec = not ours or found.get("spec") == spec
    if same_spec and said == annotation:
        return None
    out = {**found, "metadata": {**metadata, "annotations": {**annotations, AUTO_UPDATE: annotation}}}
    if not same_spec:
        out["spec"] = spec
        out["metadata"]["generation"] = int(metadata.get("generation") or 0) + 1
    return out
