"""Requests as admission plugins see them."""

from __future__ import annotations

from typing import Any

from apiserver.admission.interfaces import AdmissionAttributes, AdmissionPlugin, Operation
from apiserver.authentication.user import UserInfo
from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from apiserver.resources.resource_info import ResourceInfo

USER = UserInfo(name="alice", groups=("system:authenticated",))


def info(resource: str, group: str = "", *, namespaced: bool = True) -> ResourceInfo:
    return ResourceInfo(group=group, version="v1", resource=resource, kind=resource[:-1].title(), namespaced=namespaced)


def request(
    resource: str,
    obj: Object | None,
    old: Object | None = None,
    *,
    group: str = "",
    operation: Operation | None = None,
    subresource: str = "",
    namespace: str = "ns",
    name: str = "",
    user: UserInfo = USER,
    dry_run: bool = False,
) -> AdmissionAttributes:
    """A create, an update where there is an old object, else a delete; the name is that of the object."""
    if operation is None:
        operation = Operation.DELETE if obj is None else Operation.UPDATE if old is not None else Operation.CREATE
    return AdmissionAttributes(
        operation=operation,
        info=info(resource, group, namespaced=bool(namespace)),
        subresource=subresource,
        namespace=namespace,
        name=name or (objects.name(obj) if obj else ""),
        user=user,
        object=obj,
        old_object=old,
        dry_run=dry_run,
    )


async def run(plugin: AdmissionPlugin, attributes: AdmissionAttributes) -> Any:
    """Both passes of one plugin, if it is concerned; the object."""
    if plugin.handles(attributes.operation, attributes.info, attributes.subresource):
        await plugin.admit(attributes)
        await plugin.validate(attributes)
    return attributes.object


def pod(name: str = "a", *, containers: list[dict[str, Any]] | None = None, **spec: Any) -> Object:
    return {"metadata": {"name": name}, "spec": {"containers": containers or [{"name": "c", "image": "i"}], **spec}}


def container(name: str = "c", requests: dict[str, str] | None = None, limits: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    resources = {k: v for k, v in (("requests", requests), ("limits", limits)) if v is not None}
    return {"name": name, "image": "i", "resources": resources, **more}
