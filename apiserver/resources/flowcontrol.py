"""The group ``flowcontrol.apiserver.k8s.io``. Its betas are older than the rule that betas are off by default, so they were served
until they were removed; objects are stored in the newest version that a release serves."""

from __future__ import annotations

from apiserver.resources.facts import LAST_MINOR, resource
from apiserver.resources.resource_info import ResourceInfo

#: version, first and last minor that serves it
_VERSIONS = (("v1", 29, LAST_MINOR), ("v1beta3", 26, 31), ("v1beta2", 25, 28), ("v1beta1", 25, 25))
_KINDS = (("flowschemas", "FlowSchema"), ("prioritylevelconfigurations", "PriorityLevelConfiguration"))


def _resources() -> tuple[ResourceInfo, ...]:
    found = []
    for version, since, until in _VERSIONS:
        for plural, kind in _KINDS:
            found.append(
                resource(
                    "flowcontrol.apiserver.k8s.io",
                    version,
                    plural,
                    kind,
                    namespaced=False,
                    status=True,
                    since=since,
                    until=until,
                    storage_version="",
                )
            )
    return tuple(found)


RESOURCES: tuple[ResourceInfo, ...] = _resources()
