"""JSONPath as kubectl and printer columns have it."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.machinery.json_path import JsonPathError, PathError, parse

POD: dict[str, Any] = {
    "metadata": {"name": "p", "labels": {"app.kubernetes.io/name": "web", "tier": "t"}},
    "spec": {"containers": [{"name": "a", "ports": [{"n": 1}, {"n": 2}]}, {"name": "b", "ports": [{"n": 3}]}, {"name": "c"}]},
    "status": {"conditions": [{"type": "Ready", "status": "True", "n": 1}, {"type": "Other", "status": "False", "n": 2}], "none": None},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".metadata.name", ["p"]),
        ("metadata.name", None),
        ("$.metadata.name", ["p"]),
        ("@.metadata.name", ["p"]),
        (".metadata['name']", ["p"]),
        (r".metadata.labels.app\.kubernetes\.io/name", ["web"]),
        (r".metadata.labels['app\.kubernetes\.io/name']", ["web"]),
        (".metadata.labels.*", ["web", "t"]),
        (".metadata['name','labels'].tier", ["t"]),
        (".spec.containers[0].name", ["a"]),
        (".spec.containers[-1].name", ["c"]),
        (".spec.containers[1:].name", ["b", "c"]),
        (".spec.containers[0:3:2].name", ["a", "c"]),
        (".spec.containers[:-1].name", ["a", "b"]),
        (".spec.containers[1:1].name", []),
        (".spec.containers[*].ports[*].n", [1, 2, 3]),
        (".spec.containers[0,2].name", ["a", "c"]),
        ("..n", [1, 2, 3, 1, 2]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.n>1)].type", ["Other"]),
        (".status.conditions[?(@.n<=1)].type", ["Ready"]),
        (".status.conditions[?(@.type!='Ready')].type", ["Other"]),
        (".status.conditions[?(@.absent)].type", []),
        (".status.conditions[?(@.n)].type", ["Ready", "Other"]),
        (".status.none", [None]),
        (".status.none[0]", []),
        (".absent.deeper", []),
        (".metadata.name.deeper", []),
    ],
)
def test_paths_find(path: str, found: list[Any] | None) -> None:
    if found is None:
        with pytest.raises(JsonPathError):
            parse(path)
    else:
        assert parse(path).find(POD) == found


@pytest.mark.parametrize("path", [".a[", ".a[x]", ".a[?(@.b", ".a[]", ".a[?(@.b=~'x')]", "'x", "%", ".a[1:x]"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(JsonPathError):
        parse(path)


@pytest.mark.parametrize(
    "path",
    [
        ".spec.containers[3]",
        ".spec.containers[-4]",
        ".spec[0]",
        ".metadata.name[0]",
        ".status.conditions[?(@.n=='x')]",
        ".metadata[?(@.a)]",
    ],
)
def test_a_step_that_cannot_be_taken_is_an_error(path: str) -> None:
    with pytest.raises(PathError):
        parse(path).find(POD)
