"""CEL in an AuthenticationConfiguration: over ``claims`` (a map of whatever a token says) and over ``user`` (kubernetes.UserInfo)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from apiserver import cel
from apiserver.authentication.authentication_file import Compiled
from apiserver.authentication.jwt_config import Expression, ExpressionError
from apiserver.cel.syntax import Call, Entry, Ident, Literal, Node, Select

#: levels of a claim's value that are looked into; deeper ones make no sense to anybody
DEPTH_MAX = 64


@lru_cache(maxsize=2)
def _environment(variable: str) -> cel.Environment:
    texts = cel.list_of(cel.STRING)
    user = cel.ObjectType(
        "kubernetes.UserInfo",
        {"username": cel.STRING, "uid": cel.STRING, "groups": texts, "extra": cel.map_of(cel.STRING, texts)},
    )
    return cel.Environment({variable: user if variable == "user" else cel.map_of(cel.STRING, cel.DYN)})


def compile_expression(source: str, variable: str, is_condition: bool) -> Compiled:
    """``variable``: claims or user. Raises ValueError in kube-apiserver's words."""
    try:
        program = _environment(variable).compile(source)
    except cel.ProgramError as error:
        raise ValueError(f"program instantiation failed: {error}") from error
    except cel.CompileError as error:
        raise ValueError(f"compilation failed: {error}") from error
    if is_condition and program.result_type != cel.BOOL:
        raise ValueError("must evaluate to bool")
    return Compiled(_evaluator(program, variable), frozenset(_selected(program.tree, variable)))


def _evaluator(program: cel.Program, variable: str) -> Expression:
    def evaluate(value: Mapping[str, Any]) -> Any:
        given = _as_cel(value, 0) if variable == "claims" else value
        try:
            found = program.evaluate({variable: given}, cel.Budget())
        except cel.CelError as error:
            raise ExpressionError(str(error)) from error
        if isinstance(found, cel.OptionalValue):
            found = found.value if found.present else None
        return list(found) if isinstance(found, list) else found

    return evaluate


def _as_cel(value: Any, depth: int) -> Any:
    """Claims as JSON has them, where every number is a double."""
    if depth > DEPTH_MAX:
        raise ExpressionError("the claims are nested too deeply")
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:
            raise ExpressionError("a claim is a number that is too large") from None
    if isinstance(value, list):
        return [_as_cel(item, depth + 1) for item in value]
    return {key: _as_cel(item, depth + 1) for key, item in value.items()}


def _selected(tree: Any, variable: str) -> Iterator[str]:
    """Names of the fields that an expression reads from the variable itself, also where it asks first whether they are there."""
    open_parts = [tree]
    while open_parts:
        part = open_parts.pop()
        if isinstance(part, (list, tuple)):
            open_parts.extend(part)
            continue
        if not isinstance(part, (Node, Entry)):
            continue
        if isinstance(part, Select) and _is(part.operand, variable):
            yield part.field
        if isinstance(part, Call) and part.function == "_?._" and len(part.arguments) == 2 and _is(part.arguments[0], variable):
            field = part.arguments[1]
            if isinstance(field, Literal) and isinstance(field.value, str):
                yield field.value
        for name in type(part).__slots__:
            if name not in ("type", "overloads", "offset", "qualified"):
                open_parts.append(getattr(part, name))


def _is(node: Node, variable: str) -> bool:
    return isinstance(node, Ident) and node.name == variable
