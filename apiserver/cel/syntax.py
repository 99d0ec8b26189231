"""The tree of an expression: what the parser makes, the checker annotates and the compiler reads.

Macros are expanded while parsing, so the tree has comprehensions and presence tests but no macro calls. `offset` is the code point in
the source that messages about a node point at, which follows cel-go: the operator, the opening parenthesis of a call, the dot of a
selection.
"""

from __future__ import annotations

from typing import Any

from apiserver.cel.types import DYN, Type

ACCUMULATOR = "@result"  # cannot be written in a source, so nothing of the user's collides with it


class Node:
    """A node; `type` and (for calls) `overloads` are set by the checker."""

    __slots__ = ("offset", "type")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.type: Type = DYN


class Literal(Node):
    """A constant."""

    __slots__ = ("value",)

    def __init__(self, offset: int, value: Any) -> None:
        super().__init__(offset)
        self.value = value


class Ident(Node):
    """A name. `is_type` is set by the checker for the name of a type."""

    __slots__ = ("is_type", "name")

    def __init__(self, offset: int, name: str) -> None:
        super().__init__(offset)
        self.name = name
        self.is_type = False


class Select(Node):
    """`operand.field`, or `has(operand.field)` with `test`. `qualified` is set by the checker where the whole chain is one name."""

    __slots__ = ("field", "operand", "qualified", "test")

    def __init__(self, offset: int, operand: Node, field: str, test: bool = False) -> None:
        super().__init__(offset)
        self.operand = operand
        self.field = field
        self.test = test
        self.qualified: Ident | None = None


class Call(Node):
    """`function(arguments)` or `target.function(arguments)`; operators have the names of cel-go: `_+_`, `_[_]`, `!_`, …"""

    __slots__ = ("arguments", "function", "overloads", "target")

    def __init__(self, offset: int, function: str, arguments: list[Node], target: Node | None = None) -> None:
        super().__init__(offset)
        self.function = function
        self.arguments = arguments
        self.target = target
        self.overloads: tuple[Any, ...] = ()


class ListNode(Node):
    """`[elements]`; `optional` holds the indexes of elements written `?element`."""

    __slots__ = ("elements", "optional")

    def __init__(self, offset: int, elements: list[Node], optional: frozenset[int] = frozenset()) -> None:
        super().__init__(offset)
        self.elements = elements
        self.optional = optional


class Entry:
    """`key: value` of a map, or `field: value` of a message (then `key` is a string literal)."""

    __slots__ = ("key", "offset", "optional", "value")

    def __init__(self, offset: int, key: Node, value: Node, optional: bool) -> None:
        self.offset = offset
        self.key = key
        self.value = value
        self.optional = optional


class MapNode(Node):
    """`{key: value, …}`."""

    __slots__ = ("entries",)

    def __init__(self, offset: int, entries: list[Entry]) -> None:
        super().__init__(offset)
        self.entries = entries


class Struct(Node):
    """`Name{field: value, …}`."""

    __slots__ = ("entries", "name")

    def __init__(self, offset: int, name: str, entries: list[Entry]) -> None:
        super().__init__(offset)
        self.name = name
        self.entries = entries


class Comprehension(Node):
    """A loop over `range` that carries an accumulator: every macro but `has` becomes one.

    `macro` names the macro ("all", "map", "bind", …) for the compiler, which has a fast loop for each; the parts keep cel-go's full
    expansion, from which the cost is told.
    """

    __slots__ = ("accumulator", "condition", "initial", "macro", "range", "result", "step", "variable", "variable2")

    def __init__(
        self,
        offset: int,
        macro: str,
        range_: Node,
        variable: str,
        variable2: str | None,
        accumulator: str,
        initial: Node,
        condition: Node,
        step: Node,
        result: Node,
    ) -> None:
        super().__init__(offset)
        self.macro = macro
        self.range = range_
        self.variable = variable
        self.variable2 = variable2
        self.accumulator = accumulator
        self.initial = initial
        self.condition = condition
        self.step = step
        self.result = result
