"""What the compiler makes of a node: a closure over the frame, and the part of its cost that is known beforehand.

A frame is a list: the cost so far, its limit, the extra work so far (`budget.WORK_MAX`), then a slot for each variable. Closures get it
as their only argument. The known cost of straight-line code is charged where the code is entered (by a branch, a loop or the program),
so that most closures charge nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from apiserver.cel.budget import WORK_MAX
from apiserver.cel.errors import CostExceededError, EvaluationError

Frame = list[Any]
Run = Callable[[Frame], Any]

COST, LIMIT, WORK, FIRST_SLOT = 0, 1, 2, 3
NO_OVERLOAD = "no such overload"

# What a wrong value raises in a closure; CEL's logic absorbs errors, so `||`, `&&` and the loops catch these. Everything but the first
# means that a value was not of its declared type.
FAULTS = (EvaluationError, TypeError, AttributeError, KeyError, IndexError, ValueError, OverflowError)


@dataclass(slots=True)
class Code:
    """A compiled node.

    `attribute` tells a variable or a selection, which cel-go counts as one step plus one for each qualifier; `root` is the one step, which
    is left out where the attribute is embedded in another (an index, a branch of `?:`).
    """

    run: Run
    cost: int
    attribute: bool = False
    root: int = 0
    constant: bool = False
    value: Any = None

    @property
    def embedded_cost(self) -> int:
        return self.cost - self.root


def constant(value: Any) -> Code:
    """A value known beforehand: it costs nothing."""
    return Code(lambda frame: value, 0, constant=True, value=value)


def fault(error: Exception) -> EvaluationError:
    """The evaluation error that a fault stands for."""
    return error if isinstance(error, EvaluationError) else EvaluationError(NO_OVERLOAD)


def charge(frame: Frame, cost: int) -> None:
    """Count a cost that was not known beforehand."""
    frame[COST] += cost
    if frame[COST] > frame[LIMIT]:
        raise CostExceededError


def work(frame: Frame, amount: int) -> None:
    """Count what the cost does not tell: copied elements, compared entries, made characters."""
    frame[WORK] += amount
    if frame[WORK] > WORK_MAX:
        raise CostExceededError
