"""Defaults of Services, Endpoints and EndpointSlices."""

from __future__ import annotations

from apiserver.machinery.objects import Object

AFFINITY_SECONDS = 10800


def default_service(obj: Object) -> None:
    spec = obj.get("spec")
    if spec is None:
        spec = obj["spec"] = {}
    if not spec.get("sessionAffinity"):
        spec["sessionAffinity"] = "None"
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        config = spec.get("sessionAffinityConfig") or {}
        client = config.get("clientIP") or {}
        if client.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}}
    if not spec.get("type"):
        spec["type"] = "ClusterIP"
    for port in spec.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
        if not port.get("targetPort"):
            port["targetPort"] = port.get("port") or 0
        if "name" in port and not port["name"]:
            del port["name"]
        if "nodePort" in port and not port["nodePort"]:
            del port["nodePort"]
    kind = spec["type"]
    exposed = kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs"))
    if exposed and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if spec.get("internalTrafficPolicy") is None and kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        spec["internalTrafficPolicy"] = "Cluster"
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
        spec["allocateLoadBalancerNodePorts"] = True
    _families(spec, kind)
    status = obj.get("status")
    if status is None:
        obj["status"] = {"loadBalancer": {}}
    elif status.get("loadBalancer") is None:
        status["loadBalancer"] = {}
    for ingress in obj["status"]["loadBalancer"].get("ingress") or ():
        if ingress.get("ip") and ingress.get("ipMode") is None:
            ingress["ipMode"] = "VIP"


def _families(spec: Object, kind: str) -> None:
    """Two addresses or families ask for both; who asks for both and names one gets the other too."""
    if kind == "ExternalName":
        return
    if spec.get("ipFamilyPolicy") is None and (len(spec.get("clusterIPs") or ()) == 2 or len(spec.get("ipFamilies") or ()) == 2):
        spec["ipFamilyPolicy"] = "RequireDualStack"
    families = spec.get("ipFamilies") or []
    if spec.get("ipFamilyPolicy") == "RequireDualStack" and len(families) == 1:
        spec["ipFamilies"] = [*families, "IPv6" if families[0] == "IPv4" else "IPv4"]


def default_endpoints(obj: Object) -> None:
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ():
            if not port.get("protocol"):
                port["protocol"] = "TCP"


def default_endpoint_slice(obj: Object) -> None:
    for port in obj.get("ports") or ():
        if port.get("name") is None:
            port["name"] = ""
        if port.get("protocol") is None:
            port["protocol"] = "TCP"
