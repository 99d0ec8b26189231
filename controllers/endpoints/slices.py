"""The EndpointSlices of a Service: what to create, update and delete, with as few changes as may be. Pure.

Endpoints that are still wanted stay in the slice they are in; new ones fill slices that have room; only then are slices made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.client.resources import SERVICES
from controllers.endpoints.backends import Backend, Port, is_headless
from controllers.lib.controller_ref import owner_reference

ENDPOINTS_MAX = 100
SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
MANAGER = "endpointslice-controller.k8s.io"

GroupKey = tuple[str, tuple[tuple[Any, ...], ...]]


@dataclass(slots=True)
class SlicePlan:
    create: list[Object] = field(default_factory=list)
    update: list[Object] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)


def plan(service: Object, backends: Sequence[Backend], current: Iterable[Object], zones: dict[str, str]) -> SlicePlan:
    """``zones`` by node name."""
    out = SlicePlan()
    labels = labels_of(service)
    wanted: dict[GroupKey, dict[str, Object]] = {}
    ports: dict[GroupKey, tuple[Port, ...]] = {}
    for backend in backends:
        key = (_address_type(backend.ip), tuple(sorted((p.name, p.port, p.protocol, p.app_protocol) for p in backend.ports)))
        wanted.setdefault(key, {})[objects.uid(backend.pod)] = endpoint_of(backend, zones)
        ports[key] = backend.ports
    existing: dict[GroupKey, list[Object]] = {}
    for one in current:
        existing.setdefault(_key_of(one), []).append(one)
    if not wanted:
        # a Service without pods keeps one empty slice, which says that it has none
        wanted[("IPv4", ())] = {}
        ports[("IPv4", ())] = ()
    for key in sorted(set(existing) - set(wanted)):
        out.delete += existing[key]
    for key in sorted(wanted):
        _plan_group(service, wanted[key], ports[key], key[0], existing.get(key, []), labels, out)
    return out


def _plan_group(
    service: Object,
    wanted: dict[str, Object],
    ports: tuple[Port, ...],
    address_type: str,
    existing: list[Object],
    labels: dict[str, str],
    out: SlicePlan,
) -> None:
    left = dict(wanted)
    kept: list[tuple[Object, list[Object]]] = []
    for one in existing:
        endpoints = []
        for endpoint in one.get("endpoints") or []:
            uid = str(objects.get(endpoint, "targetRef", "uid", default=""))
            if uid in left:
                endpoints.append(left.pop(uid))
        kept.append((one, endpoints))
    new = list(left.values())
    for one, endpoints in sorted(kept, key=lambda k: -len(k[1])):
        room = ENDPOINTS_MAX - len(endpoints)
        endpoints += new[:room]
        new = new[room:]
        if not endpoints and (wanted or one is not existing[0]):
            out.delete.append(one)
        elif endpoints != (one.get("endpoints") or []) or objects.labels(one) != labels:
            out.update.append({**one, "metadata": {**one["metadata"], "labels": labels}, "endpoints": endpoints})
    if not existing and not new:
        out.create.append(_new_slice(service, ports, address_type, [], labels))
    for start in range(0, len(new), ENDPOINTS_MAX):
        out.create.append(_new_slice(service, ports, address_type, new[start : start + ENDPOINTS_MAX], labels))


def _new_slice(service: Object, ports: tuple[Port, ...], address_type: str, endpoints: list[Object], labels: dict[str, str]) -> Object:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": f"{objects.name(service)}-",
            "namespace": objects.namespace(service),
            "labels": labels,
            "ownerReferences": [owner_reference(service, SERVICES)],
        },
        "addressType": address_type,
        "endpoints": endpoints,
        "ports": [{"name": p.name, **{k: v for k, v in p.as_object().items() if k != "name"}} for p in ports],
    }


def endpoint_of(backend: Backend, zones: dict[str, str]) -> Object:
    out: Object = {
        "addresses": [backend.ip],
        "conditions": {"ready": backend.ready, "serving": backend.serving, "terminating": backend.terminating},
        "targetRef": backend.target(),
    }
    if backend.hostname:
        out["hostname"] = backend.hostname
    node = str(objects.get(backend.pod, "spec", "nodeName", default=""))
    if node:
        out["nodeName"] = node
        if zones.get(node):
            out["zone"] = zones[node]
    return out


def labels_of(service: Object) -> dict[str, str]:
    labels = {**objects.labels(service), SERVICE_NAME: objects.name(service), MANAGED_BY: MANAGER}
    if is_headless(service):
        labels["service.kubernetes.io/headless"] = ""
    return labels


def is_ours(one: Object) -> bool:
    return objects.labels(one).get(MANAGED_BY) == MANAGER


def _key_of(one: Object) -> GroupKey:
    ports = tuple(
        sorted(
            (str(p.get("name") or ""), p.get("port"), str(p.get("protocol") or "TCP"), str(p.get("appProtocol") or ""))
            for p in one.get("ports") or []
        )
    )
    return str(one.get("addressType") or "IPv4"), ports


def _address_type(ip: str) -> str:
    return "IPv6" if ":" in ip else "IPv4"
