"""Sets of field paths against plain sets of tuples."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.machinery import fieldset
from apiserver.machinery.fieldset import FieldSet, Path

ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"k":"x"}', "v:1"])
PATHS = st.lists(ELEMENTS, min_size=1, max_size=3).map(tuple)
PATH_SETS = st.frozensets(PATHS, max_size=8)


def build(paths: frozenset[Path]) -> FieldSet:
    return fieldset.of_paths(*sorted(paths))


def members(fields: FieldSet) -> frozenset[Path]:
    found = list(fieldset.paths(fields))
    assert len(found) == len(set(found))
    return frozenset(found)


def is_sound(fields: FieldSet, *, root: bool = True) -> bool:
    """No ``.`` at the root, none alone, nothing that holds no member."""
    if root and "." in fields:
        return False
    if not root and set(fields) == {"."}:
        return False
    return all(is_sound(below, root=False) for key, below in fields.items() if key != ".") and all(
        not below for key, below in fields.items() if key == "."
    )


@given(PATH_SETS)
def test_a_set_has_its_members(paths: frozenset[Path]) -> None:
    fields = build(paths)
    assert members(fields) == paths and is_sound(fields)
    assert all(fieldset.has(fields, path) for path in paths)
    assert fieldset.parse(json.loads(json.dumps(fields))) == fields


@given(PATH_SETS, PATH_SETS)
def test_union_intersection_and_difference_are_those_of_sets(a: frozenset[Path], b: frozenset[Path]) -> None:
    left, right = build(a), build(b)
    before = json.dumps([left, right])
    for found, wanted in (
        (fieldset.union(left, right), a | b),
        (fieldset.intersection(left, right), a & b),
        (fieldset.difference(left, right), a - b),
    ):
        assert members(found) == wanted and is_sound(found)
    assert json.dumps([left, right]) == before


@given(PATH_SETS, PATH_SETS)
def test_recursive_difference_takes_what_is_below_too(a: frozenset[Path], b: frozenset[Path]) -> None:
    wanted = frozenset(path for path in a if not any(path[: i + 1] in b for i in range(len(path))))
    found = fieldset.recursive_difference(build(a), build(b))
    assert members(found) == wanted and is_sound(found)


@given(PATH_SETS)
def test_leaves_have_nothing_below(paths: frozenset[Path]) -> None:
    wanted = frozenset(p for p in paths if not any(q[: len(p)] == p and q != p for q in paths))
    assert members(fieldset.leaves(build(paths))) == wanted


@given(PATH_SETS, PATH_SETS)
def test_what_does_not_change_is_the_same_object(a: frozenset[Path], b: frozenset[Path]) -> None:
    left, right = build(a), build(b)
    if a >= b:
        assert fieldset.union(left, right) is left
    if not a & b:
        assert fieldset.difference(left, right) is left


def test_members_come_level_by_level_in_order() -> None:
    fields = fieldset.parse(
        {
            "f:b": {".": {}, "f:x": {}},
            "f:a": {"f:y": {}},
            'k:{"port":443}': {},
            'k:{"port":80}': {},
            "v:2": {},
            "v:10": {},
        }
    )
    assert [fieldset.text_of(p) for p in fieldset.paths(fields)] == [".b", "[port=80]", "[port=443]", "[=2]", "[=10]", ".a.y", ".b.x"]


def test_paths_as_conflicts_show_them() -> None:
    path = ("f:spec", "f:ports", 'k:{"port":53,"protocol":"UDP"}', "f:name")
    assert fieldset.text_of(path) == '.spec.ports[port=53,protocol="UDP"].name'
    assert fieldset.text_of(("f:a", 'v:"x"', "i:3", "v:true")) == '.a[="x"][3][=true]'


def test_scalars_in_path_elements_are_written_as_go_does() -> None:
    assert [fieldset.encode_scalar(v) for v in ("a<&>", 'q"', True, 5, None, 1.5)] == [
        '"a\\u003c\\u0026\\u003e"',
        '"q\\""',
        "true",
        "5",
        "null",
        "1.5",
    ]


def test_what_clients_send_is_brought_to_our_form() -> None:
    assert fieldset.parse({'k:{"b": 1, "a": "x"}': {".": {}}}) == {'k:{"a":"x","b":1}': {}}
    assert fieldset.parse(None) == {} == fieldset.parse({".": {}})


@pytest.mark.parametrize(
    "wrong", [[], "x", {"f:a": []}, {"x:a": {}}, {"fa": {}}, {"f": {}}, {"k:[]": {}}, {"v:{": {}}, {"i:x": {}}, {'v:{"a":1}': {}}]
)
def test_what_is_no_set(wrong: object) -> None:
    if wrong == {"f:a": []}:
        assert fieldset.parse(wrong) == {"f:a": {}}
        return
    with pytest.raises(fieldset.FieldSetError):
        fieldset.parse(wrong)


def test_a_set_from_a_client_may_not_be_deep_without_end() -> None:
    deep: dict[str, object] = {}
    for _ in range(1000):
        deep = {"f:a": deep}
    with pytest.raises(fieldset.FieldSetError):
        fieldset.parse(deep)


@given(st.recursive(st.none() | st.text(max_size=3), lambda inner: st.dictionaries(st.text(max_size=6), inner, max_size=3), max_leaves=5))
def test_any_json_is_a_set_or_refused(value: object) -> None:
    try:
        found = fieldset.parse(value)
    except fieldset.FieldSetError:
        return
    assert is_sound(found)
