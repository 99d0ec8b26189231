"""A token bucket over the given clock: at most ``qps`` requests a second in the long run, ``burst`` at once (client-go's flowcontrol)."""

from __future__ import annotations

from controllers.lib.clock import Clock


class TokenBucket:
    """``reserve`` takes a token and tells the seconds until it may be used; callers are served in the order they asked."""

    def __init__(self, *, qps: float, burst: int, clock: Clock) -> None:
        assert qps > 0 and burst > 0, (qps, burst)
        self._qps, self._burst, self._clock = qps, burst, clock
        self._tokens = float(burst)
        self._then = clock.monotonic()

    def reserve(self) -> float:
        now = self._clock.monotonic()
        self._tokens = min(float(self._burst), self._tokens + (now - self._then) * self._qps)
        self._then = now
        self._tokens -= 1
        return max(0.0, -self._tokens / self._qps)

    def try_accept(self) -> bool:
        """Takes a token only where one is there now."""
        if self.reserve() == 0.0:
            return True
        self._tokens += 1
        return False

    async def wait(self) -> None:
        delay = self.reserve()
        if delay > 0:
            await self._clock.sleep(delay)
