"""The fast way from a message's bytes to its JSON form: what ``decoding.decode_message`` answers, in a third of the time.

A store that a real cluster has written holds all its objects so, and all of them are read at the start. One table for each message tells
by the whole tag (number and wire type) what to do, so that a field costs one look; parts are read where they lie, without being cut out
first. Whatever is not as Kubernetes writes it (a known field of another wire type, packed numbers) goes the slow way, which decides.
"""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import Any

from apiserver.machinery.objects import Object
from apiserver.schemas.protobuf import decoding, special, table, wire
from apiserver.schemas.protobuf.wire import ProtobufError

#: Texts and moments that are met again and again: uids, labels, the second in which a cluster was made.
_REMEMBERED_BYTES_MAX = 64

# What to do with a field; those up to _LAST_OF_BYTES have bytes.
_TEXT, _MESSAGE, _MESSAGES, _TEXTS, _MAP, _SPECIAL, _INLINE, _MESSAGE_MAP, _BYTES = range(9)
_LAST_OF_BYTES = _BYTES
_BOOL, _INT32, _INT64 = range(9, 12)

_Step = tuple[int, str, Any, bool]


class _Odd(Exception):
    """The slow way has to decide."""


class _Plan:
    """``steps`` by tag: what to do, the JSON name, what to do it with, and whether a zero is kept."""

    __slots__ = ("finish", "message", "numbers", "steps")

    def __init__(self, message: str) -> None:
        self.message = message
        self.steps: dict[int, _Step] = {}
        self.numbers: set[int] = set()
        self.finish: Any = special.FLATTENED.get(message)
        if self.finish is None and table.is_list_type(message):
            self.finish = _items
        for field in table.fields_of(message):
            self.numbers.add(field.number)
            step = _step_of(field)
            if step is not None:
                operation, target, encoding = step
                self.steps[field.number << 3 | encoding] = (operation, field.name, target, field.keeps_zero or field.nilable)


def _items(value: Object) -> Any:
    return value.get("items") or []


def _step_of(field: table.Field) -> tuple[int, Any, int] | None:
    """None: the slow way."""
    kind = field.type
    if field.is_map:
        if kind not in table.SCALARS and kind not in special.READERS and kind not in special.RAW_JSON:
            return _MESSAGE_MAP, kind, wire.BYTES
        value = _value_of(kind)
        return None if value is None else (_MAP, value, wire.BYTES)
    if kind == "bytes" and not field.repeated:
        return _BYTES, None, wire.BYTES
    if kind == "string":
        return (_TEXTS if field.repeated else _TEXT), None, wire.BYTES
    if kind in ("bool", "int32", "int64") and not field.repeated:
        return {"bool": _BOOL, "int32": _INT32, "int64": _INT64}[kind], None, wire.VARINT
    if not field.is_message:
        return None
    read = special.READERS.get(kind)
    if read is not None and not field.repeated:
        return _SPECIAL, _remembering(read), wire.BYTES
    if kind in special.RAW_JSON and not field.repeated:
        return _SPECIAL, lambda data: decoding.decode_message(kind, data), wire.BYTES
    if read is not None or kind in special.RAW_JSON:
        return None
    return (_INLINE if field.inline else _MESSAGES if field.repeated else _MESSAGE), kind, wire.BYTES


def _value_of(kind: str) -> Any:
    """How to read a map's value, from its bytes; None: the slow way."""
    if kind == "string":
        return bytes.decode
    if kind == "bytes":
        return _base64
    read = special.READERS.get(kind)
    return None if read is None else _remembering(read)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _remembering(read: Any) -> Any:
    remembered = lru_cache(maxsize=2048)(read)
    return lambda data: remembered(data) if len(data) <= _REMEMBERED_BYTES_MAX else read(data)


@lru_cache(maxsize=2048)
def _plan(message: str) -> _Plan:
    return _Plan(message)


def read(message: str, data: bytes) -> Any:
    """The JSON form of a message without its envelope. Raises ProtobufError."""
    if message in special.READERS or message in special.RAW_JSON:
        return decoding.decode_message(message, data)
    try:
        return _read(_plan(message), data, 0, len(data), 0)
    except _Odd:
        return decoding.decode_message(message, data)
    except IndexError as error:
        raise ProtobufError("unexpected EOF") from error
    except UnicodeDecodeError as error:
        raise ProtobufError(f"proto: string is not valid UTF-8: {error.reason}") from error


def _read(plan: _Plan, data: bytes, position: int, end: int, depth: int) -> Any:
    """What stands from ``position`` to ``end``. Raises _Odd, IndexError and UnicodeDecodeError beside ProtobufError."""
    if depth > decoding.DEPTH_MAX:
        raise ProtobufError("exceeded max depth")
    out: Object = {}
    steps = plan.steps
    while position < end:
        tag = data[position]
        position += 1
        if tag >= 0x80:
            tag, position = wire.varint(data, position - 1)
        step = steps.get(tag)
        if step is None:
            if tag >> 3 in plan.numbers or not tag >> 3:
                raise _Odd
            position = _behind(tag, data, position, end)
            continue
        operation, name, target, keeps_zero = step
        number = data[position]
        position += 1
        if number >= 0x80:
            more = data[position]
            if more < 0x80:
                number += (more - 1) << 7
                position += 1
            else:
                number, position = wire.varint(data, position - 1)
        if operation > _LAST_OF_BYTES:
            if position > end:
                raise ProtobufError("unexpected EOF")
            value = _number(operation, number)
            if value or keeps_zero:
                out[name] = value
            elif name in out:
                del out[name]  # the last one said counts
            continue
        stop = position + number
        if stop > end:
            raise ProtobufError("unexpected EOF")
        if operation == _TEXT:
            if number or keeps_zero:
                out[name] = data[position:stop].decode()
            elif name in out:
                del out[name]
        elif operation == _MESSAGE:
            out[name] = _read(_plan(target), data, position, stop, depth + 1)
        elif operation == _MESSAGES:
            found = _read(_plan(target), data, position, stop, depth + 1)
            if name in out:
                out[name].append(found)
            else:
                out[name] = [found]
        elif operation == _SPECIAL:
            found = target(data[position:stop])
            if found is not None:
                out[name] = found
        elif operation == _MAP:
            key, value_bytes = _pair(data, position, stop)
            if name in out:
                out[name][key] = target(value_bytes)
            else:
                out[name] = {key: target(value_bytes)}
        elif operation == _TEXTS:
            if name in out:
                out[name].append(data[position:stop].decode())
            else:
                out[name] = [data[position:stop].decode()]
        elif operation == _MESSAGE_MAP:
            key, value_bytes = _pair(data, position, stop)
            found = _read(_plan(target), value_bytes, 0, len(value_bytes), depth + 1)
            if name in out:
                out[name][key] = found
            else:
                out[name] = {key: found}
        elif operation == _BYTES:
            if number or keeps_zero:
                out[name] = _base64(data[position:stop])
            elif name in out:
                del out[name]
        else:
            out.update(_read(_plan(target), data, position, stop, depth + 1))
        position = stop
    return plan.finish(out) if plan.finish is not None else out


def _number(operation: int, number: int) -> int | bool:
    if operation == _BOOL:
        return number != 0
    if operation == _INT32:
        number &= 0xFFFFFFFF
        return number - (1 << 32) if number >> 31 else number
    return number - (1 << 64) if number >> 63 else number


def _pair(data: bytes, position: int, end: int) -> tuple[str, bytes]:
    """An entry of a map, key and value in this order, as they are always written."""
    if position < end and data[position] == 0x0A:
        length, position = wire.varint(data, position + 1)
        stop = position + length
        if stop < end and data[stop] == 0x12:
            key = data[position:stop].decode()
            length, position = wire.varint(data, stop + 1)
            if position + length == end:
                return key, data[position:end]
    raise _Odd


def _behind(tag: int, data: bytes, position: int, end: int) -> int:
    """The position behind an unknown field, which is of a newer version."""
    encoding = tag & 7
    if encoding == wire.VARINT:
        _, position = wire.varint(data, position)
    elif encoding == wire.BYTES:
        length, position = wire.varint(data, position)
        position += length
    elif encoding in (wire.FIXED64, wire.FIXED32):
        position += 8 if encoding == wire.FIXED64 else 4
    else:
        raise ProtobufError(f"proto: illegal wireType {encoding}")
    if position > end:
        raise ProtobufError("unexpected EOF")
    return position
