"""Cells of printer columns, as kube-apiserver fills them (``tableconvertor``)."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.apiextensions import printing

NOW = 1_700_000_000.0  # 2023-11-14T22:13:20Z


@pytest.mark.parametrize(
    ("kind", "value", "cell"),
    [
        ("string", "text", "text"),
        ("string", True, "true"),
        ("string", 3, "3"),
        ("string", 2.5, "2.5"),
        ("string", {"b": [1, "<"], "a": None}, '{"a":null,"b":[1,"\\u003c"]}'),
        ("integer", 3, 3),
        ("integer", 3.9, 3),
        ("integer", "3", None),
        ("integer", True, None),
        ("number", 2.5, 2.5),
        ("number", "2.5", None),
        ("boolean", False, False),
        ("boolean", "false", None),
        ("date", "2023-11-14T22:11:20Z", "2m"),
        ("date", "yesterday", "<invalid>"),
        ("date", 5, None),
    ],
)
def test_a_cell_is_of_its_columns_type(kind: str, value: Any, cell: Any) -> None:
    found = printing.printer([{"name": "V", "type": kind, "jsonPath": ".spec.v"}])
    assert found.cells({"metadata": {"name": "n"}, "spec": {"v": value}}, NOW) == ["n", cell]


def test_what_a_path_does_not_find_is_an_empty_cell() -> None:
    paths = (".spec.none", ".spec[0]", ".metadata.name")
    found = printing.printer([{"name": path, "type": "string", "jsonPath": path} for path in paths])
    assert found.cells({"metadata": {"name": "n"}, "spec": {}}, NOW) == ["n", None, None, "n"]


def test_without_columns_the_age_is_shown() -> None:
    found = printing.printer([])
    assert [column.name for column in found.columns] == ["Name", "Age"]
    assert found.cells({"metadata": {"name": "n", "creationTimestamp": "2023-11-14T22:13:10Z"}}, NOW) == ["n", "10s"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (0.1, "0.1"),
        (100000.5, "100000.5"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1e-5, "1e-05"),
        (-2.5e-7, "-2.5e-07"),
    ],
)
def test_numbers_are_written_as_go_writes_them(value: float, text: str) -> None:
    assert printing.go_float(value) == text
