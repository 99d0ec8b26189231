"""The group ``apps``: what keeps pods running."""

from __future__ import annotations

from apiserver.resources.facts import resource
from apiserver.resources.resource_info import ResourceInfo

_ALL = ("all",)

RESOURCES: tuple[ResourceInfo, ...] = (
    resource("apps", "v1", "controllerrevisions", "ControllerRevision"),
    resource("apps", "v1", "daemonsets", "DaemonSet", short_names=("ds",), categories=_ALL, status=True),
    resource("apps", "v1", "deployments", "Deployment", short_names=("deploy",), categories=_ALL, status=True, scale=True),
    resource("apps", "v1", "replicasets", "ReplicaSet", short_names=("rs",), categories=_ALL, status=True, scale=True),
    resource("apps", "v1", "statefulsets", "StatefulSet", short_names=("sts",), categories=_ALL, status=True, scale=True),
)
