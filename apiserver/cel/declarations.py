"""Declared functions: overloads with their types, given as short signatures, and what computes them.

"int64_to_string  string(int): string"          a global function
"list_size_m      list(A).size(): int"          a member; A, B, K, V, T are type parameters
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from apiserver.cel import types
from apiserver.cel.types import Type

_NAMED: dict[str, Type] = {
    "bool": types.BOOL, "int": types.INT, "uint": types.UINT, "double": types.DOUBLE, "string": types.STRING, "bytes": types.BYTES,
    "null": types.NULL, "dyn": types.DYN, "timestamp": types.TIMESTAMP, "duration": types.DURATION, "type": types.TYPE,
    "URL": types.URL, "Quantity": types.QUANTITY, "IP": types.IP, "CIDR": types.CIDR, "Semver": types.SEMVER, "Format": types.FORMAT,
    "Authorizer": types.AUTHORIZER, "PathCheck": types.PATH_CHECK, "GroupCheck": types.GROUP_CHECK,
    "ResourceCheck": types.RESOURCE_CHECK, "Decision": types.DECISION,
}  # fmt: skip
_WORD = re.compile(r"\s*([\w]+|[(),])")


@dataclass(frozen=True, slots=True, eq=False)
class Overload:
    """One way to call a function. `compute` gets the values of the target and the arguments; it is None where the compiler has its own."""

    id: str
    function: str
    member: bool
    parameters: tuple[Type, ...]
    result: Type
    compute: Callable[..., Any] | None
    variables: tuple[str, ...]


Functions = Mapping[str, tuple[Overload, ...]]


def overload(signature: str, compute: Callable[..., Any] | None = None) -> Overload:
    """Read a signature `id function(types): result` or `id type.function(types): result`."""
    identity, rest = signature.split(None, 1)
    head, result = rest.rsplit(":", 1)
    open_at = _opening(head)
    name, arguments = head[:open_at].strip(), head[open_at + 1 : head.rindex(")")]
    parameters = list(_types(arguments))
    member = False
    dot = _member_dot(name)
    if dot >= 0:
        member = True
        parameters = [*_types(name[:dot]), *parameters]
        name = name[dot + 1 :]
    (result_type,) = _types(result)
    generic = sorted({letter for of in (*parameters, result_type) for letter in re.findall(r"\b[A-Z]\b", of.text)})
    return Overload(identity, name, member, tuple(parameters), result_type, compute, tuple(generic))


def table(overloads: Iterable[Overload]) -> dict[str, tuple[Overload, ...]]:
    """Overloads by function name."""
    found: dict[str, list[Overload]] = {}
    for each in overloads:
        found.setdefault(each.function, []).append(each)
    return {name: tuple(several) for name, several in found.items()}


def _opening(head: str) -> int:
    """Where the parenthesis of the argument list opens: the one that the last `)` closes."""
    depth = 0
    for index in range(len(head) - 1, -1, -1):
        if head[index] == ")":
            depth += 1
        elif head[index] == "(":
            depth -= 1
            if depth == 0:
                return index
    raise ValueError(head)


def _member_dot(name: str) -> int:
    """Where `type.function` is cut; names such as `format.named` and operators have no type before them."""
    dot = name.rfind(".")
    if dot < 0:
        return -1
    prefix = name[:dot]
    return dot if prefix.endswith(")") or prefix in _NAMED or re.fullmatch("[A-Z]", prefix) else -1


@lru_cache(maxsize=512)
def _types(text: str) -> tuple[Type, ...]:
    words = _WORD.findall(text)
    found: list[Type] = []
    position = 0

    def one() -> Type:
        nonlocal position
        name = words[position]
        position += 1
        if position < len(words) and words[position] == "(":
            position += 1
            parts = [one()]
            while words[position] == ",":
                position += 1
                parts.append(one())
            position += 1
            if name == "list":
                return types.list_of(parts[0])
            if name == "map":
                return types.map_of(parts[0], parts[1])
            if name == "type":
                return types.type_of(parts[0])
            assert name == "optional", name
            return types.optional_of(parts[0])
        return _NAMED[name] if name in _NAMED else types.parameter(name)

    while position < len(words):
        found.append(one())
        if position < len(words):
            assert words[position] == ",", text
            position += 1
    return tuple(found)
