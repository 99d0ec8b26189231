"""The plugins that are off by default, made where a flag asks for them: a server without them does not even load them."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from apiserver.admission.configuration import AdmissionConfiguration
from apiserver.admission.interfaces import AdmissionPlugin, ObjectGetter
from apiserver.authorization.authorizer import Authorizer
from apiserver.resources.resource_info import ResourceInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionalServices:
    """What they need of a server. ``create_namespace``: by its name, raises StatusError; ``by_kind``: the resource of a group, version and
    kind, None where none is served."""

    create_namespace: Callable[[str], Awaitable[None]]
    by_kind: Callable[[str, str, str], ResourceInfo | None]


def makers(
    getter: ObjectGetter, authorizer: Authorizer, configuration: AdmissionConfiguration, services: OptionalServices
) -> dict[str, Callable[[], AdmissionPlugin]]:
    from apiserver.admission.plugins.always import AlwaysAdmit, AlwaysDeny
    from apiserver.admission.plugins.anti_affinity import LimitPodHardAntiAffinityTopology
    from apiserver.admission.plugins.deny_service_external_ips import DenyServiceExternalIPs
    from apiserver.admission.plugins.event_rate_limit import EventRateLimit
    from apiserver.admission.plugins.namespace_exists import NamespaceAutoProvision, NamespaceExists
    from apiserver.admission.plugins.owner_references_permission import OwnerReferencesPermissionEnforcement
    from apiserver.admission.plugins.pod_node_selector import PodNodeSelector
    from apiserver.admission.plugins.pod_toleration_restriction import PodTolerationRestriction
    from apiserver.machinery.quota.evaluators import is_best_effort

    return {
        "AlwaysAdmit": AlwaysAdmit,
        "NamespaceAutoProvision": lambda: NamespaceAutoProvision(getter, services.create_namespace),
        "NamespaceExists": lambda: NamespaceExists(getter),
        "LimitPodHardAntiAffinityTopology": LimitPodHardAntiAffinityTopology,
        "ImagePolicyWebhook": lambda: _image_policy(configuration),
        "PodNodeSelector": lambda: PodNodeSelector(getter, configuration.node_selectors),
        "PodTolerationRestriction": lambda: PodTolerationRestriction(getter, configuration.tolerations, is_best_effort),
        "EventRateLimit": lambda: EventRateLimit(configuration.event_limits, time.monotonic),
        "OwnerReferencesPermissionEnforcement": lambda: OwnerReferencesPermissionEnforcement(authorizer, services.by_kind),
        "DenyServiceExternalIPs": DenyServiceExternalIPs,
        "AlwaysDeny": AlwaysDeny,
    }


def _image_policy(configuration: AdmissionConfiguration) -> AdmissionPlugin:
    """Raises ValueError, OSError where it is not configured or its kubeconfig cannot be used."""
    from apiserver.admission.plugins.image_policy_webhook import TIMEOUT_SECONDS, ImagePolicyWebhook
    from apiserver.outbound.review_endpoint import ReviewEndpoint

    policy = configuration.image_policy
    if policy is None:
        raise ValueError("the admission plugin ImagePolicyWebhook needs a configuration: --admission-control-config-file")
    endpoint = ReviewEndpoint(Path(policy.kubeconfig), timeout_seconds=TIMEOUT_SECONDS, now=time.monotonic)
    return ImagePolicyWebhook(policy, endpoint, time.monotonic)
