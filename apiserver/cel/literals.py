"""Constants that are checked beforehand: durations, timestamps and patterns given as literals (since Kubernetes 1.29)."""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.cel import regex, times
from apiserver.cel.errors import EvaluationError, Issue
from apiserver.cel.parser import locate
from apiserver.cel.syntax import Call, Comprehension, ListNode, Literal, MapNode, Node, Select, Struct


def faults(tree: Node, source: str) -> list[Issue]:
    """The literals that cannot be what the function they are given to wants."""
    found: list[Issue] = []
    for node in _calls(tree):
        message = _fault(node)
        if message:
            found.append(Issue(*locate(source, node.arguments[-1].offset), message))
        if node.function == "format" and isinstance(node.target, Literal):
            fault = _format_fault(node)
            if fault is not None:
                found.append(Issue(*locate(source, fault[1]), fault[0]))
    return found


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
    if node.function == "matches" and node.arguments:
        argument = node.arguments[-1]
        if isinstance(argument, Literal) and type(argument.value) is str:
            try:
                regex.compiled(argument.value)
            except EvaluationError:
                return "invalid matches argument"
    return ""


def _calls(tree: Node) -> Iterator[Call]:
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, Call):
            yield node
            todo += node.arguments
            if node.target is not None:
                todo.append(node.target)
        elif isinstance(node, Select):
            todo.append(node.operand)
        elif isinstance(node, ListNode):
            todo += node.elements
        elif isinstance(node, (MapNode, Struct)):
            for entry in node.entries:
                todo += [entry.key, entry.value]
        elif isinstance(node, Comprehension):
            todo += [node.range, node.initial, node.condition, node.step, node.result]
