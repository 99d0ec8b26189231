"""A hollow node's Node and Lease objects. Pure."""

from __future__ import annotations

import datetime
import hashlib
import uuid

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.hollownode.options import HollowNodeOptions
from controllers.lib.clock import format_micro_time, format_time
from controllers.lib.template_hash import fnv1a_32

LEASE_NAMESPACE = "kube-node-lease"
KUBELET_PORT = 10250


def internal_ip(name: str) -> str:
    """An address of 172.16.0.0/12, the same each time; two nodes of one cluster share one only by chance of one in a million."""
    value = fnv1a_32(name.encode()) % (1 << 20)
    return f"172.{16 + (value >> 16)}.{(value >> 8) & 255}.{value & 255}"


def pod_network(name: str) -> str:
    """The first three parts of the node's pod addresses, in 10.128.0.0/9, which Service addresses (10.0.0.0/9) never touch."""
    value = fnv1a_32(b"pods/" + name.encode()) % (1 << 15)
    return f"10.{128 + (value >> 8)}.{value & 255}"


def labels_of(name: str, options: HollowNodeOptions) -> dict[str, str]:
    return {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "hollow",
        **options.node_labels,
    }


def node_of(name: str, options: HollowNodeOptions, version: str, now: datetime.datetime) -> Object:
    spec: Object = {}
    if options.register_with_taints:
        spec["taints"] = [{"key": key, "value": value, "effect": effect} for key, value, effect in options.register_with_taints]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": labels_of(name, options),
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "spec": spec,
        "status": status_of(name, options, version, {}, now),
    }


def status_of(name: str, options: HollowNodeOptions, version: str, old: Object, now: datetime.datetime) -> Object:
    """Conditions that hold already keep their time of transition and get a new heartbeat."""
    capacity = {
        "cpu": options.cpu,
        "memory": options.memory,
        "ephemeral-storage": options.ephemeral_storage,
        "pods": str(options.max_pods),
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
    }
    machine = uuid.UUID(bytes=hashlib.sha256(name.encode()).digest()[:16])
    return {
        "capacity": capacity,
        "allocatable": dict(capacity),
        "conditions": conditions_of(old, now),
        "addresses": [{"type": "InternalIP", "address": internal_ip(name)}, {"type": "Hostname", "address": name}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": KUBELET_PORT}},
        "nodeInfo": {
            "machineID": machine.hex,
            "systemUUID": str(machine),
            "bootID": str(uuid.uuid5(machine, "boot")),
            "kernelVersion": "hollow",
            "osImage": "Hollow node (runs no containers)",
            "containerRuntimeVersion": "hollow://1.0",
            "kubeletVersion": version,
            "kubeProxyVersion": version,
            "operatingSystem": "linux",
            "architecture": "amd64",
        },
    }


#: of a healthy node: type, status, reason, message
GOOD_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "hollow kubelet is posting ready status"),
)


def conditions_of(old: Object, now: datetime.datetime) -> list[Object]:
    known = {c.get("type"): c for c in objects.get(old, "conditions", default=[])}
    out = []
    for type_, status, reason, message in GOOD_CONDITIONS:
        before = known.get(type_) or {}
        transition = before.get("lastTransitionTime") if before.get("status") == status else None
        out.append(
            {
                "type": type_,
                "status": status,
                "lastHeartbeatTime": format_time(now),
                "lastTransitionTime": transition or format_time(now),
                "reason": reason,
                "message": message,
            }
        )
    return out


def is_stale(node: Object, wanted: Object) -> bool:
    """Whether what the node reports differs from what the server has, heartbeats aside."""
    have = node.get("status") or {}
    known = {c.get("type"): c.get("status") for c in have.get("conditions") or []}
    if any(known.get(c["type"]) != c["status"] for c in wanted["conditions"]):
        return True
    return any(have.get(field) != wanted[field] for field in ("capacity", "allocatable", "addresses", "nodeInfo"))


def lease_of(name: str, node_uid: str, options: HollowNodeOptions, old: Object | None, now: datetime.datetime) -> Object:
    metadata: Object = dict(old["metadata"]) if old is not None else {"name": name, "namespace": LEASE_NAMESPACE}
    if node_uid:
        metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": node_uid}]
    spec = {"holderIdentity": name, "leaseDurationSeconds": options.node_lease_duration_seconds, "renewTime": format_micro_time(now)}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
