"""Source text to tree: a recursive descent over cel-go's grammar, with its limits and, for common faults, ANTLR's words."""

from __future__ import annotations

import re
from collections.abc import Mapping

from apiserver.cel.errors import CompileError, Issue
from apiserver.cel.macros import Expander, MacroError
from apiserver.cel.syntax import Call, Entry, Ident, ListNode, Literal, MapNode, Node, Select, Struct
from apiserver.cel.tokens import END, Token, UnescapeError, tokenize, unquote, unquote_bytes
from apiserver.cel.values import INT_MAX, UINT_MAX, Uint

RECURSION_DEPTH_MAX = 250  # cel-go's; deeper nesting is refused
CODE_POINTS_MAX = 100_000  # cel-go's; Kubernetes has lower limits of its own for most fields

Macros = Mapping[tuple[str, int, bool], tuple[Expander, int]]

_RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]
)
_RELATIONS = {"<": "_<_", "<=": "_<=_", ">=": "_>=_", ">": "_>_", "==": "_==_", "!=": "_!=_", "in": "@in"}
_SUMS = {"+": "_+_", "-": "_-_"}
_PRODUCTS = {"*": "_*_", "/": "_/_", "%": "_%_"}
_PRIMARY = "'[', '{', '(', '.', '-', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER"
_EXPRESSION = _PRIMARY.replace("'-',", "'-', '!',")
_OPERAND_STARTS = frozenset(
    ["[", "{", "(", ".", "-", "!", "true", "false", "null", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER"]
)
_OPERAND_ENDS = frozenset(
    ["]", "}", ")", "true", "false", "null", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER", "ESC_IDENTIFIER"]
)
_MEMBER_STARTS = _OPERAND_STARTS - {"!"}
_FOLLOWING = frozenset([*_RELATIONS, *_SUMS, *_PRODUCTS, "&&", "||", "?", ",", END])


class _Stop(Exception):
    """The source cannot be read on."""


def parse(source: str, macros: Macros, minor: int) -> Node:
    """Read one expression.

    Raises:
        CompileError: with every fault that could be told.
    """
    if len(source) > CODE_POINTS_MAX:
        message = f"expression code point size exceeds limit: size: {len(source)}, limit {CODE_POINTS_MAX}"
        raise CompileError([Issue(-1, -1, message)], source)
    parser = _Parser(source, macros, minor)
    try:
        node: Node | None = parser.expression(0)
        parser.expect_end()
    except _Stop:
        node = None
    if parser.issues or node is None:
        raise CompileError(parser.issues, source)
    return node


def locate(source: str, offset: int) -> tuple[int, int]:
    """Line (from 1) and column (from 0) of a code point."""
    line_start = source.rfind("\n", 0, offset) + 1
    return source.count("\n", 0, offset) + 1, offset - line_start


class _Parser:
    def __init__(self, source: str, macros: Macros, minor: int) -> None:
        self.source = source
        self.macros = macros
        self.minor = minor
        self.issues: list[Issue] = []
        self.tokens, faults = tokenize(source)
        self.position = 0
        self.recovering = False  # after a syntax error, until a word fits again: what fails meanwhile is a consequence
        self.closers: list[str] = []
        for fault in faults:
            self.report(fault.offset, f"Syntax error: token recognition error at: '{_visible(fault.text)}'")

    def report(self, offset: int, message: str) -> None:
        self.issues.append(Issue(*locate(self.source, offset), message))

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def advance(self) -> Token:
        token = self.tokens[self.position]
        if token.kind != END:
            self.position += 1
        self.recovering = False
        return token

    def peek(self, distance: int = 1) -> Token:
        return self.tokens[min(self.position + distance, len(self.tokens) - 1)]

    def syntax_error(self, message: str, token: Token | None = None) -> None:
        """Report a fault, unless it follows from one before."""
        if not self.recovering:
            self.report((token or self.token).offset, f"Syntax error: {message}")
        self.recovering = True

    def between(self, first: Token, last: Token) -> str:
        """The source from one word to another, both included."""
        end = len(self.source) if last.kind == END else last.offset + len(last.text)
        return _visible(self.source[first.offset : end])

    def recover(self) -> Node:
        """Go on behind a fault, as ANTLR does: at the next operator, or where something open is closed. The node stands for nothing."""
        offset = self.token.offset
        while self.token.kind not in _FOLLOWING and self.token.kind not in self.closers:
            self.position += 1
        return Literal(offset, None)

    def expect(self, kind: str, expecting: str) -> Token:
        """Take one word of this kind. One word too many is told and skipped; a missing one is told where the next word fits behind it."""
        token = self.token
        if token.kind == kind:
            return self.advance()
        if token.kind != END and self.peek().kind == kind:
            self.syntax_error(f"extraneous input {_quoted(token)} expecting {expecting}")
            self.position += 1
            return self.advance()
        if token.kind != END and self.peek().kind == "," and "','" in expecting:
            # the comma behind the word too many is then taken for the one that may end a literal
            self.syntax_error(f"extraneous input {_quoted(token)} expecting {expecting}")
            self.position += 1
            self.advance()
            return self.expect(kind, f"'{kind}'")
        fits = token.kind in _OPERAND_STARTS if kind == ":" else token.kind in _FOLLOWING or token.kind in self.closers
        if fits and expecting == f"'{kind}'":
            self.syntax_error(f"missing {expecting} at {_quoted(token)}")
            return token
        self.syntax_error(f"mismatched input {_quoted(token)} expecting {expecting}")
        raise _Stop

    def expect_end(self) -> None:
        if self.token.kind == END:
            return
        word = "extraneous" if self.peek().kind == END else "mismatched"
        self.syntax_error(f"{word} input {_quoted(self.token)} expecting <EOF>")

    def enclosed(self, closer: str, depth: int) -> Node:
        """An expression up to a closing bracket."""
        self.closers.append(closer)
        node = self.expression(depth)
        self.closers.pop()
        return node

    def deeper(self, depth: int) -> int:
        if depth >= RECURSION_DEPTH_MAX:
            self.issues.append(Issue(-1, -1, f"expression recursion limit exceeded: {RECURSION_DEPTH_MAX}"))
            raise _Stop
        return depth + 1

    # --- the grammar, loosest first --------------------------------------------------------------------------------------------

    def expression(self, depth: int) -> Node:
        depth = self.deeper(depth)
        condition = self.logical("||", depth)
        if self.token.kind != "?":
            return condition
        operator = self.advance()
        self.closers.append(":")
        then = self.logical("||", depth)
        self.closers.pop()
        self.expect(":", "':'")
        otherwise = self.expression(depth)
        return Call(operator.offset, "_?_:_", [condition, then, otherwise])

    def logical(self, operator: str, depth: int) -> Node:
        """`||` or `&&`: a run of one operator becomes a balanced tree, so a long rule is not a deep one."""
        terms = [self.logical("&&", depth) if operator == "||" else self.relation(depth)]
        offsets: list[int] = []
        while self.token.kind == operator:
            offsets.append(self.advance().offset)
            terms.append(self.logical("&&", depth) if operator == "||" else self.relation(depth))
        if not offsets:
            return terms[0]
        return _balanced(f"_{operator}_", terms, offsets, 0, len(offsets) - 1)

    def relation(self, depth: int) -> Node:
        left = self.sum(depth)
        chain = depth
        while self.token.kind in _RELATIONS:
            chain = self.deeper(chain)
            operator = self.advance()
            left = Call(operator.offset, _RELATIONS[operator.kind], [left, self.sum(depth)])
        return left

    def sum(self, depth: int) -> Node:
        left = self.product(depth)
        chain = depth
        while self.token.kind in _SUMS:
            chain = self.deeper(chain)
            operator = self.advance()
            left = Call(operator.offset, _SUMS[operator.kind], [left, self.product(depth)])
        return left

    def product(self, depth: int) -> Node:
        left = self.unary(depth)
        chain = depth
        while self.token.kind in _PRODUCTS:
            chain = self.deeper(chain)
            operator = self.advance()
            left = Call(operator.offset, _PRODUCTS[operator.kind], [left, self.unary(depth)])
        return left

    def unary(self, depth: int) -> Node:
        token = self.token
        if token.kind not in ("!", "-"):
            return self.member(depth)
        if token.kind == "-" and self.tokens[self.position + 1].kind in ("NUM_INT", "NUM_FLOAT"):
            return self.member(depth)
        count = 0
        while self.peek(count).kind == token.kind:
            count += 1
        following = self.peek(count)
        if following.kind not in _MEMBER_STARTS:
            return self.bad_unary(token, following, count)
        for _ in range(count):
            self.advance()
        operand = self.member(depth)
        if count % 2 == 0:
            return operand
        return Call(token.offset, "!_" if token.kind == "!" else "-_", [operand])

    def bad_unary(self, token: Token, following: Token, count: int) -> Node:
        """A sign with no operand: a minus is then read as an operator that has none before it."""
        if token.kind == "!":
            self.position += count
            self.syntax_error(f"extraneous input {_quoted(following)} expecting {{{_EXPRESSION}}}", following)
            return self.recover()
        self.syntax_error(f"no viable alternative at input '{self.between(token, following)}'", following)
        return Literal(token.offset, None)

    def member(self, depth: int) -> Node:
        node = self.primary(depth)
        chain = depth
        while True:
            token = self.token
            if token.kind == ".":
                chain = self.deeper(chain)
                node = self.selection(node, depth)
            elif token.kind == "[":
                chain = self.deeper(chain)
                self.advance()
                optional = self.maybe("?")
                index = self.enclosed("]", depth)
                self.expect("]", "']'")
                if optional and self.minor < 28:
                    self.report(token.offset, "unsupported syntax '[?'")
                node = Call(token.offset, "_[?_]" if optional else "_[_]", [node, index])
            else:
                return node

    def maybe(self, kind: str) -> bool:
        if self.token.kind == kind:
            self.advance()
            return True
        return False

    def selection(self, operand: Node, depth: int) -> Node:
        """`.name`, `.?name` or `.name(arguments)`."""
        dot = self.advance()
        optional = self.maybe("?")
        name = self.token
        if name.kind not in ("IDENTIFIER", "ESC_IDENTIFIER"):
            if name.text in ("true", "false", "null"):
                self.syntax_error(f"mismatched input '{name.text}' expecting IDENTIFIER", name)
            elif optional or name.kind == "?":
                word = "extraneous" if name.kind != END and self.peek().kind in ("IDENTIFIER", "ESC_IDENTIFIER") else "mismatched"
                self.syntax_error(f"{word} input {_quoted(name)} expecting {{IDENTIFIER, ESC_IDENTIFIER}}")
            else:
                self.syntax_error(f"no viable alternative at input '{self.between(dot, name)}'")
            return self.recover()
        self.advance()
        field = name.text[1:-1] if name.kind == "ESC_IDENTIFIER" else name.text
        if optional:
            if self.minor < 28:
                self.report(dot.offset, "unsupported syntax '.?'")
            return Call(dot.offset, "_?._", [operand, Literal(name.offset, field)])
        if self.token.kind == "(" and name.kind == "IDENTIFIER":
            parenthesis = self.advance()
            return self.call(parenthesis.offset, field, operand, self.arguments(depth))
        return Select(dot.offset, operand, field)

    def arguments(self, depth: int) -> list[Node]:
        if self.maybe(")"):
            return []
        found = [self.enclosed(")", depth)]
        while self.maybe(","):
            found.append(self.enclosed(")", depth))
        self.expect(")", "')'")
        return found

    def call(self, offset: int, function: str, target: Node | None, arguments: list[Node]) -> Node:
        macro = self.macros.get((function, len(arguments), target is not None))
        if macro is not None and macro[1] <= self.minor:
            try:
                expanded = macro[0](offset, target, arguments)
            except MacroError as error:
                self.report(error.offset, error.message)
                return Literal(offset, None)
            if expanded is not None:
                return expanded
        return Call(offset, function, arguments, target)

    def primary(self, depth: int) -> Node:
        token = self.token
        kind = token.kind
        if kind == "IDENTIFIER" or kind == ".":
            return self.name(depth)
        if kind == "(":
            self.advance()
            node = self.enclosed(")", depth)
            self.expect(")", "')'")
            return node
        if kind == "[":
            return self.list_node(depth)
        if kind == "{":
            self.advance()
            return MapNode(token.offset, self.entries(depth, fields=False))
        return self.literal()

    def name(self, depth: int) -> Node:
        """A name, a call of a global function, or a message."""
        start = self.position
        leading = self.token.kind == "."
        if leading:
            self.advance()
        if self.token.kind != "IDENTIFIER":
            self.syntax_error(f"no viable alternative at input '{self.between(self.tokens[start], self.token)}'")
            return self.recover()
        if self.is_message(self.position):
            return self.message(start, leading, depth)
        word = self.advance()
        prefix = "." if leading else ""
        first = self.tokens[start]
        if word.text in _RESERVED:
            self.report(first.offset, f"reserved identifier: {word.text}")
            if self.token.kind == "(":
                self.advance()
                self.arguments(depth)
            return Literal(word.offset, None)
        if self.token.kind == "(":
            parenthesis = self.advance()
            return self.call(parenthesis.offset, prefix + word.text, None, self.arguments(depth))
        return Ident(word.offset, prefix + word.text)

    def is_message(self, position: int) -> bool:
        """Whether `a.b.c {` begins here."""
        tokens = self.tokens
        while True:
            following = tokens[position + 1].kind
            if following == "{":
                return True
            if following != "." or tokens[position + 2].kind != "IDENTIFIER":
                return False
            position += 2

    def message(self, start: int, leading: bool, depth: int) -> Node:
        words = [self.advance().text]
        while self.maybe("."):
            words.append(self.advance().text)
        brace = self.advance()
        name = ("." if leading else "") + ".".join(words)
        return Struct(brace.offset, name, self.entries(depth, fields=True))

    def list_node(self, depth: int) -> Node:
        bracket = self.advance()
        elements: list[Node] = []
        optional: set[int] = set()
        while not self.maybe("]"):
            if self.token.kind == "?":
                if self.minor < 28:
                    self.report(self.token.offset, "unsupported syntax '?'")
                self.advance()
                optional.add(len(elements))
            elements.append(self.enclosed("]", depth))
            if not self.maybe(","):
                self.expect("]", "{']', ','}")
                break
            if self.token.kind not in _OPERAND_STARTS and self.token.kind != "?":
                self.expect("]", "']'")
                break
        return ListNode(bracket.offset, elements, frozenset(optional))

    def entries(self, depth: int, fields: bool) -> list[Entry]:
        found: list[Entry] = []
        while not self.maybe("}"):
            optional = False
            if self.token.kind == "?":
                if self.minor < 28:
                    self.report(self.token.offset, "unsupported syntax '?'")
                self.advance()
                optional = True
            key: Node = self.field_name() if fields else self.enclosed(":", depth)
            colon = self.expect(":", "':'")
            found.append(Entry(colon.offset, key, self.enclosed("}", depth), optional))
            if not self.maybe(","):
                self.expect("}", "{'}', ','}")
                break
            if self.token.kind not in _OPERAND_STARTS and self.token.kind not in ("?", "ESC_IDENTIFIER"):
                self.expect("}", "'}'")
                break
        return found

    def field_name(self) -> Literal:
        token = self.token
        if token.kind not in ("IDENTIFIER", "ESC_IDENTIFIER"):
            self.syntax_error(f"mismatched input {_quoted(token)} expecting {{'}}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}}")
            raise _Stop
        self.advance()
        return Literal(token.offset, token.text[1:-1] if token.kind == "ESC_IDENTIFIER" else token.text)

    def literal(self) -> Node:
        token = self.token
        negative = token.kind == "-"
        if negative:
            self.advance()
        number = self.token
        text = number.text
        assert not negative or number.kind in ("NUM_INT", "NUM_FLOAT"), number
        if number.kind == "NUM_INT":
            self.advance()
            value = int(text, 16 if text[:2] == "0x" else 10) if len(text) < 64 else INT_MAX + 2
            if value > INT_MAX + (1 if negative else 0):
                self.report(token.offset, "invalid int literal")
            return Literal(token.offset, -value if negative else value)
        if number.kind == "NUM_UINT":
            self.advance()
            unsigned = int(text[:-1], 16 if text[:2] == "0x" else 10) if len(text) < 64 else UINT_MAX + 1
            if unsigned > UINT_MAX:
                self.report(token.offset, "invalid uint literal")
            return Literal(token.offset, Uint(unsigned))
        if number.kind == "NUM_FLOAT":
            self.advance()
            real = float(text)
            if real in (float("inf"), float("-inf")):
                self.report(token.offset, "invalid double literal")
            return Literal(token.offset, -real if negative else real)
        if token.kind in ("STRING", "BYTES"):
            self.advance()
            try:
                return Literal(token.offset, unquote(text, False) if token.kind == "STRING" else unquote_bytes(text[1:]))
            except UnescapeError as error:
                self.report(token.offset, str(error))
                return Literal(token.offset, "")
        if token.kind in ("true", "false", "null"):
            self.advance()
            return Literal(token.offset, {"true": True, "false": False, "null": None}[token.kind])
        return self.unexpected(token)

    def unexpected(self, token: Token) -> Node:
        """A word that begins no operand: one too many, or the operand is missing."""
        expecting = _EXPRESSION
        closes_call = False
        if self.position > 1 and self.tokens[self.position - 1].kind == "(" and self.tokens[self.position - 2].kind == "IDENTIFIER":
            expecting = _EXPRESSION.replace("'(',", "'(', ')',")
            closes_call = self.peek().kind == ")"
        elif self.position and self.tokens[self.position - 1].kind == "[":
            expecting = _EXPRESSION.replace("'!',", "'!', '?',")
            if self.position == 1 or self.tokens[self.position - 2].kind not in _OPERAND_ENDS:
                expecting = expecting.replace("'[',", "'[', ']',").replace("'.',", "'.', ',',")
        if token.kind != END and (self.peek().kind in _OPERAND_STARTS or closes_call) and not self.recovering:
            self.syntax_error(f"extraneous input {_quoted(token)} expecting {{{expecting}}}")
            self.position += 1
            self.recovering = False
            if closes_call:
                return Literal(token.offset, None)
            return self.primary(0) if self.token.kind not in ("-", "!") else self.unary(0)
        self.syntax_error(f"mismatched input {_quoted(token)} expecting {{{expecting}}}")
        return self.recover()


def _balanced(function: str, terms: list[Node], offsets: list[int], low: int, high: int) -> Node:
    middle = (low + high + 1) // 2
    left = terms[middle] if middle == low else _balanced(function, terms, offsets, low, middle - 1)
    right = terms[middle + 1] if middle == high else _balanced(function, terms, offsets, middle + 1, high)
    return Call(offsets[middle], function, [left, right])


_INVISIBLE = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _visible(text: str) -> str:
    return re.sub("[\n\r\t]", lambda found: _INVISIBLE[found.group()], text)


def _quoted(token: Token) -> str:
    return f"'{_visible(token.text)}'" if token.kind != END else "'<EOF>'"
