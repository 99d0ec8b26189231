"""The group ``policy``."""

from __future__ import annotations

from apiserver.resources.facts import resource
from apiserver.resources.resource_info import ResourceInfo

RESOURCES: tuple[ResourceInfo, ...] = (
    resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", short_names=("pdb",), status=True),
)
