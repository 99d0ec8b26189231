"""From the version in which objects are stored to the version in which they are served, and back.

Most kinds that are served in several versions look the same in all of them, so that only ``apiVersion`` changes; the others have a
pair of functions in ``_CONVERSIONS``. Functions get an object that they may take apart and answer the other form of it.
"""

from __future__ import annotations

from collections.abc import Callable

from apiserver.machinery.objects import Object
from apiserver.resources.resource_info import ResourceInfo

Convert = Callable[[Object], Object]

_CONVERSIONS: dict[tuple[str, str, str], Convert] = {}


def register(from_version: str, to_version: str, kind: str, convert: Convert) -> None:
    _CONVERSIONS[(from_version, to_version, kind)] = convert


def convert(obj: Object, to: ResourceInfo) -> Object:
    """``obj`` in the version of ``to``; it may be ``obj`` itself, changed."""
    version = obj["apiVersion"]
    if version == to.api_version:
        return obj
    function = _CONVERSIONS.get((version, to.api_version, to.kind))
    if function is not None:
        obj = function(obj)
    obj["apiVersion"] = to.api_version
    obj["kind"] = to.kind
    return obj


def same_shape(from_version: str, to: ResourceInfo) -> bool:
    """Whether the two versions differ in nothing but ``apiVersion``."""
    return (from_version, to.api_version, to.kind) not in _CONVERSIONS
