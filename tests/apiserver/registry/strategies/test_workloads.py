"""Workloads: generations, what is fixed, what the server generates."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from apiserver.machinery.objects import Object
from apiserver.registry.validation import cron_schedule
from tests.apiserver.registry.strategies.kinds import CONTAINER, changed, context, create_errors, created, of, rules, update_errors

DEPLOYMENTS = rules("Deployment", "apps")
REPLICA_SETS = rules("ReplicaSet", "apps")
DAEMON_SETS = rules("DaemonSet", "apps")
STATEFUL_SETS = rules("StatefulSet", "apps")
CONTROLLERS = rules("ReplicationController")
JOBS = rules("Job", "batch")
CRON_JOBS = rules("CronJob", "batch")

SELECTOR = {"matchLabels": {"app": "web"}}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [CONTAINER]}}
JOB_TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}


def workload(**spec: Any) -> Object:
    return of({"selector": SELECTOR, "template": TEMPLATE, **spec}, api_version="apps/v1")


def job(**spec: Any) -> Object:
    return of({"template": JOB_TEMPLATE, **spec}, api_version="batch/v1")


def test_a_deployment_has_the_usual_strategy() -> None:
    spec = created(DEPLOYMENTS, workload())["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
    assert spec["revisionHistoryLimit"] == 10
    assert spec["progressDeadlineSeconds"] == 600


@pytest.mark.parametrize(("strategy", "kind"), [(DEPLOYMENTS, "Deployment"), (REPLICA_SETS, "ReplicaSet"), (DAEMON_SETS, "DaemonSet")])
def test_the_selector_is_fixed(strategy: Any, kind: str) -> None:
    old = created(strategy, workload())
    template = copy.deepcopy(TEMPLATE)
    template["metadata"] = {"labels": {"app": "web", "tier": "x"}}
    new = changed(old, selector={"matchLabels": {"app": "web", "tier": "x"}}, template=template)
    (error,) = update_errors(strategy, new, old)
    assert error.startswith("spec.selector: Invalid value: "), kind
    assert error.endswith("field is immutable")


def test_the_selector_has_to_match_the_template() -> None:
    errors = create_errors(DEPLOYMENTS, workload(selector={"matchLabels": {"app": "other"}}))
    assert errors == ['spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`']


def test_spec_and_annotations_raise_a_deployments_generation_and_status_does_not() -> None:
    old = created(DEPLOYMENTS, workload())
    same = copy.deepcopy(old)
    same["status"] = {"replicas": 3}
    DEPLOYMENTS.prepare_for_update(context(), same, old)
    assert same["status"] == old["status"]
    assert not DEPLOYMENTS.spec_changed(same, old)
    assert DEPLOYMENTS.spec_changed(changed(old, replicas=2), old)
    annotated = copy.deepcopy(old)
    annotated["metadata"]["annotations"] = {"a": "b"}
    assert DEPLOYMENTS.spec_changed(annotated, old)
    assert not REPLICA_SETS.spec_changed(annotated, old)


def test_a_status_cannot_count_more_than_all() -> None:
    old = created(DEPLOYMENTS, workload())
    new = copy.deepcopy(old)
    new["status"] = {"replicas": 1, "readyReplicas": 1, "availableReplicas": 2, "collisionCount": -1}
    assert [error.text() for error in DEPLOYMENTS.validate_status_update(context(), new, old)] == [
        "status.availableReplicas: Invalid value: 2: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas",
        "status.collisionCount: Invalid value: -1: must be greater than or equal to 0",
    ]


def test_a_daemon_sets_template_has_a_generation() -> None:
    key = "deprecated.daemonset.template.generation"
    old = created(DAEMON_SETS, workload())
    assert old["metadata"]["annotations"] == {key: "1"}
    assert old["spec"]["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
    same = copy.deepcopy(old)
    same["metadata"].pop("annotations")
    assert update_errors(DAEMON_SETS, same, old) == []
    assert same["metadata"]["annotations"] == {key: "1"}
    template = copy.deepcopy(old["spec"]["template"])
    template["spec"]["containers"][0]["image"] = "nginx:1.26"
    new = changed(old, template=template)
    assert update_errors(DAEMON_SETS, new, old) == []
    assert new["metadata"]["annotations"] == {key: "2"}


@pytest.mark.parametrize(
    ("rolling", "wanted"),
    [
        (
            {"maxUnavailable": 1, "maxSurge": 1},
            "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable",
        ),
        ({"maxUnavailable": 0}, "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"),
        (
            {"maxUnavailable": "101%"},
            'spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%',
        ),
    ],
)
def test_a_daemon_set_moves_by_surge_or_by_absence(rolling: Object, wanted: str) -> None:
    errors = create_errors(DAEMON_SETS, workload(updateStrategy={"rollingUpdate": rolling}))
    assert any(error.startswith(wanted) for error in errors), errors


def test_of_a_stateful_set_only_some_fields_change() -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    old = created(STATEFUL_SETS, workload(serviceName="s", volumeClaimTemplates=[claim]))
    assert old["spec"]["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    assert old["spec"]["volumeClaimTemplates"][0]["spec"]["volumeMode"] == "Filesystem"
    assert update_errors(STATEFUL_SETS, changed(old, replicas=3, minReadySeconds=5, revisionHistoryLimit=1), old) == []
    errors = update_errors(STATEFUL_SETS, changed(old, serviceName="t"), old)
    assert errors == [
        "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
        "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
    ]


def test_a_replication_controller_takes_its_selector_and_labels_from_the_template() -> None:
    made = created(CONTROLLERS, of({"template": TEMPLATE}))
    assert made["spec"]["selector"] == {"app": "web"}
    assert made["metadata"]["labels"] == {"app": "web"}
    assert CONTROLLERS.default_garbage_collection == "orphan"
    assert create_errors(CONTROLLERS, of({"selector": {"a": "b"}})) == ["spec.template: Required value"]


def test_a_job_selects_its_pods_by_what_the_server_generates() -> None:
    made = created(JOBS, job())
    labels = {
        "controller-uid": "u-1",
        "batch.kubernetes.io/controller-uid": "u-1",
        "job-name": "a",
        "batch.kubernetes.io/job-name": "a",
    }
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u-1"}}
    assert made["spec"]["template"]["metadata"]["labels"] == labels
    assert made["metadata"]["labels"] == labels
    assert made["spec"]["completionMode"] == "NonIndexed"
    assert made["spec"]["podReplacementPolicy"] == "TerminatingOrFailed"


def test_a_job_that_contradicts_the_generated_labels_is_refused() -> None:
    template = {"metadata": {"labels": {"job-name": "other"}}, **JOB_TEMPLATE}
    errors = create_errors(JOBS, job(template=template))
    assert any(error.startswith("spec.template.metadata.labels[job-name]: Invalid value: ") for error in errors)
    manual = created(JOBS, job(manualSelector=True, selector=SELECTOR, template={**TEMPLATE, "spec": JOB_TEMPLATE["spec"]}))
    assert manual["spec"]["template"]["metadata"]["labels"] == {"app": "web"}


def test_of_a_job_little_changes() -> None:
    old = created(JOBS, job(completions=2))
    assert update_errors(JOBS, changed(old, parallelism=5, activeDeadlineSeconds=9, suspend=True), old) == []
    assert update_errors(JOBS, changed(old, completions=3), old) == ["spec.completions: Invalid value: 3: field is immutable"]
    template = copy.deepcopy(old["spec"]["template"])
    template["spec"]["containers"][0]["image"] = "other"
    (error,) = update_errors(JOBS, changed(old, template=template), old)
    assert error.startswith("spec.template: Invalid value: ")
    template = copy.deepcopy(old["spec"]["template"])
    del template["metadata"]["labels"]["job-name"]
    missing, _ = update_errors(JOBS, changed(old, template=template), old)
    assert missing == f"spec.template.metadata.labels[job-name]: Required value: must be '{old['metadata']['name']}'"
    assert update_errors(JOBS, changed(old, completionMode="Indexed"), old) == [
        'spec.completionMode: Invalid value: "Indexed": field is immutable'
    ]


def test_an_indexed_job_grows_in_completions_and_parallelism_together() -> None:
    old = created(JOBS, job(completionMode="Indexed", completions=2, parallelism=2))
    assert update_errors(JOBS, changed(old, completions=4, parallelism=4), old) == []
    assert update_errors(JOBS, changed(old, completions=4), old) == ["spec.completions: Invalid value: 4: field is immutable"]


def test_a_suspended_jobs_pods_may_be_placed_anew_until_it_starts() -> None:
    old = created(JOBS, job(suspend=True))
    template = copy.deepcopy(old["spec"]["template"])
    template["spec"]["nodeSelector"] = {"a": "b"}
    assert update_errors(JOBS, changed(old, template=template), old) == []
    started = copy.deepcopy(old)
    started["status"] = {"startTime": "2024-01-02T03:04:05Z"}
    assert update_errors(JOBS, changed(started, template=template), started)[0].startswith("spec.template: Invalid value: ")


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"completionMode": "Indexed"}, ""),
        ({"completionMode": "Indexed", "parallelism": 2}, "spec.completions: Required value: when completion mode is Indexed"),
        ({"podFailurePolicy": {"rules": [{"action": "FailJob"}]}}, "specifying one of OnExitCodes and OnPodConditions is required"),
        (
            {"podFailurePolicy": {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [0]}}]}},
            "spec.podFailurePolicy.rules[0].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator",
        ),
        ({"backoffLimitPerIndex": 1}, "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"),
        ({"managedBy": "me"}, "spec.managedBy: Invalid value: "),
        ({"successPolicy": {"rules": [{}]}}, "spec.successPolicy: Invalid value: "),
        ({"ttlSecondsAfterFinished": -1}, "spec.ttlSecondsAfterFinished: Invalid value: -1: must be greater than or equal to 0"),
    ],
)
def test_refusals_of_jobs(spec: Object, wanted: str) -> None:
    errors = create_errors(JOBS, job(**spec))
    assert any(wanted in error for error in errors) if wanted else not errors, errors


def test_a_finished_jobs_status() -> None:
    old = created(JOBS, job())
    done = copy.deepcopy(old)
    done["status"] = {"conditions": [{"type": "Complete", "status": "True"}], "startTime": "2024-01-02T03:04:00Z"}
    assert [e.text() for e in JOBS.validate_status_update(context(), done, old)] == [
        "status.completionTime: Required value: completionTime is required for Complete jobs"
    ]
    done["status"]["completionTime"] = "2024-01-02T03:04:05Z"
    assert JOBS.validate_status_update(context(), done, old) == []
    assert any("cannot disable the terminal Complete=True condition" in e.text() for e in JOBS.validate_status_update(context(), old, done))


@pytest.mark.parametrize(
    ("status", "was", "errors"),
    [
        ({"ready": 2, "active": 1}, {}, ["status.ready: Invalid value: 2: cannot set more ready pods than active"]),
        ({"failed": 1}, {"failed": 2}, ["status.failed: Invalid value: 1: cannot decrease the failed counter"]),
        (
            {"uncountedTerminatedPods": {"succeeded": ["a", ""], "failed": ["a"]}},
            {},
            [
                'status.uncountedTerminatedPods.succeeded[1]: Invalid value: "": must not be empty',
                'status.uncountedTerminatedPods.failed[0]: Duplicate value: "a"',
            ],
        ),
        (
            {"conditions": [{"type": "Failed", "status": "True"}], "active": 1},
            {},
            [
                "status.active: Invalid value: 1: active>0 is invalid for finished job",
                "status.startTime: Required value: startTime is required for finished job",
            ],
        ),
        (
            {"conditions": [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "FailureTarget", "status": "True"}]},
            {},
            ["status.conditions: Invalid value: cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"],
        ),
        (
            {"completedIndexes": "0"},
            {},
            ['status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed completion mode'],
        ),
        ({"completedIndexes": "9"}, {"completedIndexes": "9"}, []),
    ],
)
def test_a_jobs_status(status: Object, was: Object, errors: list[str]) -> None:
    made = created(JOBS, job())
    new, old = ({**made, "status": found} for found in (status, was))
    assert [e.text() for e in JOBS.validate_status_update(context(), new, old)] == errors


@pytest.mark.parametrize(
    ("completed", "failed", "errors"),
    [
        ("0,2-3", "1", []),
        ("0,2-3", "3-4", ["failedIndexes and completedIndexes overlap at index: 3"]),
        ("2,1", None, ["error parsing completedIndexes: non-increasing order, previous: 2, current: 1"]),
        ("1-2-3", None, ['the fragment "1-2-3" violates the requirement that an index interval can have at most two parts']),
        ("x", "9", ['cannot convert string to integer for index: "x"', 'error parsing failedIndexes: too large index: "9"']),
    ],
)
def test_indexes_of_an_indexed_job(completed: str, failed: str | None, errors: list[str]) -> None:
    old = created(JOBS, job(completionMode="Indexed", completions=5, backoffLimitPerIndex=1))
    status = {"completedIndexes": completed, **({} if failed is None else {"failedIndexes": failed})}
    found = JOBS.validate_status_update(context(), {**old, "status": status}, old)
    assert len(found) == len(errors), found
    assert all(part in error.detail for part, error in zip(errors, found))


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        ({"succeededIndexes": "0-1", "succeededCount": 2}, ""),
        ({"succeededIndexes": "3-1"}, "error parsing succeededIndexes: non-increasing order, previous: 3, current: 1"),
        ({"succeededCount": 9}, "must be less than or equal to 5 (the number of specified completions)"),
        (
            {"succeededIndexes": "0,1", "succeededCount": 3},
            "must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)",
        ),
        ({"succeededCount": -1}, "must be greater than or equal to 0"),
    ],
)
def test_success_policies(rule: Object, error: str) -> None:
    errors = create_errors(JOBS, job(completionMode="Indexed", completions=5, successPolicy={"rules": [rule]}))
    assert [e.endswith(error) for e in errors] == ([True] if error else [])


def test_cron_jobs() -> None:
    made = created(CRON_JOBS, of({"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": JOB_TEMPLATE}}}, api_version="batch/v1"))
    spec = made["spec"]
    assert (spec["concurrencyPolicy"], spec["suspend"]) == ("Allow", False)
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (3, 1)
    assert "completions" not in spec["jobTemplate"]["spec"]
    bad = changed(made, schedule="61 * * * *", timeZone="Nowhere/Land", concurrencyPolicy="Perhaps")
    assert create_errors(CRON_JOBS, bad) == [
        'spec.schedule: Invalid value: "61 * * * *": end of range (61) above maximum (59): 61',
        'spec.timeZone: Invalid value: "Nowhere/Land": unknown time zone Nowhere/Land',
        'spec.concurrencyPolicy: Unsupported value: "Perhaps": supported values: "Allow", "Forbid", "Replace"',
    ]
    long = copy.deepcopy(made)
    long["metadata"]["name"] = "x" * 53
    assert create_errors(CRON_JOBS, long)[-1].endswith("must be no more than 52 characters")
    assert update_errors(CRON_JOBS, copy.deepcopy(long), long) == [], "old names that are too long stay"


@pytest.mark.parametrize("schedule", ["* * * * *", "0 0 1 jan MON", "1-5/2,7 */3 ? * 0", "@hourly", "@every 1h30m", "TZ=UTC 0 0 * * *"])
def test_schedules_that_are_right(schedule: str) -> None:
    assert cron_schedule.error_in(schedule) == ""


@pytest.mark.parametrize(
    ("schedule", "wanted"),
    [
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("@fortnightly", "unrecognized descriptor: @fortnightly"),
        ("@every soon", "failed to parse duration @every soon"),
        ("TZ=Nowhere 0 0 * * *", "provided bad location Nowhere: unknown time zone Nowhere"),
    ],
)
def test_schedules_that_are_wrong(schedule: str, wanted: str) -> None:
    assert cron_schedule.error_in(schedule) == wanted
