"""What Go's ``encoding/json`` says of a text that is no JSON: the first byte that does not fit, and what it was looking for."""

from __future__ import annotations

import re

END = "unexpected end of JSON input"

_DIGITS = re.compile(rb"[0-9]*")
_SPACE = re.compile(rb"[ \t\r\n]*")
_PLAIN = re.compile(rb'[^"\\\x00-\x1f]*')
_HEX = b"0123456789abcdefABCDEF"
_LITERALS = {b"t": b"true", b"f": b"false", b"n": b"null"}


class _Stop(Exception):
    """Carries the message."""


def explain(body: bytes) -> str:
    """The message for a body that does not parse; "" if no fault is found (one that Go forgives)."""
    try:
        _Scanner(body).document()
    except _Stop as stop:
        return str(stop)
    return ""


def quoted(byte: int) -> str:
    """A byte as Go's error shows it."""
    if byte == ord("'"):
        return r"'\''"
    if byte == ord('"'):
        return "'\"'"
    escapes = {7: r"\a", 8: r"\b", 9: r"\t", 10: r"\n", 11: r"\v", 12: r"\f", 13: r"\r", 92: r"\\"}
    if byte in escapes:
        return f"'{escapes[byte]}'"
    if byte < 0x20 or byte == 0x7F:
        return f"'\\x{byte:02x}'"
    # Go quotes the byte as if it were a code point
    return f"'\\u{byte:04x}'" if 0x80 <= byte < 0xA0 or byte == 0xAD else f"'{chr(byte)}'"


class _Scanner:
    """One pass over the bytes with a stack of the open containers, no recursion."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def document(self) -> None:
        stack: list[int] = []
        self._value_start(stack)
        while stack:
            self._after_value(stack)
        byte = self._next_byte()
        if byte is not None:
            raise self._invalid(byte, "after top-level value")

    def _value_start(self, stack: list[int], empty_array: bool = False) -> None:
        """Reads a scalar whole, or opens containers down to the first scalar or empty container."""
        while True:
            byte = self._byte()
            if byte == 0x7B:
                self._at += 1
                if self._byte() == 0x7D:
                    self._at += 1
                    return
                self._key()
                stack.append(0x7B)
            elif byte == 0x5B:
                self._at += 1
                if self._byte() == 0x5D:
                    self._at += 1
                    return
                stack.append(0x5B)
            else:
                self._scalar(byte)
                return

    def _after_value(self, stack: list[int]) -> None:
        byte = self._byte()
        in_object = stack[-1] == 0x7B
        if byte == (0x7D if in_object else 0x5D):
            self._at += 1
            stack.pop()
        elif byte == 0x2C:
            self._at += 1
            if in_object:
                self._key()
            self._value_start(stack)
        else:
            raise self._invalid(byte, "after object key:value pair" if in_object else "after array element")

    def _key(self) -> None:
        byte = self._byte()
        if byte != 0x22:
            raise self._invalid(byte, "looking for beginning of object key string")
        self._string()
        byte = self._byte()
        if byte != 0x3A:
            raise self._invalid(byte, "after object key")
        self._at += 1

    def _scalar(self, byte: int) -> None:
        if byte == 0x22:
            self._string()
        elif byte == 0x2D or 0x30 <= byte <= 0x39:
            self._number()
        elif bytes([byte]) in _LITERALS:
            word = _LITERALS[bytes([byte])]
            for expected in word[1:]:
                self._at += 1
                found = self._raw_byte()
                if found != expected:
                    raise self._invalid(found, f"in literal {word.decode()} (expecting {quoted(expected)})")
            self._at += 1
        else:
            raise self._invalid(byte, "looking for beginning of value")

    def _string(self) -> None:
        self._at += 1
        while True:
            match = _PLAIN.match(self._body, self._at)
            assert match is not None
            self._at = match.end()
            byte = self._raw_byte()
            if byte == 0x22:
                self._at += 1
                return
            if byte != 0x5C:
                raise self._invalid(byte, "in string literal")
            self._at += 1
            escape = self._raw_byte()
            if escape == 0x75:
                for _ in range(4):
                    self._at += 1
                    digit = self._raw_byte()
                    if digit not in _HEX:
                        raise self._invalid(digit, "in \\u hexadecimal character escape")
            elif escape not in b'"\\/bfnrt':
                raise self._invalid(escape, "in string escape code")
            self._at += 1

    def _number(self) -> None:
        if self._body[self._at] == 0x2D:
            self._at += 1
            first = self._raw_byte()
            if not 0x30 <= first <= 0x39:
                raise self._invalid(first, "in numeric literal")
        if self._body[self._at] == 0x30:
            self._at += 1
        else:
            self._digits()
        if self._body[self._at : self._at + 1] == b".":
            self._at += 1
            first = self._raw_byte()
            if not 0x30 <= first <= 0x39:
                raise self._invalid(first, "after decimal point in numeric literal")
            self._digits()
        if self._body[self._at : self._at + 1] in (b"e", b"E"):
            self._at += 1
            if self._raw_byte() in b"+-":
                self._at += 1
            first = self._raw_byte()
            if not 0x30 <= first <= 0x39:
                raise self._invalid(first, "in exponent of numeric literal")
            self._digits()

    def _digits(self) -> None:
        match = _DIGITS.match(self._body, self._at)
        assert match is not None
        self._at = match.end()

    def _next_byte(self) -> int | None:
        match = _SPACE.match(self._body, self._at)
        assert match is not None
        self._at = match.end()
        return self._body[self._at] if self._at < len(self._body) else None

    def _byte(self) -> int:
        byte = self._next_byte()
        if byte is None:
            raise _Stop(END)
        return byte

    def _raw_byte(self) -> int:
        if self._at >= len(self._body):
            raise _Stop(END)
        return self._body[self._at]

    @staticmethod
    def _invalid(byte: int, context: str) -> _Stop:
        return _Stop(f"invalid character {quoted(byte)} {context}")
