"""Whether the user may: 403 where not."""

from __future__ import annotations

from collections.abc import Callable

from apiserver.authentication.user import UserInfo
from apiserver.authorization.authorizer import Attributes, Authorizer, Decision
from apiserver.authorization.messages import forbidden
from apiserver.request.request_context import RequestContext, RequestInfo
from apiserver.resources.resource_info import ResourceInfo

DECISION_ANNOTATION = "authorization.k8s.io/decision"
REASON_ANNOTATION = "authorization.k8s.io/reason"


def attributes_of(context: RequestContext) -> Attributes:
    info = context.info
    assert context.user is not None, "authorization before authentication"
    if not info.is_resource_request:
        return Attributes(user=context.user, verb=info.verb, is_resource_request=False, path=info.path)
    return Attributes(
        user=context.user,
        verb=info.verb,
        group=info.group,
        version=info.version,
        namespace=info.namespace,
        resource=info.resource,
        subresource=info.subresource,
        name=info.name,
        path=info.path,
    )


class CreateAuthorization:
    """Whether the user of a PUT or an apply, who may update, may create the object as well: asked where there is none yet."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def __call__(self, user: UserInfo, resource: ResourceInfo, namespace: str, name: str) -> None:
        """Raises StatusError 403."""
        attributes = Attributes(
            user=user,
            verb="create",
            group=resource.group,
            version=resource.version,
            namespace=namespace,
            resource=resource.resource,
            name=name,
        )
        decision, reason = self._authorizer.authorize(attributes)
        if decision is not Decision.ALLOW:
            raise forbidden(attributes, reason)


#: (user, RequestInfo) pairs remembered as allowed; beyond it the memory starts anew
ALLOWED_MAX = 8192


class Authorization:
    """Remembers what it has allowed, by the identity of user and RequestInfo, both of which are the same objects for equal requests,
    until the authorizer's generation moves. Only where the authorizer has one."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._generation_of: Callable[[], int] | None = getattr(authorizer, "generation", None)
        self._generation = 0
        self._allowed: dict[tuple[int, int], tuple[UserInfo, RequestInfo, str]] = {}

    def __call__(self, context: RequestContext) -> None:
        """Raises StatusError 403."""
        user, info = context.user, context.info
        assert user is not None, "authorization before authentication"
        key = (id(user), id(info))
        if self._generation_of is not None:
            generation = self._generation_of()
            if generation != self._generation:
                self._allowed.clear()
                self._generation = generation
            known = self._allowed.get(key)
            # the entry holds both objects, so their identities cannot have passed to others
            if known is not None:
                assert known[0] is user and known[1] is info, key
                context.annotations[DECISION_ANNOTATION] = "allow"
                context.annotations[REASON_ANNOTATION] = known[2]
                return
        attributes = attributes_of(context)
        decision, reason = self._authorizer.authorize(attributes)
        annotations = context.annotations
        if decision is Decision.ALLOW:
            annotations[DECISION_ANNOTATION] = "allow"
            annotations[REASON_ANNOTATION] = reason
            # who is impersonated is another object each time
            if self._generation_of is not None and context.original_user is None:
                if len(self._allowed) >= ALLOWED_MAX:
                    self._allowed.clear()
                self._allowed[key] = (user, info, reason)
            return
        annotations[DECISION_ANNOTATION] = "forbid"
        annotations[REASON_ANNOTATION] = reason
        raise forbidden(attributes, reason)
