"""The status of a Job (batch ``validateJobStatus``): what it says must be possible, and what is over stays over.

A rule looks at what the update changes, so that a job that an older release left in such a state can still be written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.machinery.field_errors import FieldError, duplicate, invalid, invalid_unshown, required
from apiserver.registry.validation import job_indexes
from apiserver.registry.validation.common import Errors, each, equal, nonnegative

Part = Mapping[str, Any]

_NOTHING: Part = {}
_COUNTS = ("active", "succeeded", "failed", "ready", "terminating")


def job_status(new: Part, old: Part) -> list[FieldError]:
    out: Errors = []
    spec, status, was = (new.get("spec") or _NOTHING), (new.get("status") or _NOTHING), (old.get("status") or _NOTHING)
    for field in _COUNTS:
        nonnegative(out, f"status.{field}", status.get(field))
    _uncounted(out, status.get("uncountedTerminatedPods") or _NOTHING)
    now, before = _true_conditions(status), _true_conditions(was)
    _completion(out, status, was, now, before)
    _finished(out, status, was, now, before)
    _indexes(out, spec, status, was)
    if _changed(status, was, "ready", "active") and (status.get("ready") or 0) > (status.get("active") or 0):
        out.append(invalid("status.ready", status["ready"], "cannot set more ready pods than active"))
    for pair in (("SuccessCriteriaMet", "Failed"), ("SuccessCriteriaMet", "FailureTarget")):
        if now.issuperset(pair):
            words = f"cannot set SuccessCriteriaMet=True and {pair[1]}=true conditions"
            out.append(invalid_unshown("status.conditions", words))
    _transitions(out, spec, status, was, now, before)
    return out


def _true_conditions(status: Part) -> frozenset[str]:
    return frozenset(c.get("type") or "" for c in status.get("conditions") or () if c.get("status") == "True")


def _changed(status: Part, was: Part, *fields: str) -> bool:
    return any(not equal(status.get(field), was.get(field)) for field in fields)


def _uncounted(out: Errors, pods: Part) -> None:
    seen: set[str] = set()
    for kind in ("succeeded", "failed"):
        for i, uid in each(out, pods.get(kind) or ()):
            path = f"status.uncountedTerminatedPods.{kind}[{i}]"
            if not uid:
                out.append(invalid(path, uid, "must not be empty"))
            elif uid in seen:
                out.append(duplicate(path, uid))
            seen.add(uid)


def _completion(out: Errors, status: Part, was: Part, now: frozenset[str], before: frozenset[str]) -> None:
    turned = now ^ before
    for other, name in (("Failed", "Failed"), ("FailureTarget", "FailureTarget")):
        if turned & {"Complete", other} and {"Complete", other} <= now:
            out.append(invalid_unshown("status.conditions", f"cannot set Complete=True and {name}=true conditions"))
    completed_at, started_at = status.get("completionTime"), status.get("startTime")
    if "Complete" in turned or _changed(status, was, "completionTime"):
        if completed_at is not None and "Complete" not in now:
            words = "cannot set completionTime when there is no Complete=True condition"
            out.append(invalid("status.completionTime", completed_at, words))
        if completed_at is None and "Complete" in now:
            out.append(required("status.completionTime", "completionTime is required for Complete jobs"))
    both = started_at is not None and completed_at is not None
    if both and _changed(status, was, "startTime", "completionTime") and str(completed_at) < str(started_at):
        out.append(invalid("status.completionTime", completed_at, "completionTime cannot be set before startTime"))


def _finished(out: Errors, status: Part, was: Part, now: frozenset[str], before: frozenset[str]) -> None:
    finished = bool(now & {"Complete", "Failed"})
    turned = finished != bool(before & {"Complete", "Failed"})
    if not finished:
        return
    for field in ("active", "terminating"):
        if (turned or _changed(status, was, field)) and (status.get(field) or 0) > 0:
            out.append(invalid(f"status.{field}", status[field], f"{field}>0 is invalid for finished job"))
    if (turned or _changed(status, was, "startTime")) and status.get("startTime") is None:
        out.append(required("status.startTime", "startTime is required for finished job"))
    pods = status.get("uncountedTerminatedPods") or _NOTHING
    if (turned or _changed(status, was, "uncountedTerminatedPods")) and (pods.get("succeeded") or pods.get("failed")):
        words = "uncountedTerminatedPods needs to be empty for finished job"
        out.append(invalid("status.uncountedTerminatedPods", dict(pods), words))


def _indexes(out: Errors, spec: Part, status: Part, was: Part) -> None:
    completions, per_index = spec.get("completions"), spec.get("backoffLimitPerIndex")
    completed, failed = status.get("completedIndexes") or "", status.get("failedIndexes")
    of_completed, of_failed = _changed(status, was, "completedIndexes"), _changed(status, was, "failedIndexes")
    if completions is not None:
        for field, text, wanted in (
            ("completedIndexes", completed, of_completed),
            ("failedIndexes", failed, of_failed and per_index is not None and failed is not None),
        ):
            if wanted:
                try:
                    job_indexes.count(text or "", completions)
                except job_indexes.IndexesError as error:
                    out.append(invalid(f"status.{field}", text, f"error parsing {field}: {error}"))
    if of_completed and completed and spec.get("completionMode") != "Indexed":
        words = "cannot set non-empty completedIndexes when non-indexed completion mode"
        out.append(invalid("status.completedIndexes", completed, words))
    if of_failed and failed is not None and per_index is None:
        words = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        out.append(invalid("status.failedIndexes", failed, words))
    if (of_completed or of_failed) and completions is not None and failed:
        if (both := job_indexes.overlap(completed, failed, completions)) is not None:
            words = f"failedIndexes and completedIndexes overlap at index: {both}"
            out.append(invalid("status.failedIndexes", failed, words))


def _transitions(out: Errors, spec: Part, status: Part, was: Part, now: frozenset[str], before: frozenset[str]) -> None:
    for kind in ("Failed", "Complete", "FailureTarget"):
        if kind in before and kind not in now:
            out.append(invalid_unshown("status.conditions", f"cannot disable the terminal {kind}=True condition"))
    #: an indexed job whose completions and parallelism go together may be scaled down
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for field in ("failed",) if elastic else ("failed", "succeeded"):
        if (status.get(field) or 0) < (was.get(field) or 0):
            out.append(invalid(f"status.{field}", status.get(field) or 0, f"cannot decrease the {field} counter"))
    completed_at = status.get("completionTime")
    if completed_at is not None and was.get("completionTime") is not None and completed_at != was["completionTime"]:
        out.append(invalid("status.completionTime", completed_at, "completionTime cannot be mutated"))
    if was.get("startTime") is not None and _changed(status, was, "startTime") and not spec.get("suspend"):
        out.append(required("status.startTime", "startTime cannot be removed for unsuspended job"))
    if "SuccessCriteriaMet" in before and "SuccessCriteriaMet" not in now:
        out.append(invalid_unshown("status.conditions", "cannot disable the SuccessCriteriaMet=True condition"))
