"""The groups ``networking.k8s.io`` and ``discovery.k8s.io``."""

from __future__ import annotations

from apiserver.resources.facts import resource
from apiserver.resources.resource_info import ResourceInfo

_GROUP = "networking.k8s.io"

RESOURCES: tuple[ResourceInfo, ...] = (
    resource(_GROUP, "v1", "ingressclasses", "IngressClass", namespaced=False),
    resource(_GROUP, "v1", "ingresses", "Ingress", short_names=("ing",), status=True, storage_prefix="ingress"),
    resource(_GROUP, "v1", "ipaddresses", "IPAddress", namespaced=False, short_names=("ip",), since=33),
    resource(_GROUP, "v1", "networkpolicies", "NetworkPolicy", short_names=("netpol",)),
    resource(_GROUP, "v1", "servicecidrs", "ServiceCIDR", namespaced=False, status=True, since=33),
    resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"),
)
