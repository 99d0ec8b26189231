"""Repeated keys in YAML bodies."""

from __future__ import annotations

import pytest

from apiserver.schemas import yaml_bodies


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a: 1\nb: {a: 1}\n", ()),
        ("kind: W\nmetadata:\n  name: one\nspec:\n  a: p\n  a: q\n  b: r\n", ('line 6: key "a" already set in map',)),
        ("a: [{x: 1, x: 2}]\na: 2\na: 3\n", tuple(f'line {n}: key "{k}" already set in map' for n, k in ((2, "a"), (3, "a"), (1, "x")))),
        ("a: &x {b: 1, b: 2}\nc: *x\nd: *x\n", ('line 1: key "b" already set in map',)),
        ("a: 1\n---\nb: 1\nb: 2\n", ()),
        ("", ()),
        ("a: [", ()),
        ("a: &a [*a]", ()),
    ],
)
def test_repeated_keys_are_named_with_their_lines(text: str, lines: tuple[str, ...]) -> None:
    assert yaml_bodies.duplicate_keys(text.encode()) == lines


def test_all_of_them_are_one_error() -> None:
    assert yaml_bodies.in_words(("line 1: x", "line 2: y")) == "yaml: unmarshal errors:\n  line 1: x\n  line 2: y"


def test_json_is_read_as_json_and_the_rest_as_yaml() -> None:
    asked: list[bytes] = []

    def yaml_to_json(body: bytes) -> bytes:
        asked.append(body)
        return b'{"a":1}'

    assert yaml_bodies.load(b' {"a": 9223372036854775807}', yaml_to_json) == ({"a": 9223372036854775807}, ())
    assert yaml_bodies.load(b'{"a": 1, "a": 2}', yaml_to_json) == ({"a": 2}, ('line 1: key "a" already set in map',))
    assert asked == []
    assert yaml_bodies.load(b"{a: 1}", yaml_to_json) == ({"a": 1}, ())
    assert yaml_bodies.load(b"a: 1\na: 1\n", yaml_to_json) == ({"a": 1}, ('line 2: key "a" already set in map',))
    assert asked == [b"{a: 1}", b"a: 1\na: 1\n"]


def test_what_is_not_utf8_is_left_to_the_reader() -> None:
    assert yaml_bodies.duplicate_keys(b"a: \xff\xfe") == ()
