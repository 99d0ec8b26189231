"""``AdmissionChain``: the enabled plugins in Kubernetes' order, and which of them a request meets.

All plugins that change objects run first, in order; after the object is complete all that only judge run. Which plugins are concerned
follows from operation, resource and subresource alone, so it is found once for each combination; most requests meet two or three.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from apiserver.admission.interfaces import AdmissionAttributes, AdmissionPlugin, Operation
from apiserver.admission.plugin import Plugin
from apiserver.machinery.status import StatusError

if TYPE_CHECKING:
    from apiserver.admission.metrics import AdmissionMetrics

#: kube-apiserver's order. What creates or refuses on behalf of others stands at the end: quota must see the object as it will be
PLUGIN_ORDER = (
    "AlwaysAdmit",
    "NamespaceAutoProvision",
    "NamespaceLifecycle",
    "NamespaceExists",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "ServiceAccount",
    "NodeRestriction",
    "TaintNodesByCondition",
    "AlwaysPullImages",
    "ImagePolicyWebhook",
    "PodSecurity",
    "PodNodeSelector",
    "Priority",
    "DefaultTolerationSeconds",
    "PodTolerationRestriction",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "DefaultStorageClass",
    "StorageObjectInUseProtection",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "RuntimeClass",
    "CertificateApproval",
    "CertificateSigning",
    "ClusterTrustBundleAttest",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "DenyServiceExternalIPs",
    "PodTopologyLabels",
    "PodResizeValidator",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
    "ResourceQuota",
    "AlwaysDeny",
)

#: off until they are asked for, as in kube-apiserver; of most the code is loaded only then (``optional``)
OPTIONAL_PLUGINS = frozenset(
    (
        "AlwaysAdmit",
        "NamespaceAutoProvision",
        "NamespaceExists",
        "LimitPodHardAntiAffinityTopology",
        "NodeRestriction",
        "AlwaysPullImages",
        "ImagePolicyWebhook",
        "PodNodeSelector",
        "PodTolerationRestriction",
        "EventRateLimit",
        "ExtendedResourceToleration",
        "OwnerReferencesPermissionEnforcement",
        "DenyServiceExternalIPs",
        "AlwaysDeny",
    )
)
DEFAULT_PLUGINS = frozenset(PLUGIN_ORDER) - OPTIONAL_PLUGINS

_ADMIT, _VALIDATE = "admit", "validate"

_Key = tuple[Operation, str, str, str]


class AdmissionChain:
    def __init__(self, plugins: Sequence[AdmissionPlugin]) -> None:
        self._plugins = tuple(plugins)
        self._admitting: dict[_Key, tuple[AdmissionPlugin, ...]] = {}
        self._validating: dict[_Key, tuple[AdmissionPlugin, ...]] = {}
        #: None: nothing is measured
        self.metrics: AdmissionMetrics | None = None

    @property
    def plugin_names(self) -> tuple[str, ...]:
        return tuple(plugin.name for plugin in self._plugins)

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """Let the plugins change ``attributes.object``. Raises StatusError of the first that refuses."""
        attributes.reinvocation = None
        concerned = self._concerned(self._admitting, attributes, _ADMIT)
        began, rejected = time.perf_counter(), "true"
        try:
            await self._run(concerned, _ADMIT, attributes)
            if attributes.reinvocation is not None and attributes.reinvocation.wanted:
                # what a webhook put in is seen by everybody: once more, and no further
                attributes.reinvocation.second = True
                await self._run(concerned, _ADMIT, attributes)
            rejected = "false"
        finally:
            self._step_done(began, _ADMIT, attributes, rejected)

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Let the plugins judge the finished object. Raises StatusError of the first that refuses."""
        began, rejected = time.perf_counter(), "true"
        try:
            await self._run(self._concerned(self._validating, attributes, _VALIDATE), _VALIDATE, attributes)
            rejected = "false"
        finally:
            self._step_done(began, _VALIDATE, attributes, rejected)

    async def _run(self, plugins: Sequence[AdmissionPlugin], step: str, attributes: AdmissionAttributes) -> None:
        """Each plugin's step, measured. Time is looked at once between two of them."""
        metrics = self.metrics
        operation = attributes.operation.value
        began = time.perf_counter()
        for plugin in plugins:
            try:
                await (plugin.admit(attributes) if step == _ADMIT else plugin.validate(attributes))
            except StatusError:
                if metrics is not None:
                    metrics.controllers.observe(time.perf_counter() - began, plugin.name, step, operation, "true")
                raise
            if metrics is not None:
                now = time.perf_counter()
                metrics.controllers.observe(now - began, plugin.name, step, operation, "false")
                began = now

    def _step_done(self, began: float, step: str, attributes: AdmissionAttributes, rejected: str) -> None:
        if self.metrics is not None:
            self.metrics.steps.observe(time.perf_counter() - began, step, attributes.operation.value, rejected)

    def _concerned(
        self, known: dict[_Key, tuple[AdmissionPlugin, ...]], attributes: AdmissionAttributes, method: str
    ) -> tuple[AdmissionPlugin, ...]:
        info = attributes.info
        key = (attributes.operation, info.group, info.resource, attributes.subresource)
        found = known.get(key)
        if found is None:
            found = known[key] = tuple(
                plugin
                for plugin in self._plugins
                if plugin.handles(attributes.operation, info, attributes.subresource) and _does(plugin, method)
            )
        return found


def _does(plugin: AdmissionPlugin, method: str) -> bool:
    return getattr(type(plugin), method) is not getattr(Plugin, method)


def enabled_plugins(enable: Iterable[str] = (), disable: Iterable[str] = ()) -> tuple[str, ...]:
    """The names of the plugins to run, in order (``--enable-admission-plugins``, ``--disable-admission-plugins``).

    Raises ValueError for names that are unknown, and for names that are both enabled and disabled.
    """
    enabled, disabled = set(enable), set(disable)
    known = set(PLUGIN_ORDER)
    if unknown := sorted((enabled | disabled) - known):
        raise ValueError(f"admission plugins are unknown: {', '.join(unknown)}; known: {', '.join(sorted(known))}")
    if both := sorted(enabled & disabled):
        raise ValueError(f"admission plugins are both enabled and disabled: {', '.join(both)}")
    return tuple(name for name in PLUGIN_ORDER if name in enabled or (name in DEFAULT_PLUGINS and name not in disabled))
