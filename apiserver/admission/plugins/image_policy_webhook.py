"""ImagePolicyWebhook: another server says whether the images of a pod may run (imagepolicy.k8s.io ImageReview). Off by default."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from apiserver.admission.interfaces import AdmissionAttributes, Operation
from apiserver.admission.optional_settings import ImagePolicy
from apiserver.admission.plugin import POD, Plugin, forbidden, new_object
from apiserver.machinery import objects
from apiserver.outbound.json_client import OutboundError

_MARK = ".image-policy.k8s.io/"
_AUDIT = "imagepolicywebhook.image-policy.k8s.io/"
#: answers that are remembered; the oldest goes first
ANSWERS_MAX = 1024
#: of a review with all its attempts
TIMEOUT_SECONDS = 30.0
_FAILED_OPEN = "alpha.image-policy.k8s.io/failed-open"

#: posts an ImageReview and answers what came back. Raises OutboundError
AskImages = Callable[[dict[str, Any]], Awaitable[Any]]


class ImagePolicyWebhook(Plugin):
    name = "ImagePolicyWebhook"
    operations = frozenset((Operation.CREATE, Operation.UPDATE))
    resources = frozenset((POD,))
    subresources = frozenset(("", "ephemeralcontainers"))

    def __init__(self, policy: ImagePolicy, ask: AskImages, now: Callable[[], float]) -> None:
        """``now``: seconds of a clock that does not go back."""
        self._policy = policy
        self._ask = ask
        self._now = now
        self._answers: OrderedDict[bytes, tuple[float, bool, str]] = OrderedDict()

    async def validate(self, attributes: AdmissionAttributes) -> None:
        pod = new_object(attributes)
        fields = ("ephemeralContainers",) if attributes.subresource else ("containers", "initContainers")
        spec = pod.get("spec") or {}
        images = [{"image": c.get("image", "")} for field in fields for c in spec.get(field) or ()]
        if attributes.operation is Operation.UPDATE and images == _images_of(attributes.old_object or {}, fields):
            return
        marks = {key: value for key, value in objects.annotations(pod).items() if _MARK in key}
        asked = {"containers": images, "namespace": attributes.namespace, **({"annotations": marks} if marks else {})}
        allowed, reason = await self._answer(attributes, asked)
        if not allowed:
            told = f"image policy webhook backend denied one or more images: {reason}" if reason else ""
            raise forbidden(attributes, told or "one or more images rejected by webhook backend")

    async def _answer(self, attributes: AdmissionAttributes, asked: dict[str, Any]) -> tuple[bool, str]:
        key, now = orjson.dumps(asked, option=orjson.OPT_SORT_KEYS), self._now()
        known = self._answers.get(key)
        if known is not None and known[0] > now:
            return known[1], known[2]
        review = {"apiVersion": "imagepolicy.k8s.io/v1alpha1", "kind": "ImageReview", "metadata": {}, "spec": asked}
        try:
            answer = await self._ask(review)
        except OutboundError as error:
            return self._failed(attributes, str(error))
        said = answer.get("status") if isinstance(answer, dict) else None
        if not isinstance(said, dict) or not isinstance(said.get("allowed", False), bool):
            return self._failed(attributes, "the webhook backend answered no ImageReview")
        annotations = said.get("auditAnnotations")
        for name, value in (annotations if isinstance(annotations, dict) else {}).items():
            attributes.annotate(f"{_AUDIT}{name}", str(value))
        allowed, reason = bool(said.get("allowed", False)), str(said.get("reason") or "")
        self._answers.pop(key, None)
        self._answers[key] = (now + (self._policy.allow_seconds if allowed else self._policy.deny_seconds), allowed, reason)
        if len(self._answers) > ANSWERS_MAX:
            self._answers.popitem(last=False)
        return allowed, reason

    def _failed(self, attributes: AdmissionAttributes, why: str) -> tuple[bool, str]:
        if not self._policy.default_allow:
            raise forbidden(attributes, why)
        attributes.annotate(f"{_AUDIT}failed-open", "true")
        metadata = new_object(attributes).setdefault("metadata", {})
        metadata["annotations"] = {**(metadata.get("annotations") or {}), _FAILED_OPEN: "true"}
        return True, ""


def _images_of(pod: objects.Object, fields: tuple[str, ...]) -> list[dict[str, str]]:
    spec = pod.get("spec") or {}
    return [{"image": c.get("image", "")} for field in fields for c in spec.get(field) or ()]
