"""What a delete does to an object before it goes."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.registry import deletion
from apiserver.registry.deletion import DeleteOptions

NOW = "2024-02-28T23:59:50Z"


def pod(**metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "generation": 3, **metadata},
        "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30},
        "status": {"phase": "Running"},
    }


def test_a_pod_is_marked_for_its_grace_period() -> None:
    obj, options = pod(), DeleteOptions()
    grace = deletion.begin(obj, options, supports_grace=True, now=NOW)
    assert (grace.graceful, grace.pending, options.grace_period_seconds) == (True, False, 30)
    assert obj["metadata"]["deletionTimestamp"] == "2024-02-29T00:00:20Z"
    assert obj["metadata"]["generation"] == 4


def test_grace_only_gets_shorter() -> None:
    marked = {"deletionTimestamp": "2024-02-29T00:00:20Z", "deletionGracePeriodSeconds": 30}
    for asked in (None, 30, 60):
        assert deletion.begin(pod(**marked), DeleteOptions(grace_period_seconds=asked), supports_grace=True, now=NOW).pending
    obj = pod(**marked)
    assert deletion.begin(obj, DeleteOptions(grace_period_seconds=5), supports_grace=True, now=NOW).graceful
    assert obj["metadata"]["deletionTimestamp"] == "2024-02-28T23:59:55Z"
    assert obj["metadata"]["generation"] == 3


@pytest.mark.parametrize(
    ("spec", "phase", "asked", "expected"),
    [
        ({"nodeName": "n"}, "Running", None, 0),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 9}, "Running", None, 9),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 9}, "Running", 2, 2),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 9}, "Running", -7, 1),
        ({"terminationGracePeriodSeconds": 9}, "Pending", 60, 0),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 9}, "Succeeded", 60, 0),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 9}, "Failed", None, 0),
    ],
)
def test_grace_periods_of_pods(spec: dict[str, Any], phase: str, asked: int | None, expected: int) -> None:
    assert deletion.pod_grace_period_seconds({"spec": spec, "status": {"phase": phase}}, asked) == expected


@pytest.mark.parametrize(
    ("current", "options", "default", "expected"),
    [
        ([], DeleteOptions(), "background", None),
        ([], DeleteOptions(), "orphan", ["orphan"]),
        (["x"], DeleteOptions(propagation_policy="Orphan"), "background", ["x", "orphan"]),
        (["x"], DeleteOptions(propagation_policy="Foreground"), "background", ["x", "foregroundDeletion"]),
        (["x", "orphan"], DeleteOptions(propagation_policy="Background"), "orphan", ["x"]),
        (["orphan"], DeleteOptions(), "background", None),
        (["foregroundDeletion"], DeleteOptions(), "orphan", None),
        (["foregroundDeletion"], DeleteOptions(orphan_dependents=True), "background", ["orphan"]),
        (["orphan"], DeleteOptions(orphan_dependents=False), "background", []),
        (["orphan"], DeleteOptions(propagation_policy="Foreground"), "unsupported", None),
    ],
)
def test_finalizers_of_propagation(current: list[str], options: DeleteOptions, default: str, expected: list[str] | None) -> None:
    assert deletion.garbage_collection_finalizers(current, options, default) == expected


def test_finalizers_hold_an_object_from_its_first_delete_on() -> None:
    obj: dict[str, Any] = {"metadata": {"name": "a", "generation": 1}}
    deletion.mark(obj, NOW)
    assert obj["metadata"] == {"name": "a", "generation": 2, "deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0}
    deletion.mark(obj, "2024-03-01T00:00:00Z")
    assert obj["metadata"]["deletionTimestamp"] == NOW
    assert obj["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("new", "old", "goes"),
    [
        ({"finalizers": []}, {"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0}, True),
        ({}, {"deletionTimestamp": NOW}, True),
        ({"finalizers": ["x"]}, {"deletionTimestamp": NOW}, False),
        ({}, {}, False),
        ({}, {"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 30}, False),
    ],
)
def test_the_last_finalizer_takes_the_object_with_it(new: dict[str, Any], old: dict[str, Any], goes: bool) -> None:
    assert deletion.goes_with_update({"metadata": new}, {"metadata": old}) is goes
