"""``PolicyMetrics``: what policies decided, under kube-apiserver's names (apiserver ``admission/plugin/policy/*/metrics``,
``admission/metrics``).

A policy that lets a request pass costs nothing here: only refusals, warnings, notes and errors are counted, and mutations.
"""

from __future__ import annotations

from apiserver.metrics import Durations, Exposition

#: upper bounds of histograms, seconds
CHECK_SECONDS_BOUNDS = (0.0000005, 0.001, 0.01, 0.1, 1.0)
CONDITIONS_SECONDS_BOUNDS = (0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25)

COMPILE_ERROR, INVALID_ERROR, OUT_OF_BUDGET, NO_ERROR = "compile_error", "invalid_error", "out_of_budget", "no_error"

_CHECKS = ("apiserver_validating_admission_policy", "apiserver_mutating_admission_policy")
_CONDITIONS = "apiserver_admission_match_condition"
_BY = (
    "identified by name of resource containing the match condition and broken out for each kind containing matchConditions (webhook or "
    "policy), operation and admission type (validate or admit)."
)


def error_type(message: str) -> str:
    """The label for an error, which its beginning tells."""
    if message.startswith("compilation"):
        return COMPILE_ERROR
    if message.startswith("validation failed due to running out of cost budget"):
        return OUT_OF_BUDGET
    return INVALID_ERROR


class PolicyMetrics:
    """Of one server. ``validated``: policy, binding, error type, enforcement action; ``mutated``: the same without an action;
    ``conditions`` and ``condition_errors``: name, kind, type, operation."""

    def __init__(self) -> None:
        self.validated = Durations(("policy", "policy_binding", "error_type", "enforcement_action"), CHECK_SECONDS_BOUNDS)
        self.mutated = Durations(("policy", "policy_binding", "error_type"), CHECK_SECONDS_BOUNDS)
        self.conditions = Durations(("name", "kind", "type", "operation"), CONDITIONS_SECONDS_BOUNDS)
        self.condition_errors = Durations(("name", "kind", "type", "operation"), ())

    def expose(self, out: Exposition) -> None:
        validating, mutating = _CHECKS
        identified = "labeled by policy and further identified by binding and enforcement action taken."
        self.validated.expose_count(out, f"{validating}_check_total", f"Validation admission policy check total, {identified}")
        self.validated.expose(
            out,
            f"{validating}_check_duration_seconds",
            "Validation admission latency for individual validation expressions in seconds, labeled by policy and further including "
            "binding and enforcement action taken.",
        )
        self.mutated.expose_count(
            out,
            f"{mutating}_check_total",
            "Mutation admission policy check total, labeled by policy and further identified by binding.",
        )
        self.mutated.expose(
            out,
            f"{mutating}_check_duration_seconds",
            "Mutation admission latency for individual mutation expressions in seconds, labeled by policy and binding.",
        )
        errors = f"Admission match condition evaluation errors count, {_BY}"
        self.condition_errors.expose_count(out, f"{_CONDITIONS}_evaluation_errors_total", errors)
        self.conditions.expose(
            out,
            f"{_CONDITIONS}_evaluation_seconds",
            "Admission match condition evaluation time in seconds, identified by name and broken out for each kind containing "
            "matchConditions (webhook or policy), operation and type (validate or admit).",
        )
