"""Storage migrations: what is said of them, and what is sent to migrate an object."""

from __future__ import annotations

from typing import Any

from controllers.client.resources import CONFIG_MAPS
from controllers.storageversionmigrator import decision

BEGAN, ENDED = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"


def migration(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "m"}, "spec": {"resource": {"group": "demo.test", "resource": "gadgets"}}, "status": status}


def conditions(found: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {c["type"]: (c["status"], c["reason"], c["lastTransitionTime"]) for c in found["status"]["conditions"]}


def test_a_migration_runs_and_then_is_over() -> None:
    running = decision.with_condition(migration(), decision.RUNNING, "", BEGAN, "17")
    assert running["status"]["resourceVersion"] == "17"
    assert conditions(running) == {"Running": ("True", "StorageVersionMigrationInProgress", BEGAN)}
    assert not decision.is_over(running)
    assert decision.with_condition(running, decision.RUNNING, "", ENDED) == running, "another attempt says nothing new"
    done = decision.with_condition(running, decision.SUCCEEDED, "", ENDED)
    assert conditions(done) == {
        "Running": ("False", "StorageVersionMigrationInProgress", ENDED),
        "Succeeded": ("True", "StorageVersionMigrationSucceeded", ENDED),
    }
    assert decision.is_over(done) and done["status"]["resourceVersion"] == "17"


def test_a_migration_that_never_ran_can_fail() -> None:
    failed = decision.with_condition(migration(), decision.FAILED, "no such thing", ENDED)
    assert conditions(failed) == {"Failed": ("True", "StorageVersionMigrationFailed", ENDED)}
    assert failed["status"]["conditions"][0]["message"] == "no such thing"
    assert decision.is_over(failed)


def test_what_was_written_after_the_state_that_is_migrated_is_left_alone() -> None:
    assert decision.is_newer("18", "17") and not decision.is_newer("17", "17") and not decision.is_newer("9", "17")


def test_an_object_gets_an_apply_of_nothing() -> None:
    obj = {"metadata": {"name": "c", "namespace": "n", "uid": "u", "resourceVersion": "3", "labels": {"a": "b"}}}
    assert decision.patch(CONFIG_MAPS, obj) == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"uid": "u", "resourceVersion": "3"}}


def test_a_definition_that_has_changed_is_another() -> None:
    before = {"metadata": {"uid": "u", "generation": 2}, "spec": {"versions": [{"name": "v1"}, {"name": "v2", "storage": True}]}}
    assert decision.stored_version(before) == "v2"
    assert decision.same_definition(before, {**before, "status": {}})
    assert not decision.same_definition(before, {**before, "metadata": {"uid": "u", "generation": 3}})
