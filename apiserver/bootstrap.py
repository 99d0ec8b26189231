"""What a cluster has from its first moment: system namespaces, RBAC's default objects, priority classes, the ``kubernetes`` service,
the APIServices of what is built in.

Everything that is missing is written at once, straight to the store: these are the system's own objects, and no client waits longer than
for one round of writes.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from apiserver.admission.plugins.priority import SYSTEM_PRIORITY_CLASSES
from apiserver.aggregation import priorities
from apiserver.aggregation.registration import builtin_versions
from apiserver.authorization import bootstrap as rbac
from apiserver.machinery import names, objects
from apiserver.machinery.objects import Object
from apiserver.registry import service_addresses
from apiserver.registry.environment import Environment
from apiserver.registry.registry import CachedObjects, Registry
from apiserver.registry.strategies.parts import local_condition

SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")

_RBAC_GROUP = "rbac.authorization.k8s.io"

Prepared = tuple[str, str, dict[str, object]]


async def create_system_objects(registry: Registry, service_cluster_ip_range: str, port: int) -> int:
    """Create what is missing, and bring RBAC's objects up to date; how many objects were written."""
    cached = CachedObjects(registry)
    wanted: list[tuple[str, str, Object]] = [("", "namespaces", _namespace(name)) for name in SYSTEM_NAMESPACES]
    wanted += [("scheduling.k8s.io", "priorityclasses", objects.deep_copy(obj)) for obj in SYSTEM_PRIORITY_CLASSES]
    network = ipaddress.ip_network(service_cluster_ip_range.split(",")[0])
    wanted.append(("", "services", _kubernetes_service(str(network[1]), port)))
    if service_addresses.are_objects(registry):
        cidrs = [text.strip() for text in service_cluster_ip_range.split(",")]
        address = service_addresses.ip_address(registry, str(network[1]), "default", "kubernetes")
        wanted += [
            (service_addresses.GROUP, service_addresses.CIDRS, service_addresses.default_cidr(registry, cidrs)),
            (service_addresses.GROUP, service_addresses.ADDRESSES, address),
        ]
    local = {"conditions": [local_condition(registry.env.clock.text())]}
    api_services = priorities.builtin(builtin_versions(registry))
    wanted += [(priorities.GROUP, priorities.RESOURCE, {**obj, "status": local}) for obj in api_services.values()]
    changed = 0
    for step in rbac.plan_reconciliation(rbac.load_policy(), lambda r, ns, name: cached.get(_RBAC_GROUP, r, ns, name)):
        if step.operation is rbac.Operation.CREATE:
            wanted.append((_RBAC_GROUP, step.resource, step.object))
        else:
            changed += await _replace(registry, step)
    # at nearly every start all is there: then the kinds' rules, which preparing needs, are not even loaded
    missing = [entry for entry in wanted if cached.get(entry[0], entry[1], objects.namespace(entry[2]), objects.name(entry[2])) is None]
    written = [prepared(registry, group, resource, obj) for group, resource, obj in missing]
    return changed + await registry.objects.create_missing(written)


async def _replace(registry: Registry, step: rbac.Step) -> int:
    """An administrator's change keeps what it added; what upstream's policy has more is added. A change that came through another server
    since the step was planned stays as it is until the next start."""
    store = registry.stored(_RBAC_GROUP, step.resource)
    path = store.path(step.namespace, step.name)
    if step.operation is rbac.Operation.RECREATE:
        current = await store.storage.get(path)
        if current is None or current.decode().get("roleRef") == step.object["roleRef"]:
            return 0
        await store.storage.delete(path, current.revision)
        return await registry.objects.create_missing([prepared(registry, _RBAC_GROUP, step.resource, step.object)])
    return int(await store.storage.update(path, step.object, int(objects.resource_version(step.object))) is not None)


def prepared(registry: Registry, group: str, resource: str, obj: Object) -> Prepared:
    """An object with what the registry would have given it."""
    store = registry.stored(group, resource)
    env: Environment = registry.env
    store.strategy.default(obj)
    metadata: dict[str, Any] = {**obj["metadata"], "uid": names.new_uid(env.random), "creationTimestamp": env.clock.text()}
    if store.strategy.has_generation:
        metadata["generation"] = 1
    if store.info.kind == "Namespace":
        metadata["labels"] = {"kubernetes.io/metadata.name": metadata["name"], **(metadata.get("labels") or {})}
    path = store.path(metadata.get("namespace", ""), metadata["name"])
    return store.storage.cache.prefix, path, {**obj, "metadata": metadata}


def _object(api_version: str, kind: str, name: str, namespace: str = "", **more: Any) -> Object:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def _namespace(name: str) -> Object:
    return _object("v1", "Namespace", name, spec={"finalizers": ["kubernetes"]}, status={"phase": "Active"})


_LABELS = {"component": "apiserver", "provider": "kubernetes"}


def _kubernetes_service(cluster_ip: str, port: int) -> Object:
    obj = _object("v1", "Service", "kubernetes", "default")
    obj["metadata"]["labels"] = dict(_LABELS)
    obj["spec"] = {
        "type": "ClusterIP",
        "clusterIP": cluster_ip,
        "clusterIPs": [cluster_ip],
        "ipFamilies": ["IPv6" if ":" in cluster_ip else "IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
        "sessionAffinity": "None",
        "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
    }
    obj["status"] = {"loadBalancer": {}}
    return obj
