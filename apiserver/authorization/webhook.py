"""Another server decides (``--authorization-mode=Webhook``): a SubjectAccessReview is posted, its status is the decision.

What it allowed is remembered for one time, what it refused for another; that it could not be reached is not remembered, and means what
``failure`` says: no opinion (others decide, and where none allows the request fails) or a refusal. Conditions on the review (CEL) spare the
question: where one is false the webhook has no opinion.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, Protocol

from apiserver.authorization.authorizer import Attributes, Decision, EvaluationError
from apiserver.machinery import objects
from apiserver.outbound.json_client import OutboundError
from apiserver.request.unanswered import RemoteAnswers

logger = logging.getLogger(__name__)

#: answers remembered; the longest unused goes first (kube-apiserver's number)
ENTRIES_MAX = 8192
#: characters of what clients choose in a question (namespace, name, path …): longer questions are not remembered, so that nobody fills the
#: memory with few requests (kube-apiserver's number)
REMEMBERED_LENGTH_MAX = 10_000

VERSIONS = ("v1", "v1beta1")

_Answer = tuple[Decision, str]


class ConditionError(Exception):
    """A condition could not be evaluated, and none was false."""


class Conditions(Protocol):
    def __call__(self, spec: dict[str, Any]) -> bool:
        """Whether the webhook is to be asked about a SubjectAccessReviewSpec (of v1). Raises ConditionError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookPolicy:
    """``failure``: NO_OPINION or DENY."""

    name: str
    version: str
    allowed_ttl_seconds: float
    refused_ttl_seconds: float
    failure: Decision = Decision.NO_OPINION


class WebhookObserver(Protocol):
    """``name`` is the webhook's."""

    def evaluated(self, name: str, result: str, seconds: float) -> None:
        """``result``: success, timeout or error (an answer that could not be used)."""

    def failed_open(self, name: str, result: str) -> None:
        """Others decide, since there was no usable answer."""

    def conditions_evaluated(self, name: str, seconds: float, *, excluded: bool, failed: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class _Said:
    answer: _Answer
    ttl_seconds: float


class WebhookAuthorizer:
    def __init__(
        self,
        review: Callable[[dict[str, Any]], Awaitable[Any]],
        policy: WebhookPolicy,
        now: Callable[[], float],
        conditions: Conditions | None = None,
        observer: WebhookObserver | None = None,
    ) -> None:
        """``review`` posts a SubjectAccessReview and answers what came back; it raises OutboundError. ``now``: a monotonic clock."""
        assert policy.version in VERSIONS, policy.version
        assert policy.failure is not Decision.ALLOW, policy.failure
        self._review = review
        self._policy = policy
        self._conditions = conditions
        self._observer = observer
        self._now = now
        self._answers: RemoteAnswers[_Said] = RemoteAnswers(
            now=now,
            entries_max=ENTRIES_MAX,
            ttl_seconds=lambda said: said.ttl_seconds,
            overloaded=lambda: self._failed("too many access reviews are under way"),
        )

    def forget(self) -> None:
        self._answers.forget()

    def authorize(self, attributes: Attributes) -> _Answer:
        """Raises Unanswered where the webhook has to be asked first."""
        spec: dict[str, Any] | None = None
        if self._conditions is not None:
            spec = spec_of(attributes)
            began = self._now()
            excluded, problem = False, ""
            try:
                excluded = not self._conditions(spec)
            except ConditionError as error:
                problem = str(error)
            if self._observer is not None:
                seconds = self._now() - began
                self._observer.conditions_evaluated(self._policy.name, seconds, excluded=excluded, failed=bool(problem))
            if problem:
                return self._failed(problem).answer
            if excluded:
                return Decision.NO_OPINION, ""
        key = _key(attributes)
        return self._answers.get(key, lambda: self._ask(attributes, spec)).answer

    async def _ask(self, attributes: Attributes, spec: dict[str, Any] | None) -> _Said:
        policy = self._policy
        spec = spec or spec_of(attributes)
        if policy.version == "v1beta1":
            spec = {("group" if key == "groups" else key): value for key, value in spec.items()}
        api_version = f"authorization.k8s.io/{policy.version}"
        body = {"kind": "SubjectAccessReview", "apiVersion": api_version, "metadata": objects.unstored_metadata(), "spec": spec}
        body["status"] = {"allowed": False}
        began = self._now()
        result = "success"
        try:
            said = _read(await self._review(body))
        except (OutboundError, ValueError) as error:
            result = "timeout" if isinstance(error.__cause__, TimeoutError) else "error"
            if self._observer is not None and policy.failure is Decision.NO_OPINION:
                self._observer.failed_open(policy.name, result)
            logger.warning("an authorization webhook gave no answer: name=%s error=%s", policy.name, error)
            return self._failed(f"authorization webhook {policy.name}: {error}")
        finally:
            if self._observer is not None:
                self._observer.evaluated(policy.name, result, self._now() - began)
        ttl = policy.allowed_ttl_seconds if said[0] is Decision.ALLOW else policy.refused_ttl_seconds
        return _Said(said, ttl if _length(attributes) < REMEMBERED_LENGTH_MAX and not isinstance(said[1], EvaluationError) else 0.0)

    def _failed(self, why: str) -> _Said:
        return _Said((self._policy.failure, EvaluationError(why)), 0.0)


def _key(a: Attributes) -> Hashable:
    user = a.user
    extra = tuple(user.extra.items()) if user.extra else ()
    return (user.name, user.uid, user.groups, extra, a.verb, a.is_resource_request, a.group, a.version, a.namespace, a.resource,
            a.subresource, a.name, "" if a.is_resource_request else a.path, a.field_selector, a.label_selector)  # fmt: skip


def _length(a: Attributes) -> int:
    return len(a.namespace) + len(a.verb) + len(a.group) + len(a.version) + len(a.resource) + len(a.subresource) + len(a.name) + len(a.path)


def spec_of(a: Attributes) -> dict[str, Any]:
    """A SubjectAccessReviewSpec of v1."""
    user = a.user
    spec: dict[str, Any] = {}
    if a.is_resource_request:
        told = {
            "namespace": a.namespace,
            "verb": a.verb,
            "group": a.group,
            "version": a.version,
            "resource": a.resource,
            "subresource": a.subresource,
            "name": a.name,
        }
        attributes: dict[str, Any] = {key: value for key, value in told.items() if value}
        for name, requirements in (("fieldSelector", a.field_selector), ("labelSelector", a.label_selector)):
            if requirements:
                attributes[name] = {"requirements": [requirement.to_json() for requirement in requirements]}
        spec["resourceAttributes"] = attributes
    else:
        spec["nonResourceAttributes"] = {key: value for key, value in (("path", a.path), ("verb", a.verb)) if value}
    if user.name:
        spec["user"] = user.name
    if user.groups:
        spec["groups"] = list(user.groups)
    if user.extra:
        spec["extra"] = {key: list(values) for key, values in user.extra.items()}
    if user.uid:
        spec["uid"] = user.uid
    return spec


def _read(review: Any) -> _Answer:
    """Raises ValueError for what is no SubjectAccessReview."""
    status = review.get("status") if isinstance(review, dict) else None
    if not isinstance(status, dict):
        raise ValueError("it answered no SubjectAccessReview with a status")
    allowed, denied, reason = status.get("allowed", False), status.get("denied", False), status.get("reason") or ""
    if not isinstance(allowed, bool) or not isinstance(denied, bool) or not isinstance(reason, str):
        raise ValueError("it answered a SubjectAccessReview that cannot be read")
    reason.encode()  # an answer and a log must be able to tell it
    if allowed and denied:
        return Decision.DENY, EvaluationError("webhook subject access review returned both allow and deny response")
    if denied:
        return Decision.DENY, reason
    return (Decision.ALLOW if allowed else Decision.NO_OPINION), reason
