"""Environments: the variables, types and functions that expressions may use, by the minor version of Kubernetes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache

from apiserver.cel import standard
from apiserver.cel.calls import ConstantError
from apiserver.cel.checker import Checker
from apiserver.cel.compiler import Compiler
from apiserver.cel.declarations import Functions, Overload, table
from apiserver.cel.errors import CompileError, Issue, ProgramError
from apiserver.cel.literals import faults
from apiserver.cel.macros import BINDINGS, MACROS
from apiserver.cel.parser import parse
from apiserver.cel.program import Program
from apiserver.cel.types import Kind, ObjectType, Type, is_dyn, type_of

NEWEST_MINOR = 36
_RECURSION_LIMIT = 6_000  # Python frames: 250 nested expressions take about 10 each to parse, check and compile
_NESTING = "([{.?+-*/%!<>=&|"  # an expression nests at most as deep as it has such characters
_SHALLOW = 60  # so many levels fit into Python's usual limit beside what the server has on its stack


@lru_cache(maxsize=32)
def _functions(minor: int) -> Functions:
    from apiserver.cel.library import overloads

    return table([*_of_version(standard.overloads(), minor), *overloads(minor)])


def _of_version(overloads: Iterable[Overload], minor: int) -> Iterable[Overload]:
    """Comparisons of different kinds of numbers came with 1.28."""
    for each in overloads:
        if minor < 28 and each.function in ("_<_", "_<=_", "_>_", "_>=_") and each.parameters[0] != each.parameters[1]:
            continue
        yield each


@lru_cache(maxsize=32)
def _type_names(minor: int) -> Mapping[str, Type]:
    from apiserver.cel.library import type_names

    return {**standard.type_names(), **type_names(minor)}


class Environment:
    """What expressions may use. It is immutable; `extended` derives another one cheaply."""

    __slots__ = ("_bindings", "_more", "_type_names", "_types", "minor", "variables")

    def __init__(
        self,
        variables: Mapping[str, Type],
        *,
        minor: int = NEWEST_MINOR,
        types: Iterable[ObjectType] = (),
        functions: Iterable[Overload] = (),
        bindings: bool = False,
    ) -> None:
        self.variables = dict(variables)
        self.minor = minor
        self._types = {of.name: of for of in types}
        self._more = tuple(functions)
        self._bindings = bindings
        names = _type_names(minor)
        self._type_names = {**names, **{name: type_of(of) for name, of in self._types.items()}} if self._types else names

    def extended(
        self, variables: Mapping[str, Type], *, types: Iterable[ObjectType] = (), functions: Iterable[Overload] = ()
    ) -> Environment:
        """The same with more variables, more types that expressions may construct, and more functions."""
        return Environment(
            {**self.variables, **variables},
            minor=self.minor,
            types=[*self._types.values(), *types],
            functions=(*self._more, *functions),
            bindings=self._bindings,
        )

    def _functions(self) -> Functions:
        known = _functions(self.minor)
        return {**known, **table(self._more)} if self._more else known

    def compile(self, source: str, *, expected: Type | None = None) -> Program:
        """Read, check and compile an expression.

        Raises:
            CompileError: what is wrong with it, as cel-go tells it; also when the result is not of the `expected` type.
        """
        if sum(map(source.count, _NESTING)) > _SHALLOW and sys.getrecursionlimit() < _RECURSION_LIMIT:
            sys.setrecursionlimit(_RECURSION_LIMIT)  # stays: the program's closures nest as deep
        tree = parse(source, {**MACROS, **BINDINGS} if self._bindings else MACROS, self.minor)
        checker = Checker(source, self.variables, self._functions(), self._type_names, self._types)
        result = checker.check(tree)
        if checker.issues:
            raise CompileError(checker.issues, source)
        issues = faults(tree, source, self.minor)
        if issues:
            raise CompileError(issues, source)
        if expected is not None and not _fits(result, expected):
            raise CompileError([Issue(-1, -1, f"must evaluate to {expected}")], source)
        compiler = Compiler(self.variables)
        try:
            code = compiler.compile(tree)
        except ConstantError as error:
            raise ProgramError(str(error), source) from error
        return Program(source, tree, result, code, compiler.inputs, compiler.slots)


def _fits(result: Type, expected: Type) -> bool:
    if is_dyn(expected):
        return True
    return result.text == expected.text or (expected.kind is not Kind.BOOL and is_dyn(result))
