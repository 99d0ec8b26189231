"""Whether the user may: 403 where not."""

from __future__ import annotations

from apiserver.authorization.authorizer import Attributes, Authorizer, Decision
from apiserver.authorization.messages import forbidden
from apiserver.request.request_context import RequestContext

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


class Authorization:
    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def __call__(self, context: RequestContext) -> None:
        """Raises StatusError 403."""
        attributes = attributes_of(context)
        decision, reason = self._authorizer.authorize(attributes)
        annotations = context.annotations
        if decision is Decision.ALLOW:
            annotations[DECISION_ANNOTATION] = "allow"
            annotations[REASON_ANNOTATION] = reason
            return
        annotations[DECISION_ANNOTATION] = "forbid"
        annotations[REASON_ANNOTATION] = reason
        raise forbidden(attributes, reason)
