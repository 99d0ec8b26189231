"""Makes the namespaces that requests miss (``admission.plugins.namespace_exists.NamespaceAutoProvision``)."""

from __future__ import annotations

from apiserver.authentication.user import ALL_AUTHENTICATED, MASTERS, UserInfo
from apiserver.machinery import release
from apiserver.machinery.objects import Object
from apiserver.registry.environment import Write
from apiserver.registry.registry import Registry

_USER = UserInfo(name="system:apiserver", groups=(MASTERS, ALL_AUTHENTICATED))


class NamespaceMaker:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def create(self, name: str) -> None:
        """By the server's own name, with all that a request for it would meet. Raises StatusError."""
        store = self._registry.stored("", "namespaces")
        release.serve(store.env.minor)
        namespace: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        store.strategy.default(namespace)
        await store.create(Write(user=_USER, manager="sampan"), "", namespace)
