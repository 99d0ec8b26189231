"""Where gRPC's status codes and etcd's texts become ``storage.errors``. The one place for it.

etcd's texts are the contract (its ``rpctypes`` finds errors by them, and so does every client); the code only decides what has no text
of etcd's.
"""

from __future__ import annotations

import grpc

from storage import errors

_BY_TEXT: dict[str, type[errors.StoreError]] = {
    kind.text: kind
    for kind in (
        errors.CompactedError,
        errors.FutureRevisionError,
        errors.InvalidRequestError,
        errors.EmptyKeyError,
        errors.DuplicateKeyError,
        errors.TooManyOpsError,
        errors.RequestTooLargeError,
        errors.NoSpaceError,
        errors.LeaseNotFoundError,
        errors.LeaseExistsError,
        errors.LeaseTtlTooLargeError,
        errors.KeyNotFoundError,
        errors.TooManyRequestsError,
        errors.CorruptError,
    )
}
#: etcd says no before it proposes anything, so that also a write has certainly not happened. "leader changed" and "server stopped" are
#: not of them: they may come after the proposal.
_REFUSED_UNPROPOSED = frozenset({errors.UnavailableError.text, "etcdserver: unhealthy cluster", "etcdserver: not capable"})
#: What gRPC says where a call met no connection, and so was not sent.
_NEVER_SENT = ("failed to connect to all addresses", "DNS resolution failed", "Name resolution failure", "empty address list")


def of_read(error: grpc.RpcError) -> errors.StoreError:
    """Of a call that changes nothing. ``UnavailableError`` is worth another try."""
    return _refusal(error) or errors.UnavailableError(_text(error))


def of_write(error: grpc.RpcError) -> errors.StoreError:
    """Of a call that may have changed something. Only ``UnavailableError`` itself, never its subclass, is worth another try."""
    refusal = _refusal(error)
    if refusal is not None:
        return refusal
    if never_sent(error) or error.details() in _REFUSED_UNPROPOSED:
        return errors.UnavailableError(_text(error))
    return errors.RequestTimeoutError(_text(error))


def never_sent(error: grpc.RpcError) -> bool:
    return bool(error.code().name == "UNAVAILABLE") and (error.details() or "").startswith(_NEVER_SENT)


def _refusal(error: grpc.RpcError) -> errors.StoreError | None:
    """etcd's final word; None where it says nothing of the request itself."""
    code, text = error.code().name, error.details() or ""
    kind = _BY_TEXT.get(text)
    if kind is not None:
        return kind()
    if code == "RESOURCE_EXHAUSTED" and "message larger than max" in text:  # gRPC's own limit, set by --max-request-bytes
        return errors.RequestTooLargeError()
    if code in ("INVALID_ARGUMENT", "OUT_OF_RANGE", "FAILED_PRECONDITION", "NOT_FOUND", "UNIMPLEMENTED"):
        return errors.InvalidRequestError(text)
    if code in ("UNAUTHENTICATED", "PERMISSION_DENIED", "DATA_LOSS", "INTERNAL", "RESOURCE_EXHAUSTED"):
        return errors.StoreError(f"etcd refuses: {text or code}")
    return None


def _text(error: grpc.RpcError) -> str:
    """etcd's words as they are; gRPC's with their code, since an operator must see that the network speaks."""
    text = str(error.details() or "")
    if text.startswith("etcdserver:"):
        return text
    if error.code().name == "DEADLINE_EXCEEDED":
        return f"{errors.RequestTimeoutError.text} (etcd did not answer in time)"
    return f"etcd: {error.code().name.lower()}: {text}" if text else f"etcd: {error.code().name.lower()}"
