"""NamespaceExists and NamespaceAutoProvision: writes into a namespace that is not there are refused, or make it. Off by default."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from apiserver.admission.interfaces import AdmissionAttributes, ObjectGetter, Operation
from apiserver.admission.plugin import Plugin, forbidden
from apiserver.machinery import status
from apiserver.machinery.status import StatusError


class NamespaceExists(Plugin):
    name = "NamespaceExists"
    operations = frozenset((Operation.CREATE, Operation.UPDATE, Operation.DELETE))
    subresources = None

    def __init__(self, getter: ObjectGetter) -> None:
        self._getter = getter

    async def validate(self, attributes: AdmissionAttributes) -> None:
        if _is_inside(attributes) and self._getter.get("", "namespaces", "", attributes.namespace) is None:
            raise status.not_found("", "namespaces", attributes.namespace)


class NamespaceAutoProvision(Plugin):
    name = "NamespaceAutoProvision"
    operations = frozenset((Operation.CREATE,))
    subresources = None

    def __init__(self, getter: ObjectGetter, create_namespace: Callable[[str], Awaitable[None]]) -> None:
        """``create_namespace``: by its name; raises StatusError, 409 where it is there."""
        self._getter = getter
        self._create = create_namespace

    async def admit(self, attributes: AdmissionAttributes) -> None:
        # a dry run makes nothing: it is refused by NamespaceLifecycle
        if attributes.dry_run or not _is_inside(attributes):
            return
        if self._getter.get("", "namespaces", "", attributes.namespace) is not None:
            return
        try:
            await self._create(attributes.namespace)
        except StatusError as error:
            if error.code != 409:
                raise forbidden(attributes, error.message) from error


def _is_inside(attributes: AdmissionAttributes) -> bool:
    info = attributes.info
    return bool(attributes.namespace) and (info.group, info.resource) != ("", "namespaces")
