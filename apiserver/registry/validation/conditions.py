"""``metav1.Condition`` lists (apimachinery ``meta/v1/validation``).

What is missing is told as missing, without more, since 1.34 (times and reasons) and 1.37 (types and statuses): ``ValidateCondition`` of
v0.33, v0.34, v0.36 and v0.37.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.machinery import names, release
from apiserver.machinery.field_errors import duplicate, invalid, not_supported, required, too_long
from apiserver.registry.validation.common import Errors, each, label_key

Part = Mapping[str, Any]

STATUSES = ("False", "True", "Unknown")
_REASON_FORMAT = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON = re.compile(f"^{_REASON_FORMAT}$")
_REASON_WORDS = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', "
    "and must end with an alphanumeric character or '_'"
)
_REASON_EXAMPLES = ("my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB")
_REASON_BYTES_MAX = 1024
_MESSAGE_BYTES_MAX = 32 * 1024


def conditions(out: Errors, path: str, found: Sequence[Part]) -> None:
    seen: set[str] = set()
    for i, condition in each(out, found):
        kind = condition.get("type") or ""
        if kind in seen:
            out.append(duplicate(f"{path}[{i}]" if release.since(37) else f"{path}[{i}].type", kind))
        seen.add(kind)
        _condition(out, f"{path}[{i}]", condition)


def _condition(out: Errors, path: str, condition: Part) -> None:
    declared = release.since(37)
    kind = condition.get("type") or ""
    if not kind and declared:
        out.append(required(f"{path}.type", "is required"))
    else:
        label_key(out, f"{path}.type", kind)
    status = condition.get("status") or ""
    if not status and declared:
        out.append(required(f"{path}.status"))
    elif status not in STATUSES:
        out.append(not_supported(f"{path}.status", status, list(STATUSES)))
    if (condition.get("observedGeneration") or 0) < 0:
        out.append(invalid(f"{path}.observedGeneration", condition["observedGeneration"], "must be greater than or equal to zero"))
    unset = "" if release.since(34) else "must be set"
    if condition.get("lastTransitionTime") is None:
        out.append(required(f"{path}.lastTransitionTime", unset))
    if not condition.get("reason"):
        out.append(required(f"{path}.reason", unset))
    else:
        reason(out, f"{path}.reason", condition["reason"])
    if names.byte_length(condition.get("message") or "") > _MESSAGE_BYTES_MAX:
        out.append(too_long(f"{path}.message", _MESSAGE_BYTES_MAX))


def reason(out: Errors, path: str, value: str) -> None:
    if not _REASON.match(value):
        out.append(invalid(path, value, names.regex_message(_REASON_WORDS, _REASON_FORMAT, *_REASON_EXAMPLES)))
    if names.byte_length(value) > _REASON_BYTES_MAX:
        out.append(too_long(path, _REASON_BYTES_MAX))
