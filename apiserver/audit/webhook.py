"""``--audit-webhook-config-file``: events go in batches (an EventList) to a server that a kubeconfig file names. A batch that is not taken
is sent again, each time after twice as long; after ``ATTEMPTS_MAX`` it is lost."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from apiserver.audit.sinks import BYTES_MAX, EVENTS_MAX, Losses

BATCH_EVENTS_MAX = 400
BATCH_SECONDS_MAX = 30.0
INITIAL_BACKOFF_SECONDS = 10.0
ATTEMPTS_MAX = 5
_START = b'{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":['

#: takes the body of a POST; raises what it likes where that was not taken
Post = Callable[[bytes], Awaitable[object]]


class WebhookSink:
    """``run`` as long as the server does."""

    def __init__(
        self,
        post: Post,
        losses: Losses,
        *,
        batch_events_max: int = BATCH_EVENTS_MAX,
        batch_seconds_max: float = BATCH_SECONDS_MAX,
        initial_backoff_seconds: float = INITIAL_BACKOFF_SECONDS,
    ) -> None:
        self._post = post
        self._losses = losses
        self._batch_events_max = batch_events_max
        self._batch_seconds_max = batch_seconds_max
        self._initial_backoff_seconds = initial_backoff_seconds
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._filled = asyncio.Event()
        self._some = asyncio.Event()

    def put(self, event: bytes) -> bool:
        if len(self._waiting) >= EVENTS_MAX or self._waiting_bytes + len(event) > BYTES_MAX:
            self._losses.add("webhook", 1, "the webhook is slower than the requests")
            return False
        self._waiting.append(event)
        self._waiting_bytes += len(event)
        self._some.set()
        if len(self._waiting) >= self._batch_events_max:
            self._filled.set()
        return True

    def close(self) -> None:
        """What waits was not sent."""
        if self._waiting:
            self._losses.add("webhook", len(self._waiting), "the server ended")
            self._waiting.clear()

    async def run(self) -> None:
        """Until cancelled; then the last batch gets one attempt."""
        try:
            while True:
                await self._some.wait()
                try:
                    async with asyncio.timeout(self._batch_seconds_max):
                        await self._filled.wait()
                except TimeoutError:
                    pass
                await self._send(self._take(), ATTEMPTS_MAX)
        finally:
            while self._waiting:
                await self._send(self._take(), 1)

    def _take(self) -> list[bytes]:
        batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._batch_events_max))]
        self._waiting_bytes -= sum(map(len, batch))
        if not self._waiting:
            self._some.clear()
        if len(self._waiting) < self._batch_events_max:
            self._filled.clear()
        return batch

    async def _send(self, batch: list[bytes], attempts: int) -> None:
        body = _START + b",".join(event.rstrip(b"\n") for event in batch) + b"]}"
        pause = self._initial_backoff_seconds
        for attempt in range(1, attempts + 1):
            try:
                await self._post(body)
                return
            except Exception as error:  # whatever goes wrong out there
                if attempt == attempts:
                    self._losses.add("webhook", len(batch), str(error))
                    return
            await asyncio.sleep(pause)
            pause *= 2
