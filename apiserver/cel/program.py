"""A compiled expression, ready to run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.cel.budget import Budget
from apiserver.cel.code import COST, FAULTS, Code, fault
from apiserver.cel.conversion import Converter
from apiserver.cel.errors import CostExceededError, EvaluationError
from apiserver.cel.estimate import CostEstimate, Sizes, estimate
from apiserver.cel.syntax import Node
from apiserver.cel.types import Type


class Program:
    """One expression. It is immutable and may be shared; each evaluation has a frame of its own."""

    __slots__ = ("_cost", "_inputs", "_run", "_slots", "constant", "result_type", "source", "tree")

    def __init__(
        self, source: str, tree: Node, result_type: Type, code: Code, inputs: Mapping[str, tuple[int, Converter | None]], slots: int
    ) -> None:
        self.source = source
        self.tree = tree
        self.result_type = result_type
        self.constant = code.constant
        self._run = code.run
        self._cost = code.cost
        self._slots = slots
        self._inputs = tuple((name, slot, convert) for name, (slot, convert) in inputs.items())

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables that the expression reads."""
        return tuple(name for name, _, _ in self._inputs)

    def estimate(self, sizes: Sizes) -> CostEstimate:
        """What one evaluation may cost at least and at most, given the greatest sizes that the schemas of the variables allow."""
        return estimate(self.tree, sizes)

    def evaluate(self, variables: Mapping[str, Any], budget: Budget) -> Any:
        """Run the expression on these values.

        Raises:
            EvaluationError: when the expression fails on them.
            CostExceededError: when it would cost more than one call may, or than is left of the budget.
        """
        limit = min(budget.call_limit, budget.limit - budget.used)
        frame: list[Any] = [self._cost, limit] + [0] * (self._slots - 2)
        try:
            for name, slot, convert in self._inputs:
                try:
                    value = variables[name]
                except KeyError:
                    raise EvaluationError(f"no such attribute(s): {name}") from None
                frame[slot] = value if convert is None else convert(value)
            result = self._run(frame)
        except EvaluationError:
            raise
        except FAULTS as error:
            raise fault(error) from error
        except RecursionError:
            raise EvaluationError("expression nesting is too deep") from None
        finally:
            budget.used += frame[COST]
        if frame[COST] > limit:
            raise CostExceededError
        return result
