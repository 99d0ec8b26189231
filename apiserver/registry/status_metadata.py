"""What of the metadata of built-in kinds an update through ``/status`` leaves as it was (the ``PrepareForUpdate`` and ``GetResetFields``
of upstream's status strategies).

Kinds of the first years let all of it be written along with the status, but for what an entry below names; those that came later keep
all. Custom resources keep all too; their strategy sees to it.
"""

from __future__ import annotations

from apiserver.machinery import fieldset
from apiserver.machinery.managed_fields import FieldFilter
from apiserver.machinery.objects import Object
from apiserver.resources.resource_info import ResourceInfo

_ALL = ("labels", "annotations", "finalizers", "ownerReferences")
_FREE_GROUPS = frozenset(("", "apiextensions.k8s.io", "apps", "autoscaling", "batch", "certificates.k8s.io", "networking.k8s.io", "policy"))
_KEPT = {
    ("", "pods"): ("ownerReferences",),
    ("apps", "deployments"): ("labels",),
    ("certificates.k8s.io", "podcertificaterequests"): _ALL,
    ("networking.k8s.io", "servicecidrs"): _ALL,
}


def kept_fields(info: ResourceInfo) -> tuple[str, ...]:
    found = _KEPT.get((info.group, info.resource))
    if found is not None:
        return found
    return () if info.group in _FREE_GROUPS else _ALL


def keep(info: ResourceInfo, new: Object, old: Object) -> None:
    metadata, before = new["metadata"], old["metadata"]
    for field in kept_fields(info):
        if field in before:
            metadata[field] = before[field]
        else:
            metadata.pop(field, None)


_filters: dict[tuple[str, ...], FieldFilter] = {}


def reset_fields(info: ResourceInfo) -> FieldFilter:
    """What nobody comes to own through ``/status``."""
    kept = kept_fields(info)
    found = _filters.get(kept)
    if found is None:
        paths = [fieldset.fields("spec")]
        paths += [fieldset.fields("metadata")] if kept == _ALL else [fieldset.fields("metadata", field) for field in kept]
        found = _filters[kept] = FieldFilter(exclude=fieldset.of_paths(*paths))
    return found
