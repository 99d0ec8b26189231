"""Which type may stand for which: assignability with type parameters, as cel-go's checker decides it (checker/types.go).

A `Bindings` maps the text of a type parameter to what is known of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.cel.types import DYN, Kind, Type, is_dyn, is_dyn_or_error, list_of, map_of, type_of

Bindings = dict[str, Type]

_NULLABLE = frozenset({Kind.OPAQUE, Kind.STRUCT, Kind.ANY, Kind.DURATION, Kind.TIMESTAMP, Kind.NULL})
_BY_NAME = frozenset(
    {
        Kind.BOOL, Kind.BYTES, Kind.DOUBLE, Kind.INT, Kind.STRING, Kind.UINT, Kind.ANY, Kind.DURATION, Kind.TIMESTAMP, Kind.STRUCT,
    }
)  # fmt: skip


def assign(bindings: Bindings, source: Type, target: Type) -> Bindings | None:
    """The bindings with which `source` may stand for `target`; None where it may not."""
    if not source.generic and not target.generic:
        return bindings if _assignable(bindings, source, target) else None
    bindings = dict(bindings)
    return bindings if _assignable(bindings, source, target) else None


def assign_all(bindings: Bindings, sources: Sequence[Type], targets: Sequence[Type]) -> Bindings | None:
    """`assign` for a whole list of arguments."""
    if len(sources) != len(targets):
        return None
    if any(t.generic for t in targets) or any(s.generic for s in sources):
        bindings = dict(bindings)
    for source, target in zip(sources, targets):
        if not _assignable(bindings, source, target):
            return None
    return bindings


def most_general(left: Type, right: Type) -> Type:
    """The more general of two types that unify."""
    return left if _no_more_specific(left, right) else right


def substitute(bindings: Bindings, of: Type, free_to_dyn: bool = False) -> Type:
    """A type with its parameters replaced by what they stand for, and the free ones by dyn if wished."""
    if not of.generic:
        return of
    if of.kind is Kind.PARAMETER:
        bound = bindings.get(of.text)
        if bound is not None:
            return substitute(bindings, bound, free_to_dyn)
        return DYN if free_to_dyn else of
    parts = tuple(substitute(bindings, part, free_to_dyn) for part in of.parameters)
    if of.kind is Kind.LIST:
        return list_of(parts[0], list_type=of.list_type, keys=of.list_keys)
    if of.kind is Kind.MAP:
        return map_of(*parts)
    if of.kind is Kind.TYPE:
        return type_of(*parts)
    return Type(of.kind, of.name, parts)


def _assignable(bindings: Bindings, source: Type, target: Type) -> bool:
    if target.kind is Kind.PARAMETER:
        valid, bound = _bind(bindings, source, target)
        if valid:
            return True
        if bound:
            return False
    if source.kind is Kind.PARAMETER:
        return _bind(bindings, target, source)[0]
    if is_dyn_or_error(source) or is_dyn_or_error(target):
        return True
    if source.kind is Kind.NULL:
        return target.kind in _NULLABLE
    if target.kind is Kind.NULL:
        return source.kind in _NULLABLE
    if source.kind in _BY_NAME:
        return source.kind is target.kind and source.name == target.name
    if source.kind is Kind.TYPE:
        return target.kind is Kind.TYPE
    if source.kind is not target.kind or source.name != target.name or len(source.parameters) != len(target.parameters):
        return False
    return all(_assignable(bindings, part, other) for part, other in zip(source.parameters, target.parameters))


def _bind(bindings: Bindings, value: Type, variable: Type) -> tuple[bool, bool]:
    """Whether the parameter may stand for the value, and whether something was known of it before."""
    if value.text == variable.text:
        return True, True
    bound = bindings.get(variable.text)
    if bound is not None:
        if bound.text == value.text:
            return True, True
        if _assignable(bindings, value, bound):
            general = most_general(value, bound)
            if _absent(bindings, variable, general):
                bindings[variable.text] = general
            return True, True
        return False, True
    if _absent(bindings, variable, value):
        bindings[variable.text] = value
        return True, False
    return False, False


def _absent(bindings: Bindings, variable: Type, within: Type) -> bool:
    """The occurs check: a parameter cannot stand for a type that contains it."""
    if variable.text == within.text:
        return False
    if within.kind is Kind.PARAMETER:
        bound = bindings.get(within.text)
        return bound is None or _absent(bindings, variable, bound)
    return all(_absent(bindings, variable, part) for part in within.parameters)


def _no_more_specific(left: Type, right: Type) -> bool:
    if is_dyn(left) or left.kind is Kind.PARAMETER:
        return True
    if is_dyn(right) or right.kind is Kind.PARAMETER or left.kind is not right.kind:
        return False
    if left.kind is Kind.TYPE:
        return True
    if left.kind in (Kind.OPAQUE, Kind.LIST, Kind.MAP):
        if left.name != right.name or len(left.parameters) != len(right.parameters):
            return False
        return all(_no_more_specific(part, other) for part, other in zip(left.parameters, right.parameters))
    return left.text == right.text
