"""A request as a policy wants to see it: in the group and version that its rules name, with its namespace and who asks."""

from __future__ import annotations

from typing import Any

from apiserver.admission import expressions, rule_matching
from apiserver.admission.interfaces import AdmissionAttributes
from apiserver.admission.policies.params import ConfigurationError, ServedObjects
from apiserver.admission.policies.source import PolicyObjects
from apiserver.admission.questions import UserQuestions
from apiserver.admission.rule_matching import Matcher
from apiserver.authorization.authorizer import Authorizer
from apiserver.machinery import status
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.resources.resource_info import ResourceInfo


def matched(
    matcher: Matcher | None, fault: str, attributes: AdmissionAttributes, objects: PolicyObjects, served: ServedObjects
) -> ResourceInfo | None:
    """The resource as the rule that matches names it, None where none does. Raises ConfigurationError where it cannot be told."""
    if matcher is None:
        raise ConfigurationError(fault)
    try:
        return matcher.match(attributes, objects, served.equivalents)
    except StatusError as error:
        raise ConfigurationError(error.message) from error


async def in_version(obj: Object | None, attributes: AdmissionAttributes, wanted: ResourceInfo, served: ServedObjects) -> Object | None:
    """Raises ConfigurationError where a custom object cannot be had in this version."""
    info = attributes.info
    if obj is None or wanted.api_version == info.api_version or attributes.subresource not in ("", "status"):
        return obj
    try:
        return await served.converted(obj, info, wanted)
    except StatusError as error:
        raise ConfigurationError(f"failed to convert object version: {error.message}") from error


async def values_of(
    attributes: AdmissionAttributes, wanted: ResourceInfo, objects: PolicyObjects, served: ServedObjects, authorizer: Authorizer
) -> dict[str, Any]:
    """What expressions see of a request, parameters aside. Raises ConfigurationError, and 404 where the namespace is gone."""
    namespace = None
    if attributes.namespace and not rule_matching.is_namespace(attributes.info):
        namespace = objects.get("", "namespaces", "", attributes.namespace)
        if namespace is None:
            raise status.not_found("", "namespaces", attributes.namespace)
    return expressions.request_values(
        attributes,
        wanted=wanted,
        obj=await in_version(attributes.object, attributes, wanted, served),
        old=await in_version(attributes.old_object, attributes, wanted, served),
        namespace=namespace,
        authorizer=UserQuestions(authorizer, attributes),
    )
