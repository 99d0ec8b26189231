"""What is fuzzed of writes: patches of every type, options of deletes and YAML, through the whole server."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any, Final

import orjson

from apiserver.request.negotiation import APPLY_YAML, JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, YAML
from tests.fuzz.api_targets import server

_DEPLOYMENT: Final[dict[str, Any]] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "fuzzed", "labels": {"a": "b"}, "finalizers": ["x/y"]},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {
                "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 53}], "env": [{"name": "A", "value": "1"}]}],
                "volumes": [{"name": "v", "emptyDir": {}}],
                "tolerations": [{"key": "k"}],
            },
        },
    },
}
_COLLECTION = "/apis/apps/v1/namespaces/default/deployments"
_PATH = f"{_COLLECTION}/fuzzed"
_MANAGER = "fieldManager=f&dryRun=All"
_DRY = "dryRun=All"

#: method, path, query, content type; the first byte of the input says which
_WRITES: Final = (
    ("PATCH", _PATH, _DRY, JSON_PATCH),
    ("PATCH", _PATH, _DRY, MERGE_PATCH),
    ("PATCH", _PATH, _DRY, STRATEGIC_MERGE_PATCH),
    ("PATCH", _PATH, _MANAGER, APPLY_YAML),
    ("PATCH", _PATH, _MANAGER + "&force=true", APPLY_YAML),
    ("PATCH", f"{_PATH}/status", _DRY, STRATEGIC_MERGE_PATCH),
    ("PATCH", f"{_PATH}/scale", _MANAGER, APPLY_YAML),
    ("PATCH", f"{_PATH}/scale", _DRY, MERGE_PATCH),
    ("DELETE", _PATH, _DRY, JSON),
    ("PUT", _PATH, _DRY, YAML),
    ("POST", _COLLECTION, _DRY + "&fieldValidation=Strict", YAML),
)


def writes(data: bytes) -> None:
    """An answer in time. A 500 is one only in Kubernetes' own words, which have no reason: of a patch that cannot be applied."""
    method, path, query, content_type = _WRITES[(data[0] if data else 0) % len(_WRITES)]
    asked = server()
    asked.once("POST", _COLLECTION, orjson.dumps(_DEPLOYMENT))
    answer = asked.answer(method, path, query, content_type, data[1:])
    if answer.status >= 500:
        found = orjson.loads(answer.body)
        assert answer.status == 500 and "reason" not in found and found["message"], (method, path, content_type, answer.body)


def _spec(**template: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": template}}}


_BODIES: Final[tuple[tuple[int, Any], ...]] = (
    (
        0,
        [
            {"op": "test", "path": "/spec/replicas", "value": 2},
            {"op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "d", "image": "i"}},
            {"op": "copy", "from": "/metadata/labels", "path": "/metadata/annotations"},
            {"op": "move", "from": "/metadata/labels/a", "path": "/metadata/labels/a~1b"},
            {"op": "remove", "path": "/metadata/finalizers/0"},
        ],
    ),
    (1, {"metadata": {"labels": {"a": None, "c": "d"}}, "spec": {"replicas": None}}),
    (2, _spec(containers=[{"name": "c", "env": [{"name": "A", "$patch": "delete"}]}, {"name": "d", "image": "j"}])),
    (2, _spec(**{"$setElementOrder/containers": [{"name": "c"}], "volumes": [{"name": "v", "$retainKeys": ["name"], "emptyDir": None}]})),
    (2, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/y"], "labels": {"$patch": "replace", "z": "1"}}}),
    (3, _DEPLOYMENT),
    (
        4,
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            **_spec(containers=[{"name": "c", "ports": [{"containerPort": 53, "protocol": "UDP"}]}]),
        },
    ),
    (5, {"status": {"conditions": [{"type": "Available", "status": "True", "$patch": "merge"}], "replicas": 3}}),
    (6, {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "fuzzed"}, "spec": {"replicas": 3}}),
    (7, {"spec": {"replicas": 3}}),
    (8, {"kind": "DeleteOptions", "gracePeriodSeconds": 3, "preconditions": {"uid": "u"}, "propagationPolicy": "Orphan"}),
)
_YAML: Final = b"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: fuzzed, labels: &l {a: b}}\nspec:\n  selector: {matchLabels: *l}\n"
SEEDS: Final = (*(bytes([which]) + orjson.dumps(body) for which, body in _BODIES), b"\x09" + _YAML, b"\x0a" + _YAML, b"\x03" + _YAML)


# -- structures: bytes that are JSON still, with something else in some places of it

_STRANGE: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 1.5, 2**31, 2**63, 2**70, "", "x", "a/b", "~2", "-", "1e400", "\x00", [], [None], [[]], {}, [1, "a"]),
    *({"$patch": "delete"}, {"$patch": "replace"}, {"$patch": "merge"}, {"$patch": 3}, {"a": None}, [{"name": "c"}, {"name": "c"}]),
)
_KEYS: Final = (
    *("$patch", "$retainKeys", "$setElementOrder/containers", "$deleteFromPrimitiveList/finalizers", "~"),
    *("kind", "apiVersion", "metadata", "spec", "status", "op", "path", "from", "value"),
    *("name", "uid", "resourceVersion", "managedFields", "ownerReferences", "finalizers", "labels", "annotations"),
    *("generation", "creationTimestamp", "deletionTimestamp", "containers", "ports", "env"),
)
#: places of one body that are changed
_CHANGES_MAX = 4


def mutated_structure(source: random.Random) -> bytes:
    which, body = source.choice(_BODIES)
    body = copy.deepcopy(body)
    for _ in range(source.randint(1, _CHANGES_MAX)):
        container, key = source.choice(list(_places(body)))
        kind = source.random()
        if kind < 0.5:
            container[key] = copy.deepcopy(source.choice(_STRANGE))
        elif isinstance(container, list):
            container.append(copy.deepcopy(source.choice(_STRANGE)))
        elif kind < 0.75:
            container[source.choice(_KEYS)] = copy.deepcopy(source.choice(_STRANGE))
        else:
            container[source.choice(_KEYS)] = container.pop(key)
        if not body:
            break
    if which in (1, 2, 5):
        which = source.choice((1, 2, 5))
    elif which in (3, 4):
        which = source.choice((3, 4, 9, 10))
    return bytes([which]) + json.dumps(body).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Containers and the keys in them, at every depth."""
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    for key, inner in items:
        yield value, key
        yield from _places(inner)
