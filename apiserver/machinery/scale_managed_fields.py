"""``managedFields`` seen through the scale subresource (apimachinery ``util/managedfields``, ScaleHandler).

A Scale has one field that anybody can own: ``spec.replicas``, which stands for the replicas of its parent, wherever these are. Who owns
those owns that; who takes the Scale's takes the parent's. Worked example, a Deployment of two appliers::

    parent:  a  f:spec: {f:replicas, f:selector}      ->  Scale:  a  f:spec: {f:replicas}
             b  f:spec: {f:template}
    c writes the Scale                                    Scale:  c (subresource scale)  f:spec: {f:replicas}
    parent:  a  f:spec: {f:selector}; b as it was; c (subresource scale)  f:spec: {f:replicas}

Upstream's handler does not keep the time of an entry that the Scale's write has made, so neither does this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from apiserver.machinery import fieldset, managed_fields
from apiserver.machinery.fieldset import Path
from apiserver.machinery.managed_fields import UPDATE, Entries, Entry
from apiserver.machinery.objects import Object

API_VERSION = "autoscaling/v1"
#: where a Scale's replicas are, and those of all built-in kinds that can be scaled
REPLICAS: Path = fieldset.fields("spec", "replicas")

#: the path of the replicas in the parent by apiVersion; None: no version that is known, or one that cannot be scaled
PathOf = Callable[[str], Path | None]

_OWNED = fieldset.of_paths(REPLICAS)


def to_scale(parent: Sequence[Any], path_of: PathOf) -> list[Object]:
    """The entries of the Scale of an object whose entries are ``parent``. Raises ManagedFieldsError."""
    out: Entries = {}
    for identity, entry in managed_fields.decode(parent, trusted=True).items():
        path = path_of(entry.api_version)
        if path is not None and fieldset.has(entry.fields, path):
            of_scale = identity._replace(api_version=API_VERSION) if identity.operation == UPDATE else identity
            out[of_scale] = Entry(id=of_scale, api_version=API_VERSION, time=entry.time, fields=_OWNED)
    return managed_fields.encode(out)


def to_parent(parent: Sequence[Any], scale: Sequence[Any], api_version: str, path_of: PathOf) -> list[Object]:
    """The entries of the parent, written in ``api_version``, after a write has left its Scale with the entries ``scale``. Raises
    ManagedFieldsError."""
    path_now = path_of(api_version)
    assert path_now is not None, api_version
    left = managed_fields.decode(scale, trusted=True)
    out: Entries = {}
    for identity, entry in managed_fields.decode(parent, trusted=True).items():
        path = path_of(entry.api_version)
        if path is None or not fieldset.has(entry.fields, path):
            out[identity] = entry
            continue
        of_scale = identity._replace(api_version=API_VERSION) if identity.operation == UPDATE else identity
        if left.pop(of_scale, None) is not None:
            out[identity] = entry
            continue
        kept = fieldset.difference(entry.fields, fieldset.of_paths(path))
        if kept:
            out[identity] = entry.with_fields(kept)
    fields = fieldset.of_paths(path_now)
    for identity, entry in left.items():
        if fieldset.has(entry.fields, REPLICAS):
            own = identity._replace(api_version=api_version) if identity.operation == UPDATE else identity
            out[own] = Entry(id=own, api_version=api_version, time="", fields=fields)
    return managed_fields.encode(out)
