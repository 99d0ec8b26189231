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
            arguments = node.arguments
            found.append(Issue(*locate(source, arguments[-1].offset), message))
    return found


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
