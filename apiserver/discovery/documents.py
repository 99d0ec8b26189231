"""Discovery documents as plain dicts (kubernetes ``meta/v1`` and ``apidiscovery/v2``), in the order in which Kubernetes lists things."""

from __future__ import annotations

import base64
import hashlib
from typing import Any, TypeAlias

from apiserver.resources.resource_info import ResourceInfo, SubresourceInfo
from apiserver.resources.table import ResourceTable

Document: TypeAlias = dict[str, Any]

AGGREGATED_GROUP = "apidiscovery.k8s.io"
AGGREGATED_KIND = "APIGroupDiscoveryList"

#: the order in which custom resources list their verbs
_CUSTOM_VERB_ORDER = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
#: what is still told of while their definition is being deleted
_TERMINATING_VERBS = ["delete", "deletecollection", "get", "list", "watch"]


def api_versions(server_address: str) -> Document:
    """``/api``. ``server_address``: host and port under which clients reach this server."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}],
    }


def api_group_list(table: ResourceTable) -> Document:
    """``/apis``: every group but the core one."""
    groups = [_group(table, group) for group in table.groups() if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(table: ResourceTable, group: str) -> Document:
    """``/apis/<group>``. Raises KeyError for a group that is not served."""
    if not group or not table.versions(group):
        raise KeyError(group)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(table, group)}


def api_resource_list(table: ResourceTable, group: str, version: str) -> Document:
    """``/api/v1`` or ``/apis/<group>/<version>``. Raises KeyError for one that is not served."""
    if not table.serves(group, version):
        raise KeyError(f"{group}/{version}")
    resources: list[Document] = []
    for info in table.resources(group, version):
        resources.append(_resource(table, info))
        resources.extend(_subresource(info, sub) for sub in info.subresources)
    # the core group's list comes from the oldest part of the API and names no version of itself
    head = {"kind": "APIResourceList", "apiVersion": "v1"} if group else {"kind": "APIResourceList"}
    return {**head, "groupVersion": f"{group}/{version}" if group else version, "resources": resources}


def aggregated(table: ResourceTable, *, core: bool, version: str) -> Document:
    """All resources at once: of the core group (``/api``) or of all others (``/apis``), in the document's ``version`` (v2, v2beta1)."""
    items = [_aggregated_group(table, group) for group in table.groups() if (group == "") == core]
    return {"kind": AGGREGATED_KIND, "apiVersion": f"{AGGREGATED_GROUP}/{version}", "metadata": {}, "items": items}


def version_info(kubernetes_version: str, platform: str, runtime: str, compiler: str) -> Document:
    """``/version``. What a stamped release would say of its build is not known here, so the fields have an unstamped one's values."""
    major, minor = kubernetes_version.split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": f"v{major}.{minor}.0",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": runtime,
        "compiler": compiler,
        "platform": platform,
    }


def storage_version_hash(table: ResourceTable, info: ResourceInfo) -> str:
    """A short hash of the group, version and kind in which objects are stored, as every kube-apiserver computes it; "" for what is not
    stored."""
    if "list" not in info.verbs or "create" not in info.verbs:
        return ""
    stored = table.storage_info(info)
    if stored is None:
        if not info.builtin:
            return ""  # its definition does not serve the version in which it stores
        stored = info
    digest = hashlib.sha256(f"{stored.group}/{stored.version}/{stored.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def _group(table: ResourceTable, group: str) -> Document:
    versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in table.versions(group)]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _verbs(info: ResourceInfo) -> list[str]:
    if info.builtin:
        return list(info.verbs)
    if info.custom is not None and info.custom.terminating:
        return list(_TERMINATING_VERBS)
    return [verb for verb in _CUSTOM_VERB_ORDER if verb in info.verbs]


def _resource(table: ResourceTable, info: ResourceInfo) -> Document:
    document: Document = {
        "name": info.resource,
        "singularName": info.singular,
        "namespaced": info.namespaced,
        "kind": info.kind,
        "verbs": _verbs(info),
    }
    if info.short_names:
        document["shortNames"] = list(info.short_names)
    if info.categories:
        document["categories"] = list(info.categories)
    stored = storage_version_hash(table, info)
    if stored:
        document["storageVersionHash"] = stored
    return document


def _subresource(info: ResourceInfo, sub: SubresourceInfo) -> Document:
    document: Document = {"name": f"{info.resource}/{sub.name}", "singularName": "", "namespaced": info.namespaced}
    if (sub.group, sub.version) != (info.group, info.version):
        if sub.group:
            document["group"] = sub.group
        if sub.version:
            document["version"] = sub.version
    return {**document, "kind": sub.kind, "verbs": list(sub.verbs)}


def _aggregated_group(table: ResourceTable, group: str) -> Document:
    versions = []
    for version in table.versions(group):
        resources = [_aggregated_resource(info) for info in table.resources(group, version)]
        versions.append({"version": version, "resources": resources, "freshness": "Current"})
    return {"metadata": {"name": group} if group else {}, "versions": versions}


def _aggregated_resource(info: ResourceInfo) -> Document:
    document: Document = {
        "resource": info.resource,
        "responseKind": _response_kind(info, info.group, info.version, info.kind),
        "scope": "Namespaced" if info.namespaced else "Cluster",
        "singularResource": info.singular,
        "verbs": _verbs(info),
    }
    if info.short_names:
        document["shortNames"] = list(info.short_names)
    if info.categories:
        document["categories"] = list(info.categories)
    if info.subresources:
        document["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": _response_kind(info, sub.group, sub.version, sub.kind),
                "verbs": list(sub.verbs),
            }
            for sub in info.subresources
        ]
    return document


def _response_kind(info: ResourceInfo, group: str, version: str, kind: str) -> Document:
    """Built-in resources leave group and version out where they are those of the list they stand in."""
    own = info.builtin and (group, version) == (info.group, info.version)
    return {"group": "" if own else group, "version": "" if own else version, "kind": kind}
