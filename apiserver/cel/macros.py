"""Macros: calls that the parser turns into presence tests and comprehensions.

The expansions are cel-go's (parser/macro.go, ext/comprehensions.go, the optional types' macros), because the cost of a program is
told from its expanded tree.
"""

from __future__ import annotations

from collections.abc import Callable

from apiserver.cel.syntax import ACCUMULATOR, Call, Comprehension, Entry, Ident, ListNode, Literal, MapNode, Node, Select, Struct

Expander = Callable[[int, Node | None, list[Node]], "Node | None"]
_UNUSED = "#unused"


class MacroError(Exception):
    """A macro whose arguments do not fit; `offset` is where."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message


def _name_of(node: Node, message: str) -> str:
    if not isinstance(node, Ident):
        raise MacroError(node.offset, message)
    if node.name in (ACCUMULATOR, "__result__"):
        raise MacroError(node.offset, "iteration variable overwrites accumulator variable")
    return node.name


def _two_names(first: Node, second: Node) -> tuple[str, str]:
    for node in (first, second):
        if not isinstance(node, Ident):
            raise MacroError(node.offset, "argument must be a simple name")
    assert isinstance(first, Ident) and isinstance(second, Ident)
    if first.name == second.name:
        raise MacroError(second.offset, f"duplicate variable name: {first.name}")
    return _name_of(first, ""), _name_of(second, "")


def _has(offset: int, target: Node | None, arguments: list[Node]) -> Node:
    (argument,) = arguments
    if isinstance(argument, Select) and not argument.test:
        return Select(offset, argument.operand, argument.field, test=True)
    raise MacroError(argument.offset, "invalid argument to has() macro")


def _accumulator(offset: int) -> Ident:
    return Ident(offset, ACCUMULATOR)


def _quantifier(macro: str, offset: int, range_: Node, variable: str, variable2: str | None, predicate: Node) -> Comprehension:
    """all, exists and exists_one over one or two variables."""
    accumulated = _accumulator(offset)
    if macro == "all":
        initial: Node = Literal(offset, True)
        condition: Node = Call(offset, "@not_strictly_false", [accumulated])
        step: Node = Call(offset, "_&&_", [_accumulator(offset), predicate])
        result: Node = _accumulator(offset)
    elif macro == "exists":
        initial = Literal(offset, False)
        condition = Call(offset, "@not_strictly_false", [Call(offset, "!_", [accumulated])])
        step = Call(offset, "_||_", [_accumulator(offset), predicate])
        result = _accumulator(offset)
    else:
        assert macro == "exists_one", macro
        initial = Literal(offset, 0)
        condition = Literal(offset, True)
        step = Call(offset, "_?_:_", [predicate, Call(offset, "_+_", [accumulated, Literal(offset, 1)]), _accumulator(offset)])
        result = Call(offset, "_==_", [_accumulator(offset), Literal(offset, 1)])
    return Comprehension(offset, macro, range_, variable, variable2, ACCUMULATOR, initial, condition, step, result)


def _one_variable(macro: str) -> Expander:
    def expand(offset: int, target: Node | None, arguments: list[Node]) -> Node:
        assert target is not None
        variable = _name_of(arguments[0], "argument must be a simple name")
        return _quantifier(macro, offset, target, variable, None, arguments[1])

    return expand


def _two_variables(macro: str) -> Expander:
    def expand(offset: int, target: Node | None, arguments: list[Node]) -> Node:
        assert target is not None
        variable, variable2 = _two_names(arguments[0], arguments[1])
        return _quantifier(macro, offset, target, variable, variable2, arguments[2])

    return expand


def _collect(offset: int, range_: Node, variable: str, variable2: str | None, filter_: Node | None, transform: Node) -> Comprehension:
    step: Node = Call(offset, "_+_", [_accumulator(offset), ListNode(offset, [transform])])
    if filter_ is not None:
        step = Call(offset, "_?_:_", [filter_, step, _accumulator(offset)])
    return Comprehension(
        offset, "map", range_, variable, variable2, ACCUMULATOR, ListNode(offset, []), Literal(offset, True), step, _accumulator(offset)
    )


def _map(offset: int, target: Node | None, arguments: list[Node]) -> Node:
    assert target is not None
    variable = _name_of(arguments[0], "argument is not an identifier")
    return _collect(offset, target, variable, None, arguments[1] if len(arguments) == 3 else None, arguments[-1])


def _filter(offset: int, target: Node | None, arguments: list[Node]) -> Node:
    assert target is not None
    variable = _name_of(arguments[0], "argument is not an identifier")
    return _collect(offset, target, variable, None, arguments[1], arguments[0])


def _transform_list(offset: int, target: Node | None, arguments: list[Node]) -> Node:
    assert target is not None
    variable, variable2 = _two_names(arguments[0], arguments[1])
    return _collect(offset, target, variable, variable2, arguments[2] if len(arguments) == 4 else None, arguments[-1])


def _transform_map(by_entry: bool) -> Expander:
    def expand(offset: int, target: Node | None, arguments: list[Node]) -> Node:
        assert target is not None
        variable, variable2 = _two_names(arguments[0], arguments[1])
        insertion = [arguments[-1]] if by_entry else [Ident(offset, variable), arguments[-1]]
        step: Node = Call(offset, "cel.@mapInsert", [_accumulator(offset), *insertion])
        if len(arguments) == 4:
            step = Call(offset, "_?_:_", [arguments[2], step, _accumulator(offset)])
        return Comprehension(
            offset, "transform", target, variable, variable2, ACCUMULATOR, MapNode(offset, []), Literal(offset, True), step,
            _accumulator(offset),
        )  # fmt: skip

    return expand


def _binding(offset: int, variable: str, value: Node, result: Node) -> Comprehension:
    return Comprehension(
        offset, "bind", ListNode(offset, []), _UNUSED, None, variable, value, Literal(offset, False), Ident(offset, variable), result
    )


def _optional_map(flat: bool) -> Expander:
    name = "optFlatMap" if flat else "optMap"

    def expand(offset: int, target: Node | None, arguments: list[Node]) -> Node:
        assert target is not None
        variable = arguments[0]
        if not isinstance(variable, Ident):
            raise MacroError(variable.offset, f"{name}() variable name must be a simple identifier")
        if _size(target, _COPIED_MAX) > _COPIED_MAX:
            raise MacroError(offset, f"{name}() is called on an expression of more than {_COPIED_MAX} parts")
        bound: Node = _binding(offset, variable.name, Call(offset, "value", [], copy(target)), arguments[1])
        if not flat:
            bound = Call(offset, "optional.of", [bound])
        return Call(offset, "_?_:_", [Call(offset, "hasValue", [], target), bound, Call(offset, "optional.none", [])])

    return expand


def _bind(offset: int, target: Node | None, arguments: list[Node]) -> Node | None:
    """cel.bind(variable, value, expression), of cel-go's bindings extension; Kubernetes leaves it out."""
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    variable = arguments[0]
    if not isinstance(variable, Ident):
        raise MacroError(variable.offset, "cel.bind() variable names must be simple identifiers")
    return _binding(offset, variable.name, arguments[1], arguments[2])


_COPIED_MAX = 1_000  # nodes: optMap() takes its target twice, so a chain of them would double with each link


def _size(node: Node, most: int) -> int:
    """How many nodes a tree has, counted until there are more than `most`."""
    count, todo = 0, [node]
    while todo and count <= most:
        node = todo.pop()
        count += 1
        if isinstance(node, Call):
            todo += node.arguments if node.target is None else [node.target, *node.arguments]
        elif isinstance(node, Select):
            todo.append(node.operand)
        elif isinstance(node, ListNode):
            todo += node.elements
        elif isinstance(node, (MapNode, Struct)):
            todo += [part for entry in node.entries for part in (entry.key, entry.value)]
        elif isinstance(node, Comprehension):
            todo += [node.range, node.initial, node.condition, node.step, node.result]
    return count


def copy(node: Node) -> Node:
    """The same tree anew: the checker writes into nodes, so none may stand in two places."""
    if isinstance(node, Literal):
        return Literal(node.offset, node.value)
    if isinstance(node, Ident):
        return Ident(node.offset, node.name)
    if isinstance(node, Select):
        return Select(node.offset, copy(node.operand), node.field, node.test)
    if isinstance(node, Call):
        target = None if node.target is None else copy(node.target)
        return Call(node.offset, node.function, [copy(argument) for argument in node.arguments], target)
    if isinstance(node, ListNode):
        return ListNode(node.offset, [copy(element) for element in node.elements], node.optional)
    if isinstance(node, MapNode):
        return MapNode(node.offset, [_copy_entry(entry) for entry in node.entries])
    if isinstance(node, Comprehension):
        return Comprehension(
            node.offset, node.macro, copy(node.range), node.variable, node.variable2, node.accumulator, copy(node.initial),
            copy(node.condition), copy(node.step), copy(node.result),
        )  # fmt: skip
    assert isinstance(node, Struct), node
    return Struct(node.offset, node.name, [_copy_entry(entry) for entry in node.entries])


def _copy_entry(entry: Entry) -> Entry:
    return Entry(entry.offset, copy(entry.key), copy(entry.value), entry.optional)


def _sort_by(offset: int, target: Node | None, arguments: list[Node]) -> Node:
    """list.sortBy(variable, key): binds the list, maps it to its keys and sorts it by them."""
    assert target is not None
    if not isinstance(target, (ListNode, Select, Ident, Comprehension, Call)):
        message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(target.offset, message)
    variable = "@__sortBy_input__"
    keys = _map(offset, Ident(offset, variable), arguments)
    return _binding(offset, variable, target, Call(offset, "@sortByAssociatedKeys", [keys], Ident(offset, variable)))


# (name, number of arguments, called on something) -> (expander, first minor version of Kubernetes that has it)
MACROS: dict[tuple[str, int, bool], tuple[Expander, int]] = {
    ("has", 1, False): (_has, 0),
    ("all", 2, True): (_one_variable("all"), 0),
    ("exists", 2, True): (_one_variable("exists"), 0),
    ("exists_one", 2, True): (_one_variable("exists_one"), 0),
    ("existsOne", 2, True): (_one_variable("exists_one"), 37),
    ("map", 2, True): (_map, 0),
    ("map", 3, True): (_map, 0),
    ("filter", 2, True): (_filter, 0),
    ("optMap", 2, True): (_optional_map(False), 28),
    ("optFlatMap", 2, True): (_optional_map(True), 28),
    ("all", 3, True): (_two_variables("all"), 32),
    ("exists", 3, True): (_two_variables("exists"), 32),
    ("exists_one", 3, True): (_two_variables("exists_one"), 32),
    ("existsOne", 3, True): (_two_variables("exists_one"), 32),
    ("sortBy", 2, True): (_sort_by, 34),
    ("transformList", 3, True): (_transform_list, 32),
    ("transformList", 4, True): (_transform_list, 32),
    ("transformMap", 3, True): (_transform_map(False), 32),
    ("transformMap", 4, True): (_transform_map(False), 32),
    ("transformMapEntry", 3, True): (_transform_map(True), 32),
    ("transformMapEntry", 4, True): (_transform_map(True), 32),
}
BINDINGS: dict[tuple[str, int, bool], tuple[Expander, int]] = {("bind", 3, True): (_bind, 0)}
