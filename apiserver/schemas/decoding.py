"""From a body, or an object that a patch made, to an object of a kind as Kubernetes' decoder and encoder would leave it.

    decode(type, body, validator) -> Decoded(obj, strict_errors)       or DecodeError

What it does, as Go's strict decoder (``sigs.k8s.io/json``) and the round trip through Go's types do it:
- fields the type does not have are dropped and reported (``unknown field "spec.foo"``; names are case-sensitive);
- keys that stand twice are reported (``duplicate field "spec.a"``); objects are merged, of other values the last counts;
- nulls go away (in lists and maps they become the zero value), and so do optional lists and maps that are empty, and optional scalars
  that are zero where Go cannot tell that from absent;
- a value of a wrong type is refused: ``json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32``;
- fields that Go always writes get the zero of their type where they are missing (``schemas.always_written``);
- quantities, times and base64 get their canonical form.

Worked example: ``{"spec": {"replicas": "3", "replica": 1}}`` as a Deployment. ``spec`` is walked with its fields; ``replicas`` wants an
int32 and finds a string: the first such error is what the caller gets. Without it, ``strict_errors`` would be
``('unknown field "spec.replica"',)`` and the object ``{"spec": {}}``. Whether strict errors refuse the request, warn or are silent is the
caller's business (``fieldValidation``).

The argument is never changed; what needs no change is shared with it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from apiserver.machinery import quantity, timestamps
from apiserver.machinery.types import Shape, Type
from apiserver.schemas.go_types import go_type
from apiserver.schemas.json_bodies import DecodeError, Duplicated, Number, check_depth, parse, parse_literally, plain
from apiserver.schemas.validators import FLOAT64_EXACT_MAX, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, Validator

__all__ = ["STRICT_ERRORS_MAX", "DecodeError", "Decoded", "decode", "strict_decoding_error"]

#: the strict decoder reports no more than that many
STRICT_ERRORS_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """``strict_errors``: the unknown and duplicate fields in the order of the text, each once."""

    obj: dict[str, Any]
    strict_errors: tuple[str, ...] = ()


def decode(type_: Type, source: bytes | dict[str, Any], validator: Validator | None = None) -> Decoded:
    """``validator``, compiled from the same type, spares the walk for objects that would not change. Raises DecodeError."""
    if isinstance(source, bytes):
        parsed = parse(source)
        value, plain = parsed.value, not parsed.has_duplicates
    else:
        value, plain = source, True
    if not isinstance(value, dict):
        raise DecodeError(f"json: cannot unmarshal {_word(value)} into Go value of type {go_type(type_)}")
    if plain:
        value = _without_null_creation_timestamp(value)
        if validator is not None and validator.accepts(value):
            return Decoded(obj=value)
    if not isinstance(source, bytes):
        check_depth(source)
    walk = _Walk()
    obj = walk.struct(type_, value, None)
    if walk.wants_literals and isinstance(source, bytes):
        walk = _Walk()
        walk.struct(type_, parse_literally(source), None)
    if walk.error:
        raise DecodeError(walk.error)
    return Decoded(obj=obj, strict_errors=tuple(walk.strict_errors))


def strict_decoding_error(errors: Iterable[str]) -> str:
    """The text under which a request with ``fieldValidation=Strict`` is refused."""
    return "strict decoding error: " + ", ".join(errors)


def _without_null_creation_timestamp(value: dict[str, Any]) -> dict[str, Any]:
    """Go clients write ``creationTimestamp: null`` into every object; the one of the object itself is not worth a walk."""
    metadata = value.get("metadata")
    if isinstance(metadata, dict) and "creationTimestamp" in metadata and metadata["creationTimestamp"] is None:
        return {**value, "metadata": {k: v for k, v in metadata.items() if k != "creationTimestamp"}}
    return value


def _word(value: Any) -> str:
    """Go's word for a JSON value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, list):
        return "array"
    return "object" if isinstance(value, dict) else "null"


class _Path:
    """A field path that is only spelled out where something is to be said about it."""

    __slots__ = ("parent", "part")

    def __init__(self, parent: _Path | None, part: str | int) -> None:
        self.parent = parent
        self.part = part

    def spelled(self) -> str:
        parts: list[str] = []
        path: _Path | None = self
        while path is not None:
            if isinstance(path.part, int):
                parts.append(f"[{path.part}]")
            else:
                parts.append(path.part if path.parent is None else "." + path.part)
            path = path.parent
        return "".join(reversed(parts))

    def fields(self) -> str:
        """As Go's error context has it: the names of struct fields alone, which here are the parts that ``struct`` added."""
        parts: list[str] = []
        path: _Path | None = self
        while path is not None:
            if isinstance(path, _FieldPath):
                parts.append(str(path.part))
            path = path.parent
        return ".".join(reversed(parts))


class _FieldPath(_Path):
    """A step into a field of a struct."""

    __slots__ = ("struct",)

    def __init__(self, parent: _Path | None, part: str, struct: Type) -> None:
        super().__init__(parent, part)
        self.struct = struct


_STRING = Type(shape=Shape.STRING)


class _Walk:
    """One object's decoding. ``error`` is the first type error; the walk goes on after it, as Go's does, but its result is void."""

    __slots__ = ("_seen", "error", "strict_errors", "wants_literals")

    def __init__(self) -> None:
        self.error = ""
        self.strict_errors: list[str] = []
        self._seen: set[str] = set()
        #: the error shows a number that should be shown as it was written
        self.wants_literals = False

    def struct(self, type_: Type, value: dict[str, Any], path: _Path | None) -> dict[str, Any]:
        out: dict[str, Any] = {}
        fields = type_.fields
        seen: set[str] | None = set() if isinstance(value, Duplicated) else None
        pairs = value.pairs if isinstance(value, Duplicated) else value.items()
        for key, raw in pairs:
            field = fields.get(key)
            if field is None:
                self._strict("unknown", _Path(path, key))
                continue
            here = _FieldPath(path, key, type_)
            if seen is not None:
                if key in seen:
                    self._strict("duplicate", here)
                seen.add(key)
            if raw is None:
                continue
            decoded = self.value(field, raw, here)
            if decoded is None:
                continue  # one of a definition's unions that holds nothing
            if not decoded and (field.zero_is_absent or self._is_left_out(type_, field, key)):
                out.pop(key, None)
                if raw in ([], {}) and _says_something(type_, path, key):
                    out[key] = decoded
                continue
            if seen is not None and isinstance(decoded, dict) and isinstance(out.get(key), dict):
                decoded = {**out[key], **decoded}
            out[key] = decoded
        for key in type_.always_written:
            if key not in out:
                field = fields[key]
                out[key] = self.struct(field, {}, path) if field.shape is Shape.STRUCT else _ZERO[field.shape]
        return out

    @staticmethod
    def _is_left_out(type_: Type, field: Type, key: str) -> bool:
        """Optional lists and maps are not written when empty."""
        return field.shape in (Shape.LIST, Shape.MAP) and key not in type_.required

    def value(self, type_: Type, raw: Any, path: _Path) -> Any:
        shape = type_.shape
        if shape is Shape.STRING:
            if type(raw) is str and not type_.format:
                return raw
            return self._string(type_, raw, path)
        if shape is Shape.STRUCT:
            if isinstance(raw, dict):
                return self.struct(type_, raw, path)
            return self._wrong(type_, raw, path)
        if shape is Shape.LIST:
            if isinstance(raw, list):
                assert type_.element is not None
                element = type_.element
                return [self._item(element, item, _Path(path, position)) for position, item in enumerate(raw)]
            return self._wrong(type_, raw, path)
        if shape is Shape.MAP:
            if isinstance(raw, dict):
                return self._map(type_, raw, path)
            return self._wrong(type_, raw, path)
        if shape is Shape.BOOLEAN:
            return raw if isinstance(raw, bool) else self._wrong(type_, raw, path)
        if shape is Shape.INTEGER:
            return self._integer(type_, raw, path)
        if shape is Shape.NUMBER:
            return _float64(raw) if isinstance(raw, (int, float)) and not isinstance(raw, bool) else self._wrong(type_, raw, path)
        if shape is Shape.ANY:
            return self._any(type_, raw)
        return self._special(type_, raw)

    def _item(self, element: Type, raw: Any, path: _Path) -> Any:
        """Of a list or map: null is the element's zero, which of a struct is what ``{}`` decodes to."""
        if raw is not None:
            return self.value(element, raw, path)
        return self.struct(element, {}, path) if element.shape is Shape.STRUCT else _zero(element)

    def _map(self, type_: Type, raw: dict[str, Any], path: _Path) -> dict[str, Any]:
        assert type_.element is not None
        element = type_.element
        out: dict[str, Any] = {}
        if isinstance(raw, Duplicated):
            for key, item in raw.pairs:
                if key in out:
                    self._strict("duplicate", _Path(path, key))
                out[key] = self._item(element, item, _Path(path, key))
            return out
        for key, item in raw.items():
            out[key] = self._item(element, item, _Path(path, key))
        return out

    def _string(self, type_: Type, raw: Any, path: _Path) -> Any:
        if not isinstance(raw, str):
            return self._wrong(type_, raw, path)
        if type_.format != "byte":
            return raw
        try:
            return canonical_base64(raw)
        except DecodeError as e:
            self._fail(str(e))
            return raw

    def _integer(self, type_: Type, raw: Any, path: _Path) -> Any:
        if isinstance(raw, bool) or not isinstance(raw, (int, float)):
            return self._wrong(type_, raw, path)
        low, high = (INT32_MIN, INT32_MAX) if type_.format == "int32" else (INT64_MIN, INT64_MAX)
        if isinstance(raw, int) and low <= raw <= high:
            return raw
        if not self.error:
            self.wants_literals = not isinstance(raw, (int, Number))
        return self._wrong(type_, raw, path, word=f"number {_literal(raw)}")

    def _any(self, type_: Type, raw: Any) -> Any:
        if type_.element is not None:
            return self._schema_union(type_, type_.element, raw)
        return plain(raw) if isinstance(raw, (dict, list)) else raw

    def _schema_union(self, type_: Type, schema: Type, raw: Any) -> Any:
        """A schema or something else (apiextensions ``v1/marshal.go``). The schema's own decoder is not a strict one. What is neither is
        an error only beside a bool; elsewhere it is nothing, which is None, or of ``items``, which is then there without anything in it,
        ``()``."""
        if type_.go_name == "JSONSchemaPropsOrBool" and not isinstance(raw, (dict, bool)):
            self._fail("boolean or JSON schema expected")
            return None
        nothing = () if type_.go_name == "JSONSchemaPropsOrArray" else None
        if isinstance(raw, bool):
            return raw if type_.go_name == "JSONSchemaPropsOrBool" else nothing
        if not isinstance(raw, (dict, list)):
            return nothing
        inner = _Walk()
        decoded: Any
        if isinstance(raw, dict):
            decoded = inner.struct(schema, raw, None)
        else:
            element = _STRING if type_.go_name == "JSONSchemaPropsOrStringArray" else schema
            decoded = [inner._item(element, item, _Path(None, position)) for position, item in enumerate(raw)]
        if inner.error:
            self._fail(inner.error)
        return decoded

    def _special(self, type_: Type, raw: Any) -> Any:
        """Types with a decoder of their own, whose errors do not name the field."""
        shape = type_.shape
        try:
            if shape is Shape.QUANTITY:
                return _canonical_quantity(raw)
            if shape is Shape.INT_OR_STRING:
                return self._int_or_string(raw)
            if not isinstance(raw, str):
                raise DecodeError(f"json: cannot unmarshal {_word(raw)} into Go value of type string")
            return timestamps.canonical_time(raw) if shape is Shape.TIME else timestamps.canonical_micro_time(raw)
        except (quantity.QuantityError, timestamps.TimestampError, DecodeError) as e:
            self._fail(str(e))
            return raw

    @staticmethod
    def _int_or_string(raw: Any) -> Any:
        if isinstance(raw, str) or (isinstance(raw, int) and not isinstance(raw, bool) and INT32_MIN <= raw <= INT32_MAX):
            return raw
        word = _word(raw) + (f" {_literal(raw)}" if _word(raw) == "number" else "")
        raise DecodeError(f"json: cannot unmarshal {word} into Go value of type int32")

    def _wrong(self, type_: Type, raw: Any, path: _Path, word: str = "") -> Any:
        if not self.error:
            struct_path: _Path | None = path
            while struct_path is not None and not isinstance(struct_path, _FieldPath):
                struct_path = struct_path.parent
            word = word or _word(raw)
            if struct_path is None:
                self._fail(f"json: cannot unmarshal {word} into Go value of type {go_type(type_)}")
            else:
                struct, field = struct_path.struct, str(struct_path.part)
                named = go_type(type_, struct.definition, field, element=struct_path is not path)
                self._fail(f"json: cannot unmarshal {word} into Go struct field {struct.go_name}.{path.fields()} of type {named}")
        return _zero(type_)

    def _fail(self, text: str) -> None:
        if not self.error:
            self.error = text

    def _strict(self, what: str, path: _Path) -> None:
        text = f'{what} field "{path.spelled()}"'
        if text not in self._seen and len(self.strict_errors) < STRICT_ERRORS_MAX:
            self._seen.add(text)
            self.strict_errors.append(text)


def _says_something(type_: Type, path: _Path | None, key: str) -> bool:
    """Of an empty list: that the object's own managedFields be forgotten, or that there be no policies where a list that is left out
    means those of the defaults (which is refused), or, in the schema of a definition, that it is said at all: ``apiextensions`` takes
    it away once it has been looked at."""
    if key == "managedFields":
        return path is not None and path.parent is None and path.part == "metadata"
    return type_.definition.endswith(".JSONSchemaProps") or (key == "policies" and type_.definition.endswith(".HPAScalingRules"))


_ZERO: dict[Shape, Any] = {
    Shape.STRING: "",
    Shape.INTEGER: 0,
    Shape.NUMBER: 0,
    Shape.BOOLEAN: False,
    Shape.QUANTITY: "0",
    Shape.INT_OR_STRING: 0,
}


#: from this on Go writes a float64 with an exponent
_EXPONENT_FROM = 10**21


def _float64(number: float) -> float:
    """A number as Go's float64 has it, which of a great integer is a neighbour."""
    if not isinstance(number, int) or abs(number) <= FLOAT64_EXACT_MAX:
        return number
    near = float(number)
    return int(near) if abs(near) < _EXPONENT_FROM else near


def _zero(type_: Type) -> Any:
    """What a null in a list or map becomes."""
    if type_.shape is Shape.STRUCT:
        return {}
    return _ZERO.get(type_.shape)


def _literal(number: float) -> str:
    if isinstance(number, Number):
        return number.text
    return str(number) if isinstance(number, int) else orjson.dumps(number).decode()


def _canonical_quantity(raw: Any) -> str:
    if isinstance(raw, str):
        return quantity.canonical(raw)
    if isinstance(raw, (bool, dict, list)):
        # Go reads the text of the value as if it were the quantity's
        return quantity.canonical("-")
    return quantity.canonical(_literal(raw))


def canonical_base64(text: str) -> str:
    """RFC 4648 with padding, as Go writes back what it read: line ends skipped, spare bits zero. Raises DecodeError."""
    try:
        return base64.b64encode(base64.b64decode(text.encode("ascii"), validate=True)).decode()
    except (binascii.Error, UnicodeEncodeError):
        return _go_base64(text.encode("utf-8", "surrogatepass"))


_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def _go_base64(data: bytes) -> str:
    """The same byte by byte, for texts with line ends and to say where a text goes wrong."""
    kept = bytearray()
    padding = 0
    for position, byte in enumerate(data):
        if byte in b"\r\n":
            continue
        if padding:
            if byte == 0x3D and len(kept) % 4 == 2 and padding == 1:
                padding = 2
                continue
            raise DecodeError(f"illegal base64 data at input byte {position}")
        if byte == 0x3D and len(kept) % 4 >= 2:
            padding = 1
        elif byte in _ALPHABET:
            kept.append(byte)
        else:
            raise DecodeError(f"illegal base64 data at input byte {position}")
    if (len(kept) + padding) % 4:
        raise DecodeError(f"illegal base64 data at input byte {len(data) - (len(kept) % 4 if not padding else 0)}")
    return base64.b64encode(base64.b64decode(bytes(kept) + b"=" * padding)).decode()
