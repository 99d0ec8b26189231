"""The Node authorizer (``--authorization-mode=Node``): what a kubelet may touch.

Secrets, ConfigMaps, claims, volumes, attachments, service accounts and resource claims only where a pod on its node leads to them
(``NodeGraph``); leases and CSINodes only its own; all else by the static rules of the role ``system:node``. NodeRestriction, the admission
plugin, bounds what it may write.
"""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.authentication.user import node_name
from apiserver.authorization.authorizer import Attributes, Decision
from apiserver.authorization.node_graph import NodeGraph
from apiserver.authorization.rules import Rule

_Answer = tuple[Decision, str]
_ALLOWED: _Answer = (Decision.ALLOW, "")
_NODE_LEASES = "kube-node-lease"
_OWN_VERBS = ("get", "create", "update", "patch", "delete")


def _no(reason: str) -> _Answer:
    return Decision.NO_OPINION, reason


class NodeAuthorizer:
    def __init__(self, graph: NodeGraph, rules: Sequence[Rule], *, with_selectors: bool = False) -> None:
        """``rules``: those of the bootstrap role ``system:node``. ``with_selectors``: a node may list its own pods only, and read its own
        Node only, as since 1.32 (feature AuthorizeNodeWithSelectors)."""
        self._with_selectors = with_selectors
        self._graph = graph
        self._rules = tuple(rules)

    @property
    def generation(self) -> int:
        return self._graph.generation

    def authorize(self, attributes: Attributes) -> _Answer:
        node = node_name(attributes.user)
        if node is None:
            return _no("")
        if not node:
            return _no(f'unknown node for user "{attributes.user.name}"')
        if attributes.is_resource_request:
            answer = self._authorize_subdivided(node, attributes)
            if answer is not None:
                return answer
        return self._authorize_by_rules(attributes)

    def _authorize_by_rules(self, a: Attributes) -> _Answer:
        for rule in self._rules:
            if a.is_resource_request:
                names_match = not rule.resource_names or a.name in rule.resource_names
                if names_match and rule.matches_resource(a.verb, a.group, a.resource, a.subresource):
                    return _ALLOWED
            elif rule.matches_path(a.verb, a.path):
                return _ALLOWED
        return _no("")

    def _authorize_subdivided(self, node: str, a: Attributes) -> _Answer | None:
        match (a.group, a.resource):
            case ("", "secrets" | "configmaps"):
                return self._read_namespaced(node, a)
            case ("", "persistentvolumeclaims"):
                return self._update_status(node, a) if a.subresource == "status" else self._get(node, a)
            case ("", "persistentvolumes") | ("storage.k8s.io", "volumeattachments") | ("resource.k8s.io", "resourceclaims"):
                return self._get(node, a)
            case ("", "serviceaccounts"):
                return self._create_token(node, a)
            case ("coordination.k8s.io", "leases"):
                return _own_lease(node, a)
            case ("storage.k8s.io", "csinodes"):
                return _own_csi_node(node, a)
            case ("resource.k8s.io", "resourceslices"):
                return _own_resource_slice(a)
            case ("", "nodes"):
                return self._own_node(node, a)
            case ("", "pods"):
                return self._own_pod(node, a)
        return None

    def _related(self, node: str, a: Attributes) -> _Answer:
        if not a.name:
            return _no("No Object name found")
        if self._graph.leads_to(a.group, a.resource, a.namespace, a.name, node):
            return _ALLOWED
        return _no(f"no relationship found between node '{node}' and this object")

    def _read_namespaced(self, node: str, a: Attributes) -> _Answer:
        if a.verb not in ("get", "list", "watch"):
            return _no("can only read resources of this type")
        if a.subresource:
            return _no("cannot read subresource")
        if not a.namespace:
            return _no("can only read namespaced object of this type")
        return self._related(node, a)

    def _get(self, node: str, a: Attributes) -> _Answer:
        if a.verb != "get":
            return _no("can only get individual resources of this type")
        if a.subresource:
            return _no("cannot get subresource")
        return self._related(node, a)

    def _update_status(self, node: str, a: Attributes) -> _Answer:
        if a.verb not in ("update", "patch"):
            return _no("can only get/update/patch this type")
        return self._related(node, a)

    def _create_token(self, node: str, a: Attributes) -> _Answer:
        if a.verb == "get" and not a.subresource:
            return self._related(node, a)
        if a.verb != "create" or not a.name:
            return _no("can only create tokens for individual service accounts")
        if a.subresource != "token":
            return _no("can only create token subresource of serviceaccount")
        return self._related(node, a)

    def _own_pod(self, node: str, a: Attributes) -> _Answer | None:
        if a.verb == "get" and not a.subresource and not self._graph.leads_to("", "pods", a.namespace, a.name, node):
            return _no(f"no relationship found between node '{node}' and this object")
        if self._with_selectors and a.verb in ("list", "watch") and not a.subresource:
            if not any(r.key == "spec.nodeName" and r.operator == "In" and r.values == (node,) for r in a.field_selector):
                return _no("can only list/watch pods with spec.nodeName field selector")
        return None

    def _own_node(self, node: str, a: Attributes) -> _Answer | None:
        if a.subresource:
            return None
        if a.verb == "get" or (self._with_selectors and a.verb in ("list", "watch")):
            if not a.name:
                return _no(f"node '{node}' cannot read all nodes, only its own Node object")
            if a.name != node:
                return _no(f"node '{node}' cannot read '{a.name}', only its own Node object")
        return None


def _own_lease(node: str, a: Attributes) -> _Answer:
    if a.verb not in _OWN_VERBS:
        return _no("can only get, create, update, patch, or delete a node lease")
    if a.namespace != _NODE_LEASES:
        return _no(f'can only access leases in the "{_NODE_LEASES}" system namespace')
    # a create has no name in its path: NodeRestriction looks at the object
    if a.verb != "create" and a.name != node:
        return _no("can only access node lease with the same name as the requesting node")
    return _ALLOWED


def _own_csi_node(node: str, a: Attributes) -> _Answer:
    if a.verb not in _OWN_VERBS:
        return _no("can only get, create, update, patch, or delete a CSINode")
    if a.subresource:
        return _no("cannot authorize CSINode subresources")
    if a.verb != "create" and a.name != node:
        return _no("can only access CSINode with the same name as the requesting node")
    return _ALLOWED


def _own_resource_slice(a: Attributes) -> _Answer:
    if a.subresource:
        return _no("cannot authorize ResourceSlice subresources")
    if a.verb not in ("get", "create", "update", "patch", "delete", "list", "watch", "deletecollection"):
        return _no("only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete")
    return _ALLOWED
