"""Reading a request's body under a size limit; YAML made JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeVar

import orjson

from apiserver.machinery import status

_T = TypeVar("_T")

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

#: Values of one YAML document once its aliases are followed: a short text must not stand for an immense one.
YAML_VALUES_MAX = 1_000_000
#: YAML is read at about 200 KB a second: a text longer than this is read in a thread, so that other requests go on meanwhile.
YAML_ON_LOOP_BYTES_MAX = 16 * 1024


#: what Go's conversion of YAML says before the fault that it found
YAML_PREFIX = "error converting YAML to JSON: "


class ClientGoneError(Exception):
    """The client closed the connection before its request was whole: nobody waits for an answer."""


async def read(receive: Receive, headers: Mapping[bytes, bytes], *, limit_bytes: int) -> bytes:
    """The whole body. Raises 413 beyond the limit, and ``ClientGoneError``. How long it may take is the request's deadline, which the
    chain watches over."""
    length = headers.get(b"content-length")
    if length is not None and (not length.isdigit() or int(length) > limit_bytes):
        raise too_large(limit_bytes)
    message = await _receive(receive)
    body: bytes = message.get("body", b"")
    if not message.get("more_body"):
        if len(body) > limit_bytes:
            raise too_large(limit_bytes)
        return body
    parts, size = [body], len(body)
    while message.get("more_body"):
        message = await _receive(receive)
        part = message.get("body", b"")
        size += len(part)
        if size > limit_bytes:
            raise too_large(limit_bytes)
        parts.append(part)
    return b"".join(parts)


async def _receive(receive: Receive) -> MutableMapping[str, Any]:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGoneError
    return message


def too_large(limit_bytes: int) -> status.StatusError:
    return status.request_entity_too_large(f"Request entity too large: limit is {limit_bytes}")


async def beside_the_loop(body: bytes, is_yaml: bool, decode: Callable[[], _T]) -> _T:
    """``decode()``, which reads ``body``; in a thread where that takes long."""
    if is_yaml and len(body) > YAML_ON_LOOP_BYTES_MAX:
        return await asyncio.to_thread(decode)
    return decode()


def yaml_to_json(body: bytes) -> bytes:
    """The JSON form of the first YAML document. Raises ``ValueError`` with the text for the client."""
    import yaml  # only where a client sends YAML

    loader = _yaml_loader()
    try:
        document = next(iter(yaml.load_all(body, Loader=loader)), None)
        if b"*" in body and _expanded(document, {}) > YAML_VALUES_MAX:
            raise ValueError("yaml: document contains excessive aliasing")
        return _dumped(document)
    except yaml.YAMLError as error:
        raise ValueError(f"{YAML_PREFIX}yaml: {_go_yaml_words(error)}") from error
    except (TypeError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"{YAML_PREFIX}yaml: {error}") from error


def _dumped(document: Any) -> bytes:
    try:
        return orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        return orjson.dumps(_with_floats(document), option=orjson.OPT_NON_STR_KEYS)


def _with_floats(value: Any) -> Any:
    """Integers beyond 64 bits as floats."""
    if isinstance(value, dict):
        return {name: _with_floats(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_floats(item) for item in value]
    return float(value) if type(value) is int and not -(2**63) <= value < 2**64 else value


def _go_yaml_words(error: Any) -> str:
    """Go's reader names the line of a fault with one less than there is where the grammar is broken, and none where that is nought."""
    problem = getattr(error, "problem", None) or str(error)
    is_token = type(error).__name__ == "ScannerError"
    for mark in (getattr(error, "problem_mark", None), getattr(error, "context_mark", None)):
        if mark is not None and mark.line:
            return f"line {mark.line + is_token}: {problem}"
    return problem


def _expanded(value: Any, known: dict[int, int]) -> int:
    """How many values a document has when every alias is written out; beyond the limit for one that contains itself."""
    if not isinstance(value, (dict, list)):
        return 1
    found = known.get(id(value))
    if found is None:
        known[id(value)] = YAML_VALUES_MAX + 1  # until it is known, for whatever refers back to it
        children = value.values() if isinstance(value, dict) else value
        found = known[id(value)] = 1 + sum(_expanded(child, known) for child in children)
    return found


_loader: Any = None


def _yaml_loader() -> Any:
    """PyYAML's safe loader with the scalars of Kubernetes' YAML: times and numbers with colons are text."""
    global _loader
    if _loader is None:
        import re

        import yaml

        base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

        class Loader(base):  # type: ignore[misc, valid-type]
            pass

        Loader.yaml_implicit_resolvers = {
            first: [(tag, pattern) for tag, pattern in resolvers if tag not in (_TIMESTAMP, _INT, _FLOAT, _VALUE)]
            for first, resolvers in base.yaml_implicit_resolvers.items()
        }
        integer = re.compile(r"^(?:[-+]?0b[0-1_]+|[-+]?0o?[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+)$")
        number = re.compile(r"^(?:[-+]?(?:[0-9][0-9_]*)?\.?[0-9]+(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*\.)$")
        Loader.add_implicit_resolver(_BOOL, re.compile(r"^[yYnN]$"), list("yYnN"))
        Loader.add_constructor(_BOOL, _boolean)
        Loader.add_implicit_resolver(_INT, integer, list("-+0123456789"))
        Loader.add_implicit_resolver(_FLOAT, number, list("-+0123456789."))
        _loader = Loader
    return _loader


def _boolean(loader: Any, node: Any) -> bool:
    """YAML 1.1's words, of which Go's reader takes the single letters too."""
    return str(loader.construct_scalar(node)).lower() in ("y", "yes", "true", "on")


_BOOL = "tag:yaml.org,2002:bool"
#: of a plain ``=``, which PyYAML finds but cannot make anything of (enums of comparisons have it)
_VALUE = "tag:yaml.org,2002:value"
_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_INT = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"
