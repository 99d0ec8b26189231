"""Errors of etcd and gRPC become ours, by what they say of the outcome; reads are shared by those who came before they began."""

from __future__ import annotations

import asyncio

import grpc
import grpc.aio
import pytest

from storage import errors
from storage.etcdclient import translate
from storage.etcdclient.client import _tells_progress, parse_version
from storage.etcdclient.shared_read import SharedRead

Code = grpc.StatusCode


def failed(code: grpc.StatusCode, text: str) -> grpc.RpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details=text)


@pytest.mark.parametrize(
    ("code", "text", "kind"),
    [
        (Code.OUT_OF_RANGE, "etcdserver: mvcc: required revision has been compacted", errors.CompactedError),
        (Code.OUT_OF_RANGE, "etcdserver: mvcc: required revision is a future revision", errors.FutureRevisionError),
        (Code.INVALID_ARGUMENT, "etcdserver: key is not provided", errors.EmptyKeyError),
        (Code.INVALID_ARGUMENT, "etcdserver: key not found", errors.KeyNotFoundError),
        (Code.INVALID_ARGUMENT, "etcdserver: duplicate key given in txn request", errors.DuplicateKeyError),
        (Code.INVALID_ARGUMENT, "etcdserver: too many operations in txn request", errors.TooManyOpsError),
        (Code.INVALID_ARGUMENT, "etcdserver: request is too large", errors.RequestTooLargeError),
        (Code.RESOURCE_EXHAUSTED, "grpc: received message larger than max (2097200 vs. 2097152)", errors.RequestTooLargeError),
        (Code.RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded", errors.NoSpaceError),
        (Code.RESOURCE_EXHAUSTED, "etcdserver: too many requests", errors.TooManyRequestsError),
        (Code.NOT_FOUND, "etcdserver: requested lease not found", errors.LeaseNotFoundError),
        (Code.FAILED_PRECONDITION, "etcdserver: lease already exists", errors.LeaseExistsError),
        (Code.OUT_OF_RANGE, "etcdserver: too large lease TTL", errors.LeaseTtlTooLargeError),
        (Code.DATA_LOSS, "etcdserver: corrupt cluster", errors.CorruptError),
        (Code.INVALID_ARGUMENT, "etcdserver: invalid sort option", errors.InvalidRequestError),
        (Code.PERMISSION_DENIED, "etcdserver: permission denied", errors.StoreError),
        (Code.UNAUTHENTICATED, "etcdserver: invalid auth token", errors.StoreError),
        (Code.UNIMPLEMENTED, "unknown service etcdserverpb.KV", errors.InvalidRequestError),
    ],
)
def test_a_refusal_is_the_same_for_reads_and_writes(code: grpc.StatusCode, text: str, kind: type[errors.StoreError]) -> None:
    for translated in (translate.of_read(failed(code, text)), translate.of_write(failed(code, text))):
        assert type(translated) is kind
        assert text in str(translated) or "larger than max" in text


@pytest.mark.parametrize(
    ("code", "text", "is_known"),
    [
        (Code.UNAVAILABLE, "etcdserver: no leader", True),
        (Code.UNAVAILABLE, "etcdserver: unhealthy cluster", True),
        (Code.UNAVAILABLE, "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Connection refused", True),
        (Code.UNAVAILABLE, "etcdserver: request timed out", False),
        (Code.UNAVAILABLE, "etcdserver: request timed out, possibly due to previous leader failure", False),
        (Code.UNAVAILABLE, "etcdserver: request timed out, possibly due to connection lost", False),
        (Code.UNAVAILABLE, "etcdserver: leader changed", False),
        (Code.UNAVAILABLE, "etcdserver: server stopped", False),
        (Code.UNAVAILABLE, "Socket closed", False),
        (Code.DEADLINE_EXCEEDED, "Deadline Exceeded", False),
        (Code.UNKNOWN, "raft proposal dropped", False),
        (Code.CANCELLED, "", False),
    ],
)
def test_a_write_without_an_answer_is_unknown_unless_it_was_not_proposed(code: grpc.StatusCode, text: str, is_known: bool) -> None:
    """ST-T4: only what is known not to have happened may be tried again."""
    expected = errors.UnavailableError if is_known else errors.RequestTimeoutError
    assert type(translate.of_write(failed(code, text))) is expected
    assert type(translate.of_read(failed(code, text))) is errors.UnavailableError


def test_words_are_etcds_or_say_that_they_are_not() -> None:
    assert str(translate.of_read(failed(Code.UNAVAILABLE, "etcdserver: no leader"))) == "etcdserver: no leader"
    assert str(translate.of_read(failed(Code.UNAVAILABLE, "Socket closed"))) == "etcd: unavailable: Socket closed"
    late = str(translate.of_write(failed(Code.DEADLINE_EXCEEDED, "Deadline Exceeded")))
    assert late == "etcdserver: request timed out (etcd did not answer in time)"


@pytest.mark.parametrize(
    ("version", "tells"),
    [("3.4.30", False), ("3.4.31", True), ("3.5.1", False), ("3.5.13", True), ("3.6.0", True), ("3.7.0-alpha.0", True), ("4.0.0", True),
     ("3.3.27", False), ("odd", False)],
)  # fmt: skip
def test_which_versions_can_be_asked_for_progress(version: str, tells: bool) -> None:
    assert _tells_progress(parse_version(version)) is tells


async def test_a_read_is_shared_only_by_those_who_came_before_it_began() -> None:
    gates: list[asyncio.Future[int]] = []

    async def read() -> int:
        gates.append(asyncio.get_running_loop().create_future())
        return await gates[-1]

    async def settle() -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    shared = SharedRead(read)
    first = asyncio.create_task(shared.join())
    await settle()
    second, third = asyncio.create_task(shared.join()), asyncio.create_task(shared.join())
    await settle()
    assert len(gates) == 1
    second.cancel()  # who gives up does not take the others' read along
    gates[0].set_result(7)
    await settle()
    assert len(gates) == 2
    fourth = asyncio.create_task(shared.join())
    await settle()
    gates[1].set_result(8)
    await settle()
    gates[2].set_result(9)
    assert await asyncio.gather(first, third, fourth) == [7, 8, 9]
    assert len(gates) == 3


async def test_a_read_that_fails_fails_for_those_who_share_it() -> None:
    answers = [errors.UnavailableError(), 5]

    async def read() -> int:
        await asyncio.sleep(0)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    shared = SharedRead(read)
    first, second = await asyncio.gather(shared.join(), shared.join(), return_exceptions=True)
    assert isinstance(first, errors.UnavailableError)
    assert second == 5
    await shared.close()
