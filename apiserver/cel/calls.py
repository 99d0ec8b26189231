"""Closures that call: operators, logic, functions, with the checks that values of unknown types need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from apiserver.cel import access, regex
from apiserver.cel.budget import WORK_MAX
from apiserver.cel.code import COST, FAULTS, LIMIT, NO_OVERLOAD, WORK, Code, Frame, Run, charge, constant, fault, work
from apiserver.cel.conversion import holds_dyn
from apiserver.cel.costs import Cost, cost_of, equality, traversal
from apiserver.cel.declarations import Overload
from apiserver.cel.errors import CostExceededError, EvaluationError
from apiserver.cel.runtime_types import accepts, name_of, runtime_type
from apiserver.cel.syntax import Call, Literal, Node
from apiserver.cel.types import (
    AUTHORIZER,
    CIDR,
    DECISION,
    FORMAT,
    GROUP_CHECK,
    IP,
    PATH_CHECK,
    QUANTITY,
    RESOURCE_CHECK,
    SEMVER,
    URL,
    Kind,
    Type,
    is_optional,
)
from apiserver.cel.values import OptionalValue, equal

if TYPE_CHECKING:
    from apiserver.cel.compiler import Compiler

_SCALARS = frozenset({Kind.BOOL, Kind.INT, Kind.UINT, Kind.DOUBLE, Kind.TIMESTAMP, Kind.DURATION})
_OPAQUE_NAMES = frozenset(
    of.name for of in (QUANTITY, IP, CIDR, FORMAT, URL, SEMVER, AUTHORIZER, PATH_CHECK, GROUP_CHECK, RESOURCE_CHECK, DECISION)
)
_CONVERSIONS = frozenset({"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"})


class ConstantError(Exception):
    """A constant that cannot be computed."""


def call(compiler: Compiler, node: Call) -> Code:
    """Compile a call by its function."""
    special = _SPECIAL.get(node.function)
    if special is not None:
        return special(compiler, node)
    return _function(compiler, node)


# --- logic -----------------------------------------------------------------------------------------------------------------------


def _logic(compiler: Compiler, node: Call) -> Code:
    """`&&` and `||`: the deciding value wins, whichever side fails; the right side costs only when it is looked at."""
    left = compiler.compile(node.arguments[0])
    right = compiler.compile(node.arguments[1])
    deciding = node.function == "_||_"
    first, second, cost = left.run, right.run, right.cost

    def settle(frame: Frame, error: Exception | None) -> bool:
        """The left side failed or was no boolean: only the right side can still decide."""
        frame[COST] += cost
        try:
            found = second(frame)
        except FAULTS:
            found = None
        if found is deciding:
            return bool(deciding)
        raise fault(error) if error is not None else EvaluationError(NO_OVERLOAD)

    if deciding:

        def run_or(frame: Frame) -> bool:
            try:
                found = first(frame)
            except FAULTS as error:
                return settle(frame, error)
            if found is True:
                return True
            if found is not False:
                return settle(frame, None)
            frame[COST] += cost
            found = second(frame)
            if found is True or found is False:
                return bool(found)
            raise EvaluationError(NO_OVERLOAD)

        return Code(run_or, left.cost)

    def run_and(frame: Frame) -> bool:
        try:
            found = first(frame)
        except FAULTS as error:
            return settle(frame, error)
        if found is False:
            return False
        if found is not True:
            return settle(frame, None)
        frame[COST] += cost
        found = second(frame)
        if found is True or found is False:
            return bool(found)
        raise EvaluationError(NO_OVERLOAD)

    return Code(run_and, left.cost)


def _not(compiler: Compiler, node: Call) -> Code:
    operand = compiler.compile(node.arguments[0])
    run = operand.run

    def negate(frame: Frame) -> bool:
        found = run(frame)
        if found is True:
            return False
        if found is False:
            return True
        raise EvaluationError(NO_OVERLOAD)

    return Code(negate, operand.cost + 1)


def _conditional(compiler: Compiler, node: Call) -> Code:
    test, then, otherwise = (compiler.compile(argument) for argument in node.arguments)
    test_run, then_run, otherwise_run = test.run, then.run, otherwise.run
    then_cost, otherwise_cost = then.embedded_cost, otherwise.embedded_cost

    def run(frame: Frame) -> Any:
        found = test_run(frame)
        if found is True:
            frame[COST] += then_cost
            return then_run(frame)
        if found is False:
            frame[COST] += otherwise_cost
            return otherwise_run(frame)
        raise EvaluationError(NO_OVERLOAD)

    return Code(run, test.cost, attribute=True, root=0)


# --- equality --------------------------------------------------------------------------------------------------------------------


def _equality(compiler: Compiler, node: Call) -> Code:
    left_node, right_node = node.arguments
    left, right = compiler.compile(left_node), compiler.compile(right_node)
    negated = node.function == "_!=_"
    kinds = (left_node.type.kind, right_node.type.kind)
    cost = left.cost + right.cost
    first, second = left.run, right.run
    if kinds[0] in _SCALARS and kinds[1] in _SCALARS and kinds[0] is kinds[1]:
        if negated:
            return Code(lambda frame: first(frame) != second(frame), cost + 1)
        return Code(lambda frame: first(frame) == second(frame), cost + 1)
    if kinds[0] is kinds[1] is Kind.STRING:
        return Code(_string_equality(first, right, negated), cost)
    # Kubernetes' own values are compared for one, but `!=` of networks goes by the length of their prefixes
    opaque = not negated and left_node.type.name in _OPAQUE_NAMES
    same = left_node.type.text == right_node.type.text and not holds_dyn(left_node.type)
    convert_left, convert_right = compiler.materializer(left_node), compiler.materializer(right_node)
    plain = same and convert_left is None and convert_right is None and not _has_list_types(left_node.type)

    def run(frame: Frame) -> bool:
        a, b = first(frame), second(frame)
        frame[COST] += 1 if opaque else equality(a, b)
        if frame[COST] > _WEIGH_FROM and isinstance(a, (list, dict)):
            work(frame, weight(a))
        if same:
            # both are of one known type: what Python takes for equal is equal, as true never meets 1 there
            if a == b:
                return not negated
            if plain:
                return negated
        if convert_left is not None:
            a = convert_left(a)
        if convert_right is not None:
            b = convert_right(b)
        return equal(a, b) is not negated

    return Code(run, cost)


_WEIGH_FROM = 2_000  # cost from which on comparisons are counted by what they touch: a rule that costs less has few of them


def _has_list_types(of: Type) -> bool:
    """Whether lists with an equality of their own may be among the values of a type."""
    return of.list_type is not None or any(_has_list_types(part) for part in of.parameters) or of.kind is Kind.STRUCT


def _string_equality(first: Run, right: Code, negated: bool) -> Run:
    """Two strings: the most common test, against a constant most of the time."""
    second = right.run
    if right.constant:
        text = right.value
        length = len(text)
        most = traversal(length)

        def with_constant(frame: Frame) -> bool:
            found = first(frame)
            frame[COST] += most if len(found) >= length else traversal(len(found))
            return (found == text) is not negated

        return with_constant

    def run(frame: Frame) -> bool:
        a, b = first(frame), second(frame)
        frame[COST] += traversal(min(len(a), len(b)))
        return (a == b) is not negated

    return run


def weight(value: Any) -> int:
    """How many values a comparison may touch, to the depth that is quick to tell."""
    if isinstance(value, dict):
        return len(value) + sum(weight(item) for item in value.values() if isinstance(item, (dict, list)))
    if isinstance(value, list):
        return len(value) + sum(weight(item) for item in value if isinstance(item, (dict, list)))
    return 1


# --- indexes and optional values -------------------------------------------------------------------------------------------------


def _index(compiler: Compiler, node: Call) -> Code:
    operand = compiler.compile(node.arguments[0])
    key = compiler.compile(node.arguments[1])
    optional = node.function == "_[?_]"
    cost = (operand.cost if operand.attribute else operand.cost + 1) + (key.embedded_cost if key.attribute else key.cost) + 1
    root = operand.root if operand.attribute else 1
    if optional or is_optional(node.arguments[0].type):
        return Code(access.optional_index(operand.run, key.run), cost, attribute=True, root=root)
    return Code(access.index(operand.run, key.run), cost, attribute=True, root=root)


def _optional_select(compiler: Compiler, node: Call) -> Code:
    from apiserver.cel.names import json_name

    operand = compiler.compile(node.arguments[0])
    field = node.arguments[1]
    assert isinstance(field, Literal)
    of = node.arguments[0].type
    target = of.parameters[0] if is_optional(of) else of
    is_object = target.kind is Kind.STRUCT
    convert = compiler.field_converter(target, field.value)
    cost = operand.cost + (1 if operand.attribute else 2)
    run = access.optional_field(operand.run, json_name(field.value) if is_object else field.value, is_object, convert)
    return Code(run, cost, attribute=True, root=operand.root if operand.attribute else 1)


def _or_value(compiler: Compiler, node: Call) -> Code:
    """`optional.or(optional)` and `optional.orValue(value)`: the second is computed only when it is needed."""
    assert node.target is not None
    left = compiler.compile(node.target)
    right = compiler.compile(node.arguments[0])
    first, second, cost = left.run, right.run, right.cost
    unwrap = node.function == "orValue"

    def run(frame: Frame) -> Any:
        found = first(frame)
        if type(found) is not OptionalValue:
            raise EvaluationError(NO_OVERLOAD)
        if found.present:
            return found.value if unwrap else found
        frame[COST] += cost
        return second(frame)

    return Code(run, left.cost)


def list_with_optionals(frame: Frame, runs: Sequence[Run], optional: frozenset[int]) -> list[Any]:
    """A list literal with elements that may be left out."""
    made = []
    for index, run in enumerate(runs):
        value = run(frame)
        if index in optional:
            if type(value) is not OptionalValue:
                raise EvaluationError(f"cannot initialize optional list element from non-optional value {access.shown(value)}")
            if not value.present:
                continue
            value = value.value
        made.append(value)
    return made


def make_map(frame: Frame, runs: Sequence[tuple[Run, Run, bool]]) -> dict[Any, Any]:
    """A map literal."""
    made: dict[Any, Any] = {}
    for key_run, value_run, optional in runs:
        key = key_run(frame)
        value = value_run(frame)
        if optional:
            if type(value) is not OptionalValue:
                raise EvaluationError(
                    f"cannot initialize optional entry '{access.shown(key)}' from non-optional value {access.shown(value)}"
                )
            if not value.present:
                made.pop(key, None)
                continue
            value = value.value
        made[key] = value
    return made


def fresh(code: Code) -> Run:
    """The start of an accumulator: a new one for each loop where it is a literal."""
    if not code.constant or not isinstance(code.value, (list, dict)):
        return code.run
    kind = type(code.value)
    return lambda frame: kind()


# --- functions -------------------------------------------------------------------------------------------------------------------


def _type(compiler: Compiler, node: Call) -> Code:
    operand = compiler.compile(node.arguments[0])
    if operand.constant:
        return constant(runtime_type(operand.value))
    run = operand.run
    return Code(lambda frame: runtime_type(run(frame)), operand.cost + 1)


def _matches(compiler: Compiler, node: Call) -> Code:
    parts = node.arguments if node.target is None else [node.target, *node.arguments]
    text, pattern = (compiler.compile(part) for part in parts)
    search = regex.searcher(pattern.value) if pattern.constant and isinstance(pattern.value, str) else None
    pattern_cost = cost_of("matches", node.overloads[0].id if len(node.overloads) == 1 else "")
    first, second = text.run, pattern.run

    def run(frame: Frame) -> bool:
        a, b = first(frame), second(frame)
        if type(a) is not str or type(b) is not str:
            raise EvaluationError(NO_OVERLOAD)
        charge(frame, pattern_cost((a, b), None) if callable(pattern_cost) else pattern_cost)
        work(frame, len(a))
        if search is None:
            work(frame, regex.work_of(b))
            return regex.searcher(b)(a)
        return search(a)

    return Code(run, text.cost + pattern.cost)


def _affix(compiler: Compiler, node: Call) -> Code:
    """startsWith and endsWith of known strings: common enough in rules to count their cost in place."""
    if node.target is None or node.target.type.kind is not Kind.STRING or node.arguments[0].type.kind is not Kind.STRING:
        return _function(compiler, node)
    text, affix = compiler.compile(node.target), compiler.compile(node.arguments[0])
    first, second = text.run, affix.run
    test = str.startswith if node.function == "startsWith" else str.endswith

    def run(frame: Frame) -> bool:
        found = first(frame)
        frame[COST] += traversal(len(found))
        return test(found, second(frame))

    return Code(run, text.cost + affix.cost)


def _in(compiler: Compiler, node: Call) -> Code:
    container = node.arguments[1]
    if len(node.overloads) == 1 and node.overloads[0].id == "in_list":
        value = compiler.materialized(node.arguments[0])
        inside = compiler.compile(container)
        if inside.constant:
            return _in_constants(value, inside.value)
    return _function(compiler, node)


def _in_constants(value: Code, elements: list[Any]) -> Code:
    """`x in ['a', 'b']`: a set, which costs nothing beyond the value."""
    if not elements:
        return constant(False)
    if all(type(element) is str for element in elements):
        texts = frozenset(elements)
        run = value.run

        def among_texts(frame: Frame) -> bool:
            found = run(frame)
            return type(found) is str and found in texts

        return Code(among_texts, value.cost)
    known = list(elements)
    run = value.run
    if any(type(element) is bytes or isinstance(element, (list, dict)) for element in elements):
        from apiserver.cel.values import contains

        def among(frame: Frame) -> bool:
            frame[COST] += len(known)
            return contains(known, run(frame))

        return Code(among, value.cost)
    return Code(lambda frame: _among_scalars(known, run(frame)), value.cost)


def _among_scalars(known: list[Any], value: Any) -> bool:
    from apiserver.cel.values import contains

    return contains(known, value)


def _function(compiler: Compiler, node: Call) -> Code:
    """Any other function: one overload is called straight, several are chosen by the values."""
    nodes = node.arguments if node.target is None else [node.target, *node.arguments]
    parts = [compiler.materialized(each) for each in nodes]
    overloads = node.overloads
    single = len(overloads) == 1
    compute = _computation(node.function, overloads, nodes)
    if node.function in _CONVERSIONS and len(parts) == 1 and parts[0].constant:
        try:
            return constant(compute(parts[0].value))
        except FAULTS as error:
            raise ConstantError(str(fault(error))) from error
    if node.function in ("find", "findAll") and parts[1].constant and type(parts[1].value) is str:
        try:
            regex.compiled(parts[1].value)
        except EvaluationError as error:
            raise ConstantError(str(error)) from error
    cost = cost_of(node.function, overloads[0].id if single else "")
    known = sum(part.cost for part in parts)
    runs = [part.run for part in parts]
    run = _charged(compute, runs, cost) if callable(cost) else _plain(compute, runs)
    if any(overload.result.kind in _GROWING for overload in overloads):
        run = _weighed(run)
    return Code(run, known if callable(cost) else known + cost)


_GROWING = frozenset({Kind.STRING, Kind.BYTES, Kind.LIST, Kind.MAP, Kind.DYN, Kind.PARAMETER})


def _weighed(run: Run) -> Run:
    """Counts what a call makes: `replace`, `+` of lists and others make far more than their cost tells."""

    def weighed(frame: Frame) -> Any:
        result = run(frame)
        if type(result) is str or isinstance(result, (list, bytes)):
            frame[WORK] += len(result)
            if frame[WORK] > WORK_MAX:
                raise CostExceededError
        return result

    return weighed


def _plain(compute: Callable[..., Any], runs: list[Run]) -> Run:
    if len(runs) == 1:
        only = runs[0]
        return lambda frame: compute(only(frame))
    if len(runs) == 2:
        first, second = runs
        return lambda frame: compute(first(frame), second(frame))
    return lambda frame: compute(*[run(frame) for run in runs])


def _charged(compute: Callable[..., Any], runs: list[Run], cost: Cost) -> Run:
    """With a cost that depends on the values. It is charged before the work where the result does not matter, else after it."""

    def run(frame: Frame) -> Any:
        arguments = tuple([each(frame) for each in runs])
        result = compute(*arguments)
        frame[COST] += cost(arguments, result)
        if frame[COST] > frame[LIMIT]:
            raise CostExceededError
        return result

    return run


def _computation(function: str, overloads: Sequence[Overload], nodes: Sequence[Node]) -> Callable[..., Any]:
    """What computes a call: the only overload if the checker knew all types, else the first one that the values fit."""
    if len(overloads) == 1 and all(_certain(node.type, wanted) for node, wanted in zip(nodes, overloads[0].parameters)):
        compute = overloads[0].compute
        assert compute is not None, overloads[0].id
        return compute

    candidates = [(each.parameters, each.compute) for each in overloads if each.compute is not None]
    known: dict[tuple[type, ...], Callable[..., Any]] = {}  # by the classes of the arguments, which decide alone; a handful at most

    def choose(*arguments: Any) -> Any:
        classes = tuple([type(argument) for argument in arguments])
        compute = known.get(classes)
        if compute is None:
            compute = known[classes] = first_fit(arguments)
        return compute(*arguments)

    def first_fit(arguments: Sequence[Any]) -> Callable[..., Any]:
        for parameters, compute in candidates:
            if all(accepts(wanted, value) for wanted, value in zip(parameters, arguments)):
                return compute
        raise EvaluationError(_no_overload(function, arguments))

    return choose


_NUMBERS = frozenset({Kind.INT, Kind.UINT, Kind.DOUBLE})
_COMPARABLE = _NUMBERS | {Kind.BOOL, Kind.STRING, Kind.BYTES, Kind.TIMESTAMP, Kind.DURATION}
# what the first operand must be able to, for functions that cel-go binds once for all overloads
_ABLE = {
    "_+_": _NUMBERS | {Kind.STRING, Kind.BYTES, Kind.LIST, Kind.TIMESTAMP, Kind.DURATION},
    "_-_": _NUMBERS | {Kind.TIMESTAMP, Kind.DURATION},
    "_*_": _NUMBERS,
    "_/_": _NUMBERS,
    "_%_": frozenset({Kind.INT, Kind.UINT}),
    "-_": frozenset({Kind.INT, Kind.DOUBLE, Kind.DURATION, Kind.BOOL}),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _COMPARABLE),
    "size": frozenset({Kind.STRING, Kind.BYTES, Kind.LIST, Kind.MAP}),
    "matches": frozenset({Kind.STRING}),
}
_RECEIVERS = frozenset({Kind.STRING, Kind.TIMESTAMP, Kind.DURATION})
_UNGUARDED = frozenset({"@in", "contains", "startsWith", "endsWith", "flatten"})


def _no_overload(function: str, arguments: Sequence[Any]) -> str:
    """cel-go's message for values that no overload takes."""
    able = _ABLE.get(function)
    if able is not None:
        kind = runtime_type(arguments[0]).kind
        return NO_OVERLOAD if kind in able or kind in _RECEIVERS else f"no such overload: {function}"
    if function in _UNGUARDED:
        return NO_OVERLOAD
    return f"no such overload: {function}({', '.join(name_of(argument) for argument in arguments)})"


def _certain(known: Type, wanted: Type) -> bool:
    """Whether a value of the known type surely is one of the wanted type."""
    if wanted.kind is Kind.PARAMETER:
        return True
    return known.kind is wanted.kind and known.name == wanted.name


_SPECIAL: dict[str, Callable[[Compiler, Call], Code]] = {
    "_&&_": _logic,
    "_||_": _logic,
    "!_": _not,
    "_?_:_": _conditional,
    "_==_": _equality,
    "_!=_": _equality,
    "_[_]": _index,
    "_[?_]": _index,
    "_?._": _optional_select,
    "or": _or_value,
    "orValue": _or_value,
    "type": _type,
    "matches": _matches,
    "startsWith": _affix,
    "endsWith": _affix,
    "@in": _in,
}
