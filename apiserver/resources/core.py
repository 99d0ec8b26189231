"""The core group, ``/api/v1``."""

from __future__ import annotations

from typing import Any

from apiserver.resources.facts import (
    CONNECT_VERBS,
    CREATE_ONLY,
    PROXY_VERBS,
    READ_ONLY,
    WITHOUT_DELETECOLLECTION,
    resource,
)
from apiserver.resources.resource_info import ResourceInfo, SubresourceInfo

_ALL = ("all",)


def _core(plural: str, kind: str, **facts: Any) -> ResourceInfo:
    return resource("", "v1", plural, kind, **facts)


def _sub(name: str, kind: str, verbs: tuple[str, ...], group: str = "", version: str = "v1", since: int = 0) -> SubresourceInfo:
    return SubresourceInfo(name=name, kind=kind, group=group, version=version, verbs=verbs, since=since)


_UPDATES = ("get", "patch", "update")

RESOURCES: tuple[ResourceInfo, ...] = (
    _core("bindings", "Binding", verbs=CREATE_ONLY),
    _core("componentstatuses", "ComponentStatus", namespaced=False, short_names=("cs",), verbs=READ_ONLY),
    _core("configmaps", "ConfigMap", short_names=("cm",)),
    # the type's name is a plural already
    _core("endpoints", "Endpoints", short_names=("ep",), storage_prefix="services/endpoints"),
    _core("events", "Event", short_names=("ev",)),
    _core("limitranges", "LimitRange", short_names=("limits",)),
    _core(
        "namespaces",
        "Namespace",
        namespaced=False,
        short_names=("ns",),
        verbs=WITHOUT_DELETECOLLECTION,
        status=True,
        subresources=(_sub("finalize", "Namespace", ("update",)),),
    ),
    _core(
        "nodes",
        "Node",
        namespaced=False,
        short_names=("no",),
        status=True,
        storage_prefix="minions",
        subresources=(_sub("proxy", "NodeProxyOptions", PROXY_VERBS),),
    ),
    _core("persistentvolumeclaims", "PersistentVolumeClaim", short_names=("pvc",), status=True),
    _core("persistentvolumes", "PersistentVolume", namespaced=False, short_names=("pv",), status=True),
    _core(
        "pods",
        "Pod",
        short_names=("po",),
        categories=_ALL,
        status=True,
        subresources=(
            _sub("attach", "PodAttachOptions", CONNECT_VERBS),
            _sub("binding", "Binding", CREATE_ONLY),
            _sub("ephemeralcontainers", "Pod", _UPDATES),
            _sub("eviction", "Eviction", CREATE_ONLY, group="policy"),
            _sub("exec", "PodExecOptions", CONNECT_VERBS),
            _sub("log", "Pod", ("get",)),
            _sub("portforward", "PodPortForwardOptions", CONNECT_VERBS),
            _sub("proxy", "PodProxyOptions", PROXY_VERBS),
            # the gate InPlacePodVerticalScaling is on by default since then
            _sub("resize", "Pod", _UPDATES, since=33),
        ),
    ),
    _core("podtemplates", "PodTemplate"),
    _core(
        "replicationcontrollers",
        "ReplicationController",
        short_names=("rc",),
        categories=_ALL,
        status=True,
        scale=True,
        storage_prefix="controllers",
    ),
    _core("resourcequotas", "ResourceQuota", short_names=("quota",), status=True),
    _core("secrets", "Secret"),
    _core(
        "serviceaccounts",
        "ServiceAccount",
        short_names=("sa",),
        subresources=(_sub("token", "TokenRequest", CREATE_ONLY, group="authentication.k8s.io"),),
    ),
    _core(
        "services",
        "Service",
        short_names=("svc",),
        categories=_ALL,
        status=True,
        storage_prefix="services/specs",
        subresources=(_sub("proxy", "ServiceProxyOptions", PROXY_VERBS),),
    ),
)
