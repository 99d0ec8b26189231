"""``Cluster``: the scheduler's picture of nodes and the pods on them, with those it has assigned itself and not yet seen back. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.lib import pods as pod_facts
from controllers.scheduler import resources
from controllers.scheduler.resources import Amounts

Port = tuple[str, str, int]


@dataclass(slots=True)
class NodeInfo:
    """A node and the sum of what runs there. ``node`` is None where only its pods are known (it was just deleted, or is not seen yet)."""

    name: str
    node: Object | None = None
    allocatable: Amounts = field(default_factory=dict)
    pods: dict[str, Object] = field(default_factory=dict)
    requested: Amounts = field(default_factory=dict)
    scored: Amounts = field(default_factory=dict)
    ports: dict[str, list[Port]] = field(default_factory=dict)
    #: pods that stay, by the uid of their controller: spreading siblings needs no walk over all pods
    siblings: Counter[str] = field(default_factory=Counter)

    def labels(self) -> dict[str, str]:
        return objects.labels(self.node) if self.node is not None else {}


class Cluster:
    def __init__(self) -> None:
        self.nodes: dict[str, NodeInfo] = {}
        self._places: dict[str, str] = {}  # pod uid → node name
        self._assumed: set[str] = set()
        #: pods with required anti-affinity, by uid: each new pod must be checked against them
        self.anti_affine: dict[str, Object] = {}

    def set_node(self, node: Object) -> None:
        info = self.nodes.setdefault(objects.name(node), NodeInfo(objects.name(node)))
        info.node = node
        info.allocatable = resources.amounts(objects.get(node, "status", "allocatable") or objects.get(node, "status", "capacity"))

    def remove_node(self, name: str) -> None:
        info = self.nodes.get(name)
        if info is None:
            return
        info.node = None
        if not info.pods:
            del self.nodes[name]

    def ready_nodes(self) -> list[NodeInfo]:
        """Nodes that exist, in the order of their names."""
        return [self.nodes[name] for name in sorted(self.nodes) if self.nodes[name].node is not None]

    def is_placed(self, uid: str) -> bool:
        return uid in self._places

    def set_pod(self, pod: Object) -> None:
        """A pod that the server says is on a node; finished ones take nothing."""
        uid = objects.uid(pod)
        self._assumed.discard(uid)
        name = pod_facts.node_name(pod)
        if self._places.get(uid) == name and not pod_facts.is_terminal(pod) and self._same_needs(self.nodes[name].pods[uid], pod):
            self.nodes[name].pods[uid] = pod  # only its status or metadata changed: the sums stay
            return
        self._take_out(uid)
        if not pod_facts.is_terminal(pod):
            self._put_in(pod, pod_facts.node_name(pod))

    @staticmethod
    def _same_needs(old: Object, new: Object) -> bool:
        left, right = old.get("spec") or {}, new.get("spec") or {}
        fields = ("containers", "initContainers", "overhead", "affinity")
        return _sibling_key(old) == _sibling_key(new) and all(left.get(f) == right.get(f) for f in fields)

    def remove_pod(self, pod: Object) -> None:
        self._assumed.discard(objects.uid(pod))
        self._take_out(objects.uid(pod))

    def assume(self, pod: Object, node_name: str) -> None:
        """Counts the pod as there, before the server knows."""
        uid = objects.uid(pod)
        assert uid not in self._places, (objects.name(pod), self._places[uid])
        self._assumed.add(uid)
        self._put_in(pod, node_name)

    def forget(self, pod: Object) -> None:
        """The binding failed; unless the server has meanwhile said that the pod is placed."""
        if objects.uid(pod) in self._assumed:
            self.remove_pod(pod)

    def _put_in(self, pod: Object, node_name: str) -> None:
        uid = objects.uid(pod)
        info = self.nodes.setdefault(node_name, NodeInfo(node_name))
        info.pods[uid] = pod
        resources.add(info.requested, resources.requests_of(pod))
        resources.add(info.scored, resources.requests_of(pod, scored=True))
        ports = host_ports(pod)
        if ports:
            info.ports[uid] = ports
        if _sibling_key(pod):
            info.siblings[_sibling_key(pod)] += 1
        if required_anti_affinity(pod):
            self.anti_affine[uid] = pod
        self._places[uid] = node_name

    def _take_out(self, uid: str) -> None:
        name = self._places.pop(uid, None)
        if name is None:
            return
        info = self.nodes[name]
        pod = info.pods.pop(uid)
        resources.add(info.requested, resources.requests_of(pod), -1)
        resources.add(info.scored, resources.requests_of(pod, scored=True), -1)
        info.ports.pop(uid, None)
        key = _sibling_key(pod)
        if key:
            info.siblings[key] -= 1
            if not info.siblings[key]:
                del info.siblings[key]
        self.anti_affine.pop(uid, None)
        if info.node is None and not info.pods:
            del self.nodes[name]

    def node_of(self, uid: str) -> str:
        return self._places[uid]


def _sibling_key(pod: Object) -> str:
    """The uid of its controller; "" for a pod without one, or on its way out."""
    controller = objects.controller_of(pod)
    return "" if controller is None or objects.is_being_deleted(pod) else str(controller.get("uid") or "")


def host_ports(pod: Object) -> list[Port]:
    """(host IP, protocol, port) of what the pod wants of the node itself."""
    found: list[Port] = []
    for container in objects.get(pod, "spec", "containers", default=[]):
        for port in container.get("ports") or []:
            if port.get("hostPort"):
                found.append((port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", int(port["hostPort"])))
    return found


def required_anti_affinity(pod: Object) -> list[Object]:
    terms = objects.get(pod, "spec", "affinity", "podAntiAffinity", default={})
    found: list[Object] = terms.get("requiredDuringSchedulingIgnoredDuringExecution") or []
    return found
