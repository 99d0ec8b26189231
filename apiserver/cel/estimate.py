"""What an expression may cost at most and at least, told from its types and the sizes its schema allows (cel-go's checker/cost.go).

Sizes and costs are pairs of a minimum and a maximum, and saturate at 2**64 - 1, which stands for "unbounded". Kubernetes refuses rules by
these numbers, so they follow the original to the unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from apiserver.cel.costs import LIST_BASE, MAP_BASE, REGEX_FACTOR, STRING_FACTOR, STRUCT_BASE
from apiserver.cel.syntax import ACCUMULATOR, Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select, Struct
from apiserver.cel.types import Kind, ObjectType, Type, is_optional

MAX = 2**64 - 1
_SCALARS = frozenset({Kind.BOOL, Kind.INT, Kind.UINT, Kind.DOUBLE, Kind.TIMESTAMP, Kind.DURATION})


@dataclass(frozen=True, slots=True)
class Estimate:
    """A least and a greatest size or cost."""

    min: int
    max: int

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(_capped(self.min + other.min), _capped(self.max + other.max))

    def __mul__(self, other: Estimate) -> Estimate:
        return Estimate(_capped(self.min * other.min), _capped(self.max * other.max))

    def scaled(self, factor: float) -> Estimate:
        """By a cost for each unit, rounded up."""
        return Estimate(_scaled(self.min, factor), _scaled(self.max, factor))

    def union(self, other: Estimate) -> Estimate:
        return Estimate(min(self.min, other.min), max(self.max, other.max))


CostEstimate = Estimate
SizeEstimate = Estimate

# The greatest size that a value may have by its schema: by its path from a variable (field names, "@items", "@keys", "@values",
# "@indices"; empty where it is reached by no path) and its type. None where nothing is known.
Sizes = Callable[[tuple[str, ...], Type], "Estimate | None"]


@dataclass(frozen=True, slots=True)
class Argument:
    """A target or an argument as the costs of functions see it."""

    path: tuple[str, ...]
    type: Type
    node: Node | None
    computed: Estimate | None


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """The cost of a call without its arguments, and the size of its result where that is known."""

    cost: Estimate
    result: Estimate | None = None


@dataclass(frozen=True, slots=True)
class _Entries:
    """The sizes of what a list or a map holds."""

    kind: Kind
    key: Estimate
    value: Estimate


@dataclass(frozen=True, slots=True)
class _Local:
    path: tuple[str, ...]
    size: Estimate | None
    entries: _Entries | None


UNKNOWN = Estimate(0, MAX)
_ONE, _ZERO = Estimate(1, 1), Estimate(0, 0)


def fixed(size: int) -> Estimate:
    return Estimate(size, size)


def estimate(tree: Node, sizes: Sizes) -> Estimate:
    """The cost of evaluating a checked tree once."""
    return _Coster(sizes).cost(tree)


def no_sizes(path: tuple[str, ...], of: Type) -> Estimate | None:
    """Nothing is known of any size."""
    return None


def sizes_by_type(root: Type) -> Sizes:
    """Sizes as Kubernetes tells them for rules of a schema: every variable is of the root's type, `Type.size_max` is the greatest size."""

    def sizes(path: tuple[str, ...], _: Type) -> Estimate | None:
        if not path:
            return None
        current = root
        for name in path[1:]:
            following = _inside(current, name)
            if following is None:
                return None
            current = following
        return Estimate(0, current.size_max)

    return sizes


def _inside(of: Type, name: str) -> Type | None:
    """The type that one part of a path leads to."""
    if name in ("@items", "@values"):
        return of.parameters[-1] if of.kind in (Kind.LIST, Kind.MAP) else None
    if name == "@keys":
        return of.parameters[0] if of.kind is Kind.MAP else None
    return of.fields.get(name) if isinstance(of, ObjectType) else None


def _capped(value: int) -> int:
    return MAX if value > MAX else value


def _scaled(value: int, factor: float) -> int:
    product = float(value) * factor
    return MAX if product >= 2.0**64 else math.ceil(product)


class _Coster:
    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.paths: dict[int, tuple[str, ...]] = {}
        self.computed: dict[int, Estimate] = {}
        self.entries: dict[int, _Entries] = {}
        self.locals: dict[str, list[_Local]] = {}

    def cost(self, node: Node) -> Estimate:
        if isinstance(node, Literal):
            return _ZERO
        if isinstance(node, Ident):
            local = self.local(node.name)
            self.paths[id(node)] = local.path if local is not None else (node.name.removeprefix("."),)
            return _ONE
        if isinstance(node, Select):
            return self.select(node)
        if isinstance(node, Call):
            return self.call(node)
        if isinstance(node, ListNode):
            return self.list_node(node)
        if isinstance(node, MapNode):
            return self.map_node(node)
        if isinstance(node, Comprehension):
            return self.bind(node) if node.macro == "bind" else self.comprehension(node)
        assert isinstance(node, Struct), node
        total = fixed(STRUCT_BASE)
        for entry in node.entries:
            total += self.cost(entry.value)
        return total

    def select(self, node: Select) -> Estimate:
        if node.qualified is not None:
            self.paths[id(node)] = (node.qualified.name,)
            return _ONE
        total = self.cost(node.operand)
        if node.test:
            return total
        if node.operand.type.kind in (Kind.MAP, Kind.STRUCT, Kind.PARAMETER):
            total += _ONE
        self.paths[id(node)] = (*self.path(node.operand), node.field)
        return total

    def list_node(self, node: ListNode) -> Estimate:
        total = fixed(LIST_BASE)
        size = Estimate(MAX if node.elements else 0, 0)
        for element in node.elements:
            total += self.cost(element)
            size = size.union(self.size_or_unknown(element))
        self.entries[id(node)] = _Entries(Kind.LIST, _ONE, size)
        return total

    def map_node(self, node: MapNode) -> Estimate:
        total = fixed(MAP_BASE)
        key = value = Estimate(MAX if node.entries else 0, 0)
        for entry in node.entries:
            total = total + self.cost(entry.key) + self.cost(entry.value)
            key = key.union(self.size_or_unknown(entry.key))
            value = value.union(self.size_or_unknown(entry.value))
        self.entries[id(node)] = _Entries(Kind.MAP, key, value)
        return total

    # --- loops -----------------------------------------------------------------------------------------------------------------

    def comprehension(self, node: Comprehension) -> Estimate:
        total = self.cost(node.range) + self.cost(node.initial)
        self.push(node.accumulator, _Local(self.path(node.initial), self.size(node.initial), self.entries_of(node.initial)))
        entries = self.entries_of(node.range)
        kind = entries.kind if entries is not None else node.range.type.kind
        path = self.path(node.range)
        key, value = (entries.key, entries.value) if entries is not None else (None, None)
        is_list = kind is Kind.LIST
        if node.variable2 is not None:
            self.push(node.variable, _Local((*path, "@indices" if is_list else "@keys"), key, None))
            self.push(node.variable2, _Local((*path, "@items" if is_list else "@values"), value, None))
        else:
            self.push(node.variable, _Local((*path, "@items" if is_list else "@keys"), value if is_list else key, None))
        loop = self.cost(node.condition)
        step = self.cost(node.step)
        self.locals[node.variable].pop()
        if node.variable2 is not None:
            self.locals[node.variable2].pop()
        total += self.cost(node.result)
        self.locals[node.accumulator].pop()
        count = self.size_or_unknown(node.range)
        total += count * (step + loop)
        if isinstance(node.initial, Literal):
            self.set_size(node, self.size(node.initial))
        elif isinstance(node.initial, (ListNode, MapNode)):
            self.computed[id(node)] = count
            held = self.entries_of(node.step)
            if held is not None:
                self.entries[id(node)] = held
        return total

    def bind(self, node: Comprehension) -> Estimate:
        total = self.cost(node.range) + self.cost(node.initial)
        self.push(node.accumulator, _Local(self.path(node.initial), self.size(node.initial), self.entries_of(node.initial)))
        total += self.cost(node.result)
        # the size is read while the name is bound
        self.copy_sizes(node, node.result)
        self.locals[node.accumulator].pop()
        return total

    # --- calls -----------------------------------------------------------------------------------------------------------------

    def call(self, node: Call) -> Estimate:
        if node.function == "dyn":
            total = self.cost(node.arguments[0])
            self.copy_sizes(node, node.arguments[0])
            return total + _ONE
        costs = [self.cost(argument) for argument in node.arguments]
        arguments = [self.argument(argument) for argument in node.arguments]
        if not node.overloads:
            return _ZERO
        total = _ZERO
        target = None
        if node.target is not None:
            total = self.cost(node.target)
            target = self.argument(node.target)
        cost = Estimate(MAX, 0)
        result: Estimate | None = None
        for overload in node.overloads:
            found = self.function(node, overload.id, target, arguments, costs)
            cost = cost.union(found.cost)
            if found.result is not None:
                result = found.result if result is None else result.union(found.result)
            if overload.id in ("index_list", "index_map"):
                entries = self.entries_of(node.arguments[0])
                result = entries.value if entries is not None else None
                inside = "@items" if overload.id == "index_list" else "@values"
                self.paths[id(node)] = (*self.path(node.arguments[0]), inside)
            if result is None:
                result = self.size(node)
        self.set_size(node, result)
        return total + cost

    def function(
        self, node: Call, overload: str, target: Argument | None, arguments: list[Argument], costs: list[Estimate]
    ) -> CallEstimate:
        from apiserver.cel import library_costs

        own = _ZERO
        for cost in costs:
            own += cost
        special = library_costs.estimate(node.function, overload, target, arguments, self.sizes)
        if special is not None:
            return CallEstimate(special.cost + own, special.result)
        if overload in ("logical_or", "logical_and"):
            return CallEstimate(Estimate(costs[0].min, (costs[0] + costs[1]).max))
        if overload == "conditional":
            size = self.known(arguments[1]).union(self.known(arguments[2]))
            entries = _joined(self.entries_of(node.arguments[1]), self.entries_of(node.arguments[2]))
            if entries is not None:
                self.entries[id(node)] = entries
            return CallEstimate(costs[0] + costs[1].union(costs[2]), size)
        if overload in ("add_string", "add_bytes", "add_list"):
            size = self.known(arguments[0]) + self.known(arguments[1])
            entries = _joined(self.entries_of(node.arguments[0]), self.entries_of(node.arguments[1]))
            if entries is not None:
                self.entries[id(node)] = entries
            return CallEstimate((_ONE if overload == "add_list" else size.scaled(STRING_FACTOR)) + own, size)
        found = self.standard(overload, target, arguments)
        if found is None:
            return CallEstimate(_ONE + own)
        return CallEstimate(found.cost + own, found.result)

    def standard(self, overload: str, target: Argument | None, arguments: list[Argument]) -> CallEstimate | None:
        """The functions of the language whose cost depends on sizes."""
        if overload == "string_format" and target is not None:
            return CallEstimate(self.known(target).scaled(STRING_FACTOR))
        if len(arguments) == 1:
            size = self.known(arguments[0])
            traversal = size.scaled(STRING_FACTOR)
            if overload == "string_to_bytes":
                return CallEstimate(traversal, Estimate(size.min, size.max * 4 % 2**64))
            if overload == "bytes_to_string":
                return CallEstimate(traversal, Estimate(size.min // 4, size.max))
            if overload == "strings_quote":
                return CallEstimate(traversal, Estimate((size.min + 2) % 2**64, (size.max * 2 + 2) % 2**64))
            if overload in ("starts_with_string", "ends_with_string"):
                return CallEstimate(traversal)
            if target is not None and overload == "matches_string":
                text = (self.known(target) + _ONE).scaled(STRING_FACTOR)
                return CallEstimate(text * size.scaled(REGEX_FACTOR))
            if target is not None and overload == "contains_string":
                return CallEstimate(self.known(target).scaled(STRING_FACTOR) * traversal)
        if len(arguments) == 2:
            if overload == "in_list":
                return CallEstimate(self.known(arguments[1]))
            if overload in _BY_SMALLER:
                most = min(self.known(arguments[0]).max, self.known(arguments[1]).max)
                return CallEstimate(Estimate(1 if most else 0, most).scaled(STRING_FACTOR))
        return None

    # --- sizes -----------------------------------------------------------------------------------------------------------------

    def argument(self, node: Node) -> Argument:
        path = self.path(node)
        if path and path[0] in (ACCUMULATOR, "__result__"):
            path = ()
        return Argument(path, node.type, node, self.size(node))

    def known(self, argument: Argument) -> Estimate:
        return argument.computed if argument.computed is not None else UNKNOWN

    def size_or_unknown(self, node: Node) -> Estimate:
        return self.size(node) or UNKNOWN

    def size(self, node: Node) -> Estimate | None:
        found = self.computed.get(id(node))
        if found is not None:
            return found
        found = _literal_size(node)
        if found is not None:
            return found
        found = self.sizes(self.path(node), node.type)
        if found is not None:
            self.computed[id(node)] = found
            return found
        if _is_scalar(node.type):
            return _ONE
        if isinstance(node, Ident):
            local = self.local(node.name)
            if local is not None:
                return local.size
        return None

    def set_size(self, node: Node, size: Estimate | None) -> None:
        if size is not None:
            self.computed[id(node)] = size

    def copy_sizes(self, node: Node, source: Node) -> None:
        self.set_size(node, self.size(source))
        entries = self.entries_of(source)
        if entries is not None:
            self.entries[id(node)] = entries

    def entries_of(self, node: Node) -> _Entries | None:
        found = self.entries.get(id(node))
        if found is None and isinstance(node, Ident):
            local = self.local(node.name)
            return local.entries if local is not None else None
        return found

    def path(self, node: Node) -> tuple[str, ...]:
        if isinstance(node, Ident):
            local = self.local(node.name)
            if local is not None:
                return local.path
        return self.paths.get(id(node), ())

    def local(self, name: str) -> _Local | None:
        stack = self.locals.get(name)
        return stack[-1] if stack else None

    def push(self, name: str, local: _Local) -> None:
        self.locals.setdefault(name, []).append(local)


_BY_SMALLER = frozenset(
    [f"{name}_{kind}" for name in ("less", "greater", "less_equals", "greater_equals") for kind in ("string", "bytes")]
    + ["equals", "not_equals"]
)


def _joined(left: _Entries | None, right: _Entries | None) -> _Entries | None:
    if left is None or right is None:
        return None
    return _Entries(left.kind, left.key.union(right.key), left.value.union(right.value))


def _literal_size(node: Node) -> Estimate | None:
    if isinstance(node, Literal):
        return fixed(len(node.value)) if isinstance(node.value, (str, bytes)) else _ONE
    if isinstance(node, ListNode):
        return fixed(len(node.elements))
    if isinstance(node, MapNode):
        return fixed(len(node.entries))
    return None


def _is_scalar(of: Type) -> bool:
    return of.kind in _SCALARS or (is_optional(of) and _is_scalar(of.parameters[0]))
