"""Literals that are checked beforehand: mixed lists and maps; since Kubernetes 1.29 durations, timestamps, patterns and format strings."""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.cel import regex, times
from apiserver.cel.errors import EvaluationError, Issue
from apiserver.cel.parser import locate
from apiserver.cel.syntax import Call, Comprehension, ListNode, Literal, MapNode, Node, Select, Struct
from apiserver.cel.types import Type
from apiserver.cel.values import NANOSECONDS

_SINCE = 29


def faults(tree: Node, source: str, minor: int) -> list[Issue]:
    """The literals that cannot be what the function they are given to wants, and list and map literals of mixed types."""
    found: list[Issue] = []
    todo: list[tuple[Node, bool]] = [(tree, False)]
    while todo:
        node, formatted = todo.pop()
        if isinstance(node, Call):
            message = _fault(node) if minor >= _SINCE else ""
            if message:
                found.append(Issue(*locate(source, node.arguments[-1].offset), message))
            if node.function == "format":
                formatted = True
                fault = _format_fault(node) if minor >= _SINCE and isinstance(node.target, Literal) else None
                if fault is not None:
                    found.append(Issue(*locate(source, fault[1]), fault[0]))
        elif not formatted and isinstance(node, (ListNode, MapNode)):
            found += [Issue(*locate(source, offset), message) for offset, message in _mixed(node)]
        todo += [(part, formatted) for part in _parts(node)]
    return found


def _mixed(node: ListNode | MapNode) -> Iterator[tuple[int, str]]:
    """Elements of another type than the first one, as far as the checker lets them pass: beside `dyn`."""
    if isinstance(node, ListNode):
        yield from _unlike([(each, index in node.optional) for index, each in enumerate(node.elements)], True)
    else:
        yield from _unlike([(entry.key, False) for entry in node.entries], False)
        yield from _unlike([(entry.value, entry.optional) for entry in node.entries], False)


def _unlike(elements: list[tuple[Node, bool]], first_only: bool) -> Iterator[tuple[int, str]]:
    wanted: Type | None = None
    for element, optional in elements:
        found = element.type.parameters[0] if optional and element.type.parameters else element.type
        if wanted is None:
            wanted = found
        elif wanted.text != found.text:
            yield element.offset, f"expected type '{wanted}' but found '{found}'"
            if first_only:
                return


def _format_fault(node: Call) -> tuple[str, int] | None:
    """What is wrong with a constant format string and a list literal of arguments, and where."""
    from apiserver.cel.library import formatting

    assert isinstance(node.target, Literal)
    arguments = node.arguments[0]
    if type(node.target.value) is not str or not isinstance(arguments, ListNode):
        return None
    fault = formatting.fault_of_types(node.target.value, [element.type for element in arguments.elements])
    if fault is None:
        return None
    return fault[0], node.offset if fault[1] is None else arguments.elements[fault[1]].offset


def _fault(node: Call) -> str:
    if node.function in ("duration", "timestamp") and node.target is None and len(node.arguments) == 1:
        argument = node.arguments[0]
        if isinstance(argument, Literal) and type(argument.value) is str:
            try:
                read = times.parse_duration if node.function == "duration" else times.parse_timestamp
                if read(argument.value) is None:
                    return f"invalid {node.function} argument"
            except EvaluationError:
                return f"invalid {node.function} argument"
        if node.function == "timestamp" and isinstance(argument, Literal) and type(argument.value) is int:
            try:
                times.in_range(argument.value * NANOSECONDS)
            except EvaluationError:
                return "invalid timestamp argument"
    if node.function == "matches" and node.arguments:
        argument = node.arguments[-1]
        if isinstance(argument, Literal) and type(argument.value) is str:
            try:
                regex.compiled(argument.value)
            except EvaluationError:
                return "invalid matches argument"
    return ""


def _parts(node: Node) -> list[Node]:
    if isinstance(node, Call):
        return node.arguments if node.target is None else [node.target, *node.arguments]
    if isinstance(node, Select):
        return [node.operand]
    if isinstance(node, ListNode):
        return node.elements
    if isinstance(node, (MapNode, Struct)):
        return [part for entry in node.entries for part in (entry.key, entry.value)]
    if isinstance(node, Comprehension):
        return [node.range, node.initial, node.condition, node.step, node.result]
    return []
