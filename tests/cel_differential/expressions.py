"""What is asked: lists that touch every function and message, and random expressions over the world's fields."""

from __future__ import annotations

import random
from pathlib import Path

_FILES = ("language.txt", "libraries.txt")


def listed() -> list[str]:
    """The expressions that are always asked, each once."""
    lines = [line for name in _FILES for line in (Path(__file__).parent / name).read_text().split("\n")]
    multi = ["self.i +\n  foo", "self.i\n  == 'x'", "[\n1,\n'é' + 1]", "'é' + foo\n + bar", "foo + bar + baz"]
    return list(dict.fromkeys(line for line in [*lines, *multi] if line.strip()))


# --- random expressions ----------------------------------------------------------------------------------------------------------

_LEAVES = {
    "int": ["self.i", "self.j", "0", "1", "-2", "7", "9223372036854775807", "self.o.p", "self.li[0]", "self.mi.one", "size(self.ls)"],
    "double": ["self.d", "1.5", "-0.0", "1e10"],
    "string": ["self.s", "self.long", "'a'", "''", "'é'", "self.o.q", "self.ls[1]", "self.m['k1']", "self.lo[0].s", "self.absent"],
    "bool": ["self.b", "true", "false", "has(self.absent)", "has(self.m.k1)"],
    "list": ["self.li", "[1, 2, 3]", "[]", "[self.i]"],
    "strings": ["self.ls", "['a', 'b']", "self.set"],
    "timestamp": ["self.t", "self.o.t", "timestamp('2024-01-01T00:00:00Z')"],
    "duration": ["self.dur", "duration('30s')"],
}
_RULES = {
    "int": [
        "{int} + {int}",
        "{int} - {int}",
        "{int} * {int}",
        "{int} / {int}",
        "{int} % {int}",
        "-({int})",
        "size({string})",
        "size({list})",
        "{string}.indexOf({string})",
        "({bool} ? {int} : {int})",
        "{list}[{int}]",
        "int({double})",
        "{list}.sum()",
        "{list}.max()",
        "{timestamp}.getHours()",
        "{duration}.getSeconds()",
        "{list}[?{int}].orValue({int})",
        "{strings}.indexOf({string})",
        "int({string})",
    ],
    "double": ["{double} + {double}", "{double} / {double}", "double({int})", "({bool} ? {double} : {double})", "-({double})"],
    "string": [
        "{string} + {string}",
        "string({int})",
        "{string}.lowerAscii()",
        "{string}.replace({string}, {string})",
        "{string}.trim()",
        "{string}.substring({int})",
        "{strings}.join({string})",
        "({bool} ? {string} : {string})",
        "{strings}[{int}]",
        "{string}.charAt({int})",
        "'%s-%d'.format([{string}, {int}])",
        "string({bool})",
        "self.m[?{string}].orValue({string})",
        "self.m[{string}]",
    ],
    "bool": [
        "{int} < {int}",
        "{int} == {int}",
        "{double} >= {double}",
        "{string} == {string}",
        "{string} < {string}",
        "{bool} && {bool}",
        "{bool} || {bool}",
        "!({bool})",
        "{int} in {list}",
        "{string} in {strings}",
        "{string} in self.m",
        "{list} == {list}",
        "{list}.all(x, x > {int})",
        "{list}.exists(x, x == {int})",
        "{list}.exists_one(x, x > {int})",
        "{string}.contains({string})",
        "{string}.startsWith({string})",
        "{string}.matches('[a-z]+')",
        "{timestamp} < {timestamp}",
        "{duration} <= {duration}",
        "{strings}.all(s, s < {string})",
        "{int} == {double}",
        "dyn({int}) == dyn({string})",
        "{list}.isSorted()",
        "sets.contains({list}, {list})",
        "self.lo.exists(o, o.n == {int})",
        "self.lo.all(o, has(o.s) && o.s == {string})",
        "self.m.all(k, v, v != {string})",
    ],
    "list": [
        "{list} + {list}",
        "{list}.map(x, x + {int})",
        "{list}.filter(x, x > {int})",
        "({bool} ? {list} : {list})",
        "self.lo.map(o, o.n)",
        "{list}.map(x, x > {int}, x * 2)",
        "{list}.transformList(i, x, i + x)",
        "{list}.sort()",
        "{list}.distinct()",
        "{list}.reverse()",
    ],
    "strings": [
        "{string}.split({string})",
        "{strings}.map(s, s + {string})",
        "{strings}.filter(s, s != {string})",
        "{strings} + {strings}",
    ],
    "timestamp": ["{timestamp} + {duration}", "{timestamp} - {duration}"],
    "duration": ["{duration} + {duration}", "{timestamp} - {timestamp}"],
}


def generate(source: random.Random, kind: str = "", depth: int = 3) -> str:
    """A random expression of this type; now and then a part is of another type, so that checkers have something to refuse."""
    kind = kind or source.choice(sorted(_RULES))
    if depth == 0 or source.random() < 0.15:
        return source.choice(_LEAVES[kind])
    rule = source.choice(_RULES[kind])
    made = ""
    while "{" in rule:
        before, _, rest = rule.partition("{")
        wanted, _, rule = rest.partition("}")
        if source.random() < 0.02:
            wanted = source.choice(sorted(_RULES))
        part = generate(source, wanted, depth - 1)
        made += before + (f"({part})" if (" " in part and not part.startswith(("(", "["))) or part.startswith("-") else part)
    return made + rule
