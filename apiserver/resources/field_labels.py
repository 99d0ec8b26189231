"""By which fields each kind can be selected (``fieldSelector``), and how it refuses others.

Every kind of its own registers what it can be asked for in each version; kinds that register nothing are selected by name and
namespace. Facts: "Field Selectors" of the documentation, and what kube-apiserver answers for each (probed with every field, 1.20; those
added since from the API reference of their kinds).
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.machinery import fields as field_selectors
from apiserver.machinery import go_json
from apiserver.machinery.objects import Object
from apiserver.resources.resource_info import ResourceInfo

_NAME, _NAMESPACE = field_selectors.METADATA_NAME, field_selectors.METADATA_NAMESPACE
_NOT_SUPPORTED = "field label not supported: {label}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldLabels:
    """``fields`` maps what a selector may name to what the object's fields call it. ``refusal`` has ``{label}`` or ``{quoted}``."""

    fields: Mapping[str, str]
    refusal: str = _NOT_SUPPORTED

    @property
    def of_metadata_only(self) -> bool:
        return all(name.startswith("metadata.") for name in self.fields)

    def convert(self, selector: field_selectors.Selector) -> field_selectors.Selector:
        """The selector over the object's fields. Raises ``fields.SelectorError``."""
        if all(term.field == self.fields.get(term.field) for term in selector.terms):
            return selector
        for term in selector.terms:
            if term.field not in self.fields:
                raise field_selectors.SelectorError(self.refusal.format(label=term.field, quoted=go_json.quote(term.field)))
        return selector.transform(lambda label, value: (self.fields[label], value))

    def values(self, obj: Object) -> dict[str, str]:
        """The fields of an object whose kind has nothing particular about them: the texts at their paths, "" where there is none."""
        found = {}
        for path in self.fields.values():
            value: Any = obj
            for part in path.split("."):
                value = value.get(part) if isinstance(value, dict) else None
            found[path] = value if isinstance(value, str) else "" if value is None else str(value).lower()
        return found


def _labels(*names: str, refusal: str = _NOT_SUPPORTED, **aliases: str) -> FieldLabels:
    found = {name: name for name in names}
    found.update((alias.replace("_", "."), name) for alias, name in aliases.items())
    return FieldLabels(fields=found, refusal=refusal)


_ABOUT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_META_ONLY = _labels(_NAME, _NAMESPACE, refusal='{quoted} is not a known field selector: only "metadata.name", "metadata.namespace"')

#: by group and resource
_OF_RESOURCE: dict[tuple[str, str], FieldLabels] = {
    ("", "pods"): _labels(
        _NAME, _NAMESPACE, "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
        "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
        spec_host="spec.nodeName",  # its name before v1
    ),
    ("", "nodes"): _labels(_NAME, "spec.unschedulable"),
    ("", "namespaces"): _labels(_NAME, "status.phase"),
    ("", "secrets"): _labels(_NAME, _NAMESPACE, "type"),
    ("", "services"): _labels(_NAME, _NAMESPACE, "spec.clusterIP", "spec.type"),
    ("", "replicationcontrollers"): _labels(_NAME, _NAMESPACE, "status.replicas"),
    ("", "events"): _labels(
        _NAME, _NAMESPACE, *(f"involvedObject.{part}" for part in _ABOUT), "reason", "reportingComponent", "source", "type"
    ),
    ("events.k8s.io", "events"): FieldLabels(
        fields={
            **{name: name for name in (_NAME, _NAMESPACE, "reason", "type")},
            **{f"regarding.{part}": f"involvedObject.{part}" for part in _ABOUT},
            "reportingController": "reportingComponent",
        }
    ),
    ("batch", "jobs"): _labels(
        _NAME, _NAMESPACE, "status.successful", refusal="field label {quoted} not supported for batchv1.Job"
    ),
    ("certificates.k8s.io", "certificatesigningrequests"): _labels(_NAME, "spec.signerName"),
    ("certificates.k8s.io", "clustertrustbundles"): _labels(_NAME, "spec.signerName"),
    ("certificates.k8s.io", "podcertificaterequests"): _labels(_NAME, "spec.signerName", "spec.podName", "spec.nodeName"),
}  # fmt: skip


@functools.cache
def _slices(api_version: str) -> FieldLabels:
    refusal = f"field label not supported for {api_version}, Kind=ResourceSlice: {{label}}"
    own = ("nodeName", "driverName") if api_version == "resource.k8s.io/v1alpha2" else ("spec.nodeName", "spec.driver")
    return _labels(_NAME, *own, refusal=refusal)


def of(info: ResourceInfo, own: Collection[str]) -> FieldLabels:
    """``own``: beside name and namespace, the fields that the kind's strategy makes selectable (the selectable fields of a custom
    resource)."""
    if info.builtin:
        found = _OF_RESOURCE.get((info.group, info.resource))
        if found is not None:
            return found
        if info.group == "resource.k8s.io" and info.resource == "resourceslices":
            return _slices(info.api_version)
        if not own:
            return _META_ONLY
    place = (_NAME, _NAMESPACE) if info.namespaced or info.builtin else (_NAME,)
    return _labels(*place, *own)
