"""The admission chain of a server from its flags and what its plugins need."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from apiserver.admission import chain
from apiserver.admission.configuration import NO_CONFIGURATION, AdmissionConfiguration
from apiserver.admission.interfaces import AdmissionPlugin, ObjectGetter
from apiserver.admission.plugins.always_pull_images import AlwaysPullImages
from apiserver.admission.plugins.certificates import (
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
    ClusterTrustBundleAttest,
)
from apiserver.admission.plugins.default_ingress_class import DefaultIngressClass
from apiserver.admission.plugins.default_storage_class import DefaultStorageClass
from apiserver.admission.plugins.default_toleration_seconds import DefaultTolerationSeconds
from apiserver.admission.plugins.extended_resource_toleration import ExtendedResourceToleration
from apiserver.admission.plugins.limit_ranger import LimitRanger
from apiserver.admission.plugins.mutating_admission_policy import MutatingAdmissionPolicy
from apiserver.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from apiserver.admission.plugins.node_restriction import NodeRestriction
from apiserver.admission.plugins.persistent_volume_claim_resize import PersistentVolumeClaimResize
from apiserver.admission.plugins.pod_resize import PodResizeValidator
from apiserver.admission.plugins.pod_security import PodSecurity
from apiserver.admission.plugins.pod_topology_labels import PodTopologyLabels
from apiserver.admission.plugins.policy_references import PolicyReferences
from apiserver.admission.plugins.priority import Priority
from apiserver.admission.plugins.privilege_escalation import PrivilegeEscalation
from apiserver.admission.plugins.resource_quota import QuotaStatusWriter, ResourceQuota
from apiserver.admission.plugins.runtime_class import RuntimeClass
from apiserver.admission.plugins.service_account import ServiceAccount
from apiserver.admission.plugins.storage_object_in_use_protection import StorageObjectInUseProtection
from apiserver.admission.plugins.taint_nodes_by_condition import TaintNodesByCondition
from apiserver.admission.plugins.validating_admission_policy import ValidatingAdmissionPolicy
from apiserver.admission.policies.source import PolicyServices
from apiserver.admission.webhooks.plugins import MutatingAdmissionWebhook, ValidatingAdmissionWebhook
from apiserver.admission.webhooks.world import WebhookWorld
from apiserver.authorization.authorizer import Authorizer
from apiserver.authorization.rbac_data import RbacData
from apiserver.outbound.kubeconfig import NO_USERS
from apiserver.resources.facts import LAST_MINOR

if TYPE_CHECKING:
    from apiserver.admission.optional import OptionalServices

#: the minor that checks resizes against the node
POD_RESIZE_SINCE = 36


def build_admission_chain(
    getter: ObjectGetter,
    authorizer: Authorizer,
    rbac: RbacData,
    quota_writer: QuotaStatusWriter,
    source: random.Random,
    webhooks: WebhookWorld,
    *,
    enable: Iterable[str] = (),
    disable: Iterable[str] = (),
    policies: PolicyServices | None = None,
    configuration: AdmissionConfiguration = NO_CONFIGURATION,
    optional: OptionalServices | None = None,
    now: Callable[[], float] = time.time,
) -> chain.AdmissionChain:
    """``source`` names token volumes; ``policies``: what admission policies look at, None: there are none; ``optional``: what plugins that
    are off by default need, None: most of them cannot be had. ``now``: seconds since the epoch. Raises ValueError for unknown names of
    plugins."""
    users = configuration.webhook_users
    minor = policies.minor if policies is not None else LAST_MINOR
    makers: dict[str, Callable[[], AdmissionPlugin]] = {
        "NamespaceLifecycle": lambda: NamespaceLifecycle(getter),
        "LimitRanger": lambda: LimitRanger(getter, minor),
        "ServiceAccount": lambda: ServiceAccount(getter, source),
        "NodeRestriction": lambda: NodeRestriction(getter, authorizer, minor),
        "TaintNodesByCondition": TaintNodesByCondition,
        "AlwaysPullImages": AlwaysPullImages,
        "PodSecurity": lambda: PodSecurity(getter, configuration.pod_security, minor),
        "Priority": lambda: Priority(getter),
        "DefaultTolerationSeconds": DefaultTolerationSeconds,
        "ExtendedResourceToleration": ExtendedResourceToleration,
        "DefaultStorageClass": lambda: DefaultStorageClass(getter),
        "StorageObjectInUseProtection": StorageObjectInUseProtection,
        "PersistentVolumeClaimResize": lambda: PersistentVolumeClaimResize(getter),
        "RuntimeClass": lambda: RuntimeClass(getter),
        "CertificateApproval": lambda: CertificateApproval(authorizer),
        "CertificateSigning": lambda: CertificateSigning(authorizer),
        "ClusterTrustBundleAttest": lambda: ClusterTrustBundleAttest(authorizer),
        "CertificateSubjectRestriction": CertificateSubjectRestriction,
        "DefaultIngressClass": lambda: DefaultIngressClass(getter),
        "PodTopologyLabels": lambda: PodTopologyLabels(getter, minor),
        "MutatingAdmissionWebhook": lambda: MutatingAdmissionWebhook(webhooks, users.get("MutatingAdmissionWebhook", NO_USERS)),
        "ValidatingAdmissionWebhook": lambda: ValidatingAdmissionWebhook(webhooks, users.get("ValidatingAdmissionWebhook", NO_USERS)),
        "ResourceQuota": lambda: ResourceQuota(getter, quota_writer, now, configuration.limited_resources),
    }
    if policies is not None:
        makers["MutatingAdmissionPolicy"] = lambda: MutatingAdmissionPolicy(policies, authorizer)
        makers["ValidatingAdmissionPolicy"] = lambda: ValidatingAdmissionPolicy(policies, authorizer)
    always: list[AdmissionPlugin] = [PrivilegeEscalation(authorizer, rbac)]
    if policies is not None:
        always.append(PolicyReferences(authorizer, policies))
    if minor >= POD_RESIZE_SINCE:
        makers["PodResizeValidator"] = lambda: PodResizeValidator(getter)
    if optional is not None and not makers.keys() >= set(enable):
        from apiserver.admission.optional import makers as optional_makers

        makers |= optional_makers(getter, authorizer, configuration, optional)
    chosen = [makers[name]() for name in chain.enabled_plugins(enable, disable) if name in makers]
    return chain.AdmissionChain([*chosen, *always])
