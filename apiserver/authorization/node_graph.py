"""``NodeGraph``: which objects the pods of a node lead to; fed by the watch caches of pods, volumes and attachments.

Edges run from an object to the pods (or, through a claim, the volumes) that use it, and from a pod to its node; asked is whether an
object has a path to a node. Example: pod ``ns/p`` on node ``n1`` mounts claim ``ns/c``, bound to volume ``v`` whose driver needs secret
``ns/s``: then ``n1`` may read ``p``, ``c``, ``v`` and ``s``.

Each watched object contributes edges (a user and what it uses); kept are these by contributor, to take them back when it changes, and
by the used vertex, to walk from an object to the nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apiserver.machinery import objects

Vertex = tuple[str, str, str, str]
"""(group, resource, namespace, name)"""

Edge = tuple[Vertex, Vertex]
"""(user, used): whoever may read the user may read the used"""

RESOURCES = (("", "pods"), ("", "persistentvolumes"), ("storage.k8s.io", "volumeattachments"))

#: what a volume source refers to in the pod's namespace: source → (path to the name, resource)
_VOLUME_SOURCES = (
    (("secret", "secretName"), "secrets"),
    (("configMap", "name"), "configmaps"),
    (("persistentVolumeClaim", "claimName"), "persistentvolumeclaims"),
    (("azureFile", "secretName"), "secrets"),
    (("cephfs", "secretRef", "name"), "secrets"),
    (("cinder", "secretRef", "name"), "secrets"),
    (("csi", "nodePublishSecretRef", "name"), "secrets"),
    (("flexVolume", "secretRef", "name"), "secrets"),
    (("iscsi", "secretRef", "name"), "secrets"),
    (("rbd", "secretRef", "name"), "secrets"),
    (("scaleIO", "secretRef", "name"), "secrets"),
    (("storageos", "secretRef", "name"), "secrets"),
)


class NodeGraph:
    def __init__(self) -> None:
        #: grows whenever an answer of ``leads_to`` may change
        self.generation = 0
        self._edges: dict[Vertex, frozenset[Edge]] = {}
        self._users_of: dict[Vertex, set[Vertex]] = {}
        self._node_of: dict[Vertex, str] = {}
        #: what nobody has decoded yet, with the bytes that would hold its node's name, and the nodes for which that was looked through
        self._waiting: dict[Vertex, tuple[bytes, Callable[[], objects.Object]]] = {}
        self._looked_through_for: set[str] = set()

    def object_waits(self, group: str, resource: str, namespace: str, name: str, stored: bytes, read: Callable[[], objects.Object]) -> None:
        """As ``object_changed`` for an object that is decoded by ``read`` only once a node may need it: when ``stored`` has its name."""
        self._waiting[(group, resource, namespace, name)] = stored, read
        self._looked_through_for.clear()

    def _read_waiting(self, node: str) -> None:
        if node in self._looked_through_for:
            return
        self._looked_through_for.add(node)
        wanted = node.encode()
        for vertex, (stored, read) in list(self._waiting.items()):
            if wanted in stored:
                self.object_changed(*vertex, read())

    def object_changed(self, group: str, resource: str, namespace: str, name: str, obj: objects.Object | None) -> None:
        """Take note of a pod, persistent volume or volume attachment as it is now; None: it was deleted."""
        assert (group, resource) in RESOURCES, (group, resource)
        contributor = (group, resource, namespace, name)
        self._waiting.pop(contributor, None)
        node = ""
        edges: frozenset[Edge] = frozenset()
        if obj is not None and resource == "persistentvolumes":
            edges = _edges_of_volume(obj, contributor)
        elif obj is not None:
            node = str(objects.get(obj, "spec", "nodeName", default=""))
            # a mirror pod is a node's own account of what it runs: it must not widen what that node may read
            if resource == "pods" and node and "kubernetes.io/config.mirror" not in objects.annotations(obj):
                edges = frozenset((contributor, used) for used in _used_by_pod(obj, namespace))
        if node != self._node_of.get(contributor, ""):
            self.generation += 1
            if node:
                self._node_of[contributor] = node
            else:
                del self._node_of[contributor]
        self._replace_edges(contributor, edges)

    def _replace_edges(self, contributor: Vertex, edges: frozenset[Edge]) -> None:
        old = self._edges.get(contributor, frozenset())
        if old == edges:
            return
        self.generation += 1
        for user, used in old - edges:
            users = self._users_of[used]
            users.discard(user)
            if not users:
                del self._users_of[used]
        for user, used in edges - old:
            self._users_of.setdefault(used, set()).add(user)
        if edges:
            self._edges[contributor] = edges
        else:
            del self._edges[contributor]

    def leads_to(self, group: str, resource: str, namespace: str, name: str, node: str) -> bool:
        """Whether the object is, or is used by, something on the node."""
        if self._waiting:
            self._read_waiting(node)
        start = (group, resource, namespace, name)
        seen = {start}
        open_vertices = [start]
        while open_vertices:
            vertex = open_vertices.pop()
            if self._node_of.get(vertex) == node:
                return True
            for user in self._users_of.get(vertex, ()):
                if user not in seen:
                    seen.add(user)
                    open_vertices.append(user)
        return False


def _used_by_pod(pod: objects.Object, namespace: str) -> frozenset[Vertex]:
    spec: dict[str, Any] = pod.get("spec") or {}
    used: set[Vertex] = set()

    def use(resource: str, name: Any, group: str = "") -> None:
        if name:
            used.add((group, resource, namespace, str(name)))

    use("serviceaccounts", spec.get("serviceAccountName"))
    for reference in spec.get("imagePullSecrets") or ():
        use("secrets", reference.get("name"))
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(field) or ():
            for source in container.get("envFrom") or ():
                use("configmaps", objects.get(source, "configMapRef", "name"))
                use("secrets", objects.get(source, "secretRef", "name"))
            for variable in container.get("env") or ():
                use("configmaps", objects.get(variable, "valueFrom", "configMapKeyRef", "name"))
                use("secrets", objects.get(variable, "valueFrom", "secretKeyRef", "name"))
    for volume in spec.get("volumes") or ():
        for path, resource in _VOLUME_SOURCES:
            use(resource, objects.get(volume, *path))
        if volume.get("ephemeral") is not None:
            use("persistentvolumeclaims", f"{objects.name(pod)}-{volume.get('name')}")
        for source in objects.get(volume, "projected", "sources", default=()):
            use("secrets", objects.get(source, "secret", "name"))
            use("configmaps", objects.get(source, "configMap", "name"))
    for status in objects.get(pod, "status", "resourceClaimStatuses", default=()):
        use("resourceclaims", status.get("resourceClaimName"), "resource.k8s.io")
    for claim in spec.get("resourceClaims") or ():
        use("resourceclaims", claim.get("resourceClaimName"), "resource.k8s.io")
    return frozenset(used)


def _edges_of_volume(volume: objects.Object, vertex: Vertex) -> frozenset[Edge]:
    """Its claim uses the volume, the volume uses the secrets of its driver."""
    spec: dict[str, Any] = volume.get("spec") or {}
    claim: dict[str, Any] = spec.get("claimRef") or {}
    namespace = str(claim.get("namespace") or "")
    if not namespace or not claim.get("name"):
        return frozenset()
    edges: set[Edge] = {(("", "persistentvolumeclaims", namespace, str(claim["name"])), vertex)}
    references = [
        objects.get(spec, "csi", field)
        for field in ("nodePublishSecretRef", "nodeStageSecretRef", "controllerPublishSecretRef", "nodeExpandSecretRef")
    ]
    references += [objects.get(spec, source, "secretRef") for source in ("cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO")]
    if objects.get(spec, "azureFile", "secretName"):
        references.append({"name": spec["azureFile"]["secretName"], "namespace": spec["azureFile"].get("secretNamespace")})
    for reference in references:
        if reference and reference.get("name"):
            edges.add((vertex, ("", "secrets", str(reference.get("namespace") or namespace), str(reference["name"]))))
    return frozenset(edges)
