"""Strategic merge patch: the documented directives, the transcripts of a real server, and its agreement with merge patch."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.machinery import merge_patch, strategic_merge_patch
from apiserver.machinery.status import StatusError
from apiserver.machinery.types import Shape, Type
from apiserver.schemas.schema_set import SchemaSet

SCHEMAS = SchemaSet.load("1.34")
POD = SCHEMAS.type_of("", "v1", "Pod")
DEPLOYMENT = SCHEMAS.type_of("apps", "v1", "Deployment")
CONFIG_MAP = SCHEMAS.type_of("", "v1", "ConfigMap")
TRANSCRIPTS = Path(__file__).parents[2] / "golden" / "patch.json"


def patched(spec: Any, patch: Any) -> Any:
    """``spec`` of a Pod after a patch of it."""
    document, whole = {"spec": spec}, {"spec": patch}
    before = copy.deepcopy((document, whole))
    result = strategic_merge_patch.apply(document, whole, POD)
    assert (document, whole) == before
    return result["spec"]


@pytest.mark.parametrize(
    ("spec", "patch", "result"),
    [
        # items are found by their merge key, new ones come first
        (
            {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]},
            {"containers": [{"name": "b", "image": "2"}, {"name": "c", "image": "1"}]},
            {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}, {"name": "c", "image": "1"}]},
        ),
        (
            {"containers": [{"name": "a"}]},
            {"containers": [{"name": "c"}]},
            {"containers": [{"name": "c"}, {"name": "a"}]},
        ),
        # env by name, args replaced
        (
            {"containers": [{"name": "a", "args": ["1", "2"], "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}]},
            {"containers": [{"name": "a", "args": ["3"], "env": [{"name": "B", "value": None}]}]},
            {"containers": [{"name": "a", "args": ["3"], "env": [{"name": "A", "value": "1"}, {"name": "B"}]}]},
        ),
        # $patch: delete in a list
        (
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"containers": [{"name": "a", "$patch": "delete"}]},
            {"containers": [{"name": "b"}]},
        ),
        # $patch: replace in a list
        (
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"containers": [{"name": "c"}, {"$patch": "replace"}]},
            {"containers": [{"name": "c"}]},
        ),
        # $patch in a map
        ({"nodeSelector": {"a": "b"}}, {"nodeSelector": {"c": "d", "$patch": "replace"}}, {"nodeSelector": {"c": "d"}}),
        ({"nodeSelector": {"a": "b"}}, {"nodeSelector": {"$patch": "delete"}}, {"nodeSelector": {}}),
        # $retainKeys: the other volume sources go
        (
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]},
            {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]},
        ),
        # an item that is new has no use for directives
        (
            {"volumes": []},
            {"volumes": [{"name": "v", "$retainKeys": ["name", "emptyDir"], "emptyDir": {}}], "$setElementOrder/volumes": [{"name": "v"}]},
            {"volumes": [{"name": "v", "emptyDir": {}}]},
        ),
        # $setElementOrder: of what the patch knows; what only the server has keeps its place
        (
            {"containers": [{"name": "a"}, {"name": "s"}, {"name": "b"}]},
            {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "b", "image": "2"}]},
            {"containers": [{"name": "s"}, {"name": "b", "image": "2"}, {"name": "a"}]},
        ),
        (
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]},
            {"containers": [{"name": "b"}, {"name": "a"}]},
        ),
        # a list that is not there yet: without directives and nulls
        (
            {},
            {"containers": [{"name": "a", "image": None}, {"name": "b", "$patch": "delete"}]},
            {"containers": [{"name": "a"}]},
        ),
        # null deletes, a list without a strategy is replaced, another type replaces
        (
            {"hostNetwork": True, "tolerations": [{"key": "a"}]},
            {"hostNetwork": None, "tolerations": [{"key": "b"}]},
            {"tolerations": [{"key": "b"}]},
        ),
        ({"nodeSelector": {"a": "b"}}, {"nodeSelector": "text"}, {"nodeSelector": "text"}),
        # ports merge by containerPort alone, although apply tells them apart by protocol too
        (
            {"containers": [{"name": "a", "ports": [{"containerPort": 53, "protocol": "TCP"}]}]},
            {"containers": [{"name": "a", "ports": [{"containerPort": 53, "protocol": "UDP"}]}]},
            {"containers": [{"name": "a", "ports": [{"containerPort": 53, "protocol": "UDP"}]}]},
        ),
    ],
)
def test_patches_of_a_pod(spec: Any, patch: Any, result: Any) -> None:
    assert patched(spec, patch) == result


@pytest.mark.parametrize(
    ("finalizers", "patch", "result"),
    [
        (["a", "b"], {"finalizers": ["c", "a"]}, ["c", "a", "b"]),
        (["a", "b"], {"$deleteFromPrimitiveList/finalizers": ["b", "x"]}, ["a"]),
        (["a", "b"], {"$setElementOrder/finalizers": ["d", "b", "a"], "finalizers": ["d"]}, ["d", "b", "a"]),
        (["a", "b"], {"$deleteFromPrimitiveList/finalizers": ["b"], "finalizers": ["c"]}, ["c", "a"]),
    ],
)
def test_lists_of_scalars_merge_as_sets(finalizers: list[str], patch: Any, result: list[str]) -> None:
    out = strategic_merge_patch.apply({"metadata": {"finalizers": finalizers}}, {"metadata": patch}, CONFIG_MAP)
    assert out["metadata"]["finalizers"] == result


@pytest.mark.parametrize(
    ("spec", "patch", "code", "message"),
    [
        (
            {"containers": [{"name": "a"}]},
            {"containers": [{"image": "x"}]},
            500,
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            {"containers": [{"name": "a"}]},
            {"containers": [{"$patch": "delete", "image": "x"}]},
            500,
            "map: map[$patch:delete image:x] does not contain declared merge key: name",
        ),
        ({"nodeSelector": {}}, {"nodeSelector": {"$patch": "drop"}}, 500, "unknown patch type: drop in map: map[$patch:drop]"),
        ({"containers": [{"name": "a"}]}, {"containers": [{"$patch": "merge"}]}, 500, "merging lists cannot yet be specified in the patch"),
        (
            {"containers": [{"name": "a"}]},
            {"containers": ["a"]},
            500,
            "list element types are not identical: [[map[name:a]] [a]]",
        ),
        ({"containers": []}, {"$setElementOrder/containers": "a"}, 500, "expected a []interface {}, but received a string"),
        (
            {"containers": [{"name": "a"}]},
            {"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]},
            500,
            "The order in patch list:\n[map[name:a]]\n doesn't match $setElementOrder list:\n[map[name:b]]\n",
        ),
        (
            {"securityContext": {"x": {}}},
            {"securityContext": {"x": {}}},
            500,
            'unable to find api field in struct PodSecurityContext for the json field "x"',
        ),
        (
            {"volumes": [{"name": "v"}]},
            {"volumes": [{"name": "v", "$retainKeys": ["name"], "emptyDir": {}}]},
            400,
            "invalid patch format of retainKeys",
        ),
        ({}, {"$deleteFromPrimitiveList": ["a"]}, 400, "invalid patch format of primitive list"),
        ({}, {"$setElementOrder": ["a"]}, 400, "invalid patch format of setElementOrder list"),
        ({"containers": [[1]]}, {"containers": [[2]]}, 422, "the server rejected our request due to an error in our request"),
    ],
)
def test_patches_that_are_refused(spec: Any, patch: Any, code: int, message: str) -> None:
    with pytest.raises(StatusError) as e:
        patched(spec, patch)
    assert (e.value.code, e.value.message) == (code, message)


@pytest.mark.parametrize(
    ("spec", "patch", "code", "message"),
    [
        ({"volumes": [{"name": "v"}]}, {"volumes": [{"name": "v", "$retainKeys": "name"}]}, 400, "invalid patch format of retainKeys"),
        (
            {"containers": [{"name": "a"}]},
            {"containers": [{"$patch": 5, "name": "a"}]},
            500,
            "unknown patch type: %!s(int64=5) in map: map[$patch:5 name:a]",
        ),
        ({"containers": "x"}, {"$setElementOrder/containers": []}, 500, "expected a []interface {}, but received a string"),
        ({}, {"$setElementOrder/containers": [], "containers": None}, 500, "expected a []interface {}, but received a %!s(<nil>)"),
        ({"containers": []}, {"$setElementOrder/containers": []}, 500, "no elements in any of the given slices"),
        (
            {},
            {"$setElementOrder/containers": [{"name": "a"}], "containers": ["a"]},
            500,
            "expected a map[string]interface {}, but received a string",
        ),
        (
            {},
            {"$setElementOrder/containers": ["a"], "containers": [{"name": "a"}]},
            500,
            "expected a map[string]interface {}, but received a string",
        ),
        (
            {},
            {"$setElementOrder/containers": [{"x": "a"}], "containers": [{"name": "a"}]},
            500,
            "map: map[x:a] does not contain declared merge key: name",
        ),
    ],
)
def test_malformed_directives(spec: Any, patch: Any, code: int, message: str) -> None:
    with pytest.raises(StatusError) as e:
        patched(spec, patch)
    assert (e.value.code, e.value.message) == (code, message)


def test_directives_for_lists_that_are_not_there() -> None:
    assert patched({}, {"$setElementOrder/containers": [{"name": "a"}]}) == {}
    order = {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "b"}, {"name": "a", "image": None}]}
    assert patched({}, order) == {"containers": [{"name": "b"}, {"name": "a"}]}
    assert patched({"nodeSelector": "text"}, {"nodeSelector": {"$patch": "delete"}}) == {}
    finalizers = {"metadata": {"finalizers": ["a"]}}
    assert strategic_merge_patch.apply(finalizers, {"metadata": {"$deleteFromPrimitiveList/finalizers": None}}, CONFIG_MAP) == {
        "metadata": {}
    }


def test_a_list_without_a_merge_key_does_not_merge() -> None:
    items = Type(shape=Shape.LIST, element=Type(shape=Shape.STRUCT), patch_strategies=("merge",))
    with pytest.raises(StatusError, match=r"^cannot merge lists without merge key for struct$"):
        strategic_merge_patch.apply({"x": [{}]}, {"x": [{}]}, Type(shape=Shape.STRUCT, fields={"x": items}))


def test_what_is_no_patch() -> None:
    with pytest.raises(StatusError) as e:
        strategic_merge_patch.apply({}, [], POD)
    assert (e.value.code, e.value.message) == (400, "json: cannot unmarshal array into Go value of type map[string]interface {}")
    with pytest.raises(StatusError) as e:
        strategic_merge_patch.apply({}, {}, None)
    assert (e.value.code, e.value.message) == (400, "strategic merge patch format is not supported")


def transcript(name: str) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = next(s for s in json.loads(TRANSCRIPTS.read_text())["scenarios"] if s["name"] == name)["steps"]
    return steps


def without_defaults(found: Any, given: Any) -> Any:
    """``found`` with those members that ``given`` has too."""
    if isinstance(found, dict) and isinstance(given, dict):
        return {k: without_defaults(v, given[k]) for k, v in found.items() if k in given}
    if isinstance(found, list) and isinstance(given, list) and len(found) == len(given):
        return [without_defaults(f, g) for f, g in zip(found, given, strict=True)]
    return found


@pytest.mark.parametrize(
    ("name", "kind"),
    [("strategic-merge-of-containers", DEPLOYMENT), ("strategic-merge-primitive-lists", CONFIG_MAP), ("patch-map-fields", CONFIG_MAP)],
)
def test_transcripts(name: str, kind: Type) -> None:
    steps = transcript(name)
    document = steps[0]["body"]
    compared = 0
    for step in steps[1:]:
        if not step["do"].startswith("PATCH"):
            continue
        document = strategic_merge_patch.apply(document, step["body"], kind)
        wanted = step["expect"]["body"]
        for field in ("spec", "data"):
            if field in wanted:
                assert without_defaults(wanted[field], document[field]) == document[field]
                compared += 1
        for field in ("finalizers", "labels"):
            assert (document["metadata"].get(field) or None) == wanted["metadata"].get(field)
    assert compared or name == "strategic-merge-primitive-lists"


LEAVES = st.integers(0, 2) | st.sampled_from(["x", "y"]) | st.none()
DOCUMENTS = st.recursive(
    st.dictionaries(st.sampled_from("abc"), LEAVES, max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), LEAVES | inner, max_size=3),
    max_leaves=6,
)
UNTYPED = Type(shape=Shape.ANY, preserve_unknown=True)


def without_null_members(value: Any) -> Any:
    return {k: without_null_members(v) for k, v in value.items() if v is not None} if isinstance(value, dict) else value


@given(DOCUMENTS, DOCUMENTS)
def test_without_lists_and_directives_it_is_a_merge_patch(document: Any, patch: Any) -> None:
    document = without_null_members(document)
    assert strategic_merge_patch.apply(document, patch, UNTYPED) == merge_patch.apply(document, patch)


ITEMS = st.lists(st.sampled_from("abcd"), unique=True)


@given(ITEMS, ITEMS)
def test_the_order_of_merged_items(server: list[str], patch: list[str]) -> None:
    """Both keep their order, and nothing is lost or doubled."""
    result = patched({"containers": [{"name": n} for n in server]}, {"containers": [{"name": n} for n in patch]})
    names = [c["name"] for c in result["containers"]]
    assert sorted(names) == sorted({*server, *patch})
    assert [n for n in names if n in patch] == patch
    assert [n for n in names if n not in patch] == [n for n in server if n not in patch]


@given(ITEMS, ITEMS, st.randoms(use_true_random=False))
def test_set_element_order_rules(server: list[str], known: list[str], random: Any) -> None:
    items = [{"name": n, "image": "new"} for n in known if random.random() < 0.5]
    if not server and not items:
        return
    patch = {"$setElementOrder/containers": [{"name": n} for n in known], "containers": items}
    names = [c["name"] for c in patched({"containers": [{"name": n} for n in server]}, patch)["containers"]]
    assert [n for n in names if n in known] == [n for n in known if n in names]
