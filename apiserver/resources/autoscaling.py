"""The group ``autoscaling``. Every version is a view of the objects stored as v2, the one that can say everything."""

from __future__ import annotations

from apiserver.resources.facts import resource
from apiserver.resources.resource_info import ResourceInfo


def _autoscaler(version: str, until: int = 99) -> ResourceInfo:
    return resource(
        "autoscaling",
        version,
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        short_names=("hpa",),
        categories=("all",),
        status=True,
        storage_version="v2",
        until=until,
    )


RESOURCES: tuple[ResourceInfo, ...] = (_autoscaler("v2"), _autoscaler("v1"), _autoscaler("v2beta2", until=25))
