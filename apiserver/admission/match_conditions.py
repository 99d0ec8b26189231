"""``matchConditions`` of webhooks and policies: expressions of which all must hold for a request to be looked at (apiserver
``admission/plugin/webhook/matchconditions``).

    conditions = MatchConditions(webhook["matchConditions"], request_environment(minor, params=False, authorizer=True))
    values = request_values(attributes, …)
    verdict = await patiently(lambda patient: conditions.judge(values, patient=patient))
    if verdict.error: …             # the failure policy says whether the request is refused or the webhook is left out
    elif not verdict.matches: …     # verdict.failed names the condition that did not hold
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from apiserver import cel
from apiserver.admission.expressions import CONDITIONS_BUDGET, Budget, OutOfBudgetError, compile_expression, run
from apiserver.admission.plugin import joined


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A condition that does not hold outweighs any that cannot be told. ``error`` is not "" where none fails and not all can be told.
    ``seconds``: how long it took to find out."""

    matches: bool
    failed: str = ""
    error: str = ""
    seconds: float = 0.0


MATCHES = Verdict(matches=True)


class MatchConditions:
    """Compiled at construction; a text that does not compile is an error of every request."""

    __slots__ = ("_conditions",)

    def __init__(self, conditions: Iterable[Mapping[str, Any]], environment: cel.Environment) -> None:
        self._conditions = [
            (condition.get("name") or "", compile_expression(environment, condition.get("expression") or "", cel.BOOL))
            for condition in conditions
        ]

    def judge(self, values: Mapping[str, Any], *, patient: bool = True) -> Verdict:
        """``values`` are the request's, with the variables of the environment. On the loop it is to be asked by ``long_runs.patiently``:
        without ``patient`` it raises LongRunError where it takes long."""
        began = time.perf_counter()
        budget = Budget(CONDITIONS_BUDGET, patient)
        errors, failed = [], ""
        for name, expression in self._conditions:
            # all run before any is judged: one that goes over the budget counts whatever others say
            try:
                result = run(expression, values, budget)
            except OutOfBudgetError as error:
                return Verdict(matches=False, error=str(error), seconds=time.perf_counter() - began)
            if result.error:
                errors.append(result.error)
            elif result.value is False and not failed:
                failed = name
        if failed:
            return Verdict(matches=False, failed=failed, seconds=time.perf_counter() - began)
        return Verdict(matches=False, error=joined(errors), seconds=time.perf_counter() - began) if errors else MATCHES
