"""The Endpoints object of a Service. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.endpoints.backends import Backend, Port, is_headless

#: addresses of one Endpoints object; more are cut off and told in an annotation (the EndpointSlices have them all)
ADDRESSES_MAX = 1000
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
LAST_CHANGE = "endpoints.kubernetes.io/last-change-trigger-time"
HEADLESS = "service.kubernetes.io/headless"


def subsets_of(service: Object, backends: Sequence[Backend]) -> list[Object]:
    """One subset for each set of ports; in each, ready addresses apart from the others. Terminating pods are left out."""
    groups: dict[tuple[Port, ...], list[Backend]] = {}
    chosen = sorted((b for b in backends if not b.terminating), key=lambda b: not b.ready)[:ADDRESSES_MAX]
    for backend in chosen:
        if backend.ports or is_headless(service):
            groups.setdefault(backend.ports, []).append(backend)
    out = []
    for ports in sorted(groups, key=lambda group: [(p.name, p.port, p.protocol) for p in group]):
        members = sorted(groups[ports], key=lambda b: (b.ip, objects.uid(b.pod)))
        subset: Object = {}
        for field, ready in (("addresses", True), ("notReadyAddresses", False)):
            found = [_address(b) for b in members if b.ready is ready]
            if found:
                subset[field] = found
        if ports:
            subset["ports"] = [p.as_object() for p in ports]
        out.append(subset)
    return out


def _address(backend: Backend) -> Object:
    out: Object = {"ip": backend.ip}
    if backend.hostname:
        out["hostname"] = backend.hostname
    node = objects.get(backend.pod, "spec", "nodeName", default="")
    if node:
        out["nodeName"] = node
    out["targetRef"] = backend.target()
    return out


def wanted(service: Object, backends: Sequence[Backend], current: Object | None, now_text: str) -> Object | None:
    """The Endpoints to write, or None where they are right."""
    subsets = subsets_of(service, backends)
    labels = {**objects.labels(service), "endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    if is_headless(service):
        labels[HEADLESS] = ""
    capacity = {OVER_CAPACITY: "truncated"} if len(backends) > ADDRESSES_MAX else {}
    if current is None:
        return {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {
                "name": objects.name(service),
                "namespace": objects.namespace(service),
                "labels": labels,
                "annotations": {LAST_CHANGE: now_text, **capacity},
            },
            "subsets": subsets,
        }
    if (current.get("subsets") or []) == subsets and objects.labels(current) == labels:
        return None
    annotations = {k: v for k, v in objects.annotations(current).items() if k != OVER_CAPACITY}
    annotations.update({LAST_CHANGE: now_text, **capacity})
    return {**current, "metadata": {**current["metadata"], "labels": labels, "annotations": annotations}, "subsets": subsets}
