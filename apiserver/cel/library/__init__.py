"""The libraries that Kubernetes gives to expressions, each with the minor version it came with."""

from __future__ import annotations

from apiserver.cel import types
from apiserver.cel.declarations import Overload
from apiserver.cel.types import Type


def overloads(minor: int) -> list[Overload]:
    """The functions of all libraries that a version has."""
    from apiserver.cel.library import authorizer, lists, named_formats, networks, optionals, quantities, regexes, semvers, strings, urls

    found: list[Overload] = []
    for module in (lists, strings, regexes, urls, authorizer, optionals, quantities, networks, named_formats, semvers):
        found += module.overloads(minor)
    return found


def type_names(minor: int) -> dict[str, Type]:
    """The names of the types that the libraries bring, for `type(x) == net.IP`."""
    found: dict[str, Type] = {}
    if minor >= 28:
        found["optional_type"] = types.type_of(types.optional_of(types.DYN))
    if minor >= 30:
        found["net.IP"] = types.type_of(types.IP)
        found["net.CIDR"] = types.type_of(types.CIDR)
    return found
