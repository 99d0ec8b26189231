"""``Object{…}`` and ``JSONPatch{…}`` in the expressions of mutations (apiserver ``cel/mutation``).

An ``Object`` is untyped: any field may be named and be anything; but an object in it is called by its place (``Object.spec.template{…}``
for the field ``template`` of ``spec``), which is looked at once, in the expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from apiserver import cel
from apiserver.admission.expressions import Expression, compile_expression
from apiserver.cel.library import json_patches
from apiserver.cel.syntax import Call, Comprehension, ListNode, Literal, MapNode, Node, Select, Struct

_ROOT = "Object"
JSON_PATCH = cel.ObjectType("JSONPatch", {**dict.fromkeys(("op", "path", "from"), cel.STRING), "value": cel.DYN})
_NAMES = re.compile(r"\bObject(?:\s*\.\s*[A-Za-z_][A-Za-z0-9_]*)*(?=\s*\{)")


class _AnyField(Mapping[str, cel.Type]):
    """Whatever field is asked for is there."""

    def __getitem__(self, name: str) -> cel.Type:
        return cel.DYN

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __contains__(self, name: object) -> bool:
        return True


OBJECT = cel.ObjectType(_ROOT, _AnyField())


def compile_change(environment: cel.Environment, source: str, *, by_patch: bool) -> Expression:
    names = {re.sub(r"\s", "", name) for name in _NAMES.findall(source)} | {_ROOT}
    types = [cel.ObjectType(name, _AnyField()) for name in sorted(names)]
    changing = environment.extended({}, types=[*types, JSON_PATCH], functions=json_patches.overloads())
    return compile_expression(changing, source, cel.list_of(JSON_PATCH) if by_patch else OBJECT)


def misnamed(tree: Node) -> Iterator[str]:
    """What is wrong with the names of objects inside of objects."""
    for part in _parts(tree):
        yield from misnamed(part)
    if not isinstance(tree, Struct) or not tree.name.startswith(_ROOT):
        return
    for entry in tree.entries:
        assert isinstance(entry.key, Literal)
        wanted = f"{tree.name}.{entry.key.value}"
        for inner in _objects(entry.value):
            if inner.name != wanted:
                yield f'unexpected type name "{inner.name}", expected "{wanted}", which matches field name path from root Object type'


def _objects(node: Node) -> Iterator[Struct]:
    """The objects that a value may be or hold, those inside of them aside."""
    if isinstance(node, Struct):
        if node.name.startswith(_ROOT):
            yield node
        return
    for part in _parts(node):
        yield from _objects(part)


def _parts(node: Node) -> Iterator[Node]:
    if isinstance(node, Call):
        yield from node.arguments
        if node.target is not None:
            yield node.target
    elif isinstance(node, Select):
        yield node.operand
    elif isinstance(node, ListNode):
        yield from node.elements
    elif isinstance(node, (MapNode, Struct)):
        for entry in node.entries:
            yield entry.value
    elif isinstance(node, Comprehension):
        yield from (node.range, node.initial, node.step, node.result)
