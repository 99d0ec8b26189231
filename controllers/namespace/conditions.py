"""What a namespace on its way out says of what holds it up. Pure."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.client.resources import Resource
from controllers.lib import pods as pod_facts


@dataclass(slots=True)
class Remaining:
    """What one pass over a namespace found. ``content_failures`` are deletions or lists that the server refused."""

    discovery_failures: dict[str, str] = field(default_factory=dict)
    content_failures: list[str] = field(default_factory=list)
    counts: dict[Resource, int] = field(default_factory=dict)
    finalizers: Counter[str] = field(default_factory=Counter)

    def count(self, resource: Resource, left: Iterable[Object]) -> None:
        found = list(left)
        if found:
            self.counts[resource] = len(found)
            self.finalizers.update(f for obj in found for f in objects.finalizers(obj))

    @property
    def is_empty(self) -> bool:
        return not (self.discovery_failures or self.content_failures or self.counts)


def conditions_of(current: list[Object], remaining: Remaining, now: datetime.datetime) -> list[Object]:
    """The five conditions; what stays as it was keeps its time of transition. Wording as kube-controller-manager's."""
    failed = remaining.discovery_failures
    texts = [f"{group_version}: {why}" for group_version, why in sorted(failed.items())]
    discovery = (
        (
            True,
            "DiscoveryFailed",
            f"Discovery failed for some groups, {len(failed)} failing: "
            f"unable to retrieve the complete list of server APIs: {', '.join(texts)}",
        )
        if failed
        else (False, "ResourcesDiscovered", "All resources successfully discovered")
    )
    content = (
        (
            True,
            "ContentDeletionFailed",
            f"Failed to delete all resource types, {len(remaining.content_failures)} remaining: {', '.join(remaining.content_failures)}",
        )
        if remaining.content_failures
        else (False, "ContentDeleted", "All content successfully deleted, may be waiting on finalization")
    )
    counts = sorted(f"{r.plural}.{r.group} has {n} resource instances" for r, n in remaining.counts.items())
    left = (
        (True, "SomeResourcesRemain", f"Some resources are remaining: {', '.join(counts)}")
        if counts
        else (False, "ContentRemoved", "All content successfully removed")
    )
    held = sorted(f"{name} in {n} resource instances" for name, n in remaining.finalizers.items())
    finalizers = (
        (True, "SomeFinalizersRemain", f"Some content in the namespace has finalizers remaining: {', '.join(held)}")
        if held
        else (False, "ContentHasNoFinalizers", "All content-preserving finalizers finished")
    )
    out = list(current)
    for type_, (status, reason, message) in (
        ("NamespaceDeletionDiscoveryFailure", discovery),
        ("NamespaceDeletionGroupVersionParsingFailure", (False, "ParsedGroupVersions", "All legacy kube types successfully parsed")),
        ("NamespaceDeletionContentFailure", content),
        ("NamespaceContentRemaining", left),
        ("NamespaceFinalizersRemaining", finalizers),
    ):
        out = pod_facts.with_condition(out, pod_facts.new_condition(type_, status, now, reason, message))
    return out
