"""Closures that loop: a fast loop for each macro, with the cost that cel-go's expansion of it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from apiserver.cel.code import COST, FAULTS, LIMIT, NO_OVERLOAD, Frame, Run, fault
from apiserver.cel.errors import CostExceededError, EvaluationError

# What the expansions cost around the predicate: `@not_strictly_false(@result)` and `@result && …`, with one more for `!` in exists.
ALL_CONDITION, ALL_STEP = 2, 1
EXISTS_CONDITION, EXISTS_STEP = 3, 1
_UNSET = object()

Bind = Callable[[Frame, Any], Iterable[Any]]


def _not_iterable(value: Any) -> EvaluationError:
    return EvaluationError(f"got '{go_type(value)}', expected iterable type")


def go_type(value: Any) -> str:
    """What cel-go's messages call the class of a value."""
    names = {bool: "types.Bool", int: "types.Int", float: "types.Double", str: "types.String", bytes: "types.Bytes"}
    return "types.Null" if value is None else names.get(type(value), f"types.{type(value).__name__}")


def elements(slot: int, slot2: int | None) -> Bind:
    """What a loop goes over; each step puts the loop's variables into their slots.

    With one variable: the elements of a list or the keys of a map; with two: index and element, or key and value.
    """
    if slot2 is None:

        def one(frame: Frame, value: Any) -> Iterable[Any]:
            if not isinstance(value, (list, dict)):
                raise _not_iterable(value)
            return value

        return one
    second = slot2

    def two(frame: Frame, value: Any) -> Iterable[Any]:
        if isinstance(value, list):
            pairs: Iterable[tuple[Any, Any]] = enumerate(value)
        elif isinstance(value, dict):
            pairs = value.items()
        else:
            raise EvaluationError(f"unsupported comprehension range type: {go_type(value)}")
        for first, item in pairs:
            frame[second] = item
            yield first

    return two


def quantifier(wanted: bool, range_: Run, bind: Bind, slot: int, predicate: Run, cost: int) -> Run:
    """all (`wanted` false: the first false decides) and exists (the first true decides). An error counts only if nothing decides.

    `cost` is what each element costs. One more condition is charged where the loop stops before the end.
    """
    condition = EXISTS_CONDITION if wanted else ALL_CONDITION

    def run(frame: Frame) -> bool:
        error: Exception | None = None
        decided = False
        for element in bind(frame, range_(frame)):
            if decided:
                frame[COST] += condition
                return wanted
            frame[slot] = element
            frame[COST] += cost
            if frame[COST] > frame[LIMIT]:
                raise CostExceededError
            try:
                found = predicate(frame)
            except FAULTS as raised:
                if error is None:
                    error = raised
                continue
            if found is wanted:
                decided = True
            elif found is not (not wanted) and error is None:
                error = EvaluationError(NO_OVERLOAD)
        if decided:
            return wanted
        if error is not None:
            raise fault(error)
        return not wanted

    return run


def exists_one(range_: Run, bind: Bind, slot: int, predicate: Run, cost: int, hit_cost: int) -> Run:
    """Whether exactly one element satisfies the predicate: all are looked at, and an error is one."""

    def run(frame: Frame) -> bool:
        count = 0
        for element in bind(frame, range_(frame)):
            frame[slot] = element
            frame[COST] += cost
            if frame[COST] > frame[LIMIT]:
                raise CostExceededError
            found = predicate(frame)
            if found is True:
                count += 1
                frame[COST] += hit_cost
            elif found is not False:
                raise EvaluationError(NO_OVERLOAD)
        return count == 1

    return run


def collect(range_: Run, bind: Bind, slot: int, filter_: Run | None, transform: Run | None, cost: int, hit_cost: int) -> Run:
    """map and filter: `cost` for each element looked at, `hit_cost` for each one taken. Without a transformation, elements as they are."""
    if filter_ is None:
        assert transform is not None
        each = transform

        def run_map(frame: Frame) -> list[Any]:
            found = []
            for element in bind(frame, range_(frame)):
                frame[slot] = element
                frame[COST] += cost
                if frame[COST] > frame[LIMIT]:
                    raise CostExceededError
                found.append(each(frame))
            return found

        return run_map
    test = filter_

    def run_filter(frame: Frame) -> list[Any]:
        found = []
        for element in bind(frame, range_(frame)):
            frame[slot] = element
            frame[COST] += cost
            if frame[COST] > frame[LIMIT]:
                raise CostExceededError
            verdict = test(frame)
            if verdict is True:
                frame[COST] += hit_cost
                found.append(element if transform is None else transform(frame))
            elif verdict is not False:
                raise EvaluationError(NO_OVERLOAD)
        return found

    return run_filter


def fold(range_: Run, bind: Bind, slot: int, accumulator: int, initial: Run, step: Run, cost: int, result: Run) -> Run:
    """The loop as it is written, for the expansions that have no loop of their own. The condition is always true for these."""

    def run(frame: Frame) -> Any:
        items = bind(frame, range_(frame))
        frame[accumulator] = initial(frame)
        for element in items:
            frame[slot] = element
            frame[COST] += cost
            if frame[COST] > frame[LIMIT]:
                raise CostExceededError
            frame[accumulator] = step(frame)
        return result(frame)

    return run


def binding(slot: int, result: Run) -> Run:
    """A name for a value within one expression: computed when it is first used."""

    def run(frame: Frame) -> Any:
        frame[slot] = _UNSET
        return result(frame)

    return run


def bound_variable(slot: int, initial: Run, cost: int) -> Run:
    """Reads a name that `binding` made."""

    def read(frame: Frame) -> Any:
        value = frame[slot]
        if value is _UNSET:
            frame[COST] += cost
            value = frame[slot] = initial(frame)
        return value

    return read
