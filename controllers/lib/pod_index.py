"""The index by which a controller finds its pods, and those that nobody controls. Pure."""

from __future__ import annotations

from apiserver.machinery import objects
from apiserver.machinery.objects import Object

BY_CONTROLLER = "controller"
BY_NODE = "node"


def orphans_key(namespace: str) -> str:
    """Where the index keeps the namespace's objects without a controller (no uid begins so)."""
    return f"orphans/{namespace}"


def index_by_controller(obj: Object) -> list[str]:
    controller = objects.controller_of(obj)
    return [str(controller.get("uid"))] if controller is not None else [orphans_key(objects.namespace(obj))]


def index_by_node(pod: Object) -> list[str]:
    """ "" holds the pods that wait for a node."""
    return [str(objects.get(pod, "spec", "nodeName", default=""))]
