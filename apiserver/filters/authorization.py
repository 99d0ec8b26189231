"""Whether the user may: 403 where not."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from apiserver.authentication.user import UserInfo
from apiserver.authorization import selectors
from apiserver.authorization.authorizer import Attributes, Authorizer, Decision, EvaluationError
from apiserver.authorization.decisions import Decider
from apiserver.authorization.messages import forbidden
from apiserver.request.request_context import RequestContext, RequestInfo
from apiserver.request.unanswered import Unanswered
from apiserver.resources.resource_info import ResourceInfo

DECISION_ANNOTATION = "authorization.k8s.io/decision"
REASON_ANNOTATION = "authorization.k8s.io/reason"


def attributes_of(context: RequestContext) -> Attributes:
    info = context.info
    assert context.user is not None, "authorization before authentication"
    if not info.is_resource_request:
        return Attributes(user=context.user, verb=info.verb, is_resource_request=False, path=info.path)
    field_selector, label_selector = selectors_of(context)
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
        field_selector=selectors.field_requirements(field_selector) if field_selector else (),
        label_selector=selectors.label_requirements(label_selector) if label_selector else (),
    )


_NO_SELECTORS = ("", "")


def selectors_of(context: RequestContext) -> tuple[str, str]:
    """The texts of field and label selector where they count: of lists and the like, not of the old watches by path."""
    query, info = context.query, context.info
    if not query or info.verb not in selectors.VERBS or not ("fieldSelector" in query or "labelSelector" in query):
        return _NO_SELECTORS
    if info.path.split("/", 5)[3 if info.api_prefix == "api" else 4] == "watch":
        return _NO_SELECTORS
    return context.query_value("fieldSelector"), context.query_value("labelSelector")


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


#: (user, RequestInfo, selectors) remembered as allowed; beyond it the memory starts anew
ALLOWED_MAX = 8192
#: requests with longer selectors are asked about each time
SELECTORS_LENGTH_MAX = 512

_Key = tuple[int, int, str, str]


class AuthorizationObserver(Protocol):
    def allowed(self, seconds: float) -> None: ...

    def not_allowed(self, result: str, seconds: float) -> None:
        """``result``: denied, no-opinion or error."""


class Authorization:
    """Remembers what it has allowed, by the identity of user and RequestInfo, both of which are the same objects for equal requests, and
    the texts of the selectors, until the authorizer's generation moves. Only where the authorizer has one."""

    def __init__(
        self, authorizer: Authorizer, observer: AuthorizationObserver | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        """``now``: a monotonic clock, for ``observer``."""
        self._observer = observer
        self._now = now
        self._authorizer = authorizer
        self._generation_of: Callable[[], int | None] = getattr(authorizer, "generation", lambda: None)
        self._generation: int | None = None
        self._allowed: dict[_Key, tuple[UserInfo, RequestInfo, str, Decider]] = {}

    def __call__(self, context: RequestContext) -> None:
        """Raises StatusError 403, 500; Unanswered."""
        user, info = context.user, context.info
        assert user is not None, "authorization before authentication"
        key = (id(user), id(info), *selectors_of(context))
        generation = self._generation_of()
        if generation is not None:
            if generation != self._generation:
                self._allowed.clear()
                self._generation = generation
            known = self._allowed.get(key)
            # the entry holds both objects, so their identities cannot have passed to others
            if known is not None:
                assert known[0] is user and known[1] is info, key
                context.annotations[DECISION_ANNOTATION] = "allow"
                context.annotations[REASON_ANNOTATION] = known[2]
                known[3].allowed += 1
                if self._observer is not None:
                    self._observer.allowed(0.0)
                return
        attributes = attributes_of(context)
        decision, reason = self._decide(context, attributes)
        annotations = context.annotations
        if decision is Decision.ALLOW:
            annotations[DECISION_ANNOTATION] = "allow"
            annotations[REASON_ANNOTATION] = reason
            # who is impersonated is another object each time
            if generation is not None and context.original_user is None and len(key[2]) + len(key[3]) <= SELECTORS_LENGTH_MAX:
                if len(self._allowed) >= ALLOWED_MAX:
                    self._allowed.clear()
                self._allowed[key] = (user, info, reason, getattr(self._authorizer, "last_decider", _NOBODY))
            return
        if isinstance(reason, EvaluationError):
            annotations[REASON_ANNOTATION] = "internal error"
            raise forbidden(attributes, reason)
        annotations[DECISION_ANNOTATION] = "forbid"
        annotations[REASON_ANNOTATION] = reason
        raise forbidden(attributes, reason)

    def _decide(self, context: RequestContext, attributes: Attributes) -> tuple[Decision, str]:
        if self._observer is None:
            return self._authorizer.authorize(attributes)
        # of a step that is done again since others had to be asked, the time of asking counts as well
        began = context.extra.pop(_BEGAN, None) or self._now()
        try:
            decision, reason = self._authorizer.authorize(attributes)
        except Unanswered:
            context.extra[_BEGAN] = began
            raise
        seconds = self._now() - began
        if decision is Decision.ALLOW:
            self._observer.allowed(seconds)
        elif isinstance(reason, EvaluationError):
            self._observer.not_allowed("error", seconds)
        else:
            self._observer.not_allowed("denied" if decision is Decision.DENY else "no-opinion", seconds)
        return decision, reason


_BEGAN = "authorization began"
#: who decided where an authorizer does not tell
_NOBODY = Decider()
