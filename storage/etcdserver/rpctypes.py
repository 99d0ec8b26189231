"""Errors of the store as etcd's clients know them: a gRPC code and a text (``etcdserver/api/v3rpc/rpctypes``)."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from storage import errors


class Code(enum.IntEnum):
    """gRPC's status codes."""

    OK = 0
    CANCELED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


@dataclass(frozen=True, slots=True)
class Status:
    code: Code
    text: str


class RpcError(Exception):
    """What a service refuses by itself, with the status that its client is to see."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.status = Status(code, text)


def invalid_sort_option() -> RpcError:
    return RpcError(Code.INVALID_ARGUMENT, "etcdserver: invalid sort option")


def no_leader() -> RpcError:
    return RpcError(Code.UNAVAILABLE, "etcdserver: no leader")


def not_supported_for_learner() -> RpcError:
    return RpcError(Code.FAILED_PRECONDITION, "etcdserver: rpc not supported for learner")


def auth_not_enabled() -> RpcError:
    return RpcError(Code.FAILED_PRECONDITION, "etcdserver: authentication is not enabled")


_CODES: Final[dict[type[errors.StoreError], Code]] = {
    errors.CompactedError: Code.OUT_OF_RANGE,
    errors.FutureRevisionError: Code.OUT_OF_RANGE,
    errors.InvalidRequestError: Code.INVALID_ARGUMENT,
    errors.RequestTooLargeError: Code.INVALID_ARGUMENT,
    errors.NoSpaceError: Code.RESOURCE_EXHAUSTED,
    errors.LeaseNotFoundError: Code.NOT_FOUND,
    errors.LeaseExistsError: Code.FAILED_PRECONDITION,
    errors.LeaseTtlTooLargeError: Code.OUT_OF_RANGE,
    errors.KeyNotFoundError: Code.INVALID_ARGUMENT,
    errors.UnavailableError: Code.UNAVAILABLE,
    errors.TooManyRequestsError: Code.RESOURCE_EXHAUSTED,
    errors.MembershipError: Code.FAILED_PRECONDITION,
    errors.MemberNotFoundError: Code.NOT_FOUND,
    errors.InvalidUrlsError: Code.INVALID_ARGUMENT,
    errors.UnhealthyClusterError: Code.UNAVAILABLE,
    errors.NotLeaderError: Code.FAILED_PRECONDITION,
    errors.BadLeaderTransfereeError: Code.FAILED_PRECONDITION,
    errors.LeaderTransferTimeoutError: Code.UNAVAILABLE,
    errors.NotSupportedForLearnerError: Code.FAILED_PRECONDITION,
    errors.MemberRemovedError: Code.UNAVAILABLE,
    errors.CorruptError: Code.DATA_LOSS,
    errors.CorruptAlarmError: Code.DATA_LOSS,
}
"""By class; a class that is not here has the code of the nearest one above it."""


def status_of(error: errors.StoreError | RpcError) -> Status:
    if isinstance(error, RpcError):
        return error.status
    for kind in type(error).__mro__:
        code = _CODES.get(kind)
        if code is not None:
            return Status(code, str(error))
    return Status(Code.UNKNOWN, str(error))
