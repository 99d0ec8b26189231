"""How long a key that failed waits before its next turn (client-go ``default_rate_limiters.go``). Pure, but for the clock given."""

from __future__ import annotations

from typing import Protocol

from controllers.client.rate_limiter import TokenBucket
from controllers.lib.clock import Clock

BASE_DELAY_SECONDS = 0.005
DELAY_SECONDS_MAX = 1000.0
#: over all keys of a queue
BUCKET_QPS = 10.0
BUCKET_BURST = 100


class RateLimiter(Protocol):
    def when(self, key: str) -> float:
        """Counts a failure and tells the seconds to wait."""
        ...

    def forget(self, key: str) -> None: ...

    def failures(self, key: str) -> int: ...


class ItemExponentialFailure:
    """base · 2^failures, at most the maximum; each key for itself."""

    def __init__(self, base_seconds: float = BASE_DELAY_SECONDS, seconds_max: float = DELAY_SECONDS_MAX) -> None:
        self._base_seconds, self._seconds_max = base_seconds, seconds_max
        self._failures: dict[str, int] = {}

    def when(self, key: str) -> float:
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        return min(self._base_seconds * 2.0 ** min(failures, 64), self._seconds_max)

    def forget(self, key: str) -> None:
        self._failures.pop(key, None)

    def failures(self, key: str) -> int:
        return self._failures.get(key, 0)


class Bucket:
    """All keys together: a token bucket."""

    def __init__(self, clock: Clock, qps: float = BUCKET_QPS, burst: int = BUCKET_BURST) -> None:
        self._bucket = TokenBucket(qps=qps, burst=burst, clock=clock)

    def when(self, key: str) -> float:
        return self._bucket.reserve()

    def forget(self, key: str) -> None:
        pass

    def failures(self, key: str) -> int:
        return 0


class MaxOf:
    """The longest wait of several limiters."""

    def __init__(self, *limiters: RateLimiter) -> None:
        assert limiters
        self._limiters = limiters

    def when(self, key: str) -> float:
        return max(limiter.when(key) for limiter in self._limiters)

    def forget(self, key: str) -> None:
        for limiter in self._limiters:
            limiter.forget(key)

    def failures(self, key: str) -> int:
        return max(limiter.failures(key) for limiter in self._limiters)


def default_rate_limiter(clock: Clock) -> RateLimiter:
    return MaxOf(ItemExponentialFailure(), Bucket(clock))
