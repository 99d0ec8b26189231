"""Columns of nodes, namespaces, events, configuration and limits, and of the small groups around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from apiserver.machinery.objects import Object, get, labels
from apiserver.resources import cell_texts as texts
from apiserver.resources.columns import AGE, NAME, Dated, Printer, age, column, name, printer, since

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def _node(obj: Object, now: float) -> list[Any]:
    ready = texts.condition(obj, "Ready")
    states = ["Unknown"] if ready is None else ["Ready" if ready.get("status") == "True" else "NotReady"]
    if get(obj, "spec", "unschedulable"):
        states.append("SchedulingDisabled")
    info = get(obj, "status", "nodeInfo", default={})
    return [
        name(obj),
        ",".join(states),
        ",".join(_roles(obj)) or texts.NONE,
        age(obj, now),
        info.get("kubeletVersion", ""),
        _address(obj, "InternalIP"),
        _address(obj, "ExternalIP"),
        info.get("osImage") or texts.UNKNOWN,
        info.get("kernelVersion") or texts.UNKNOWN,
        info.get("containerRuntimeVersion") or texts.UNKNOWN,
    ]


def _roles(node: Object) -> list[str]:
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels(node) if key.startswith(_ROLE_PREFIX)}
    roles.add(labels(node).get(_ROLE_LABEL, ""))
    return sorted(role for role in roles if role)


def _address(node: Object, type_: str) -> str:
    found = (a for a in get(node, "status", "addresses", default=[]) if a.get("type") == type_)
    return next((str(a.get("address", "")) for a in found), texts.NONE)


def _namespace(obj: Object, now: float) -> list[Any]:
    return [name(obj), get(obj, "status", "phase", default=""), age(obj, now)]


def _event(obj: Object, now: float) -> list[Any]:
    """Of either group: what the newer calls ``deprecated…`` are the fields of the older."""
    first = since(obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime"), now)
    last_moment = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp")
    last = since(last_moment, now) if last_moment else first
    count = obj.get("count") or obj.get("deprecatedCount") or 1
    series = obj.get("series")
    if series:
        last = since(series.get("lastObservedTime"), now)
        count = texts.count(series.get("count"))
    target = obj.get("involvedObject") or obj.get("regarding") or {}
    kind = str(target.get("kind", "")).lower()
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    component = source.get("component") or obj.get("reportingComponent") or obj.get("reportingController") or ""
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{target['name']}" if target.get("name") else kind,
        target.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        str(obj.get("message") or obj.get("note") or "").strip(),
        first,
        count,
        name(obj),
    ]


def _config_map(obj: Object, now: float) -> list[Any]:
    return [name(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age(obj, now)]


def _secret(obj: Object, now: float) -> list[Any]:
    return [name(obj), obj.get("type", ""), len(obj.get("data") or ()), age(obj, now)]


def _service_account(obj: Object, now: float) -> list[Any]:
    return [name(obj), len(obj.get("secrets") or ()), age(obj, now)]


def _component_status(obj: Object, now: float) -> list[Any]:
    healthy = next((c for c in obj.get("conditions") or () if c.get("type") == "Healthy"), None)
    if healthy is None:
        return [name(obj), "Unknown", "", ""]
    return [
        name(obj),
        "Healthy" if healthy.get("status") == "True" else "Unhealthy",
        healthy.get("message", ""),
        healthy.get("error", ""),
    ]


def _resource_quota(obj: Object, now: float) -> list[Any]:
    hard, used = get(obj, "status", "hard", default={}), get(obj, "status", "used", default={})
    shown: dict[bool, list[str]] = {True: [], False: []}
    for resource in sorted(hard):
        shown[resource.startswith("limits.")].append(f"{resource}: {used.get(resource, '0')}/{hard[resource]}")
    created = age(obj, now)
    return [name(obj), created, ", ".join(shown[False]), ", ".join(shown[True]), created]


def _lease(obj: Object, now: float) -> list[Any]:
    return [name(obj), get(obj, "spec", "holderIdentity", default=""), age(obj, now)]


def _priority_class(obj: Object, now: float) -> list[Any]:
    return [
        name(obj),
        texts.count(obj.get("value")),
        bool(obj.get("globalDefault")),
        age(obj, now),
        obj.get("preemptionPolicy", ""),
    ]


def _runtime_class(obj: Object, now: float) -> list[Any]:
    return [name(obj), obj.get("handler", ""), age(obj, now)]


def _flow_schema(obj: Object, now: float) -> list[Any]:
    dangling = texts.condition(obj, "Dangling")
    return [
        name(obj),
        get(obj, "spec", "priorityLevelConfiguration", "name", default=""),
        texts.count(get(obj, "spec", "matchingPrecedence")),
        get(obj, "spec", "distinguisherMethod", "type", default=texts.NONE),
        age(obj, now),
        "?" if dangling is None else dangling.get("status", ""),
    ]


def _by_precedence(obj: Object) -> tuple[int, str]:
    """Flow schemas are listed in the order in which they are asked for a request."""
    return texts.count(get(obj, "spec", "matchingPrecedence")), name(obj)


def _priority_level(obj: Object, now: float) -> list[Any]:
    limited = get(obj, "spec", "limited")
    shares: Any = texts.NONE
    if limited is not None:
        shares = limited.get("nominalConcurrencyShares", limited.get("assuredConcurrencyShares", 0))
    queuing = get(limited, "limitResponse", "queuing")
    queues = [queuing.get(field, 0) for field in ("queues", "handSize", "queueLengthLimit")] if queuing else [texts.NONE] * 3
    return [name(obj), get(obj, "spec", "type", default=""), shares, shares, *queues, age(obj, now)]


def _resource_claim(obj: Object, now: float) -> list[Any]:
    status = obj.get("status") or {}
    deleted = bool(get(obj, "metadata", "deletionTimestamp"))
    states = ["deleted"] if deleted else []
    if status.get("allocation") is not None:
        states.append("allocated")
        if status.get("reservedFor"):
            states.append("reserved")
    elif not deleted:
        states.append("pending")
    spec = obj.get("spec") or {}
    return [name(obj), spec.get("resourceClassName", ""), spec.get("allocationMode", ""), ",".join(states), age(obj, now)]


def _resource_claim_template(obj: Object, now: float) -> list[Any]:
    spec = get(obj, "spec", "spec", default={})
    return [name(obj), spec.get("resourceClassName", ""), spec.get("allocationMode", ""), age(obj, now)]


def _resource_class(obj: Object, now: float) -> list[Any]:
    return [name(obj), obj.get("driverName", ""), age(obj, now)]


def _pod_scheduling(obj: Object, now: float) -> list[Any]:
    return [name(obj), get(obj, "spec", "selectedNode", default=""), age(obj, now)]


def _generated(obj: Object, now: float) -> list[Any]:
    found = obj.get("generatedFrom") or {}
    return [name(obj), f"{found.get('kind', '')}/{found.get('name', '')}" if found else "", age(obj, now)]


def _resource_slice(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec") or {}
    node = spec.get("nodeName") or obj.get("nodeName") or ""
    driver = spec.get("driver") or obj.get("driverName", "")
    return [name(obj), node, driver, get(spec, "pool", "name", default=""), age(obj, now)]


def _named(obj: Object, now: float) -> list[Any]:
    return [name(obj), age(obj, now)]


_REQUEST_DESCRIPTION = "Request represents a minimum amount of cpu/memory that a container may consume."
_LIMIT_DESCRIPTION = "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node."

#: kubectl finds an object's name by the format, wherever the column stands
_WIDE_NAME = replace(NAME, priority=1)

#: the last minor whose claims name a class and a mode of allocation (resource.k8s.io/v1alpha2)
_CLASSES_UNTIL = 30
_CLASS_NAME, _MODE = column("ResourceClassName"), column("AllocationMode")

PRINTERS: dict[tuple[str, str], Callable[[int], Printer]] = {
    ("", "Node"): printer(
        NAME,
        column("Status", description="The status of the node"),
        column("Roles", description="The roles of the node"),
        AGE,
        column("Version", documented="core.v1.NodeSystemInfo.kubeletVersion"),
        column("Internal-IP", priority=1, documented="core.v1.NodeStatus.addresses"),
        column("External-IP", priority=1, documented="core.v1.NodeStatus.addresses"),
        column("OS-Image", priority=1, documented="core.v1.NodeSystemInfo.osImage"),
        column("Kernel-Version", priority=1, documented="core.v1.NodeSystemInfo.kernelVersion"),
        column("Container-Runtime", priority=1, documented="core.v1.NodeSystemInfo.containerRuntimeVersion"),
        cells=_node,
    ),
    ("", "Namespace"): printer(NAME, column("Status", description="The status of the namespace"), AGE, cells=_namespace),
    **{
        (group, "Event"): printer(
            column("Last Seen", documented="core.v1.Event.lastTimestamp"),
            column("Type", documented="core.v1.Event.type"),
            column("Reason", documented="core.v1.Event.reason"),
            column("Object", documented="core.v1.Event.involvedObject"),
            column("Subobject", priority=1, documented="core.v1.ObjectReference.fieldPath"),
            column("Source", priority=1, documented="core.v1.Event.source"),
            column("Message", documented="core.v1.Event.message"),
            column("First Seen", priority=1, documented="core.v1.Event.firstTimestamp"),
            column("Count", priority=1, documented="core.v1.Event.count"),
            _WIDE_NAME,
            cells=_event,
        )
        for group in ("", "events.k8s.io")
    },
    ("", "ConfigMap"): printer(NAME, column("Data", documented="core.v1.ConfigMap.data"), AGE, cells=_config_map),
    ("", "Secret"): printer(
        NAME, column("Type", documented="core.v1.Secret.type"), column("Data", documented="core.v1.Secret.data"), AGE, cells=_secret
    ),
    ("", "ServiceAccount"): printer(
        NAME, Dated(column=column("Secrets", documented="core.v1.ServiceAccount.secrets"), until=34), AGE, cells=_service_account
    ),
    ("", "ComponentStatus"): printer(
        NAME,
        column("Status", description="Status of the component conditions"),
        column("Message", description="Message of the component conditions"),
        column("Error", description="Error of the component conditions"),
        cells=_component_status,
    ),
    ("", "ResourceQuota"): printer(
        NAME,
        Dated(column=AGE, until=32),
        column("Request", description=_REQUEST_DESCRIPTION),
        column("Limit", description=_LIMIT_DESCRIPTION),
        Dated(column=AGE, since=33),
        cells=_resource_quota,
    ),
    ("coordination.k8s.io", "Lease"): printer(
        NAME, column("Holder", documented="coordination.v1.LeaseSpec.holderIdentity"), AGE, cells=_lease
    ),
    ("scheduling.k8s.io", "PriorityClass"): printer(
        NAME,
        column("Value", "integer", documented="scheduling.v1.PriorityClass.value"),
        column("Global-Default", "boolean", documented="scheduling.v1.PriorityClass.globalDefault"),
        AGE,
        Dated(column=column("PreemptionPolicy", documented="scheduling.v1.PriorityClass.preemptionPolicy"), since=30),
        cells=_priority_class,
    ),
    ("node.k8s.io", "RuntimeClass"): printer(NAME, column("Handler"), AGE, cells=_runtime_class),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): printer(
        NAME,
        column("PriorityLevel", documented="flowcontrol.v1.PriorityLevelConfigurationReference.name"),
        column("MatchingPrecedence", documented="flowcontrol.v1.FlowSchemaSpec.matchingPrecedence"),
        column("DistinguisherMethod", documented="flowcontrol.v1.FlowSchemaSpec.distinguisherMethod"),
        AGE,
        column("MissingPL", description="references a broken or non-existent PriorityLevelConfiguration"),
        cells=_flow_schema,
        order=_by_precedence,
    ),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): printer(
        NAME,
        column("Type", documented="flowcontrol.v1.PriorityLevelConfigurationSpec.type"),
        Dated(column=column("AssuredConcurrencyShares"), until=25),
        Dated(
            column=column(
                "NominalConcurrencyShares", documented="flowcontrol.v1.LimitedPriorityLevelConfiguration.nominalConcurrencyShares"
            ),
            since=26,
        ),
        column("Queues", documented="flowcontrol.v1.QueuingConfiguration.queues"),
        column("HandSize", documented="flowcontrol.v1.QueuingConfiguration.handSize"),
        column("QueueLengthLimit", documented="flowcontrol.v1.QueuingConfiguration.queueLengthLimit"),
        AGE,
        cells=_priority_level,
    ),
    ("resource.k8s.io", "ResourceClaim"): printer(
        NAME,
        Dated(column=_CLASS_NAME, until=_CLASSES_UNTIL),
        Dated(column=_MODE, until=_CLASSES_UNTIL),
        column("State", description="A summary of the current state (allocated, pending, reserved, etc.)."),
        AGE,
        cells=_resource_claim,
    ),
    ("resource.k8s.io", "ResourceClaimTemplate"): printer(
        NAME,
        Dated(column=_CLASS_NAME, until=_CLASSES_UNTIL),
        Dated(column=_MODE, until=_CLASSES_UNTIL),
        AGE,
        cells=_resource_claim_template,
    ),
    ("resource.k8s.io", "ResourceClass"): printer(NAME, column("DriverName"), AGE, cells=_resource_class),
    ("resource.k8s.io", "PodScheduling"): printer(NAME, column("SelectedNode"), AGE, cells=_pod_scheduling),
    ("resource.k8s.io", "PodSchedulingContext"): printer(NAME, column("SelectedNode"), AGE, cells=_pod_scheduling),
    ("resource.k8s.io", "ResourceClaimParameters"): printer(NAME, column("GeneratedFrom"), AGE, cells=_generated),
    ("resource.k8s.io", "ResourceClassParameters"): printer(NAME, column("GeneratedFrom"), AGE, cells=_generated),
    ("resource.k8s.io", "DeviceClass"): printer(NAME, AGE, cells=_named),
    ("resource.k8s.io", "ResourceSlice"): printer(
        NAME,
        column("Node", documented="resource.v1.ResourceSliceSpec.nodeName"),
        column("Driver", documented="resource.v1.ResourceSliceSpec.driver"),
        Dated(column=column("Pool", documented="resource.v1.ResourcePool.name"), since=_CLASSES_UNTIL + 1),
        AGE,
        cells=_resource_slice,
    ),
}
