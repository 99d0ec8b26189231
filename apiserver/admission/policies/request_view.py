"""``RequestView``: one request as policies see it, in the group and version that their rules name, with its namespace and who asks.

What several policies want to see is made once: where sixty are about one resource, they look at the same values.
"""

from __future__ import annotations

from typing import Any

from apiserver.admission import expressions, rule_matching
from apiserver.admission.interfaces import AdmissionAttributes
from apiserver.admission.policies.params import ConfigurationError, ServedObjects
from apiserver.admission.policies.source import Binding, Hook, PolicyObjects
from apiserver.admission.questions import UserQuestions
from apiserver.authorization.authorizer import Authorizer
from apiserver.machinery import status
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.resources.resource_info import ResourceInfo


class RequestView:
    """Values are shared by all who ask for them: they are to be copied before one is put in."""

    __slots__ = ("_attributes", "_authorizer", "_known", "_namespace", "_objects", "_questions", "_served")

    def __init__(self, attributes: AdmissionAttributes, objects: PolicyObjects, served: ServedObjects, authorizer: Authorizer) -> None:
        self._attributes = attributes
        self._objects = objects
        self._served = served
        self._authorizer = authorizer
        self._questions: UserQuestions | None = None
        self._namespace: Object | None = None
        self._known: dict[str, dict[str, Any]] = {}

    def matched(self, by: Hook[Any] | Binding) -> ResourceInfo | None:
        """The resource as the rule that matches names it, None where none does. Raises ConfigurationError where it cannot be told."""
        if by.matcher is None:
            raise ConfigurationError(by.fault)
        try:
            return by.matcher.match(self._attributes, self._objects, self._served.equivalents)
        except StatusError as error:
            raise ConfigurationError(error.message) from error

    def known_values(self, wanted: ResourceInfo) -> dict[str, Any] | None:
        """What ``values`` has answered before."""
        return self._known.get(wanted.api_version)

    async def values(self, wanted: ResourceInfo) -> dict[str, Any]:
        """What expressions see, parameters aside. Raises ConfigurationError, and 404 where the namespace is gone."""
        found = self._known.get(wanted.api_version)
        if found is None:
            attributes = self._attributes
            if self._questions is None:
                self._namespace = self._find_namespace()
                self._questions = UserQuestions(self._authorizer, attributes)
            found = self._known[wanted.api_version] = expressions.request_values(
                attributes,
                wanted=wanted,
                obj=await self._in_version(attributes.object, wanted),
                old=await self._in_version(attributes.old_object, wanted),
                namespace=self._namespace,
                authorizer=self._questions,
            )
        return found

    def changed(self) -> None:
        """The object is another one now."""
        self._known.clear()

    def _find_namespace(self) -> Object | None:
        attributes = self._attributes
        if not attributes.namespace or rule_matching.is_namespace(attributes.info):
            return None
        found = self._objects.get("", "namespaces", "", attributes.namespace)
        if found is None:
            raise status.not_found("", "namespaces", attributes.namespace)
        return found

    async def _in_version(self, obj: Object | None, wanted: ResourceInfo) -> Object | None:
        info = self._attributes.info
        if obj is None or wanted.api_version == info.api_version or self._attributes.subresource not in ("", "status"):
            return obj
        try:
            return await self._served.converted(obj, info, wanted)
        except StatusError as error:
            raise ConfigurationError(f"failed to convert object version: {error.message}") from error
