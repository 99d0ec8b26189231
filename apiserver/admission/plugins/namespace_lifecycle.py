"""NamespaceLifecycle: no object without its namespace, none in a namespace that is going away, and some namespaces never go."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from apiserver.admission.interfaces import AdmissionAttributes, ObjectGetter, Operation
from apiserver.admission.plugin import Plugin, forbidden
from apiserver.machinery import objects, status

PROTECTED = frozenset(("default", "kube-system", "kube-public"))
#: how long a namespace that was made a moment ago may need to reach this server's cache, in seconds
MISSING_NAMESPACE_WAIT_SECONDS = 0.05


class NamespaceLifecycle(Plugin):
    name = "NamespaceLifecycle"
    operations = frozenset((Operation.CREATE, Operation.DELETE))
    subresources = None

    def __init__(self, getter: ObjectGetter, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._getter = getter
        self._sleep = sleep

    async def admit(self, attributes: AdmissionAttributes) -> None:
        info = attributes.info
        is_namespace = info.group == "" and info.resource == "namespaces"
        if attributes.operation is Operation.DELETE:
            if is_namespace and attributes.name in PROTECTED:
                raise status.forbidden("", "namespaces", attributes.name, "this namespace may not be deleted")
            return
        if is_namespace or not attributes.namespace:
            return
        if info.resource == "localsubjectaccessreviews":
            # whether a namespace exists is not told to those who may only ask about rights
            return
        namespace = self._getter.get("", "namespaces", "", attributes.namespace)
        if namespace is None:
            await self._sleep(MISSING_NAMESPACE_WAIT_SECONDS)
            namespace = self._getter.get("", "namespaces", "", attributes.namespace)
        if namespace is None:
            raise status.not_found("", "namespaces", attributes.namespace)
        if objects.get(namespace, "status", "phase") == "Terminating" or objects.is_being_deleted(namespace):
            raise _terminating(attributes)


def _terminating(attributes: AdmissionAttributes) -> status.StatusError:
    name = attributes.namespace
    error = forbidden(attributes, f"unable to create new content in namespace {name} because it is being terminated")
    cause = {"reason": "NamespaceTerminating", "message": f"namespace {name} is being terminated", "field": "metadata.namespace"}
    error.status["details"]["causes"] = [cause]
    return error
