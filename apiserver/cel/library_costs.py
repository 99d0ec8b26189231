"""What the calls of Kubernetes' libraries and of cel-go's extensions may cost at least and at most (library/cost.go, ext/lists.go, …).

These numbers are part of the API: they decide which rules a custom resource definition may have.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from apiserver.cel.costs import CHECK, LIST_BASE, REGEX_FACTOR, STRING_FACTOR, STRUCT_BASE
from apiserver.cel.estimate import MAX, UNKNOWN, Argument, CallEstimate, Estimate, Sizes, fixed
from apiserver.cel.syntax import Literal
from apiserver.cel.types import Kind

_ADDRESS = Estimate(4, 16)  # bytes of an IPv4 and an IPv6 address
_FORMAT_PATTERN_MAX, _FORMAT_NAME_MAX = 128, 64
_ONE = fixed(1)
_TEXT_KINDS = (Kind.STRING, Kind.BYTES)

_NOMINAL = frozenset(
    [
        "serviceAccount", "path", "group", "resource", "subresource", "namespace", "name", "allowed", "reason", "error",
        "errored", "masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast",
        "isLinkLocalUnicast", "isGlobalUnicast", "format.named", "sign", "asInteger", "isInteger", "asApproximateFloat",
        "isGreaterThan", "isLessThan", "compareTo", "add", "sub", "major", "minor", "patch", "getScheme", "getHostname",
        "getHost", "getPort", "getEscapedPath", "getQuery",
    ]
)  # fmt: skip
_READ_TEXT = frozenset(["cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"])
_WALK_LIST = frozenset(["isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"])
_SAME_SIZE = frozenset(["lowerAscii", "upperAscii", "substring", "trim"])
_OPAQUE = frozenset(
    [
        "kubernetes.Quantity", "kubernetes.Semver", "kubernetes.authorization.Authorizer", "kubernetes.authorization.PathCheck",
        "kubernetes.authorization.GroupCheck", "kubernetes.authorization.ResourceCheck", "kubernetes.authorization.Decision",
        "net.IP", "net.CIDR",
    ]
)  # fmt: skip

_Size = Callable[[Argument], Estimate]


def estimate(function: str, overload: str, target: Argument | None, arguments: list[Argument], sizes: Sizes) -> CallEstimate | None:
    """The cost of a call, or None for a function whose cost the language itself has."""

    def size(argument: Argument) -> Estimate:
        if argument.computed is not None:
            return argument.computed
        return sizes(argument.path, argument.type) or UNKNOWN

    extension = _extension(overload, target, arguments, size)
    if extension is not None:
        return extension
    if function == "check":
        return CallEstimate(fixed(CHECK))
    if function in _NOMINAL or overload == "cidr_ip":
        return CallEstimate(_ONE)
    if function == "_==_":
        return _equality(arguments)
    if target is None:
        return _of_first_argument(function, arguments, size)
    return _of_target(function, overload, target, arguments, size, sizes)


def _of_first_argument(function: str, arguments: list[Argument], size: _Size) -> CallEstimate | None:
    """Global functions: they read a text."""
    if not arguments:
        return None
    first = size(arguments[0])
    if function in ("url", "jsonpatch.escapeKey"):
        return CallEstimate(first.scaled(STRING_FACTOR), first)
    if function in _READ_TEXT or function == "ip":
        return CallEstimate(first.scaled(STRING_FACTOR))
    if function == "ip.isCanonical":
        return CallEstimate(first.scaled(2 * STRING_FACTOR))
    return None


def _of_target(function: str, overload: str, target: Argument, arguments: list[Argument], size: _Size, sizes: Sizes) -> CallEstimate | None:
    """Members of strings, lists, networks, formats and checks."""
    if function in _WALK_LIST:
        return _walk(function, target, size)
    if function in _SAME_SIZE:
        own = size(target)
        return CallEstimate(own.scaled(STRING_FACTOR), own)
    if function == "replace" and len(arguments) >= 2:
        return CallEstimate(size(target).scaled(2 * STRING_FACTOR), _replaced(size(target), size(arguments[0]), size(arguments[1])))
    if function == "split":
        own = size(target)
        most = own.max
        if len(arguments) > 1 and isinstance(arguments[1].node, Literal) and type(arguments[1].node.value) is int:
            most = arguments[1].node.value % 2**64
        return CallEstimate(own.scaled(2 * STRING_FACTOR), Estimate(0, most))
    if function == "join":
        joined = _joined(target, arguments, size)
        return CallEstimate(joined.scaled(STRING_FACTOR), joined)
    if function in ("find", "findAll") and arguments:
        own = size(target)
        text = (own + _ONE).scaled(STRING_FACTOR)
        return CallEstimate(text * size(arguments[0]).scaled(REGEX_FACTOR), Estimate(0, own.max))
    if not arguments:
        return None
    first = size(arguments[0])
    if function == "containsIP":
        cost = (_ADDRESS + _ADDRESS).scaled(STRING_FACTOR)
        return CallEstimate(cost + first.scaled(STRING_FACTOR) if overload == "cidr_contains_ip_string" else cost)
    if function == "containsCIDR":
        cost = (_ADDRESS + _ADDRESS).scaled(STRING_FACTOR) + _ADDRESS.scaled(STRING_FACTOR) + _ONE
        return CallEstimate(cost + first.scaled(STRING_FACTOR) if overload == "cidr_contains_cidr_string" else cost)
    if function == "validate":
        return CallEstimate(first.scaled(STRING_FACTOR).scaled(_FORMAT_PATTERN_MAX * REGEX_FACTOR))
    if function in ("fieldSelector", "labelSelector"):
        requirements = first.scaled(0.5).scaled(float(LIST_BASE + STRUCT_BASE))
        return CallEstimate(fixed(LIST_BASE) + first.scaled(STRING_FACTOR) + requirements)
    return None


def _walk(function: str, target: Argument, size: _Size) -> CallEstimate:
    element = _element(target)
    if element is not None:
        each = _ONE
        if element.type.kind in _TEXT_KINDS:
            each += size(element).scaled(STRING_FACTOR)
        return CallEstimate(size(target) * each)
    if function == "includes":
        return CallEstimate(size(target))
    return CallEstimate(size(target).scaled(STRING_FACTOR))


def _element(of: Argument) -> Argument | None:
    """The elements of a list as an argument of their own."""
    if not of.type.parameters:
        return None
    return Argument((*of.path, "@items") if of.path else (), of.type.parameters[0], None, None)


def _replaced(text: Estimate, old: Estimate, new: Estimate) -> Estimate:
    """The length of a text after a replacement."""
    if old.min == 0:
        most_places, most_kept = min(text.max + 1, MAX), text.max
    elif new.max <= old.min:
        most_places, most_kept = 0, text.max
    else:
        most_places, most_kept = math.ceil(float(text.max) / float(old.min)), 0
    if old.max == 0:
        least_places, least_kept = min(text.min + 1, MAX), text.min
    elif old.max <= new.min:
        least_places, least_kept = 0, text.min
    else:
        least_places, least_kept = math.ceil(float(text.min) / float(old.max)), 0
    return Estimate(least_places, min(most_places, MAX)) * new + Estimate(least_kept, most_kept)


def _joined(target: Argument, arguments: list[Argument], size: _Size) -> Estimate:
    count = size(target)
    element = _element(target)
    length = count * size(element) if element is not None else fixed(0)
    if arguments:
        length += size(arguments[0]) * Estimate(max(count.min - 1, 0), max(count.max - 1, 0))
    return length


def _equality(arguments: list[Argument]) -> CallEstimate | None:
    """`==` of Kubernetes' own values costs one, or what their texts cost."""
    left, right = arguments
    if left.type.text != right.type.text:
        return None
    name = left.type.name
    if name in _OPAQUE:
        return CallEstimate(_ONE)
    if name == "kubernetes.NamedFormat":
        return CallEstimate(Estimate(1, _FORMAT_NAME_MAX).scaled(STRING_FACTOR))
    if name == "kubernetes.URL":
        return CallEstimate(Estimate(1, right.computed.max if right.computed is not None else 1).scaled(STRING_FACTOR))
    return None


def _extension(overload: str, target: Argument | None, arguments: list[Argument], size: _Size) -> CallEstimate | None:
    """ext.Sets and ext.Lists."""
    if overload.startswith("list_sets_"):
        factor = 2 if overload == "list_sets_equivalent_list" else 1
        return CallEstimate((size(arguments[0]) * size(arguments[1])).scaled(factor) + _ONE)
    if overload == "lists_range":
        return _allocating(1, fixed(_constant(arguments[0], MAX)))
    if target is None:
        return None
    own = size(target)
    if overload == "list_slice":
        return _allocating(1, fixed((_constant(arguments[1], own.max) - _constant(arguments[0], 0)) % 2**64))
    if overload == "list_reverse":
        return _allocating(1, own)
    if overload in ("list_flatten", "list_flatten_int"):
        return _allocating(float(_constant(arguments[0], MAX)) if arguments else 1.0, own)
    if overload == "list_distinct":
        return _allocating(2, own * own)
    if overload.endswith("_sort"):
        return _sorted(overload.removesuffix("_sort"), own)
    if overload.endswith("_sortByAssociatedKeys"):
        return _sorted(overload.removesuffix("_sortByAssociatedKeys"), size(arguments[0]))
    return None


def _sorted(overload: str, count: Estimate) -> CallEstimate:
    return _allocating(2 + STRING_FACTOR if overload in ("list_string", "list_bytes") else 2, count * count)


def _allocating(factor: float, count: Estimate) -> CallEstimate:
    return CallEstimate(count.scaled(factor) + _ONE + fixed(LIST_BASE), count)


def _constant(argument: Argument, otherwise: int) -> int:
    """The value of an integer literal, if it is one and not negative."""
    node = argument.node
    if isinstance(node, Literal) and type(node.value) is int and node.value >= 0:
        return node.value
    return otherwise
