"""The type checker: gives every node its type and every call its overloads, or tells what does not fit, in cel-go's words."""

from __future__ import annotations

from collections.abc import Mapping

from apiserver.cel.declarations import Functions, Overload
from apiserver.cel.errors import Issue
from apiserver.cel.parser import locate
from apiserver.cel.syntax import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select, Struct
from apiserver.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Kind,
    ObjectType,
    Type,
    is_dyn,
    is_dyn_or_error,
    is_optional,
    list_of,
    map_of,
    optional_of,
    parameter,
)
from apiserver.cel.unification import Bindings, assign, assign_all, most_general, substitute
from apiserver.cel.values import Uint

_LITERAL_TYPES: dict[type, Type] = {
    bool: BOOL, int: INT, Uint: UINT, float: DOUBLE, str: STRING, bytes: BYTES, type(None): NULL,
}  # fmt: skip


class Checker:
    """Checks one tree; `issues` collects what is wrong."""

    def __init__(
        self,
        source: str,
        variables: Mapping[str, Type],
        functions: Functions,
        type_names: Mapping[str, Type],
        structs: Mapping[str, ObjectType],
    ) -> None:
        self.source = source
        self.variables = variables
        self.functions = functions
        self.type_names = type_names
        self.structs = structs
        self.issues: list[Issue] = []
        self.bindings: Bindings = {}
        self.scopes: list[dict[str, Type]] = []
        self.nodes: list[Node] = []
        self.free = 0

    def check(self, root: Node) -> Type:
        """Check the tree and settle the types of all its nodes."""
        self.visit(root)
        bindings = self.bindings
        for node in self.nodes:
            if node.type.generic:
                node.type = substitute(bindings, node.type, True)
        return root.type

    def report(self, offset: int, message: str) -> None:
        self.issues.append(Issue(*locate(self.source, offset), message))

    # --- the rules of each node ------------------------------------------------------------------------------------------------

    def visit(self, node: Node) -> Type:
        if isinstance(node, Call):
            found = self.call(node)
        elif isinstance(node, Select):
            found = self.select(node)
        elif isinstance(node, Ident):
            found = self.ident(node)
        elif isinstance(node, Literal):
            found = _LITERAL_TYPES[type(node.value)]
        elif isinstance(node, ListNode):
            found = self.list_node(node)
        elif isinstance(node, MapNode):
            found = self.map_node(node)
        elif isinstance(node, Comprehension):
            found = self.comprehension(node)
        else:
            assert isinstance(node, Struct), node
            found = self.struct(node)
        node.type = found
        self.nodes.append(node)
        return found

    def local(self, name: str) -> Type | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def ident(self, node: Ident) -> Type:
        name = node.name
        if name.startswith("."):
            name = name[1:]
            found = self.variables.get(name)
        else:
            found = self.local(name) or self.variables.get(name)
        if found is not None:
            return found
        if name in self.type_names:
            node.name = name
            node.is_type = True
            return self.type_names[name]
        self.report(node.offset, f"undeclared reference to '{node.name}' (in container '')")
        return ERROR

    def select(self, node: Select) -> Type:
        name = None if node.test else self.qualified_name(node)
        if name is not None:
            found = self.variables.get(name) or self.type_names.get(name)
            if found is not None:
                node.qualified = Ident(node.offset, name)
                node.qualified.is_type = name not in self.variables
                node.qualified.type = found
                return found
        result = self.field(node.offset, node.operand, node.field, False)
        return BOOL if node.test else substitute(self.bindings, result)

    def qualified_name(self, node: Node) -> str | None:
        """`a.b.c` as one name, unless `a` is a variable of a loop."""
        names: list[str] = []
        while isinstance(node, Select) and not node.test:
            names.append(node.field)
            node = node.operand
        if not isinstance(node, Ident):
            return None
        if node.name.startswith("."):
            names.append(node.name[1:])
        elif self.local(node.name) is not None:
            return None
        else:
            names.append(node.name)
        return ".".join(reversed(names))

    def field(self, offset: int, operand: Node, name: str, optional: bool) -> Type:
        of = substitute(self.bindings, self.visit(operand))
        target = of.parameters[0] if is_optional(of) else of
        if target.kind is Kind.MAP:
            result = target.parameters[1]
        elif target.kind is Kind.STRUCT:
            result = self.field_type(offset, target, name)
        elif target.kind is Kind.PARAMETER:
            self.assign(DYN, target)
            result = DYN
        else:
            if not is_dyn_or_error(target):
                self.report(offset, f"type '{target}' does not support field selection")
            result = DYN
        return optional_of(result) if optional or target is not of else result

    def field_type(self, offset: int, struct: Type, name: str) -> Type:
        found = struct.fields.get(name) if isinstance(struct, ObjectType) else None
        if found is None and isinstance(struct, ObjectType):
            found = struct.fields.get(f"__{name}__")  # a keyword may be written as it is
        if found is None:
            self.report(offset, f"undefined field '{name}'")
            return ERROR
        return found

    def call(self, node: Call) -> Type:
        if node.function == "_?._":
            field = node.arguments[1]
            assert isinstance(field, Literal)
            result = substitute(self.bindings, self.field(node.offset, node.arguments[0], field.value, True))
            field.type = STRING
            node.overloads = tuple(o for o in self.functions.get("_?._", ()) if o.id == "select_optional_field")
            return result
        for argument in node.arguments:
            self.visit(argument)
        if node.target is None:
            name = node.function.removeprefix(".")
            overloads = self.functions.get(name)
            if overloads is None:
                self.report(node.offset, f"undeclared reference to '{node.function}' (in container '')")
                return ERROR
            node.function = name
            return self.resolve(node, overloads, None)
        prefix = self.qualified_name(node.target)
        if prefix is not None:
            qualified = f"{prefix}.{node.function}"
            overloads = self.functions.get(qualified)
            if overloads is not None:
                node.function = qualified
                node.target = None
                return self.resolve(node, overloads, None)
        self.visit(node.target)
        overloads = self.functions.get(node.function)
        if overloads is None:
            self.report(node.offset, f"undeclared reference to '{node.function}' (in container '')")
            return ERROR
        return self.resolve(node, overloads, node.target)

    def resolve(self, node: Call, overloads: tuple[Overload, ...], target: Node | None) -> Type:
        arguments = [argument.type for argument in node.arguments]
        if node.function == "_&&_" or node.function == "_||_":
            return self.logical(node, overloads, arguments)
        if target is not None:
            arguments.insert(0, target.type)
        result: Type | None = None
        matching: list[Overload] = []
        for overload in overloads:
            if overload.member is not (target is not None) or len(overload.parameters) != len(arguments):
                continue
            parameters, declared = overload.parameters, overload.result
            if overload.variables:
                fresh = {name: self.variable() for name in overload.variables}
                parameters = tuple(substitute(fresh, part) for part in parameters)
                declared = substitute(fresh, declared)
            bindings = assign_all(self.bindings, arguments, parameters)
            if bindings is None:
                continue
            self.bindings = bindings
            matching.append(overload)
            found = substitute(bindings, declared)
            if result is None:
                result = found
            elif not is_dyn(result) and found.text != result.text:
                result = DYN
        if result is None:
            texts = [substitute(self.bindings, argument, True).text for argument in arguments]
            applied = f"{texts[0]}.({', '.join(texts[1:])})" if target is not None else f"({', '.join(texts)})"
            self.report(node.offset, f"found no matching overload for '{node.function}' applied to '{applied}'")
            return ERROR
        node.overloads = tuple(matching)
        return result

    def logical(self, node: Call, overloads: tuple[Overload, ...], arguments: list[Type]) -> Type:
        node.overloads = overloads
        result = BOOL
        for argument, found in zip(node.arguments, arguments):
            if not self.assign(found, BOOL):
                self.report(argument.offset, f"expected type 'bool' but found '{found}'")
                result = ERROR
        return result

    def list_node(self, node: ListNode) -> Type:
        element: Type | None = None
        for index, each in enumerate(node.elements):
            found = self.visit(each)
            if index in node.optional:
                found = self.unwrapped(each, found)
            element = self.join(element, found)
        return list_of(element if element is not None else self.variable())

    def map_node(self, node: MapNode) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            key = self.join(key, self.visit(entry.key))
            found = self.visit(entry.value)
            if entry.optional:
                found = self.unwrapped(entry.value, found)
            value = self.join(value, found)
        if key is None or value is None:
            key, value = self.variable(), self.variable()
        return map_of(key, value)

    def unwrapped(self, node: Node, found: Type) -> Type:
        if is_optional(found):
            return found.parameters[0]
        if not is_dyn(found):
            self.report(node.offset, f"expected type '{optional_of(found)}' but found '{found}'")
        return found

    def struct(self, node: Struct) -> Type:
        name = node.name.removeprefix(".")
        struct = self.structs.get(name)
        if struct is None:
            if name in self.type_names:
                self.report(node.offset, f"'{name}' is not a message type")
            else:
                self.report(node.offset, f"undeclared reference to '{node.name}' (in container '')")
                return ERROR
        for entry in node.entries:
            assert isinstance(entry.key, Literal)
            found = self.visit(entry.value)
            field = self.field_type(entry.offset, struct if struct is not None else ERROR, entry.key.value)
            if entry.optional:
                found = self.unwrapped(entry.value, found)
            if not self.assign(field, found):
                self.report(entry.offset, f"expected type of field '{entry.key.value}' is '{field}' but provided type is '{found}'")
        return struct if struct is not None else ERROR

    def comprehension(self, node: Comprehension) -> Type:
        self.visit(node.range)
        initial = self.visit(node.initial)
        range_ = substitute(self.bindings, node.range.type)
        two = node.variable2 is not None
        if range_.kind is Kind.LIST:
            first, second = (INT, range_.parameters[0]) if two else (range_.parameters[0], DYN)
        elif range_.kind is Kind.MAP:
            first, second = range_.parameters
        elif is_dyn_or_error(range_) or range_.kind is Kind.PARAMETER:
            self.assign(DYN, range_)
            first = second = DYN
        else:
            self.report(
                node.range.offset,
                f"expression of type '{range_}' cannot be range of a comprehension (must be list, map, or dynamic)",
            )
            first = second = ERROR
        self.scopes.append({node.accumulator: initial})
        self.scopes.append({node.variable: first} if node.variable2 is None else {node.variable: first, node.variable2: second})
        self.visit(node.condition)
        self.expect(node.condition, BOOL)
        self.visit(node.step)
        self.expect(node.step, initial)
        self.scopes.pop()
        self.visit(node.result)
        self.scopes.pop()
        return substitute(self.bindings, node.result.type)

    # --- types -----------------------------------------------------------------------------------------------------------------

    def variable(self) -> Type:
        self.free += 1
        return parameter(f"_var{self.free - 1}")

    def assign(self, source: Type, target: Type) -> bool:
        bindings = assign(self.bindings, source, target)
        if bindings is None:
            return False
        self.bindings = bindings
        return True

    def expect(self, node: Node, expected: Type) -> None:
        if not self.assign(expected, node.type):
            self.report(node.offset, f"expected type '{expected}' but found '{node.type}'")

    def join(self, previous: Type | None, current: Type) -> Type:
        """The type of the elements of one literal; mixed ones are `dyn` here, and refused by `literals`."""
        if previous is None:
            return current
        return most_general(previous, current) if self.assign(previous, current) else DYN
