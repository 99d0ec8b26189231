"""Values against the schemas of custom resources, in the words of Kubernetes (kube-openapi ``validation/validate``, as
apiextensions-apiserver uses it).

    check(value, schema) -> list[FieldError]

The walk is only for values that the compiled check of ``fast_check`` has refused. What it says follows upstream into its oddities, since
clients see them: an ``anyOf`` is told together with the faults of the branch that came nearest, and whatever has no place of its own is
told of the field ``<nil>``.

Worked example: ``{"replicas": "x"}`` against ``replicas: {anyOf: [{minimum: 1}], type: integer}`` gives
``replicas in body must be of type integer: "string"``: the branch of the ``anyOf`` says nothing of strings, so it holds.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import orjson

from apiserver.apiextensions import formats, numbers, patterns
from apiserver.apiextensions.correlation import Correlation, identical
from apiserver.apiextensions.embedded import sorted_keys
from apiserver.apiextensions.nodes import INT_OR_STRING, Schema
from apiserver.machinery import field_errors, go_json
from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.go_json import quote

#: what a fault without a place of its own is told of
NOWHERE = "<nil>"

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
FLOAT32_MAX = 3.4028234663852886e38


class _Code(Enum):
    TYPE = "type"
    REQUIRED = "required"
    ENUM = "enum"
    TOO_LONG = "too long"
    TOO_MANY = "too many"
    OTHER = "other"
    #: no place and no value
    PLAIN = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """``text`` is all there is of a PLAIN one. ``limit`` is that of TOO_LONG and TOO_MANY."""

    code: _Code
    text: str
    path: str = ""
    value: Any = None
    limit: int = 0
    values: tuple[Any, ...] = ()


@dataclass(slots=True)
class Result:
    """``score`` counts what held, by which the best of several failed branches is found."""

    problems: list[Problem] = field(default_factory=list)
    score: int = 0
    _texts: set[str] = field(default_factory=set)

    def add(self, *problems: Problem) -> None:
        """Each text once."""
        for problem in problems:
            if problem.text not in self._texts:
                self._texts.add(problem.text)
                self.problems.append(problem)

    def merge(self, other: Result) -> None:
        self.add(*other.problems)
        self.score += other.score


class ValueChecker:
    """Of one Kubernetes version. ``converted``: schemas are read as for objects, where int-or-string is a type and unknown formats are
    passed over; defaults in a definition are looked at without that."""

    def __init__(self, minor: int, *, converted: bool = True) -> None:
        self._minor = minor
        self._converted = converted

    def check(self, value: Any, schema: Schema, correlation: Correlation | None = None, path: str = "") -> list[FieldError]:
        """``path`` is put in front of the fields of errors. With ``correlation`` faults of parts that did not change are forgiven."""
        return [_field_error(problem, path) for problem in self._checked(value, schema, "", correlation).problems]

    # -- one value --------------------------------------------------------------------------------------------------------------

    def _checked(self, value: Any, schema: Schema, path: str, correlation: Correlation | None) -> Result:
        result = self._validate(value, schema, path, correlation)
        if result.problems and correlation is not None and correlation.equal():
            return Result(score=result.score)
        return result

    def _validate(self, value: Any, schema: Schema, path: str, correlation: Correlation | None) -> Result:
        types, format_ = self._types_and_format(schema)
        result = Result()
        if type(value) is numbers.WholeFloat:
            value = float(value)
        if value is None:
            result.merge(_check_type(value, types, format_, path, nullable=bool(schema.get("nullable"))))
            result.merge(_check_enum(value, schema, path))
            return result
        if types or format_:
            result.merge(_check_type(value, types, format_, path))
            result.score += 1
        result.merge(self._check_combinations(value, schema, path))
        result.score += 1
        if isinstance(value, str):
            self._check_string(value, schema, format_, path, result)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            result.merge(_check_number(value, schema, types, format_, path))
            result.score += 1
        elif isinstance(value, list):
            result.merge(self._check_list(value, schema, path, correlation))
            result.score += 1
        result.merge(_check_enum(value, schema, path))
        result.score += 1
        if isinstance(value, dict):
            result.merge(self._check_object(value, schema, path, correlation))
            result.score += 1
        result.score += 1
        return result

    def _types_and_format(self, schema: Schema) -> tuple[tuple[str, ...], str]:
        type_ = schema.get("type") or ""
        format_ = schema.get("format") or ""
        types: tuple[str, ...] = (type_,) if type_ else ()
        if self._converted:
            if schema.get(INT_OR_STRING):
                types = ("integer", "string")
            if format_ and not formats.is_recognized("" if len(types) > 1 else type_, format_, self._minor):
                format_ = ""
        return types, format_

    def _check_string(self, value: str, schema: Schema, format_: str, path: str, result: Result) -> None:
        problem = _string_problem(value, schema, path)
        if problem is not None:
            result.add(problem)
        result.score += 1
        check = formats.check_of(format_, self._minor) if format_ else None
        if check is not None:
            if not check(value):
                result.add(_wrong_type(path, format_, value))
            result.score += 1

    def _check_list(self, value: list[Any], schema: Schema, path: str, correlation: Correlation | None) -> Result:
        result = Result()
        items = schema.get("items")
        if isinstance(items, dict):
            for position, item in enumerate(value):
                child = None if correlation is None else correlation.item(position)
                result.merge(self._checked(item, items, f"{path}[{position}]", child))
        low, high = schema.get("minItems"), schema.get("maxItems")
        if low is not None and len(value) < low:
            result.add(_other(path, len(value), f"{path} in body should have at least {low} items"))
        if high is not None and len(value) > high:
            text = f"{path} in body should have at most {high} items"
            result.add(Problem(code=_Code.TOO_MANY, text=text, path=path, value=len(value), limit=high))
        if schema.get("uniqueItems") and any(identical(a, b) for i, a in enumerate(value) for b in value[:i]):
            result.add(_other(path, None, f"{path} in body shouldn't contain duplicates"))
        result.score += 1
        return result

    def _check_object(self, value: dict[str, Any], schema: Schema, path: str, correlation: Correlation | None) -> Result:
        result = Result()
        low, high = schema.get("minProperties"), schema.get("maxProperties")
        if low is not None and len(value) < low:
            result.add(_other(path, len(value), f"{path} in body should have at least {low} properties"))
        if high is not None and len(value) > high:
            text = f"{path} in body should have at most {high} properties"
            result.add(Problem(code=_Code.TOO_MANY, text=text, path=path, value=len(value), limit=high))
        properties: Mapping[str, Schema] = schema.get("properties") or {}
        additional = schema.get("additionalProperties")
        if additional is False:
            for name in value:
                if name not in properties:
                    result.add(_other(path, name, f"{path}.{name} in body is a forbidden property"))
        elif isinstance(additional, dict):
            for name, inner in value.items():
                if name not in properties:
                    result.merge(self._checked(inner, additional, f"{path}.{name}", _below(correlation, name, path)))
        for name, property_ in properties.items():
            if name in value:
                at = f"{path}.{name}" if path else name
                result.merge(self._checked(value[name], property_, at, _below(correlation, name, path)))
        for name in schema.get("required") or ():
            if name not in value:
                at = f"{path}.{name}"
                result.add(Problem(code=_Code.REQUIRED, text=f"{at} in body is required", path=at))
        return result

    # -- combinations -----------------------------------------------------------------------------------------------------------

    def _check_combinations(self, value: Any, schema: Schema, path: str) -> Result:
        result = Result()
        branch: Callable[[Schema], Result] = lambda sub: self._validate(value, sub, path, None)  # noqa: E731
        any_of, one_of, all_of, not_ = (schema.get(name) for name in ("anyOf", "oneOf", "allOf", "not"))
        if any_of:
            _any_of([branch(sub) for sub in any_of], path, result)
        if one_of:
            _one_of([branch(sub) for sub in one_of], path, result)
        if all_of:
            branches = [branch(sub) for sub in all_of]
            for one in branches:
                result.merge(one)
            held = sum(not one.problems for one in branches)
            if held != len(branches):
                detail = "" if held else ". None validated"
                result.add(_plain(f"{quote(path)} must validate all the schemas (allOf){detail}"))
        if not_ is not None and not branch(not_).problems:
            result.add(_plain(f"{quote(path)} must not validate the schema (not)"))
        result.score += 1
        return result


def _any_of(branches: list[Result], path: str, result: Result) -> None:
    held = next((branch for branch in branches if not branch.problems), None)
    if held is not None:
        result.merge(held)
        return
    result.add(_plain(f"{quote(path)} must validate at least one schema (anyOf)"))
    result.merge(_nearest(branches))


def _one_of(branches: list[Result], path: str, result: Result) -> None:
    held = [branch for branch in branches if not branch.problems]
    if len(held) == 1:
        result.merge(held[0])
        return
    found = f"Found {len(held)} valid alternatives" if held else "Found none valid"
    result.add(_plain(f"{quote(path)} must validate one and only one schema (oneOf). {found}"))
    if not held:
        result.merge(_nearest(branches))


def _nearest(branches: list[Result]) -> Result:
    """The first of those with the best score."""
    return max(branches, key=lambda branch: branch.score)


def _below(correlation: Correlation | None, name: str, path: str) -> Correlation | None:
    if correlation is None or (not path and name in ("apiVersion", "kind")):
        return None
    return correlation.field(name)


# --- single rules ----------------------------------------------------------------------------------------------------------------


def _check_type(value: Any, types: tuple[str, ...], format_: str, path: str, *, nullable: bool = False) -> Result:
    held, expected = Result(score=1), ",".join(types)
    if value is None:
        if types and "null" not in types and not nullable:
            return Result(problems=[_wrong_type(path, expected, "null")])
        return held
    json_type, json_format = _json_type(value)
    is_integral = json_type == "number" and numbers.is_json_integer(value) and "integer" in types
    fits = json_type in types or is_integral or (json_type == "integer" and "number" in types)
    is_text_or_list = isinstance(value, (str, list))
    if format_ and not is_text_or_list and not fits and json_format != format_:
        return Result(problems=[_wrong_type(path, format_, json_format)])
    if format_ and is_text_or_list and not {"number", "integer"} & set(types):
        return held
    return held if fits else Result(problems=[_wrong_type(path, expected, json_type)])


def _json_type(value: Any) -> tuple[str, str]:
    """Type and format that a value has by itself."""
    if isinstance(value, bool):
        return "boolean", ""
    if isinstance(value, str):
        return "string", ""
    if isinstance(value, int):
        return "integer", "int64"
    if isinstance(value, float):
        return "number", "float64"
    return ("array", "") if isinstance(value, list) else ("object", "")


def _check_enum(value: Any, schema: Schema, path: str) -> Result:
    allowed = schema.get("enum")
    if not allowed or any(_is_same_choice(value, choice) for choice in allowed):
        return Result()
    text = f"{path} in body should be one of {allowed}"
    return Result(problems=[Problem(code=_Code.ENUM, text=text, path=path, value=value, values=tuple(allowed))])


def _is_same_choice(value: Any, choice: Any) -> bool:
    """Numbers are compared in the type of the choice; Go makes a character of a number that is compared with a text."""
    if choice is None or value is None:
        return False
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if isinstance(choice, float):
            return float(value) == choice
        if isinstance(choice, int) and not isinstance(choice, bool):
            return int(value) == choice
        if isinstance(choice, str) and isinstance(value, int):
            return len(choice) == 1 and ord(choice) == value
        return False
    return identical(value, choice)


def _string_problem(value: str, schema: Schema, path: str) -> Problem | None:
    high, low, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if high is not None and len(value) > high:
        text = f"{path} in body should be at most {high} chars long"
        return Problem(code=_Code.TOO_LONG, text=text, path=path, value=value, limit=high)
    if low is not None and len(value) < low:
        return _other(path, value, f"{path} in body should be at least {low} chars long")
    if pattern:
        fault = patterns.fault(pattern)
        if fault:
            return _other(path, value, f"{path} in body should match '{pattern}, but pattern is invalid: {fault}'")
        if not patterns.matches(pattern, value):
            return _other(path, value, f"{path} in body should match '{pattern}'")
    return None


def _check_number(value: int | float, schema: Schema, types: tuple[str, ...], format_: str, path: str) -> Result:
    type_ = types[0] if len(types) == 1 and types[0] in ("integer", "number") else ""
    format_ = format_ if type_ and format_ in ("int32", "int64", "float", "double") else ""
    result, limits = Result(score=1), Result()
    if fault := _range_fault(value, type_, format_, "Checked", path):
        result.add(fault)
    for name, rule in (("multipleOf", _multiple_problem), ("minimum", _minimum_problem), ("maximum", _maximum_problem)):
        limit = schema.get(name)
        if limit is None:
            continue
        words = {"multipleOf": "MultipleOf", "minimum": "Minimum boundary", "maximum": "Maximum boundary"}[name]
        fault = _range_fault(limit, type_, format_, words, path)
        if fault:
            limits.add(fault)
        native = isinstance(value, int) and fault is None
        problem = rule(value if native else float(value), limit, schema, path)
        if problem is not None:
            limits.add(problem)
    result.merge(limits)
    return result


def _range_fault(value: int | float, type_: str, format_: str, what: str, path: str) -> Problem | None:
    """A value, or a bound of the schema, that the named type cannot hold."""
    if type_ == "integer":
        low, high = (INT32_MIN, INT32_MAX) if format_ == "int32" else (INT64_MIN, INT64_MAX)
        found = value if isinstance(value, int) else go_json.whole(value)
        fits = found is not None and low <= found <= high
    else:
        fits = format_ != "float" or abs(value) <= FLOAT32_MAX
    if fits:
        return None
    if format_:
        return _plain(f"{what} value must be of type {type_} with format {format_} in {path}")
    return _plain(f"{what} value must be of type {type_} (default format) in {path}")


def _multiple_problem(value: int | float, factor: int | float, schema: Schema, path: str) -> Problem | None:
    if isinstance(value, int):
        factor = int(factor)
        if factor <= 0:
            return _other(path, factor, f"factor MultipleOf declared for {path} must be positive: {factor}")
        held = value % factor == 0
    else:
        if factor <= 0:
            return _other(path, factor, f"factor MultipleOf declared for {path} must be positive: {go_json.number(factor)}")
        held = numbers.is_json_integer(1 / factor * value if factor < 1 else value / factor)
    return None if held else _other(path, value, f"{path} in body should be a multiple of {go_json.number(factor)}")


def _minimum_problem(value: int | float, low: int | float, schema: Schema, path: str) -> Problem | None:
    exclusive = bool(schema.get("exclusiveMinimum"))
    low = int(low) if isinstance(value, int) else float(low)
    if value > low or (value == low and not exclusive):
        return None
    words = "greater than" if exclusive else "greater than or equal to"
    return _other(path, value, f"{path} in body should be {words} {go_json.number(low)}")


def _maximum_problem(value: int | float, high: int | float, schema: Schema, path: str) -> Problem | None:
    exclusive = bool(schema.get("exclusiveMaximum"))
    high = int(high) if isinstance(value, int) else float(high)
    if value < high or (value == high and not exclusive):
        return None
    words = "less than" if exclusive else "less than or equal to"
    return _other(path, value, f"{path} in body should be {words} {go_json.number(high)}")


# --- problems --------------------------------------------------------------------------------------------------------------------


def _plain(text: str) -> Problem:
    return Problem(code=_Code.PLAIN, text=text)


def _other(path: str, value: Any, text: str) -> Problem:
    return Problem(code=_Code.OTHER, text=text, path=path, value=value)


def _wrong_type(path: str, expected: str, found: str) -> Problem:
    return Problem(code=_Code.TYPE, text=f"{path} in body must be of type {expected}: {quote(found)}", path=path, value=found)


def _json(value: Any) -> str:
    return orjson.dumps(numbers.canonical(copy.deepcopy(value)), option=orjson.OPT_SORT_KEYS).decode()


def _field_error(problem: Problem, prefix: str) -> FieldError:
    if problem.code is _Code.PLAIN:
        return field_errors.invalid(prefix or NOWHERE, "", problem.text)
    name = problem.path.removeprefix(".")
    path = (field_errors.child(prefix, name) if name else prefix) or NOWHERE
    value = sorted_keys(problem.value)
    if problem.code is _Code.REQUIRED:
        return field_errors.required(path)
    if problem.code is _Code.ENUM:
        choices = [choice if isinstance(choice, str) else _json(choice) for choice in problem.values]
        return field_errors.not_supported(path, value, choices)
    if problem.code is _Code.TOO_LONG:
        return field_errors.too_long(path, problem.limit)
    if problem.code is _Code.TOO_MANY:
        return field_errors.too_many(path, problem.value, problem.limit)
    if value is None:
        value = ""
    if problem.code is _Code.TYPE:
        return field_errors.type_invalid(path, value, problem.text)
    return field_errors.invalid(path, value, problem.text)
