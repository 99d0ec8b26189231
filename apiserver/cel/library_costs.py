"""What the calls of Kubernetes' libraries may cost (pkg/cel/library/cost.go)."""

from __future__ import annotations

from apiserver.cel.estimate import Argument, CallEstimate, Sizes


def estimate(function: str, overload: str, target: Argument | None, arguments: list[Argument], sizes: Sizes) -> CallEstimate | None:
    """The cost of a call, or None for a function that the language itself has the cost of."""
    return None
