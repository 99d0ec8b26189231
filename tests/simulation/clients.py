"""Clients of the simulated cluster: what they send, how they meet a member over a network that fails, and what they remember."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from storage import api, errors
from storage.member import request as log_request
from storage.member.member import Member
from tests.robustness import kv_model
from tests.robustness.history import Recorder, revision_of, send
from tests.simulation.hosts import Host
from tests.simulation.network import Network
from tests.simulation.world import ProcessLoop, World

T = TypeVar("T")

CLIENT_HOST: Final = "clients"

CALL_TIMEOUT_SECONDS: Final = 1.5

CALLS_AT_FULL_SPEED: Final = 60


class Port:
    """The way from the clients' process to the members. A call that gets no answer in time raises RequestTimeoutError, one that
    certainly did not arrive UnavailableError."""

    def __init__(self, world: World, network: Network, process: ProcessLoop) -> None:
        self.world = world
        self.network = network
        self.process = process

    async def call(self, host: Host, work: Callable[[Member], Awaitable[T]], *, timeout_seconds: float = CALL_TIMEOUT_SECONDS) -> T:
        """Do ``work`` in the process that runs on ``host``."""
        world, network = self.world, self.network
        target, member = host.process, host.member
        there = network.delay(CLIENT_HOST, host.name)
        if target is None or member is None or not host.is_ready:
            await asyncio.sleep(0.01)
            raise errors.UnavailableError("connection refused")
        answer: asyncio.Future[T] = self.process.create_future()

        def answered(result: object, error: BaseException | None) -> None:
            if not answer.done():
                if error is None:
                    answer.set_result(result)  # type: ignore[arg-type]
                else:
                    answer.set_exception(error)

        async def serve() -> None:
            result: object = None
            error: BaseException | None = None
            try:
                result = await work(member)
            except errors.StoreError as raised:
                error = type(raised)(str(raised)) if _has_text(raised) else raised
            back = network.delay(host.name, CLIENT_HOST)
            if back is not None:
                world.call_at(world.now + back, self.process, answered, result, error)

        def begin() -> None:
            target.create_task(serve(), name=f"{target.name} serves")

        if there is not None:
            world.call_at(world.now + there, target, begin)
        try:
            async with asyncio.timeout(timeout_seconds):
                return await answer
        except TimeoutError:
            raise errors.RequestTimeoutError() from None


def _has_text(error: errors.StoreError) -> bool:
    return not isinstance(error, errors.CompactedError | errors.FutureRevisionError)


class Workload:
    """Clients on a few keys, so that they meet. ``recorder`` holds what they saw; ``acknowledged`` is the greatest revision that any of
    them was told of."""

    def __init__(
        self, port: Port, hosts: Callable[[], list[Host]], rng: random.Random, *, keys: int, value_bytes_max: int, compactions: bool
    ) -> None:
        self.port = port
        self.recorder = Recorder(lambda: port.world.now)
        self.hosts = hosts
        self.rng = rng
        self.keys = [b"k%d" % number for number in range(keys)]
        self.acknowledged = 1
        self.compacted = 0
        self.answered = 0
        self.failed = 0
        self.is_stopped = False
        self._value_bytes_max = value_bytes_max
        self._values = 0
        self._seen: dict[bytes, int] = {}
        """key → the mod revision that a client saw last, for compare-and-swap."""
        self._weights = [40, 20, 8, 6, 14, 5, 2, 6, 3, 3, 2 if compactions else 0]
        self._makers: list[Callable[[], kv_model.Request]] = [
            self._put,
            self._get,
            self._list,
            self._get_serializable,
            self._compare_and_swap,
            self._delete,
            self._delete_range,
            self._transaction,
            self._read_transaction,
            self._get_old,
            self._compact,
        ]

    async def run_client(self, number: int, pause_seconds: float) -> None:
        """One client: a call after the other, each to a member that it chooses."""
        rng = self.rng
        while not self.is_stopped:
            # Ever more slowly: most of what can go wrong goes wrong among few calls, and many short runs find more than few long ones.
            await asyncio.sleep(rng.random() * pause_seconds * (1 + self.answered / CALLS_AT_FULL_SPEED))
            hosts = self.hosts()
            if hosts and not self.is_stopped:
                await self.one(number, rng.choice(hosts), self.next_request())

    def next_request(self) -> kv_model.Request:
        return self.rng.choices(self._makers, self._weights)[0]()

    async def one(self, number: int, host: Host, request: kv_model.Request, *, timeout_seconds: float = CALL_TIMEOUT_SECONDS) -> bool:
        """One call, never repeated if its outcome is unknown; whether it was answered."""
        try:
            response = await self.recorder.call(
                number, request, self.port.call(host, lambda member: send(member, request), timeout_seconds=timeout_seconds)
            )
        except errors.StoreError:
            self.failed += 1
            return False
        self.answered += 1
        self._learn(request, response)
        return True

    def new_value(self) -> bytes:
        """One that nobody else writes."""
        self._values += 1
        return b"v%d." % self._values + b"x" * self.rng.randint(0, self._value_bytes_max)

    def _learn(self, request: kv_model.Request, response: kv_model.Response) -> None:
        self.acknowledged = max(self.acknowledged, revision_of(response))
        if isinstance(response, api.RangeResponse):
            for kv in response.kvs:
                self._seen[kv.key] = kv.mod_revision
        elif isinstance(response, api.PutResponse):
            assert isinstance(request, api.PutRequest)
            self._seen[request.key] = response.header.revision

    # -- what they ask

    def _key(self) -> bytes:
        return self.rng.choice(self.keys)

    def _put(self) -> kv_model.Request:
        return api.PutRequest(key=self._key(), value=self.new_value(), prev_kv=self.rng.random() < 0.3)

    def _get(self) -> kv_model.Request:
        return api.RangeRequest(key=self._key())

    def _get_serializable(self) -> kv_model.Request:
        return api.RangeRequest(key=self._key(), serializable=True)

    def _list(self) -> kv_model.Request:
        rng = self.rng
        return api.RangeRequest(
            key=b"k",
            range_end=b"l",
            limit=rng.choice((0, 0, 1, 3)),
            serializable=rng.random() < 0.3,
            count_only=rng.random() < 0.1,
            keys_only=rng.random() < 0.1,
        )

    def _get_old(self) -> kv_model.Request:
        return api.RangeRequest(key=b"k", range_end=b"l", revision=self.rng.randint(max(self.acknowledged - 30, 1), self.acknowledged))

    def _delete(self) -> kv_model.Request:
        return api.DeleteRangeRequest(key=self._key(), prev_kv=self.rng.random() < 0.3)

    def _delete_range(self) -> kv_model.Request:
        first, second = sorted((self._key(), self._key()))
        return api.DeleteRangeRequest(key=first, range_end=second + b"\0")

    def _compare_and_swap(self) -> kv_model.Request:
        key = self._key()
        compare = api.Compare(key=key, target=api.CompareTarget.MOD, operand=self._seen.get(key, 0))
        change: api.Op = api.PutRequest(key=key, value=self.new_value())
        if self.rng.random() < 0.2:
            change = api.DeleteRangeRequest(key=key)
        return api.TxnRequest(compare=(compare,), success=(change,), failure=(api.RangeRequest(key=key),))

    def _transaction(self) -> kv_model.Request:
        """Several keys at one revision."""
        count = min(self.rng.randint(2, 4), len(self.keys))
        keys = self.rng.sample(self.keys, count)
        compare = api.Compare(
            key=keys[0], target=api.CompareTarget.VERSION, result=api.CompareResult.GREATER, operand=self.rng.randint(0, 2)
        )
        puts: tuple[api.Op, ...] = tuple(api.PutRequest(key=key, value=self.new_value()) for key in keys)
        return api.TxnRequest(compare=(compare,), success=puts, failure=(*puts[:-1], api.DeleteRangeRequest(key=keys[-1])))

    def _read_transaction(self) -> kv_model.Request:
        reads = tuple(api.RangeRequest(key=key) for key in self.rng.sample(self.keys, min(2, len(self.keys))))
        return api.TxnRequest(success=reads)

    def _compact(self) -> kv_model.Request:
        self.compacted = max(self.compacted, self.rng.randint(max(self.acknowledged - 40, 1), self.acknowledged))
        return log_request.CompactionRequest(revision=self.compacted, physical=self.rng.random() < 0.3)
