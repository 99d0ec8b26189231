"""One call of one webhook: the question, the answer, and the refusals that come of either."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterator
from typing import Any

import orjson

from apiserver.admission import metrics
from apiserver.admission.interfaces import AdmissionAttributes
from apiserver.admission.webhooks import review
from apiserver.admission.webhooks.hooks import Hook
from apiserver.admission.webhooks.review import Answer, AnswerError
from apiserver.admission.webhooks.world import WebhookWorld
from apiserver.machinery import status
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.webhooks.client import CallError

logger = logging.getLogger(__name__)

_WITHOUT_EXPLANATION = "without explanation"
_STATUS_FIELDS: dict[str, type] = {"status": str, "message": str, "reason": str, "details": dict, "code": int}


class HookFailedError(Exception):
    """The webhook could not be called, or did not answer what was asked: whether that counts is the failure policy's matter. ``code``:
    of its answer, 503 where there is none."""

    def __init__(self, hook: Hook, why: str, code: int = 503) -> None:
        super().__init__(f'failed calling webhook "{hook.name}": {why}')
        self.code = code


class DeniedError(StatusError):
    """What a webhook refuses, as it said."""


async def call(
    hook: Hook,
    attributes: AdmissionAttributes,
    seen: AdmissionAttributes,
    new: bytes | None,
    old: bytes | None,
    world: WebhookWorld,
    *,
    mutating: bool,
) -> Answer:
    """The answer of a webhook that allows the request. ``seen``, ``new`` and ``old``: as it wants to see it. Raises HookFailedError, and
    StatusError where it refuses."""
    if attributes.dry_run and not hook.quiet_in_dry_run:
        raise status.bad_request(f'admission webhook "{hook.name}" does not support dry run')
    if not hook.review_version:
        why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
        raise HookFailedError(hook, f"could not create admission objects: {why}", 400)
    uid = world.new_uid()
    question = review.request(hook.review_version, uid, attributes, seen, new, old)
    try:
        body = await world.call(hook.client_config, question, hook.timeout_seconds, hook.users)
        answer = review.read(body, hook.review_version, uid, mutating=mutating)
    except CallError as error:
        raise HookFailedError(hook, f"failed to call webhook: {error}", error.code) from error
    except AnswerError as error:
        raise HookFailedError(hook, str(error)) from error
    for key, value in answer.audit_annotations.items():
        attributes.annotate(f"{hook.name}/{key}", value)
    for text in answer.warnings:
        attributes.warnings.append(text)
    if not answer.allowed:
        raise DeniedError(denial(hook.name, answer.result or {}))
    return answer


def denial(name: str, result: dict[str, Any]) -> Object:
    """The Status of a refusal: what the webhook said, as far as it is of the right types and says that something failed."""
    said = {field: result[field] for field, kind in _STATUS_FIELDS.items() if isinstance(result.get(field), kind)}
    denied = f'admission webhook "{name}" denied the request'
    message, reason = said.get("message"), said.get("reason")
    code = said.get("code", 0)
    found = status.failure(
        code if 400 <= code <= 599 else 400,
        str(reason or ""),
        f"{denied}: {message or reason}" if message or reason else f"{denied} {_WITHOUT_EXPLANATION}",
        said.get("details"),
    )
    if said.get("status", "Success") not in ("", "Success"):
        found["status"] = said["status"]
    return found


@contextlib.contextmanager
def counted(hook: Hook, attributes: AdmissionAttributes, world: WebhookWorld, type: str) -> Iterator[None]:
    """Around a call and what its answer does."""
    began, operation, counts = time.perf_counter(), attributes.operation.value, world.metrics
    try:
        yield
    except HookFailedError as error:
        counts.called(hook.name, type, operation, began, error.code, "" if hook.ignores_failures else metrics.CALLING_ERROR)
        if hook.ignores_failures:
            counts.failed_open.observe(0.0, hook.name, type)
        raise
    except DeniedError as error:
        counts.called(hook.name, type, operation, began, error.code, metrics.NO_ERROR)
        raise
    except StatusError:
        counts.called(hook.name, type, operation, began, 0, metrics.INTERNAL_ERROR)
        raise
    counts.called(hook.name, type, operation, began, 200)


def encoded(obj: Object | None) -> bytes | None:
    return None if obj is None else orjson.dumps(obj)


def failed_open(hook: Hook, error: HookFailedError, attributes: AdmissionAttributes, key: str) -> None:
    """A failure that does not count is told where operators look."""
    logger.warning("failed calling webhook, failing open: %s", error)
    attributes.annotate(f"failed-open.{key}", hook.name)


def failed_closed(error: HookFailedError) -> StatusError:
    logger.info("failed calling webhook, failing closed: %s", error)
    return status.internal_error(str(error))


async def turn() -> None:
    """Others' turn, after work that took some time."""
    await asyncio.sleep(0)
