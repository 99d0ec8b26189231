"""Bodies in Kubernetes' protobuf form, as Go clients (``kubectl create`` among them) send built-in kinds, read into their JSON form.

A body is four bytes ``k8s\\0`` and a ``runtime.Unknown``: the kind, and the object's message in ``raw``. What the fields of a message are
is data, ``protobuf_messages.json.gz``: for each message and field number the JSON name, the type, and flags (``r`` repeated, ``p`` a Go
pointer, ``i`` inlined, ``k`` kept when empty). Go writes fields that are no pointers even when they are zero, and its JSON leaves them
out again; a zero behind a pointer was said on purpose.

Worked example: ``replicas`` of a DeploymentSpec is ``"1": ["replicas", "int32", "p"]``. The bytes ``08 00`` are field 1, a varint, 0; with
``p`` it is ``"replicas": 0``. ``28 00`` is ``minReadySeconds``, no pointer: left out.
"""

from __future__ import annotations

import base64
import datetime
import functools
import gzip
from pathlib import Path
from typing import Any

import orjson

MAGIC = b"k8s\x00"
#: Messages nested deeper are refused, as for JSON bodies.
DEPTH_MAX = 128

_UNKNOWN = "k8s.io.apimachinery.pkg.runtime.Unknown"
_META = "k8s.io.apimachinery.pkg.apis.meta.v1."
#: kinds that live in meta/v1 whatever group and version they are sent under
_META_KINDS = frozenset(("DeleteOptions", "Status", "PartialObjectMetadata"))

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_INTEGERS = frozenset(("int32", "int64"))


class ProtobufError(ValueError):
    """The bytes are no message of the type; the text is for the client."""


@functools.cache
def _messages() -> dict[str, dict[str, list[str]]]:
    path = Path(__file__).with_name("protobuf_messages.json.gz")
    return dict(orjson.loads(gzip.decompress(path.read_bytes())))


def to_json(body: bytes) -> bytes:
    """The JSON of a body. Raises ProtobufError."""
    if not body.startswith(MAGIC):
        raise ProtobufError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    unknown = _message(body[len(MAGIC) :], _UNKNOWN, 0)
    api_version, kind = str(unknown.get("apiVersion") or ""), str(unknown.get("kind") or "")
    name = message_name(api_version, kind)
    if name not in _messages():
        raise ProtobufError(f"no protobuf message is known for {api_version}, Kind={kind}")
    raw = unknown.get("raw") or unknown.get("Raw")
    obj = _message(base64.b64decode(raw) if raw else b"", name, 0)
    return orjson.dumps({"apiVersion": api_version, "kind": kind, **obj})


def message_name(api_version: str, kind: str) -> str:
    """``k8s.io.api.apps.v1.Deployment`` of ``apps/v1`` and ``Deployment``."""
    group, _, version = api_version.rpartition("/")
    if kind in _META_KINDS:
        return _META + kind
    if group == "apiextensions.k8s.io":
        return f"k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.{version}.{kind}"
    if group == "apiregistration.k8s.io":
        return f"k8s.io.kube_aggregator.pkg.apis.apiregistration.{version}.{kind}"
    return f"k8s.io.api.{group.partition('.')[0] or 'core'}.{version}.{kind}"


def _message(data: bytes, name: str, depth: int) -> dict[str, Any]:
    if depth > DEPTH_MAX:
        raise ProtobufError("exceeded max depth")
    fields = _messages()[name]
    out: dict[str, Any] = {}
    position, end = 0, len(data)
    while position < end:
        tag, position = _varint(data, position)
        wire = tag & 7
        value: int | bytes
        if wire == _VARINT:
            value, position = _varint(data, position)
        elif wire == _BYTES:
            length, position = _varint(data, position)
            value = data[position : position + length]
            if len(value) != length:
                raise ProtobufError("unexpected EOF")
            position += length
        elif wire in (_FIXED64, _FIXED32):
            width = 8 if wire == _FIXED64 else 4
            value = int.from_bytes(data[position : position + width], "little")
            position += width
        else:
            raise ProtobufError(f"proto: illegal wireType {wire}")
        field = fields.get(str(tag >> 3))
        if field is not None:  # newer clients may know fields that this server does not
            _put(out, field, value, depth)
    return out


def _put(out: dict[str, Any], field: list[str], value: int | bytes, depth: int) -> None:
    name, type_, flags = field
    if type_.startswith("map<"):
        key, item = _entry(_expect_bytes(value), type_[4:-1].split(",", 1)[1], depth)
        out.setdefault(name, {})[key] = item
        return
    decoded = _value(type_, value, depth)
    if "i" in flags or not name:
        out.update(decoded)
    elif "r" in flags:
        out.setdefault(name, []).append(decoded)
    elif "p" in flags or "k" in flags or decoded not in (None, "", 0, False, {}):
        if decoded is not None:
            out[name] = decoded


def _entry(data: bytes, type_: str, depth: int) -> tuple[str, Any]:
    """One entry of a map: a message of key and value. All keys are strings."""
    key, value = "", _value(type_, 0 if type_ in _INTEGERS or type_ == "bool" else b"", depth)
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        found: int | bytes
        if tag & 7 == _VARINT:
            found, position = _varint(data, position)
        else:
            length, position = _varint(data, position)
            found = data[position : position + length]
            position += length
        if tag >> 3 == 1:
            key = _text(_expect_bytes(found))
        elif tag >> 3 == 2:
            value = _value(type_, found, depth)
    return key, value


def _value(type_: str, value: int | bytes, depth: int) -> Any:
    if type_ == "string":
        return _text(_expect_bytes(value))
    if type_ in _INTEGERS:
        number = _expect_number(value)
        return number - (1 << 64) if number >> 63 else number
    if type_ == "bool":
        return _expect_number(value) != 0
    if type_ == "bytes":
        return base64.b64encode(_expect_bytes(value)).decode()
    if type_ == "double":
        import struct

        return struct.unpack("<d", _expect_number(value).to_bytes(8, "little"))[0]
    found = _message(_expect_bytes(value), type_, depth + 1)
    special = _SPECIAL.get(type_.rpartition(".")[2])
    return special(found) if special is not None else found


def _expect_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ProtobufError("proto: wrong wireType 0")
    return value


def _expect_number(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise ProtobufError("proto: wrong wireType 2")
    return value


def _varint(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if position >= len(data):
            raise ProtobufError("unexpected EOF")
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
        if shift > 63:
            raise ProtobufError("proto: integer overflow")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


# -- messages whose JSON is not an object ------------------------------------------------------------------------------------------


def _time(found: dict[str, Any]) -> str | None:
    moment = _moment(found)
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _micro_time(found: dict[str, Any]) -> str | None:
    moment = _moment(found)
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _moment(found: dict[str, Any]) -> datetime.datetime | None:
    """None for the zero time, which is written as an empty message."""
    if not found:
        return None
    try:
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        return epoch + datetime.timedelta(seconds=found.get("seconds", 0), microseconds=found.get("nanos", 0) // 1000)
    except OverflowError as error:
        raise ProtobufError("a time is out of range") from error


def _embedded(found: dict[str, Any]) -> Any:
    """RawExtension, FieldsV1, JSON: bytes that are JSON, or an object in protobuf of its own."""
    raw = found.get("raw") or found.get("Raw")
    if not raw:
        return None
    data = base64.b64decode(raw)
    try:
        return orjson.loads(to_json(data) if data.startswith(MAGIC) else data)
    except orjson.JSONDecodeError as error:
        raise ProtobufError(str(error)) from error


def _int_or_string(found: dict[str, Any]) -> int | str:
    return str(found.get("strVal", "")) if found.get("type") else int(found.get("intVal", 0))


def _duration(found: dict[str, Any]) -> str:
    """Go's text of a duration: whole seconds are all that API fields hold."""
    nanoseconds = int(found.get("duration", 0))
    seconds, rest = divmod(abs(nanoseconds), 1_000_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    text = (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{seconds}{fraction}s"
    return f"-{text}" if nanoseconds < 0 else text


def _schema_or(other: str) -> Any:
    return lambda found: found["schema"] if found.get("schema") is not None else found.get(other, other == "allows")


_SPECIAL: dict[str, Any] = {
    "Time": _time,
    "Timestamp": _time,
    "MicroTime": _micro_time,
    "Quantity": lambda found: found.get("string", "0"),
    "IntOrString": _int_or_string,
    "RawExtension": _embedded,
    "FieldsV1": _embedded,
    "JSON": _embedded,
    "Duration": _duration,
    "ExtraValue": lambda found: found.get("items", []),
    "JSONSchemaPropsOrArray": _schema_or("jSONSchemas"),
    "JSONSchemaPropsOrBool": _schema_or("allows"),
    "JSONSchemaPropsOrStringArray": _schema_or("property"),
}
