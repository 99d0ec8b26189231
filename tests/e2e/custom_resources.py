"""Definitions that the tests of client libraries share."""

from __future__ import annotations

from typing import Any


def definition(
    plural: str, kind: str, group: str, schema: dict[str, Any], *, scope: str = "Namespaced", status: bool = True
) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if status:
        version["subresources"] = {"status": {}}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": scope, "names": names, "versions": [version]},
    }


_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_SPEC = {"type": "object", "properties": {"color": {"type": "string"}, "size": {"type": "integer", "format": "int64"}}}


def gadgets(group: str, *, status: bool = True, keeps_status: bool = True) -> dict[str, Any]:
    """Kind Gadget; ``keeps_status``: its schema takes whatever stands in the status."""
    properties = {"spec": _SPEC, **({"status": _ANYTHING} if keeps_status else {})}
    return definition("gadgets", "Gadget", group, {"type": "object", "properties": properties}, status=status)


def kopf_peerings() -> list[dict[str, Any]]:
    """What kopf keeps its peers in (docs, "Peering")."""
    schema = {"type": "object", "properties": {"status": _ANYTHING}}
    return [
        definition("clusterkopfpeerings", "ClusterKopfPeering", "kopf.dev", schema, scope="Cluster", status=False),
        definition("kopfpeerings", "KopfPeering", "kopf.dev", schema, status=False),
    ]
