"""Validating webhooks: all that match are called at once; one refusal refuses, the first in their order is told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from apiserver.admission import metrics
from apiserver.admission.interfaces import AdmissionAttributes
from apiserver.admission.webhooks import call
from apiserver.admission.webhooks.call import HookFailedError
from apiserver.admission.webhooks.hooks import Hook, in_version
from apiserver.admission.webhooks.world import WebhookWorld
from apiserver.machinery.status import StatusError

_PREFIX = "validating.webhook.admission.k8s.io/"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """The request in one version, with its objects as JSON: all webhooks that want this version share it."""

    attributes: AdmissionAttributes
    new: bytes | None
    old: bytes | None


async def dispatch(hooks: Sequence[Hook], attributes: AdmissionAttributes, world: WebhookWorld) -> None:
    """Raises StatusError."""
    seen: dict[str, _Seen] = {}
    relevant: list[tuple[Hook, _Seen]] = []
    for hook in hooks:
        wanted = await hook.match(attributes, world)
        if wanted is None:
            continue
        found = seen.get(wanted.api_version)
        if found is None:
            converted = await in_version(attributes, wanted, world)
            new, old = call.encoded(converted.object), call.encoded(converted.old_object)
            found = seen[wanted.api_version] = _Seen(attributes=converted, new=new, old=old)
        relevant.append((hook, found))
    if not relevant:
        return
    if len(relevant) == 1:
        refusals = [await _asked(*relevant[0], 0, attributes, world)]
    else:
        refusals = await asyncio.gather(*(_asked(hook, found, i, attributes, world) for i, (hook, found) in enumerate(relevant)))
    for refusal in refusals:
        if refusal is not None:
            raise refusal


async def _asked(hook: Hook, seen: _Seen, position: int, attributes: AdmissionAttributes, world: WebhookWorld) -> StatusError | None:
    """The refusal that comes of one webhook."""
    try:
        with call.counted(hook, attributes, world, metrics.VALIDATING):
            await call.call(hook, attributes, seen.attributes, seen.new, seen.old, world, mutating=False)
    except HookFailedError as error:
        if not hook.ignores_failures:
            return call.failed_closed(error)
        call.failed_open(hook, error, attributes, f"{_PREFIX}round_0_index_{position}")
    except StatusError as error:
        return error
    return None
