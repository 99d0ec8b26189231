"""How much work programs may do: the cost that one request has used, and its limits."""

from __future__ import annotations

from apiserver.cel.errors import CostExceededError

CALL_LIMIT = 1_000_000  # what one evaluation of one expression may cost (about a tenth of a second in the original)
REQUEST_LIMIT = 10_000_000  # what the validation rules of one object may cost together
WORK_MAX = 50_000_000  # elements and characters that one evaluation may touch or copy beyond what its cost tells: bounds time and memory


class Budget:
    """Counts cost over several programs. Each call has its own limit as well."""

    __slots__ = ("call_limit", "limit", "used")

    def __init__(self, limit: int = REQUEST_LIMIT, *, call_limit: int = CALL_LIMIT) -> None:
        self.limit = limit
        self.call_limit = call_limit
        self.used = 0

    @property
    def remaining(self) -> int:
        """What is left; negative once the limit was passed."""
        return self.limit - self.used

    def spend(self, cost: int) -> None:
        """Count work done outside of a program.

        Raises:
            CostExceededError: when the limit is passed.
        """
        self.used += cost
        if self.used > self.limit:
            raise CostExceededError
