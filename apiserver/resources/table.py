"""``ResourceTable``: which resources a server of one Kubernetes version serves, by group, version and name.

Built-in resources come from the facts of this package; custom resources are added and removed while the server runs. Every change
raises ``generation``, so that whoever derives something from the table (discovery, OpenAPI) knows when to derive it again.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator

from apiserver.resources import (
    access,
    apps,
    autoscaling,
    batch,
    coordination,
    core,
    dynamic_resources,
    events,
    extension,
    flowcontrol,
    networking,
    policy,
    previews,
    rbac,
    runtime_config,
    scheduling,
    storage,
)
from apiserver.resources.facts import FIRST_MINOR, LAST_MINOR
from apiserver.resources.resource_info import ResourceInfo

#: in the order in which ``/apis`` lists them (kube-aggregator lists itself first, then by each group's minimum priority)
GROUP_ORDER = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "resource.k8s.io",
    "storagemigration.k8s.io",
    "internal.apiserver.k8s.io",
    "lifecycle.k8s.io",
)

_MODULES = (
    core,
    extension,
    apps,
    events,
    access,
    autoscaling,
    batch,
    networking,
    policy,
    rbac,
    storage,
    scheduling,
    coordination,
    flowcontrol,
    dynamic_resources,
)
_VERSION = re.compile(r"^v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?$")
_STABILITY = {"": 2, "beta": 1, "alpha": 0}


def version_priority(version: str) -> tuple[int, int, int, int, str]:
    """A sort key for API versions, best first: v10 v2 v1 v2beta2 v2beta1 v1alpha1, then whatever has no such form, by the alphabet
    (apimachinery ``CompareKubeAwareVersionStrings``)."""
    match = _VERSION.match(version)
    if match is None:
        return (1, 0, 0, 0, version)
    major, stability, minor = match.groups()
    return (0, -_STABILITY[stability or ""], -int(major), -int(minor or 0), "")


def minor_of(kubernetes_version: str) -> int:
    """37 of ``1.37``. Raises ValueError for what is not one of the versions that can be served."""
    match = re.match(r"^v?1\.(\d+)(\.\d+)?$", kubernetes_version)
    if match is None or not FIRST_MINOR <= int(match[1]) <= LAST_MINOR:
        raise ValueError(f"Kubernetes {kubernetes_version!r} is not among 1.{FIRST_MINOR} … 1.{LAST_MINOR}")
    return int(match[1])


class ResourceTable:
    """Built for one Kubernetes version (``"1.37"``) and what ``--runtime-config`` switches on and off in it. Reads never copy; answers
    are frozen values. Raises ValueError for wrong settings."""

    def __init__(self, kubernetes_version: str, switches: str = "") -> None:
        self.kubernetes_version = kubernetes_version
        self.minor = minor_of(kubernetes_version)
        #: raised by every change
        self.generation = 0
        self._resources: dict[tuple[str, str, str], ResourceInfo] = {}
        self._by_kind: dict[tuple[str, str, str], ResourceInfo] = {}
        self._versions: dict[str, list[str]] = {}
        #: by group and version, then by name: discovery of a thousand groups looks at each resource once
        self._by_version: dict[tuple[str, str], dict[str, ResourceInfo]] = {}
        for info in builtin_resources(self.minor, switches):
            self._insert(info)

    def __iter__(self) -> Iterator[ResourceInfo]:
        return iter(self._resources.values())

    def __len__(self) -> int:
        return len(self._resources)

    def lookup(self, group: str, version: str, resource: str) -> ResourceInfo | None:
        return self._resources.get((group, version, resource))

    def by_kind(self, group: str, version: str, kind: str) -> ResourceInfo | None:
        return self._by_kind.get((group, version, kind))

    def groups(self) -> list[str]:
        """All groups in the order of ``/apis`` (the core group, "", first): built-in ones as Kubernetes ranks them, then the others
        by name."""
        builtin = [group for group in GROUP_ORDER if group in self._versions]
        return builtin + sorted(set(self._versions) - set(GROUP_ORDER))

    def versions(self, group: str) -> list[str]:
        """The served versions of a group, the preferred first; empty for a group that is not served."""
        return list(self._versions.get(group, ()))

    def preferred(self, group: str, resource: str) -> ResourceInfo | None:
        """The resource in the most preferred version that serves it."""
        for version in self._versions.get(group, ()):
            found = self._resources.get((group, version, resource))
            if found is not None:
                return found
        return None

    def resources(self, group: str, version: str) -> list[ResourceInfo]:
        """The resources of one group and version by name."""
        return sorted(self._by_version.get((group, version), {}).values(), key=lambda info: info.resource)

    def is_builtin(self, group: str) -> bool:
        """Whether a group has resources that no definition made."""
        return any(info.builtin for version in self._versions.get(group, ()) for info in self._by_version[(group, version)].values())

    def serves(self, group: str, version: str) -> bool:
        return version in self._versions.get(group, ())

    def is_builtin_resource(self, group: str, resource: str) -> bool:
        """Whether Kubernetes itself has it, in some version."""
        return any(
            info.builtin
            for version in self._versions.get(group, ())
            if (info := self._resources.get((group, version, resource))) is not None
        )

    def storage_info(self, info: ResourceInfo) -> ResourceInfo | None:
        """The resource in the group and version in which its objects are stored (``info`` itself for most)."""
        group = info.group if info.storage_group is None else info.storage_group
        if group == info.group and info.storage_version in ("", info.version):
            return info
        return self._resources.get((group, info.storage_version, info.resource))

    def snapshot(self) -> ResourceTable:
        """A table of what is served now, which later changes of this one do not reach (to be read by another thread)."""
        copy = ResourceTable.__new__(ResourceTable)
        copy.kubernetes_version, copy.minor, copy.generation = self.kubernetes_version, self.minor, self.generation
        copy._resources, copy._by_kind = dict(self._resources), dict(self._by_kind)
        copy._by_version = {key: dict(infos) for key, infos in self._by_version.items()}
        copy._versions = {group: list(versions) for group, versions in self._versions.items()}
        return copy

    def replace_custom(self, remove: Iterable[ResourceInfo], add: Iterable[ResourceInfo]) -> None:
        """Swap custom resources in one step; unknown ones to remove are ignored, existing ones to add replaced."""
        for info in remove:
            self._delete(info)
        for info in add:
            current = self._resources.get((info.group, info.version, info.resource))
            assert current is None or not current.builtin, f"{info.resource}.{info.group} is built in"
            if current is not None:
                self._delete(current)
            self._insert(info)
        self.generation += 1

    def add(self, info: ResourceInfo) -> None:
        self.replace_custom((), (info,))

    def remove(self, info: ResourceInfo) -> None:
        self.replace_custom((info,), ())

    def _insert(self, info: ResourceInfo) -> None:
        self._resources[(info.group, info.version, info.resource)] = info
        self._by_kind[(info.group, info.version, info.kind)] = info
        self._by_version.setdefault((info.group, info.version), {})[info.resource] = info
        versions = self._versions.setdefault(info.group, [])
        if info.version not in versions:
            versions.append(info.version)
            versions.sort(key=version_priority)

    def _delete(self, info: ResourceInfo) -> None:
        current = self._resources.pop((info.group, info.version, info.resource), None)
        if current is None:
            return
        assert not current.builtin, f"{info.resource}.{info.group} is built in"
        if self._by_kind.get((current.group, current.version, current.kind)) is current:
            del self._by_kind[(current.group, current.version, current.kind)]
        others = self._by_version[(info.group, info.version)]
        del others[info.resource]
        if not others:
            del self._by_version[(info.group, info.version)]
            self._versions[info.group].remove(info.version)
            if not self._versions[info.group]:
                del self._versions[info.group]


def builtin_resources(minor: int, switches: str = "") -> list[ResourceInfo]:
    """Every built-in resource that Kubernetes 1.``minor`` serves with these settings, with the facts true of that version."""
    settings = runtime_config.parse(switches)
    existing = [(info, True) for module in _MODULES for info in module.RESOURCES if info.since <= minor <= info.until]
    existing += [(info, False) for info in previews.RESOURCES if info.since <= minor <= info.until]
    served = [i for i, default in existing if runtime_config.is_served(settings, i.group, i.version, i.resource, default=default)]
    newest: dict[tuple[str, str], str] = {}
    for info in served:
        key = (info.group, info.resource)
        newest[key] = min(newest.get(key, info.version), info.version, key=version_priority)
    return [_of_minor(info, minor, newest[(info.group, info.resource)]) for info in served]


def _of_minor(info: ResourceInfo, minor: int, newest_version: str) -> ResourceInfo:
    subresources = tuple(s for s in info.subresources if s.since <= minor)
    if info.storage_version and len(subresources) == len(info.subresources):
        return info
    return dataclasses.replace(info, subresources=subresources, storage_version=info.storage_version or newest_version)
