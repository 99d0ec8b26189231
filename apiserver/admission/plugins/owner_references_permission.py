"""OwnerReferencesPermissionEnforcement: who gives an object an owner must be allowed to delete the object, and who holds back the owner's
deletion to set its finalizers. Off by default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apiserver.admission.interfaces import AdmissionAttributes, Operation
from apiserver.admission.plugin import Plugin, forbidden, new_object
from apiserver.authorization.authorizer import Attributes, Authorizer, Decision
from apiserver.machinery import objects
from apiserver.request.unanswered import settled
from apiserver.resources.resource_info import ResourceInfo

#: the resource of a kind of a group and version; None where none is served
ResourceOfKind = Callable[[str, str, str], ResourceInfo | None]


class OwnerReferencesPermissionEnforcement(Plugin):
    name = "OwnerReferencesPermissionEnforcement"
    operations = frozenset((Operation.CREATE, Operation.UPDATE))
    subresources = None

    def __init__(self, authorizer: Authorizer, by_kind: ResourceOfKind) -> None:
        self._authorizer = authorizer
        self._by_kind = by_kind

    def handles(self, operation: Operation, info: ResourceInfo, subresource: str) -> bool:
        if (info.group, info.resource, subresource) == ("", "pods", "status"):
            return False  # it cannot change owners
        return super().handles(operation, info, subresource)

    async def validate(self, attributes: AdmissionAttributes) -> None:
        new, old = new_object(attributes), attributes.old_object
        owners, had = objects.owner_references(new), [] if old is None else objects.owner_references(old)
        if owners == had:
            return
        # what is only being made may be given any owner
        if old is not None:
            info = attributes.info
            asked = Attributes(
                user=attributes.user,
                verb="delete",
                group=info.group,
                version=info.version,
                namespace=attributes.namespace,
                resource=info.resource,
                subresource=attributes.subresource,
                name=attributes.name,
            )
            await self._check(attributes, asked, "cannot set an ownerRef on a resource you can't delete")
        held = {owner.get("uid") for owner in had if owner.get("blockOwnerDeletion")}
        for owner in owners:
            if owner.get("blockOwnerDeletion") and owner.get("uid") not in held:
                await self._check_owner(attributes, owner)

    async def _check_owner(self, attributes: AdmissionAttributes, owner: dict[str, Any]) -> None:
        api_version, kind = str(owner.get("apiVersion") or ""), str(owner.get("kind") or "")
        group, version = objects.group_version(api_version)
        info = None if api_version.count("/") > 1 else self._by_kind(group, version, kind)
        if info is None:
            what = f"cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {api_version} Kind {kind}"
            raise forbidden(attributes, f'{what}: no matches for kind "{kind}" in version "{api_version}"')
        asked = Attributes(
            user=attributes.user,
            verb="update",
            group=group,
            version=version,
            namespace=attributes.namespace if info.namespaced else "",
            resource=info.resource,
            subresource="finalizers",
            name=str(owner.get("name") or ""),
        )
        what = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"
        await self._check(attributes, asked, what)

    async def _check(self, attributes: AdmissionAttributes, asked: Attributes, otherwise: str) -> None:
        decision, reason = await settled(lambda: self._authorizer.authorize(asked))
        if decision is not Decision.ALLOW:
            raise forbidden(attributes, f"{otherwise}: {reason}, <nil>")
