"""Our answers, in the form of the server's."""

from __future__ import annotations

import re

from apiserver import cel
from apiserver.cel.library.formatting import format_string
from tests.cel_differential import world


def compiles(expression: str) -> bool:
    """Whether the checker takes an expression; its constants may still be wrong."""
    try:
        world.ENVIRONMENT.compile(expression)
    except cel.ProgramError:
        return True
    except cel.CompileError:
        return False
    return True


def rule(expression: str) -> str:
    """A rule that is false for any expression, or fails with it."""
    return f"[dyn({expression})].size() == 2" if "//" not in expression else f"[dyn({expression}\n)].size() == 2"


def ours(expression: str) -> str:
    """What we say of an expression: the compile error, the evaluation error or the value, as the server shows them."""
    try:
        world.ENVIRONMENT.compile(expression)
    except cel.ProgramError as error:
        return f"program instantiation failed: {error}"
    except cel.CompileError as error:
        return f"compilation failed: {error}"
    values = {"self": world.OBJECT}
    try:
        world.ENVIRONMENT.compile(rule(expression)).evaluate(values, cel.Budget())
        value = world.ENVIRONMENT.compile(expression).evaluate(values, cel.Budget())
    except cel.EvaluationError as error:
        return f"error: {error}"
    except cel.CostExceededError:
        return "error: cost"
    try:
        return f"value: {format_string('%s', [value])}"
    except cel.EvaluationError:
        return "value: ?"


def same(server: str, our: str) -> bool:
    """Whether both say the same."""
    return normalized(server) == our or (our == "value: ?" and normalized(server).startswith("value: #"))


def normalized(answer: str) -> str:
    """A server's answer to an object, cut to what it says of the expression."""
    if answer.startswith(("compilation failed", "program instantiation failed", "compiles")):
        return re.sub(r"selfType\d+", "Spec", answer)
    text = answer.removeprefix("Invalid value: ")
    if text.startswith("<<") and text.endswith(">>"):
        return f"value: {text[2:-2]}"
    overload = re.search("'(no such overload.*)': call arguments did not match", text)
    if overload is not None:
        return f"error: {overload[1]}"
    if " evaluating rule: #" in text:
        return "error: " + text[text.index(": ") + 2 : text.rindex(" evaluating rule: #")]
    return f"value: {text}"


def estimate(expression: str) -> int:
    """The greatest cost of a rule."""
    return world.ENVIRONMENT.compile(expression).estimate(cel.sizes_by_type(world.SELF)).max
