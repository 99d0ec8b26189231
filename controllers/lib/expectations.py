"""Expectations: what a controller has asked for and has not yet seen come back by its watch (``controller_utils.go``).

Story without them: 1. the controller sees no pods and creates three; 2. a second sync runs before the watch brings them, still sees
none and creates three more. With them: 1. it expects three creations; 2. until three additions were observed the set is not
*satisfied*, and the sync leaves replicas alone.

An expectation that is not met within ``TIMEOUT_SECONDS`` says that a watch event was lost or is very late. Callers must then ask the
server for a consistent list instead of trusting their cache (``is_expired``); that is stricter than kube-controller-manager, which goes on
with what its cache holds.
"""

from __future__ import annotations

from controllers.lib.clock import Clock

TIMEOUT_SECONDS = 300.0


class Expectations:
    """Of the controllers of one sort, by their key. Deletions are kept by pod so that a doubled event counts once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._creations: dict[str, int] = {}
        self._deletions: dict[str, set[str]] = {}
        self._since: dict[str, float] = {}

    def expect_creations(self, key: str, count: int) -> None:
        self._creations[key] = self._creations.get(key, 0) + count
        self._since[key] = self._clock.monotonic()

    def expect_deletions(self, key: str, pod_keys: list[str]) -> None:
        self._deletions.setdefault(key, set()).update(pod_keys)
        self._since[key] = self._clock.monotonic()

    def creation_observed(self, key: str, count: int = 1) -> None:
        """Also called for a creation that failed: it will not be seen."""
        if key in self._creations:
            self._creations[key] -= count
            if self._creations[key] <= 0:
                del self._creations[key]

    def deletion_observed(self, key: str, pod_key: str) -> None:
        if key in self._deletions:
            self._deletions[key].discard(pod_key)
            if not self._deletions[key]:
                del self._deletions[key]

    def satisfied(self, key: str) -> bool:
        """All that was asked for has been seen."""
        return key not in self._creations and key not in self._deletions

    def is_expired(self, key: str) -> bool:
        """Not satisfied, and nothing more is to be hoped for."""
        return not self.satisfied(key) and self._clock.monotonic() - self._since[key] >= TIMEOUT_SECONDS

    def seconds_until_expired(self, key: str) -> float:
        return max(0.0, TIMEOUT_SECONDS - (self._clock.monotonic() - self._since.get(key, 0.0)))

    def forget(self, key: str) -> None:
        """The controller object is gone, or its pods were listed consistently."""
        self._creations.pop(key, None)
        self._deletions.pop(key, None)
        self._since.pop(key, None)
