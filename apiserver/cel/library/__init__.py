"""The libraries that Kubernetes gives to expressions, each with the minor version it came with."""

from __future__ import annotations

from apiserver.cel.declarations import Overload
from apiserver.cel.types import Type


def overloads(minor: int) -> list[Overload]:
    """The functions of all libraries that a version has."""
    from apiserver.cel.library import optionals

    found: list[Overload] = []
    for module in (optionals,):
        found += module.overloads(minor)
    return found


def type_names(minor: int) -> dict[str, Type]:
    """The names of the types that the libraries bring."""
    return {}
