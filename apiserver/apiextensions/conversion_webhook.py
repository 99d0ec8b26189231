"""Conversion of custom objects by a webhook (apiextensions-apiserver ``apiserver/conversion``).

The rules of custom objects are plain functions, and a webhook has to be waited for. So a function that needs an object in another
version looks into ``Converted``, and where it is not there raises ``NeedsConversionError``; whoever runs it
(``registry.remote_conversion``) lets the webhook convert what the error names, and runs the function again. What was converted is kept by
its content, so that reading an object again costs no call.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from apiserver.apiextensions.conversion_review import ConversionError, check, read, request
from apiserver.machinery import objects, status
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError

if TYPE_CHECKING:
    from apiserver.apiextensions.definitions import CustomDefinition

#: POST of JSON to what a ``clientConfig`` names, within seconds. Raises an exception whose text says why there was no answer.
Call = Callable[[Mapping[str, Any], bytes, float], Awaitable[bytes]]

#: Of a call: the definition's name, the versions before and after, seconds, and the type of the failure ("": none).
Called = Callable[[str, str, str, float, str], None]

_INVALID = "conversion_webhook_invalid_converted_object_failure"

#: of one call; kube-apiserver sets none beside the request's own, which lasts a minute
TIMEOUT_SECONDS = 30.0
#: Bytes of converted objects that are kept for one definition; the oldest go first. Those that readers hold are kept with the object.
KEPT_BYTES_MAX = 32 * 1024 * 1024
#: Objects of one call, and how large they may be together: a webhook has to answer within its time.
BATCH_OBJECTS_MAX = 256
BATCH_BYTES_MAX = 4 * 1024 * 1024


class NeedsConversionError(StatusError):
    """``obj`` is needed in the version ``api_version``, and the webhook was not asked yet. As an answer it says that it failed, for whoever
    does not wait for webhooks."""

    def __init__(self, converted: Converted, obj: Object, api_version: str) -> None:
        super().__init__(failed(obj, "the object was not converted beforehand").status)
        self.converted = converted
        self.obj = obj
        self.api_version = api_version


class ConversionFailedError(StatusError):
    """500. ``failure`` is the type that metrics tell."""

    def __init__(self, message: str, failure: str = "conversion_webhook_call_failure") -> None:
        super().__init__(status.failure(500, "", message))
        self.failure = failure


def failed(obj: Object, why: str, failure: str = "call_failure") -> ConversionFailedError:
    """500, as kube-apiserver words it."""
    return ConversionFailedError(f"conversion webhook for {gvk(obj)} {why}", f"conversion_webhook_{failure}")


def gvk(obj: Object) -> str:
    group, version = objects.group_version(str(obj.get("apiVersion") or ""))
    return f"{group}/{version}, Kind={obj.get('kind') or ''}"


class Converted:
    """The objects of one definition that its webhook has converted."""

    def __init__(self, definition: CustomDefinition) -> None:
        self._definition = definition
        self._known: OrderedDict[tuple[bytes, str], bytes] = OrderedDict()
        self._bytes = 0

    def get(self, obj: Object, api_version: str) -> Object:
        """A new object. Raises NeedsConversionError."""
        found = self._known.get(_key(obj, api_version))
        if found is None:
            raise NeedsConversionError(self, obj, api_version)
        return orjson.loads(found)  # type: ignore[no-any-return]

    async def convert(
        self,
        originals: Sequence[Object],
        api_version: str,
        call: Call,
        new_uid: Callable[[], str],
        called: Called = lambda definition, before, after, seconds, failure: None,
    ) -> None:
        """Have the webhook convert objects, and keep what it made of them. Raises StatusError."""
        said = objects.get(self._definition.decode(), "spec", "conversion", "webhook", default={})
        for batch in _batches(originals):
            began, failure = time.perf_counter(), ""
            try:
                converted = await _asked(said, batch, api_version, call, new_uid())
            except ConversionFailedError as error:
                failure = error.failure
                raise
            finally:
                versions = [objects.group_version(one)[1] for one in (str(batch[0].get("apiVersion") or ""), api_version)]
                called(self._definition.name, versions[0], versions[1], time.perf_counter() - began, failure)
            for original, made in zip(batch, converted, strict=True):
                self._keep(_key(original, api_version), orjson.dumps(made))

    def _keep(self, key: tuple[bytes, str], made: bytes) -> None:
        self._bytes += len(made) - len(self._known.pop(key, b""))
        self._known[key] = made
        # a batch stays whole, or who waits for it would ask again and again
        while self._bytes > KEPT_BYTES_MAX and len(self._known) > BATCH_OBJECTS_MAX:
            _, gone = self._known.popitem(last=False)
            self._bytes -= len(gone)


def _key(obj: Object, api_version: str) -> tuple[bytes, str]:
    return hashlib.blake2b(orjson.dumps(obj, option=orjson.OPT_SORT_KEYS), digest_size=16).digest(), api_version


def _batches(originals: Sequence[Object]) -> list[list[Object]]:
    found: list[list[Object]] = [[]]
    size = 0
    for obj in originals:
        length = len(orjson.dumps(obj))
        if found[-1] and (len(found[-1]) == BATCH_OBJECTS_MAX or size + length > BATCH_BYTES_MAX):
            found.append([])
            size = 0
        found[-1].append(obj)
        size += length
    return found if found[-1] else []


async def _asked(said: Mapping[str, Any], batch: Sequence[Object], api_version: str, call: Call, uid: str) -> list[Object]:
    from apiserver.webhooks.client import CallError

    first = batch[0]
    try:
        version, body = request(said.get("conversionReviewVersions") or (), uid, batch, api_version)
        answer = await call(said.get("clientConfig") or {}, body, TIMEOUT_SECONDS)
        converted = read(answer, version, uid)
    except CallError as error:
        raise failed(first, f"failed: {error}") from error
    except ConversionError as error:
        raise failed(first, f"failed: {error}", "malformed_response_failure") from error
    if len(converted) != len(batch):
        raise failed(first, f"returned {len(converted)} objects, expected {len(batch)}", "partial_response_failure")
    found = []
    for position, (original, made) in enumerate(zip(batch, converted, strict=True)):
        try:
            found.append(check(original, made, api_version))
        except ConversionError as error:
            if not error.what:
                raise ConversionFailedError(str(error), _INVALID) from error
            place = "" if error.of_the_object else f" at index {position}"
            raise failed(original, f"returned invalid {error.what}{place}: {error}", "invalid_converted_object_failure") from error
    return found
