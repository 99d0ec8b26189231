"""Leases (coordination ``ValidateLeaseSpec``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.machinery import names
from apiserver.machinery.field_errors import FieldError, invalid
from apiserver.registry.validation.common import NEGATIVE, Errors, checked

Part = Mapping[str, Any]


def lease(obj: Part) -> list[FieldError]:
    out: Errors = []
    spec = obj.get("spec") or {}
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        out.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    if transitions is not None and transitions < 0:
        out.append(invalid("spec.leaseTransitions", transitions, NEGATIVE))
    strategy = spec.get("strategy")
    if strategy is not None:
        checked(out, "spec.strategy", strategy, names.qualified_name)
    if spec.get("preferredHolder") and strategy is None:
        out.append(invalid("spec.preferredHolder", spec["preferredHolder"], "can only be specified when `strategy` is set"))
    return out
