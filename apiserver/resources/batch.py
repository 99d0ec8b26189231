"""The group ``batch``: work that ends."""

from __future__ import annotations

from apiserver.resources.facts import resource
from apiserver.resources.resource_info import ResourceInfo

RESOURCES: tuple[ResourceInfo, ...] = (
    resource("batch", "v1", "cronjobs", "CronJob", short_names=("cj",), categories=("all",), status=True),
    resource("batch", "v1", "jobs", "Job", categories=("all",), status=True),
)
