"""The checked tree to closures: each node becomes one function, once; evaluation is only their calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.cel import access, calls, loops
from apiserver.cel.code import FIRST_SLOT, Code, Frame, Run, constant
from apiserver.cel.conversion import Converter, converter_of, deep_converter_of
from apiserver.cel.costs import LIST_BASE, MAP_BASE, STRUCT_BASE
from apiserver.cel.errors import EvaluationError
from apiserver.cel.names import json_name
from apiserver.cel.syntax import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select, Struct
from apiserver.cel.types import Kind, ObjectType, Type, is_optional
from apiserver.cel.values import OptionalValue


@dataclass(frozen=True, slots=True)
class Binding:
    """A name in scope: its slot, and for a bound value how it is computed on first use."""

    slot: int
    initial: Run | None = None
    cost: int = 0


class Compiler:
    """Compiles one tree. `inputs` are the slots of the variables that the tree reads, with the conversion of each."""

    def __init__(self, variables: Mapping[str, Type]) -> None:
        self.variables = variables
        self.scopes: list[dict[str, Binding]] = []
        self.inputs: dict[str, tuple[int, Converter | None]] = {}
        self.slots = FIRST_SLOT

    def compile(self, node: Node) -> Code:
        if isinstance(node, Call):
            return calls.call(self, node)
        if isinstance(node, Select):
            return self.select(node)
        if isinstance(node, Ident):
            return self.ident(node)
        if isinstance(node, Literal):
            return constant(node.value)
        if isinstance(node, ListNode):
            return self.list_node(node)
        if isinstance(node, MapNode):
            return self.map_node(node)
        if isinstance(node, Comprehension):
            return self.comprehension(node)
        assert isinstance(node, Struct), node
        return self.struct(node)

    def materialized(self, node: Node) -> Code:
        """A value that leaves the reach of its declared type: the fields of objects are converted, too, where they have to be."""
        code = self.compile(node)
        convert = None if code.constant else self.materializer(node)
        if convert is None:
            return code
        run, made = code.run, convert
        return Code(lambda frame: made(run(frame)), code.cost, code.attribute, code.root)

    def materializer(self, node: Node) -> Converter | None:
        """The conversion that `materialized` adds to a node, if it needs any."""
        return deep_converter_of(node.type) if _is_declared(node) else None

    def slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    # --- names and fields ------------------------------------------------------------------------------------------------------

    def ident(self, node: Ident) -> Code:
        if node.is_type:
            return constant(node.type.parameters[0])
        name = node.name.removeprefix(".")
        if name is node.name or not node.name.startswith("."):
            for scope in reversed(self.scopes):
                found = scope.get(name)
                if found is not None:
                    run = (
                        access.variable(found.slot)
                        if found.initial is None
                        else loops.bound_variable(found.slot, found.initial, found.cost)
                    )
                    return Code(run, 1, attribute=True, root=1)
        return Code(access.variable(self.input(name)), 1, attribute=True, root=1)

    def input(self, name: str) -> int:
        found = self.inputs.get(name)
        if found is None:
            found = self.inputs[name] = (self.slot(), converter_of(self.variables[name]))
        return found[0]

    def plain_slot(self, node: Node) -> int | None:
        """The slot of a node that is just a variable."""
        if not isinstance(node, Ident) or node.is_type:
            return None
        for scope in reversed(self.scopes):
            found = scope.get(node.name)
            if found is not None:
                return found.slot if found.initial is None else None
        return self.input(node.name.removeprefix("."))

    def select(self, node: Select) -> Code:
        if node.qualified is not None:
            return self.ident(node.qualified)
        of = node.operand.type
        optional = is_optional(of)
        target = of.parameters[0] if optional else of
        is_object = target.kind is Kind.STRUCT and not (isinstance(target, ObjectType) and target.nulls)
        key = json_name(node.field) if is_object else node.field
        convert = self.field_converter(target, node.field)
        operand = self.compile(node.operand)
        cost = operand.cost + 1 if operand.attribute else operand.cost + 2
        root = operand.root if operand.attribute else 1
        if node.test:
            if optional or target.kind is Kind.DYN:
                run = access.has_optional_field(operand.run, key, is_object)
            else:
                run = access.has_field(operand.run, key, is_object)
            return Code(run, cost - 1, attribute=True, root=root - 1 if root else 0)
        if optional:
            return Code(access.optional_field(operand.run, key, is_object, convert), cost, attribute=True, root=root)
        slot = self.plain_slot(node.operand) if is_object else None
        if slot is not None:
            return Code(access.field_of_slot(slot, key, True, convert), cost, attribute=True, root=root)
        return Code(access.field(operand.run, key, is_object, convert), cost, attribute=True, root=root)

    def field_converter(self, target: Type, name: str) -> Converter | None:
        if isinstance(target, ObjectType):
            return converter_of(target.fields.get(name) or target.fields[f"__{name}__"])
        return None

    # --- literals --------------------------------------------------------------------------------------------------------------

    def list_node(self, node: ListNode) -> Code:
        parts = [self.materialized(element) for element in node.elements]
        if all(part.constant for part in parts) and not node.optional:
            return constant([part.value for part in parts])
        runs = [part.run for part in parts]
        cost = LIST_BASE + sum(part.cost for part in parts)
        if node.optional:
            optional = node.optional
            return Code(lambda frame: calls.list_with_optionals(frame, runs, optional), cost)
        if len(runs) == 1:
            only = runs[0]
            return Code(lambda frame: [only(frame)], cost)
        return Code(lambda frame: [run(frame) for run in runs], cost)

    def map_node(self, node: MapNode) -> Code:
        keys = [self.compile(entry.key) for entry in node.entries]
        values = [self.materialized(entry.value) for entry in node.entries]
        optional = [entry.optional for entry in node.entries]
        runs = [(key.run, value.run, maybe) for key, value, maybe in zip(keys, values, optional)]
        if all(part.constant for part in (*keys, *values)) and not any(optional):
            made = calls.make_map([], runs)
            return constant(made)
        cost = MAP_BASE + sum(part.cost for part in (*keys, *values))
        return Code(lambda frame: calls.make_map(frame, runs), cost)

    def struct(self, node: Struct) -> Code:
        fields = []
        cost = STRUCT_BASE
        for entry in node.entries:
            assert isinstance(entry.key, Literal)
            value = self.materialized(entry.value)
            cost += value.cost
            fields.append((json_name(entry.key.value), value.run, entry.optional))

        def make(frame: Frame) -> dict[str, Any]:
            made: dict[str, Any] = {}
            for name, run, optional in fields:
                value = run(frame)
                if optional:
                    if type(value) is not OptionalValue:
                        raise EvaluationError(f"cannot initialize optional entry '{name}' from non-optional value {access.shown(value)}")
                    if not value.present:
                        made.pop(name, None)
                        continue
                    value = value.value
                made[name] = value
            return made

        return Code(make, cost)

    # --- loops -----------------------------------------------------------------------------------------------------------------

    def comprehension(self, node: Comprehension) -> Code:
        if node.macro == "bind":
            return self.binding(node)
        range_ = self.compile(node.range)
        slot = self.slot()
        slot2 = None if node.variable2 is None else self.slot()
        scope = {node.variable: Binding(slot)}
        if node.variable2 is not None and slot2 is not None:
            scope[node.variable2] = Binding(slot2)
        bind = loops.elements(slot, slot2)
        self.scopes.append(scope)
        try:
            return self.loop(node, range_, bind, slot)
        finally:
            self.scopes.pop()

    def loop(self, node: Comprehension, range_: Code, bind: loops.Bind, slot: int) -> Code:
        step = node.step
        assert isinstance(step, Call)
        if node.macro in ("all", "exists"):
            predicate = self.compile(step.arguments[1])
            exists = node.macro == "exists"
            around = loops.EXISTS_CONDITION + loops.EXISTS_STEP if exists else loops.ALL_CONDITION + loops.ALL_STEP
            run = loops.quantifier(exists, range_.run, bind, slot, predicate.run, around + predicate.cost)
            return Code(run, range_.cost + 1)
        if node.macro == "exists_one":
            predicate = self.compile(step.arguments[0])
            return Code(loops.exists_one(range_.run, bind, slot, predicate.run, predicate.cost, 2), range_.cost + 2)
        if node.macro == "map":
            filter_ = self.compile(step.arguments[0]) if step.function == "_?_:_" else None
            addition = step.arguments[1] if step.function == "_?_:_" else step
            assert isinstance(addition, Call)
            added = addition.arguments[1]
            assert isinstance(added, ListNode)
            transform = self.materialized(added.elements[0])
            hit = 2 + (0 if transform.constant else LIST_BASE + transform.cost)
            if filter_ is None:
                run = loops.collect(range_.run, bind, slot, None, transform.run, hit, 0)
            else:
                # a transformation that only names the element is done without a call
                same = self.plain_slot(added.elements[0]) == slot and converter_of(added.elements[0].type) is None
                run = loops.collect(range_.run, bind, slot, filter_.run, None if same else transform.run, filter_.cost, hit)
            return Code(run, range_.cost + 1)
        accumulator = self.slot()
        initial = self.compile(node.initial)
        self.scopes.append({node.accumulator: Binding(accumulator)})
        body = self.compile(step)
        result = self.compile(node.result)
        self.scopes.pop()
        run = loops.fold(
            range_.run, bind, slot, accumulator, calls.fresh(initial), body.run, body.cost, result.run
        )  # fmt: skip
        return Code(run, range_.cost + initial.cost + result.cost)

    def binding(self, node: Comprehension) -> Code:
        initial = self.compile(node.initial)
        slot = self.slot()
        self.scopes.append({node.accumulator: Binding(slot, initial.run, initial.cost)})
        result = self.compile(node.result)
        self.scopes.pop()
        return Code(loops.binding(slot, result.run), result.cost)


def _is_declared(node: Node) -> bool:
    """Whether a node reads a value as it was given; what functions and literals make needs no conversion."""
    return isinstance(node, (Ident, Select)) or (isinstance(node, Call) and node.function in ("_[_]", "_?._", "_[?_]", "_?_:_"))
