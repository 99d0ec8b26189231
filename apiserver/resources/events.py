"""The group ``events.k8s.io``: a second view of the events of the core group, which are what is stored."""

from __future__ import annotations

from apiserver.resources.facts import resource
from apiserver.resources.resource_info import ResourceInfo

RESOURCES: tuple[ResourceInfo, ...] = (
    resource("events.k8s.io", "v1", "events", "Event", short_names=("ev",), storage_group="", storage_version="v1"),
)
