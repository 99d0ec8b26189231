"""Reading a request's body: under a size limit, within a bounded time, as JSON or YAML."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

import orjson

from apiserver.machinery import status

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

#: Aliases in one YAML document. They let a short text stand for an immense one; real manifests use none or a few.
YAML_ALIASES_MAX = 100


class ClientGoneError(Exception):
    """The client closed the connection before its request was whole: nobody waits for an answer."""


async def read(receive: Receive, headers: Mapping[bytes, bytes], *, limit_bytes: int, timeout_seconds: float) -> bytes:
    """The whole body. Raises 413 beyond the limit, 408 when it does not come in time, ``ClientGoneError``."""
    length = headers.get(b"content-length")
    if length is not None and (not length.isdigit() or int(length) > limit_bytes):
        raise too_large(limit_bytes)
    message = await _receive(receive, timeout_seconds)
    body: bytes = message.get("body", b"")
    if not message.get("more_body"):
        if len(body) > limit_bytes:
            raise too_large(limit_bytes)
        return body
    deadline = asyncio.get_running_loop().time() + timeout_seconds
    parts, size = [body], len(body)
    while message.get("more_body"):
        message = await _receive(receive, deadline - asyncio.get_running_loop().time())
        part = message.get("body", b"")
        size += len(part)
        if size > limit_bytes:
            raise too_large(limit_bytes)
        parts.append(part)
    return b"".join(parts)


async def _receive(receive: Receive, timeout_seconds: float) -> MutableMapping[str, Any]:
    try:
        async with asyncio.timeout(timeout_seconds):
            message = await receive()
    except TimeoutError as error:
        raise status.StatusError(status.failure(408, "Timeout", "the body of the request did not arrive in time", {})) from error
    if message["type"] == "http.disconnect":
        raise ClientGoneError
    return message


def too_large(limit_bytes: int) -> status.StatusError:
    return status.request_entity_too_large(f"Request entity too large: limit is {limit_bytes}")


def yaml_to_json(body: bytes) -> bytes:
    """The JSON form of the first YAML document. Raises ``ValueError`` with the text for the client."""
    import yaml  # only where a client sends YAML

    loader = _yaml_loader()
    try:
        aliases = 0
        for event in yaml.parse(body, Loader=loader):
            if isinstance(event, yaml.AliasEvent):
                aliases += 1
                if aliases > YAML_ALIASES_MAX:
                    raise ValueError("yaml: document contains excessive aliasing")
        document = next(iter(yaml.load_all(body, Loader=loader)), None)
        return orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise ValueError(f"error converting YAML to JSON: yaml: {where}{getattr(error, 'problem', None) or error}") from error
    except (TypeError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"error converting YAML to JSON: yaml: {error}") from error


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
            first: [(tag, pattern) for tag, pattern in resolvers if tag not in (_TIMESTAMP, _INT, _FLOAT)]
            for first, resolvers in base.yaml_implicit_resolvers.items()
        }
        integer = re.compile(r"^(?:[-+]?0b[0-1_]+|[-+]?0o?[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+)$")
        number = re.compile(r"^(?:[-+]?(?:[0-9][0-9_]*)?\.?[0-9]+(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*\.)$")
        Loader.add_implicit_resolver(_INT, integer, list("-+0123456789"))
        Loader.add_implicit_resolver(_FLOAT, number, list("-+0123456789."))
        _loader = Loader
    return _loader


_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_INT = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"
