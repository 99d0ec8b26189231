"""What apimachinery says in one release and not in another; each case is read in its tag of that release (v0.25.0 … v0.37.0-beta.0)."""

from __future__ import annotations

import asyncio

import pytest

from apiserver.machinery import labels, object_meta_validation, release
from apiserver.machinery.objects import Object


def texts(metadata: Object, minor: int) -> list[str]:
    """The refusals of a create with this metadata, by Kubernetes 1.``minor``."""
    with release.serving(minor):
        obj: Object = {"metadata": {"name": "a", "namespace": "ns", **metadata}}
        errors = object_meta_validation.validate(obj, namespaced=True, name_rule="dns_label")
        return [error.text() for error in errors]


def test_each_task_answers_for_its_own_release() -> None:
    async def served(minor: int, others: asyncio.Event, ready: asyncio.Event) -> list[bool]:
        release.serve(minor)
        ready.set()
        await others.wait()
        return [release.since(30), release.since(36)]

    async def both() -> list[list[bool]]:
        one, two = asyncio.Event(), asyncio.Event()
        return list(await asyncio.gather(served(25, one, two), served(36, two, one)))

    assert asyncio.run(both()) == [[False, False], [True, True]]
    assert release.since(37), "a task that nobody told answers as the newest release"


def test_a_block_ends_as_it_began() -> None:
    with release.serving(30):
        with release.serving(25):
            assert not release.since(26)
        assert release.since(30)
        assert not release.since(31)


@pytest.mark.parametrize(
    ("minor", "said"),
    [
        (25, 'metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty'),
        (32, 'metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty'),
        (36, 'metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty'),
        (37, "metadata.ownerReferences[0].apiVersion: Required value: must not be empty"),
    ],
)
def test_owners_without_a_version(minor: int, said: str) -> None:
    assert texts({"ownerReferences": [{"kind": "Pod", "name": "p", "uid": "u"}]}, minor) == [said]


@pytest.mark.parametrize(
    ("minor", "kind", "name"),
    [
        (33, 'Invalid value: "": kind must not be empty', 'Invalid value: "": name must not be empty'),
        (34, 'Invalid value: "": must not be empty', 'Invalid value: "": must not be empty'),
    ],
)
def test_owners_without_a_kind_or_a_name(minor: int, kind: str, name: str) -> None:
    path = "metadata.ownerReferences"
    assert texts({"ownerReferences": [{"apiVersion": "v1", "uid": "u"}]}, minor) == [f"{path}.kind: {kind}", f"{path}.name: {name}"]


def test_owners_of_a_version_that_is_none() -> None:
    owner = {"apiVersion": "a/b/c", "kind": "Event", "name": "e", "uid": "u"}
    path = "metadata.ownerReferences"
    assert texts({"ownerReferences": [owner]}, 36) == [f'{path}.apiVersion: Invalid value: "a/b/c": version must not be empty']
    assert texts({"ownerReferences": [owner]}, 37) == [
        f'{path}[0].apiVersion: Invalid value: "a/b/c": must be <group>/<version> or <version>'
    ]
    assert len(texts({"ownerReferences": [{**owner, "apiVersion": "v1"}]}, 25)) == 1, "events own nothing in any release"


@pytest.mark.parametrize(("minor", "names_of_both"), [(25, "p and q"), (26, "Pod/p and Pod/q")])
def test_two_owners_that_control(minor: int, names_of_both: str) -> None:
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True} for name in "pq"]
    (said,) = texts({"ownerReferences": owners}, minor)
    assert said.endswith(f'Only one reference can have Controller set to true. Found "true" in references for {names_of_both}')


def test_dots_have_a_message_of_their_own_since_1_27() -> None:
    assert texts({"name": "a.b"}, 27) == ['metadata.name: Invalid value: "a.b": must not contain dots']
    (said,) = texts({"name": "a.b"}, 26)
    assert "a lowercase RFC 1123 label must consist of" in said


def test_qualified_names_are_label_keys_since_1_35() -> None:
    for minor, word in ((34, "a qualified name must consist of"), (35, "a valid label key must consist of")):
        (said,) = texts({"labels": {"a/b/c": "x"}}, minor)
        assert word in said


def test_values_of_label_selectors_are_checked_since_1_26() -> None:
    selector = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["no value"]}]}
    with release.serving(25):
        assert labels.validate_label_selector(selector, "spec.selector") == []
    with release.serving(26):
        (error,) = labels.validate_label_selector(selector, "spec.selector")
        assert error.field == "spec.selector.matchExpressions[0].values[0]"


def test_operations_of_managed_fields() -> None:
    path = "metadata.managedFields[0].operation"
    assert texts({"managedFields": [{"operation": "Guess"}]}, 36) == [f'{path}: Invalid value: "Guess": must be `Apply` or `Update`']
    assert texts({"managedFields": [{"operation": "Guess"}]}, 37) == [
        f'{path}: Unsupported value: "Guess": supported values: "Apply", "Update"'
    ]
    assert texts({"managedFields": [{}]}, 36) == [f'{path}: Invalid value: "": must be `Apply` or `Update`']
    assert texts({"managedFields": [{}]}, 37) == [f"{path}: Required value: must not be empty"]
