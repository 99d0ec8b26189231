"""Jobs and CronJobs (batch ``validation``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.machinery import names, release
from apiserver.machinery.field_errors import FieldError, duplicate, invalid, invalid_unshown, not_supported, required, too_long, too_many
from apiserver.registry.validation import cron_schedule, job_indexes, pods
from apiserver.registry.validation.common import (
    Errors,
    checked,
    each,
    equal,
    immutable,
    label_selector,
    nonnegative,
    one_of,
    selector_is_valid,
    selector_matches,
)

Part = Mapping[str, Any]

CONTROLLER_UID_LABEL = "batch.kubernetes.io/controller-uid"
JOB_NAME_LABEL = "batch.kubernetes.io/job-name"
LEGACY_CONTROLLER_UID_LABEL = "controller-uid"
LEGACY_JOB_NAME_LABEL = "job-name"

#: of a CronJob: its jobs' names are eleven characters longer, and a label's value holds 63
CRON_JOB_NAME_LENGTH_MAX = 52
#: of an indexed job, so that its status (lists of indexes) stays small
INDEXED_PARALLELISM_MAX = 100_000
FAILURE_RULES_MAX = 20
_EXIT_CODES_MAX = 255
_CONDITIONS_MAX = 20
SUCCESS_RULES_MAX = 20
SUCCEEDED_INDEXES_BYTES_MAX = 64 * 1024
_NOTHING: Part = {}


_NOT_NEGATIVE = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished", "backoffLimitPerIndex",
)  # fmt: skip


def job(obj: Part, prefixed_labels: bool = True) -> list[FieldError]:
    """A job from before the labels had a prefix goes without (``prefixed_labels``)."""
    out: Errors = []
    metadata, spec = obj.get("metadata") or _NOTHING, obj.get("spec") or _NOTHING
    _generated_selector(out, metadata, spec, prefixed_labels)
    _job_spec(out, spec)
    if spec.get("completionMode") == "Indexed" and (spec.get("completions") or 0) > 0:
        # the last pod's hostname is the job's name and its index
        last = f"{metadata.get('name') or ''}-{spec['completions'] - 1}"
        for message in names.dns1123_label(last):
            words = f'will not able to create pod with invalid DNS label "{last}": {message}'
            out.append(invalid("metadata.name", metadata.get("name"), words))
    return out


def _generated_selector(out: Errors, metadata: Part, spec: Part, prefixed_labels: bool) -> None:
    """What the server generated is there and was not contradicted by labels of the client."""
    selector = spec.get("selector")
    if spec.get("manualSelector") or selector is None:
        return
    uid, name = metadata.get("uid") or "", metadata.get("name") or ""
    if not uid:
        out.append(required("metadata.uid"))
    found = _template_labels(spec)
    expected = {LEGACY_CONTROLLER_UID_LABEL: uid, LEGACY_JOB_NAME_LABEL: name}
    if prefixed_labels:
        expected |= {CONTROLLER_UID_LABEL: uid, JOB_NAME_LABEL: name}
    for key, value in expected.items():
        path = f"spec.template.metadata.labels[{key}]"
        if key not in found:
            out.append(required(path, f"must be '{value}'"))
        elif found[key] != value:
            out.append(invalid(path, found, f"must be '{value}'"))
    if selector_is_valid(selector) and not selector_matches(selector, expected):
        out.append(invalid("spec.selector", dict(selector), "`selector` not auto-generated"))


def _template_labels(spec: Part) -> dict[str, str]:
    return ((spec.get("template") or _NOTHING).get("metadata") or _NOTHING).get("labels") or {}


def _job_spec(out: Errors, spec: Part) -> None:
    _spec_and_template(out, "spec", spec)
    selector = spec.get("selector")
    if selector is None:
        out.append(required("spec.selector"))
    else:
        label_selector(out, "spec.selector", selector)
    found = _template_labels(spec)
    if selector is None or (selector_is_valid(selector) and not selector_matches(selector, found)):
        words = "`selector` does not match template `labels`"
        out.append(invalid("spec.template.metadata.labels", found, words))


def _spec_and_template(out: Errors, path: str, spec: Part) -> None:
    for field in _NOT_NEGATIVE:
        nonnegative(out, f"{path}.{field}", spec.get(field))
    _indexes(out, path, spec)
    if (managed_by := spec.get("managedBy")) is not None:
        if "/" not in managed_by or names.qualified_name(managed_by):
            words = 'must be a domain-prefixed path (such as "acme.io/foo")'
            out.append(invalid(f"{path}.managedBy", managed_by, words))
    mode = spec.get("completionMode")
    if mode is not None:
        if mode not in ("NonIndexed", "Indexed"):
            out.append(not_supported(f"{path}.completionMode", mode, ["Indexed", "NonIndexed"]))
        if mode == "Indexed":
            if spec.get("completions") is None:
                out.append(required(f"{path}.completions", "when completion mode is Indexed"))
            parallelism = spec.get("parallelism") or 0
            if parallelism > INDEXED_PARALLELISM_MAX:
                words = f"must be less than or equal to {INDEXED_PARALLELISM_MAX} when completion mode is Indexed"
                out.append(invalid(f"{path}.parallelism", parallelism, words))
    if (policy := spec.get("podFailurePolicy")) is not None:
        _failure_policy(out, f"{path}.podFailurePolicy", policy, spec)
    if (policy := spec.get("successPolicy")) is not None:
        _success_policy(out, f"{path}.successPolicy", policy, spec)
    replacement = spec.get("podReplacementPolicy")
    if replacement is not None:
        one_of(out, f"{path}.podReplacementPolicy", replacement, ("Failed", "TerminatingOrFailed"))
        if spec.get("podFailurePolicy") is not None and replacement == "TerminatingOrFailed":
            out.append(not_supported(f"{path}.podReplacementPolicy", replacement, ["Failed"]))
    pods.template(out, f"{path}.template", spec.get("template"))
    _restart_policy(out, f"{path}.template.spec.restartPolicy", spec)


def _restart_policy(out: Errors, policy_path: str, spec: Part) -> None:
    restart = ((spec.get("template") or _NOTHING).get("spec") or _NOTHING).get("restartPolicy")
    if restart in (None, "", "Always"):
        out.append(required(policy_path, 'valid values: "OnFailure", "Never"'))
    elif restart not in ("OnFailure", "Never"):
        out.append(not_supported(policy_path, restart, ["OnFailure", "Never"]))
    elif restart == "OnFailure" and spec.get("podFailurePolicy") is not None:
        out.append(invalid(policy_path, restart, 'only "Never" is supported when podFailurePolicy is specified'))


def _indexes(out: Errors, path: str, spec: Part) -> None:
    """What only indexed jobs may say of their indexes' failures."""
    indexed = spec.get("completionMode") == "Indexed"
    failed = spec.get("maxFailedIndexes")
    if spec.get("backoffLimitPerIndex") is not None and not indexed:
        out.append(invalid(f"{path}.backoffLimitPerIndex", spec["backoffLimitPerIndex"], "requires indexed completion mode"))
    if failed is not None:
        nonnegative(out, f"{path}.maxFailedIndexes", failed)
        if spec.get("backoffLimitPerIndex") is None:
            out.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
        completions = spec.get("completions")
        if completions is not None and failed > completions:
            out.append(invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions"))


def _failure_policy(out: Errors, path: str, policy: Part, spec: Part) -> None:
    rules = policy.get("rules") or ()
    if not rules and policy.get("rules") is None:
        out.append(required(f"{path}.rules"))
    if len(rules) > FAILURE_RULES_MAX:
        out.append(too_many(f"{path}.rules", len(rules), FAILURE_RULES_MAX))
    pod = (spec.get("template") or _NOTHING).get("spec") or _NOTHING
    known = {c.get("name") for kind in ("containers", "initContainers") for c in pod.get(kind) or ()}
    for i, rule in each(out, rules):
        at = f"{path}.rules[{i}]"
        one_of(out, f"{at}.action", rule.get("action"), ("Count", "FailIndex", "FailJob", "Ignore"))
        if rule.get("action") == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            words = "requires the backoffLimitPerIndex to be set"
            out.append(invalid(f"{at}.action", "FailIndex", words))
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or ()
        if codes is not None:
            _exit_codes(out, f"{at}.onExitCodes", codes, known)
        if len(conditions) > _CONDITIONS_MAX:
            out.append(too_many(f"{at}.onPodConditions", len(conditions), _CONDITIONS_MAX))
        for j, condition in each(out, conditions):
            checked(out, f"{at}.onPodConditions[{j}].type", condition.get("type") or "", names.qualified_name)
            one_of(out, f"{at}.onPodConditions[{j}].status", condition.get("status"), ("False", "True", "Unknown"))
        if codes is not None and conditions:
            out.append(invalid_unshown(at, "specifying both OnExitCodes and OnPodConditions is not supported"))
        if codes is None and not conditions:
            out.append(invalid_unshown(at, "specifying one of OnExitCodes and OnPodConditions is required"))


def _exit_codes(out: Errors, path: str, codes: Part, known: set[str | None]) -> None:
    operator, values = codes.get("operator") or "", codes.get("values") or ()
    one_of(out, f"{path}.operator", operator, ("In", "NotIn"))
    if (name := codes.get("containerName")) is not None and name not in known:
        out.append(invalid(f"{path}.containerName", name, "must be one of the container or initContainer names in the pod template"))
    if not values:
        out.append(invalid(f"{path}.values", list(values), "at least one value is required"))
    elif len(values) > _EXIT_CODES_MAX:
        out.append(too_many(f"{path}.values", len(values), _EXIT_CODES_MAX))
    for i, value in each(out, values):
        if operator == "In" and value == 0:
            out.append(invalid(f"{path}.values[{i}]", value, "must not be 0 for the In operator"))
        if value in values[:i]:
            out.append(duplicate(f"{path}.values[{i}]", value))
    if list(values) != sorted(values):
        out.append(invalid(f"{path}.values", list(values), "must be ordered"))


def _success_policy(out: Errors, path: str, policy: Part, spec: Part) -> None:
    if spec.get("completionMode") != "Indexed":
        out.append(invalid(path, dict(policy), "requires indexed completion mode"))
        return
    rules = policy.get("rules") or ()
    if not rules:
        words = "at least one rules must be specified when the successPolicy is specified"
        out.append(required(f"{path}.rules", words))
    if len(rules) > SUCCESS_RULES_MAX:
        out.append(too_many(f"{path}.rules", len(rules), SUCCESS_RULES_MAX))
    for i, rule in each(out, rules):
        _success_rule(out, f"{path}.rules[{i}]", rule, spec.get("completions") or 0)


def _success_rule(out: Errors, path: str, rule: Part, completions: int) -> None:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        out.append(required(path, "at least one of succeededCount or succeededIndexes must be specified"))
    total = 0
    if indexes is not None:
        if len(indexes) > SUCCEEDED_INDEXES_BYTES_MAX:
            out.append(too_long(f"{path}.succeededIndexes", SUCCEEDED_INDEXES_BYTES_MAX))
        try:
            total = job_indexes.count(indexes, completions)
        except job_indexes.IndexesError as error:
            out.append(invalid(f"{path}.succeededIndexes", indexes, f"error parsing succeededIndexes: {error}"))
    if count is None:
        return
    nonnegative(out, f"{path}.succeededCount", count)
    if count > completions:
        words = f"must be less than or equal to {completions} (the number of specified completions)"
        out.append(invalid(f"{path}.succeededCount", count, words))
    if indexes is not None and count > total:
        words = f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        out.append(invalid(f"{path}.succeededCount", count, words))


#: what of a suspended job's template may change until its pods are started: where they run
_SCHEDULING_FIELDS = ("nodeSelector", "tolerations", "affinity")


def job_update(new: Part, old: Part) -> list[FieldError]:
    have, had = new.get("spec") or _NOTHING, old.get("spec") or _NOTHING
    labels = _template_labels(had)
    out: Errors = job(new, prefixed_labels=CONTROLLER_UID_LABEL in labels and JOB_NAME_LABEL in labels)
    _completions(out, have, had)
    immutable(out, "spec.selector", have.get("selector"), had.get("selector"))
    template = have.get("template")
    if _may_be_placed(had, old.get("status") or _NOTHING):
        template = _with_old_scheduling(template or _NOTHING, had.get("template") or _NOTHING)
    if not equal(template, had.get("template")):
        out.append(invalid("spec.template", have.get("template"), "field is immutable"))
    for field in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        immutable(out, f"spec.{field}", have.get(field), had.get(field))
    return out


def _may_be_placed(spec: Part, status: Part) -> bool:
    """Whether no pod of the job was made of its template. Since 1.36 a job that was started and suspended is as good when its pods are
    gone (MutableSchedulingDirectivesForSuspendedJobs, KEP-5440)."""
    if not spec.get("suspend"):
        return False
    if not release.since(36):
        return not status.get("startTime")
    suspended = any(c.get("type") == "Suspended" and c.get("status") == "True" for c in status.get("conditions") or ())
    return not status.get("active") and (suspended or not status.get("startTime"))


def _completions(out: Errors, have: Part, had: Part) -> None:
    """Fixed, but for an indexed job whose completions and parallelism grow or shrink together."""
    new, old = have.get("completions"), had.get("completions")
    if new == old:
        return
    tandem = new == have.get("parallelism") and old == had.get("parallelism")
    if have.get("completionMode") == "Indexed" and new is not None and old is not None and tandem:
        return
    out.append(invalid("spec.completions", new, "field is immutable"))


def _with_old_scheduling(new: Part, old: Part) -> dict[str, Any]:
    """Gates count among it since 1.27 (kubernetes 115940), what its containers ask for since 1.36, where
    MutablePodResourcesForSuspendedJobs is on by default (KEP-5440)."""
    spec, old_spec = dict(new.get("spec") or _NOTHING), old.get("spec") or _NOTHING
    for field in _SCHEDULING_FIELDS:
        spec[field] = old_spec.get(field)
    if release.since(27):
        spec["schedulingGates"] = old_spec.get("schedulingGates")
    for kind in ("containers", "initContainers") if release.since(36) else ():
        found, had = spec.get(kind) or (), old_spec.get(kind) or ()
        if found and len(found) == len(had):
            spec[kind] = [{**c, "resources": o.get("resources")} for c, o in zip(found, had)]
    metadata, old_metadata = dict(new.get("metadata") or _NOTHING), old.get("metadata") or _NOTHING
    for field in ("labels", "annotations"):
        metadata[field] = old_metadata.get(field)
    return {**new, "metadata": metadata, "spec": spec}


def cron_job(obj: Part) -> list[FieldError]:
    out = cron_job_update(obj, None)
    name = (obj.get("metadata") or _NOTHING).get("name") or ""
    if len(name) > CRON_JOB_NAME_LENGTH_MAX:
        out.append(invalid("metadata.name", name, f"must be no more than {CRON_JOB_NAME_LENGTH_MAX} characters"))
    return out


def cron_job_update(obj: Part, old: Part | None) -> list[FieldError]:
    """The length of the name counts only for new ones; a zone in the schedule stays where it was. Until 1.28 a new one may have it as well,
    with a warning (kubernetes 116252, 1.29)."""
    out: Errors = []
    spec = obj.get("spec") or _NOTHING
    schedule = spec.get("schedule") or ""
    if not schedule:
        out.append(required("spec.schedule"))
    else:
        wrong = cron_schedule.error_in(schedule)
        if wrong:
            out.append(invalid("spec.schedule", schedule, wrong))
        if "TZ" in schedule:
            had = ((old or _NOTHING).get("spec") or _NOTHING).get("schedule") or ""
            if spec.get("timeZone") is not None:
                words = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
                out.append(invalid("spec.schedule", schedule, words))
            elif "TZ" not in had and release.since(29):
                words = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
                out.append(invalid("spec.schedule", schedule, words))
    nonnegative(out, "spec.startingDeadlineSeconds", spec.get("startingDeadlineSeconds"))
    zone = spec.get("timeZone")
    if zone is not None:
        if not zone:
            out.append(invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string"))
        elif zone.lower() == "local":
            words = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
            out.append(invalid("spec.timeZone", zone, words))
        elif not cron_schedule.is_time_zone(zone):
            out.append(invalid("spec.timeZone", zone, f"unknown time zone {zone}"))
    one_of(out, "spec.concurrencyPolicy", spec.get("concurrencyPolicy"), ("Allow", "Forbid", "Replace"))
    template = (spec.get("jobTemplate") or _NOTHING).get("spec") or _NOTHING
    _spec_and_template(out, "spec.jobTemplate.spec", template)
    if template.get("selector") is not None:
        words = "`selector` will be auto-generated"
        out.append(invalid("spec.jobTemplate.spec.selector", template["selector"], words))
    if template.get("manualSelector"):
        out.append(not_supported("spec.jobTemplate.spec.manualSelector", True, ["nil", "false"]))
    for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        nonnegative(out, f"spec.{field}", spec.get(field))
    return out
