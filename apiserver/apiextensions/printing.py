"""The Table of a custom resource: its definition's ``additionalPrinterColumns`` (apiextensions-apiserver ``tableconvertor``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from apiserver.machinery import json_path, timestamps
from apiserver.machinery.json_path import JsonPath, JsonPathError, PathError
from apiserver.machinery.objects import Object
from apiserver.resources import columns
from apiserver.resources.columns import Printer
from apiserver.resources.resource_info import Column

#: what a definition without columns shows beside the name (apihelpers ``getColumnsForVersion``)
_AGE: Object = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp", "documented": columns.AGE.documented}
#: what its Scale shows
_SCALE: tuple[Object, ...] = (
    {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas", "description": "Number of desired replicas"},
    {"name": "Available", "type": "integer", "jsonPath": ".status.replicas", "description": "Number of actual replicas"},
    _AGE,
)

Cell = Callable[[Any, float], Any]


def printer(asked: Sequence[Object]) -> Printer:
    """``asked``: the columns beside the name; none: the age. A path that is none ends the columns before it."""
    shown: list[Column] = [columns.NAME]
    cells: list[tuple[JsonPath, Cell]] = []
    for column in asked or (_AGE,):
        path = column["jsonPath"]
        try:
            parsed = json_path.parse(path)
        except JsonPathError:
            break
        kind = column.get("type") or ""
        cells.append((parsed, _CELLS.get(kind, _nothing)))
        shown.append(
            Column(
                name=column["name"],
                type=kind,
                format=column.get("format") or "",
                description=column.get("description") or f"Custom resource definition column (in JSONPath format): {path}",
                priority=column.get("priority") or 0,
                documented=column.get("documented") or "",
            )
        )

    def row(obj: Object, now: float) -> list[Any]:
        return [columns.name(obj), *(_cell(path, cell, obj, now) for path, cell in cells)]

    return Printer(columns=tuple(shown), cells=row)


def scale_printer() -> Printer:
    return printer(_SCALE)


def _cell(path: JsonPath, cell: Cell, obj: Object, now: float) -> Any:
    try:
        found = path.find(obj)
    except PathError:
        return None
    return cell(found[0], now) if found else None


def _nothing(value: Any, now: float) -> Any:
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _integer(value: Any, now: float) -> Any:
    return int(value) if _is_number(value) else None


def _number(value: Any, now: float) -> Any:
    return value if _is_number(value) else None


def _boolean(value: Any, now: float) -> Any:
    return value if isinstance(value, bool) else None


def _date(value: Any, now: float) -> Any:
    """How long ago; what is no time is told as such."""
    if not isinstance(value, str):
        return None
    if not value:
        return columns.since(None, now)
    try:
        moment = timestamps.canonical_time(value)
    except timestamps.TimestampError:
        return "<invalid>"
    return columns.since(moment, now)


def _string(value: Any, now: float) -> Any:
    """As Go prints it."""
    if isinstance(value, str):
        return value
    if value is None:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return go_float(value)
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    for character, escaped in (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029")):
        text = text.replace(character, escaped)
    return text


def go_float(value: float) -> str:
    """Go's ``%v``: the shortest digits, with an exponent below 1e-4 and from 1e21 on."""
    if value == 0:
        return "0"
    text = repr(value)
    if 1e-4 <= abs(value) < 1e21:
        if "e" in text:
            text = f"{value:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        mantissa, _, exponent = f"{value:.17g}".partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    power = int(exponent)
    return f"{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"


_CELLS: dict[str, Cell] = {"integer": _integer, "number": _number, "boolean": _boolean, "string": _string, "date": _date}
