"""The small vocabulary in which the files of this package state their facts."""

from __future__ import annotations

from typing import Any

from apiserver.resources.resource_info import ResourceInfo, SubresourceInfo

#: the bounds of what this server can serve: minors of Kubernetes 1.x
FIRST_MINOR = 25
LAST_MINOR = 37

READ_ONLY = ("get", "list")
CREATE_ONLY = ("create",)
WITHOUT_DELETECOLLECTION = ("create", "delete", "get", "list", "patch", "update", "watch")
CONNECT_VERBS = ("create", "get")
PROXY_VERBS = ("create", "delete", "get", "patch", "update")


def resource(
    group: str,
    version: str,
    plural: str,
    kind: str,
    *,
    since: int = FIRST_MINOR,
    until: int = LAST_MINOR,
    status: bool = False,
    scale: bool = False,
    subresources: tuple[SubresourceInfo, ...] = (),
    **facts: Any,
) -> ResourceInfo:
    """A resource whose names follow the usual pattern: the singular is the lower-case kind, the storage prefix the plural, the
    stored version the served one. ``since``/``until`` are the first and last minor of Kubernetes that serves it by default."""
    found = list(subresources)
    if status:
        found.append(SubresourceInfo(name="status", kind=kind, group=group, version=version))
    if scale:
        found.append(SubresourceInfo(name="scale", kind="Scale", group="autoscaling", version="v1"))
    found.sort(key=lambda s: s.name)
    facts.setdefault("singular", kind.lower())
    facts.setdefault("list_kind", kind + "List" if "list" in facts.get("verbs", ("list",)) else "")
    facts.setdefault("storage_prefix", plural)
    facts.setdefault("storage_version", version)
    facts.setdefault("schema", f"{definition_package(group)}.{version}.{kind}")
    return ResourceInfo(
        group=group, version=version, resource=plural, kind=kind, subresources=tuple(found), since=since, until=until, **facts
    )


def definition_package(group: str) -> str:
    """The package part of the names of a group's definitions in the published schemas."""
    if group == "apiextensions.k8s.io":
        return "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions"
    if group == "apiregistration.k8s.io":
        return "io.k8s.kube-aggregator.pkg.apis.apiregistration"
    if group in ("", "core"):
        return "io.k8s.api.core"
    first = group.partition(".")[0]
    return f"io.k8s.api.{first}"
