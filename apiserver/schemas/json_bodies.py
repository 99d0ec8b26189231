"""From the bytes of a body to a JSON value: exact integers, duplicate keys found, a depth limit, Go's words for what is not JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from apiserver.schemas import json_syntax

#: how deeply containers may be nested. Kubernetes stops at 10,000; no schema needs a hundredth of this, and every walk over an object
#: may recurse that far. Beyond it the body is refused.
DEPTH_MAX = 256

_SURROGATE = re.compile("[\ud800-\udfff]")


class DecodeError(ValueError):
    """The body is no value of its type. The text is what Kubernetes' decoder says."""


class Duplicated(dict[str, Any]):
    """An object in whose text a key stood more than once; as a dict it has the last value of each, ``pairs`` has them all."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


class Number(float):
    """A number as it was written, where it is not an integer of 64 bits."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Number:
        number = super().__new__(cls, text)
        number.text = text
        return number


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """``has_duplicates``: some objects inside are ``Duplicated``."""

    value: Any
    has_duplicates: bool = False


def parse(body: bytes) -> Parsed:
    """Raises DecodeError for what is no JSON text or is nested too deeply."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as e:
        body, value = _forgiven(body, e)
    check_depth(value, bound=body.count(b"{") + body.count(b"["))
    if _may_have_duplicates(body, value):
        duplicated = json.loads(body, object_pairs_hook=_pairs)
        return Parsed(value=duplicated, has_duplicates=True)
    return Parsed(value=value)


def parse_literally(body: bytes) -> Any:
    """As ``parse``, with every number that is no integer kept as it was written (``Number``): for messages that show it."""
    return json.loads(body, parse_float=Number, parse_int=_integer, object_pairs_hook=_pairs)


def plain(value: Any) -> Any:
    """A copy of a parsed value without the marks of duplicate keys."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value


def duplicate_fields(value: Any) -> list[str]:
    """The paths of the keys that stood more than once in a parsed text: ``spec.a``, ``[0].path``; each once."""
    found: dict[str, None] = {}
    _find_duplicates(value, "", found)
    return list(found)


def _find_duplicates(value: Any, path: str, found: dict[str, None]) -> None:
    if isinstance(value, list):
        for position, item in enumerate(value):
            _find_duplicates(item, f"{path}[{position}]", found)
    elif isinstance(value, dict):
        seen = set()
        for key, item in value.pairs if isinstance(value, Duplicated) else value.items():
            here = f"{path}.{key}" if path else key
            if key in seen:
                found[here] = None
            seen.add(key)
            _find_duplicates(item, here, found)


def check_depth(value: Any, bound: int = DEPTH_MAX + 1) -> None:
    """Raises DecodeError if containers are nested more than ``DEPTH_MAX`` deep. ``bound``: no more containers than that are in it."""
    if bound <= DEPTH_MAX:
        return
    level = [value] if isinstance(value, (dict, list)) else []
    depth = 0
    while level:
        depth += 1
        if depth > DEPTH_MAX:
            raise DecodeError("exceeded max depth")
        level = [child for parent in level for child in _children(parent) if isinstance(child, (dict, list))]


def _children(container: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container


def _may_have_duplicates(body: bytes, value: Any) -> bool:
    """A dropped pair takes the two quotes of its key with it, so as many quotes in the text as in the value's shortest form mean that
    none was dropped - unless the text hides quotes behind their code point."""
    if b"\\u0022" in body:
        return True
    return body.count(b'"') != orjson.dumps(value).count(b'"')


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else Duplicated(pairs)


def _integer(text: str) -> int | Number:
    # int() of a very long text takes quadratic time
    return int(text) if len(text) <= 20 else Number(text)


def _forgiven(body: bytes, cause: ValueError) -> tuple[bytes, Any]:
    """A text that Go reads and orjson does not: what is no UTF-8, and half surrogate pairs, become U+FFFD. Raises DecodeError for the
    rest."""
    if "depth" in str(cause) or "ecursion" in str(cause):
        raise DecodeError("exceeded max depth") from cause
    fault = json_syntax.explain(body)
    if fault:
        raise DecodeError(fault) from cause
    try:
        text = _SURROGATE.sub("\ufffd", json.dumps(json.loads(body.decode("utf-8", "replace")), ensure_ascii=False))
        return text.encode(), orjson.loads(text)
    except (ValueError, RecursionError) as e:
        raise DecodeError(f"invalid JSON: {cause}") from e
