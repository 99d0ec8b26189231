"""The public CEL conformance suite (github.com/google/cel-spec), as far as Kubernetes' CEL can be asked it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from apiserver import cel
from apiserver.cel import values
from apiserver.cel.declarations import overload
from apiserver.cel.runtime_types import type_name

CASES: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "conformance.json").read_text())["cases"]


def decoded(value: Any) -> Any:
    """A value from its JSON with tags."""
    if not isinstance(value, dict):
        return value
    ((tag, inner),) = value.items()
    if tag == "uint":
        return cel.Uint(inner)
    if tag == "double":
        return float(inner)
    if tag == "bytes":
        return bytes.fromhex(inner)
    if tag == "list":
        return [decoded(item) for item in inner]
    if tag == "map":
        return {decoded(key): decoded(item) for key, item in inner}
    if tag == "duration":
        return cel.Duration(inner)
    return cel.Timestamp(inner) if tag == "timestamp" else value


def same(found: Any, wanted: Any) -> bool:
    """Equal and of the same type; NaN is NaN here."""
    if isinstance(wanted, dict) and set(wanted) == {"type"} and isinstance(found, cel.Type):
        return type_name(found) == wanted["type"]
    if isinstance(found, float) and isinstance(wanted, float) and math.isnan(wanted):
        return math.isnan(found)
    if isinstance(found, list):
        return isinstance(wanted, list) and len(found) == len(wanted) and all(map(same, found, wanted))
    return type(found) is type(wanted) and values.equal(found, wanted)


def environment_of(case: dict[str, Any]) -> cel.Environment:
    declared = {name: overload(f"x f({text}): bool").parameters[0] for name, text in case.get("types", {}).items()}
    for name in case.get("values", {}):
        declared.setdefault(name, cel.DYN)
    return cel.Environment(declared, bindings=True)


def run(case: dict[str, Any]) -> str:
    """What is wrong with our answer; "" if nothing is."""
    variables = {name: decoded(value) for name, value in case.get("values", {}).items()}
    try:
        found = environment_of(case).compile(case["expr"]).evaluate(variables, cel.Budget())
    except cel.CompileError as error:
        mixed = all(issue.message.startswith("expected type '") for issue in error.issues)
        return "" if "error" in case or mixed else str(error)  # Kubernetes takes no literals of mixed types
    except cel.CelError as error:
        return "" if "error" in case else f"{type(error).__name__}: {error}"
    if "error" in case:
        return f"{found!r} in place of the error {case['error']!r}"
    wanted = decoded(case["value"])
    return "" if same(found, wanted) else f"{found!r} in place of {wanted!r}"


FILES = sorted({name.split("/")[0] for name in CASES})


@pytest.mark.parametrize("file", FILES)
def test_the_suite(file: str) -> None:
    wrong = {name: answer for name, case in CASES.items() if name.startswith(file + "/") and (answer := run(case))}
    assert not wrong
