"""What clients saw of a store: each call with its beginning, its end and its answer. Pure; the clock is the caller's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, TypeVar

from storage import api, errors
from storage.member import request as log_request
from tests.robustness import kv_model


@dataclass(frozen=True, slots=True)
class Answered:
    """A zero revision in its header, or a zero in a key-value's fields, says that this client's door does not show them."""

    response: kv_model.Response


@dataclass(frozen=True, slots=True)
class Refused:
    """The state of the store did not allow it: nothing was changed, and the refusal itself must be right."""

    error: type[errors.StoreError]


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may have been done at any time since the call, may yet be, or never."""


Outcome: TypeAlias = Answered | Refused | Unknown
UNKNOWN: Final = Unknown()


@dataclass(frozen=True, slots=True)
class Operation:
    """``called`` and ``returned`` are seconds of one monotonic clock; ``returned`` counts for nothing if the outcome is unknown."""

    client: int
    request: kv_model.Request
    called: float
    returned: float
    outcome: Outcome

    def __str__(self) -> str:
        return f"client {self.client} [{self.called:.6f}, {self.returned:.6f}] {self.request} → {self.outcome}"

    @property
    def is_serializable_read(self) -> bool:
        return isinstance(self.request, api.RangeRequest) and self.request.serializable


Result = TypeVar("Result")

_REFUSALS: Final = (
    errors.CompactedError,
    errors.FutureRevisionError,
    errors.LeaseNotFoundError,
    errors.LeaseExistsError,
    errors.KeyNotFoundError,
)


def outcome_of(request: kv_model.Request, error: errors.StoreError) -> Outcome | None:
    """How a call that raised counts; None: as if it had not been made. A write whose member is gone or has no leader may have been
    done before that, so nothing is known of it; a refusal at the gateway (size, space, overload) says that nothing was done."""
    if isinstance(error, _REFUSALS):
        return Refused(type(error))
    if isinstance(error, errors.UnavailableError) and not isinstance(request, api.RangeRequest):
        return UNKNOWN
    return None


class Recorder:
    """Collects the operations of any number of clients. ``now`` is a monotonic clock in seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.operations: list[Operation] = []

    async def call(self, client: int, request: kv_model.Request, send: Awaitable[Result]) -> Result:
        """Await ``send`` and note what came of it; raises what it raises. A cancelled write counts as unknown."""
        called = self._now()
        try:
            response = await send
        except errors.StoreError as error:
            outcome = outcome_of(request, error)
            if outcome is not None:
                self.operations.append(Operation(client, request, called, self._now(), outcome))
            raise
        except BaseException:
            self.note_unknown(client, request, called)
            raise
        self.operations.append(Operation(client, request, called, self._now(), Answered(response)))  # type: ignore[arg-type]
        return response

    def note_unknown(self, client: int, request: kv_model.Request, called: float) -> None:
        if not isinstance(request, api.RangeRequest):
            self.operations.append(Operation(client, request, called, self._now(), UNKNOWN))


def send(kv: api.KV, request: kv_model.Request) -> Awaitable[kv_model.Response]:
    """The call of ``kv`` that carries out ``request``."""
    match request:
        case api.RangeRequest():
            return kv.range(request)
        case api.PutRequest():
            return kv.put(request)
        case api.DeleteRangeRequest():
            return kv.delete_range(request)
        case api.TxnRequest():
            return kv.txn(request)
        case log_request.CompactionRequest():
            return kv.compact(request.revision, physical=request.physical)
        case log_request.LeaseGrantRequest():
            return kv.lease_grant(request.ttl_seconds, lease_id=request.id)
        case log_request.LeaseRevokeRequest():
            return kv.lease_revoke(request.id)
        case _:
            raise TypeError(f"not a call of the door: {request}")


def agrees(seen: Outcome, predicted: kv_model.Response | type[errors.StoreError]) -> bool:
    """Whether a client that saw ``seen`` can have got ``predicted``. What its door does not show (zeros) is not compared, nor are
    headers within a transaction."""
    if isinstance(seen, Unknown):
        return True
    if isinstance(seen, Refused):
        return isinstance(predicted, type) and issubclass(seen.error, predicted)
    if isinstance(predicted, type):
        return False
    response = seen.response
    if type(response) is not type(predicted):
        return False
    revision = revision_of(response)
    if revision and revision != revision_of(predicted):
        return False
    return _same(response, predicted)


def revision_of(response: kv_model.Response) -> int:
    return response.revision if isinstance(response, api.ResponseHeader) else response.header.revision


def _same(seen: kv_model.Response | api.OpResponse, predicted: kv_model.Response | api.OpResponse) -> bool:
    match seen, predicted:
        case api.RangeResponse(), api.RangeResponse():
            return (seen.more, seen.count) == (predicted.more, predicted.count) and _same_kvs(seen.kvs, predicted.kvs)
        case api.PutResponse(), api.PutResponse():
            return _same_kvs((seen.prev_kv,), (predicted.prev_kv,))
        case api.DeleteRangeResponse(), api.DeleteRangeResponse():
            return seen.deleted == predicted.deleted and _same_kvs(seen.prev_kvs, predicted.prev_kvs)
        case api.TxnResponse(), api.TxnResponse():
            return (
                seen.succeeded == predicted.succeeded
                and len(seen.responses) == len(predicted.responses)
                and all(type(one) is type(other) and _same(one, other) for one, other in zip(seen.responses, predicted.responses))
            )
        case api.LeaseGrantResponse(), api.LeaseGrantResponse():
            return seen.id == predicted.id
        case _:
            return True


def _same_kvs(seen: tuple[api.KeyValue | None, ...], predicted: tuple[api.KeyValue | None, ...]) -> bool:
    return len(seen) == len(predicted) and all(same_kv(one, other) for one, other in zip(seen, predicted))


def same_kv(seen: api.KeyValue | None, predicted: api.KeyValue | None) -> bool:
    if seen is None or predicted is None:
        return seen is predicted
    visible = replace(
        predicted,
        create_revision=predicted.create_revision if seen.create_revision else 0,
        mod_revision=predicted.mod_revision if seen.mod_revision else 0,
        version=predicted.version if seen.version else 0,
        lease=predicted.lease if seen.version else seen.lease,
    )
    return seen == visible
