"""Which pods stand behind a Service, on which ports. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.lib import pods as pod_facts


@dataclass(frozen=True, slots=True)
class Port:
    name: str
    port: int
    protocol: str
    app_protocol: str = ""

    def as_object(self) -> Object:
        out: Object = {"name": self.name} if self.name else {}
        out.update(port=self.port, protocol=self.protocol)
        if self.app_protocol:
            out["appProtocol"] = self.app_protocol
        return out


@dataclass(frozen=True, slots=True)
class Backend:
    """``ready`` counts publishNotReadyAddresses; ``serving`` is the pod's own readiness."""

    pod: Object
    ip: str
    ports: tuple[Port, ...]
    ready: bool
    serving: bool
    terminating: bool
    hostname: str

    def target(self) -> Object:
        return {"kind": "Pod", "namespace": objects.namespace(self.pod), "name": objects.name(self.pod), "uid": objects.uid(self.pod)}


def backends_of(service: Object, pods: Iterable[Object]) -> list[Backend]:
    """In the order of their IPs; pods without an address, or that have ended, are none."""
    publish = bool(objects.get(service, "spec", "publishNotReadyAddresses", default=False))
    out = []
    for pod in pods:
        ip = str(objects.get(pod, "status", "podIP", default=""))
        if not ip or pod_facts.is_terminal(pod):
            continue
        serving = pod_facts.is_ready(pod)
        terminating = objects.is_being_deleted(pod)
        subdomain = objects.get(pod, "spec", "subdomain", default="")
        hostname = str(objects.get(pod, "spec", "hostname", default="")) if subdomain == objects.name(service) else ""
        out.append(Backend(pod, ip, ports_of(service, pod), publish or (serving and not terminating), serving, terminating, hostname))
    return sorted(out, key=lambda b: (b.ip, objects.uid(b.pod)))


def ports_of(service: Object, pod: Object) -> tuple[Port, ...]:
    """The Service's ports as they are on this pod; a named target that the pod has not is left out."""
    out = []
    for port in objects.get(service, "spec", "ports", default=[]):
        protocol = str(port.get("protocol") or "TCP")
        number = _target(port, protocol, pod)
        if number is not None:
            out.append(Port(str(port.get("name") or ""), number, protocol, str(port.get("appProtocol") or "")))
    return tuple(out)


def _target(port: Object, protocol: str, pod: Object) -> int | None:
    target = port.get("targetPort")
    if target is None or target == 0 or target == "":
        return int(port["port"])
    if isinstance(target, int):
        return target
    if str(target).isdigit():
        return int(target)
    for container in objects.get(pod, "spec", "containers", default=[]):
        for one in container.get("ports") or []:
            if one.get("name") == target and (one.get("protocol") or "TCP") == protocol:
                return int(one["containerPort"])
    return None


def wants_endpoints(service: Object) -> bool:
    """Others' Endpoints belong to whoever made the Service without a selector."""
    return bool(objects.get(service, "spec", "selector", default={})) and objects.get(service, "spec", "type") != "ExternalName"


def is_headless(service: Object) -> bool:
    return bool(objects.get(service, "spec", "clusterIP", default="") in ("", "None"))
