"""The texts of Go's readers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.machinery import go_json


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("+5", 5), ("-9223372036854775808", -(2**63)), ("0009223372036854775807", 2**63 - 1)]
)
def test_integers(text: str, value: int) -> None:
    assert go_json.parse_int(text) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [("", "invalid syntax"), ("1_0", "invalid syntax"), ("٣", "invalid syntax"), ("9223372036854775808", "value out of range")],
)
def test_what_is_no_integer(text: str, why: str) -> None:
    with pytest.raises(go_json.GoError) as e:
        go_json.parse_int(text)
    assert str(e.value) == f'strconv.ParseInt: parsing "{text}": {why}'
    with pytest.raises(go_json.GoError, match="value out of range"):
        go_json.parse_int("9" * 100_000)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "unexpected end of JSON input"),
        (b'{"a":', "unexpected end of JSON input"),
        (b"x", "invalid character 'x' looking for beginning of value"),
        (b"'", r"invalid character '\'' looking for beginning of value"),
        (b"1 2", "invalid character '2' after top-level value"),
        (b"\xff", "invalid character '\\xff' looking for beginning of value"),
    ],
)
def test_what_is_no_json(data: bytes, message: str) -> None:
    with pytest.raises(go_json.GoError) as e:
        go_json.decode_json(data)
    assert str(e.value) == message


def test_numbers_that_json_does_not_have_and_depth_without_end() -> None:
    for data in (b"NaN", b"[Infinity]", b"[" * 100_000):
        with pytest.raises(go_json.GoError):
            go_json.decode_json(data)


@given(st.binary())
def test_any_bytes_are_json_or_refused(data: bytes) -> None:
    try:
        go_json.decode_json(data)
    except go_json.GoError as e:
        assert str(e)


@pytest.mark.parametrize(
    ("value", "kind", "type_name", "shown", "in_syntax"),
    [
        (None, "null", "<nil>", "<nil>", "interface {}(nil)"),
        (True, "bool", "bool", "true", "true"),
        (5, "number", "int64", "5", "5"),
        (1.5, "number", "float64", "1.5", "1.5"),
        ("x", "string", "string", "x", '"x"'),
        ([1, "a"], "array", "[]interface {}", "[1 a]", '[]interface {}{1, "a"}'),
        (
            {"b": 1, "a": None},
            "object",
            "map[string]interface {}",
            "map[a:<nil> b:1]",
            'map[string]interface {}{"a":interface {}(nil), "b":1}',
        ),
    ],
)
def test_how_go_names_and_shows_values(value: Any, kind: str, type_name: str, shown: str, in_syntax: str) -> None:
    assert go_json.kind_of(value) == kind
    assert go_json.type_name(value) == type_name
    assert go_json.shown(value) == shown
    assert go_json.shown_in_syntax(value) == in_syntax
