"""Keys that stand twice in one mapping of a YAML text, in the words of Go's YAML decoder (``sigs.k8s.io/yaml``, strict).

yaml: unmarshal errors:
  line 7: key "a" already set in map
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import orjson

from apiserver.machinery import go_json
from apiserver.schemas import json_bodies

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
#: what is no integer as it should be written may begin like this
_NO_INTEGER = re.compile(rb"[0-9][.eE]|[0-9]{19}|\.[0-9]").search
_SURROGATE = re.compile(rb"(\\+)u[dD][89a-fA-F]").findall
_BAD_ESCAPE = "error converting YAML to JSON: yaml: found invalid Unicode character escape code"
#: repeated keys that are reported of one text
_REPORTED_MAX = 100


def load(body: bytes, yaml_to_json: Callable[[bytes], bytes]) -> tuple[Any, tuple[str, ...]]:
    """The value of a YAML text and its repeated keys. Most who send YAML send JSON, which is YAML and much faster to read. Raises what
    ``yaml_to_json`` raises, and DecodeError (a ValueError) for a value that is nested too deeply."""
    if body.lstrip()[:1] == b"{":
        try:
            parsed = json_bodies.parse(body)
        except json_bodies.DecodeError:
            pass  # YAML's own way to write a mapping
        else:
            if _has_surrogate(body):
                raise ValueError(_BAD_ESCAPE)
            return _read_as_integers(body, parsed.value), duplicate_keys(body) if parsed.has_duplicates else ()
    value = orjson.loads(yaml_to_json(body))
    json_bodies.check_depth(value)
    return _read_as_integers(body, value), duplicate_keys(body)


def _has_surrogate(body: bytes) -> bool:
    """Whether half of a surrogate pair is written as an escape, which JSON has and YAML has not."""
    return b"\\u" in body and any(len(slashes) % 2 for slashes in _SURROGATE(body))


def _read_as_integers(body: bytes, value: Any) -> Any:
    """Numbers as Go reads them out of the JSON that it makes of a YAML: whole ones are integers however they were written, as far as
    these go."""
    return _whole(value) if _NO_INTEGER(body) is not None else value


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _whole(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, float):
        found = go_json.whole(value)
        return value if found is None else found
    if isinstance(value, int) and not INT64_MIN <= value <= INT64_MAX:
        return float(value)
    return value


def duplicate_keys(body: bytes) -> tuple[str, ...]:
    """``line 7: key "a" already set in map`` for every repeated key of the first document; none for a text that is no YAML, whose fault
    is reported by who reads it."""
    import yaml  # only where a client sends YAML

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        document = next(iter(yaml.compose_all(body, Loader=loader)), None)
    except (yaml.YAMLError, RecursionError, UnicodeDecodeError):
        return ()
    found: list[str] = []
    _collect(document, found, set())
    return tuple(found[:_REPORTED_MAX])


def in_words(lines: tuple[str, ...]) -> str:
    """The lines as the one error that they are in Go."""
    return "yaml: unmarshal errors:\n  " + "\n  ".join(lines)


def _collect(root: Any, found: list[str], visited: set[int]) -> None:
    """Depth first, in the order of the text; what aliases repeat is looked at once."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node is None or id(node) in visited:
            continue
        visited.add(id(node))
        if node.id == "sequence":
            waiting.extend(reversed(node.value))
        elif node.id == "mapping":
            seen: set[str] = set()
            for key, _ in node.value:
                if key.id != "scalar":
                    continue
                if key.value in seen:
                    found.append(f"line {key.start_mark.line + 1}: key {json.dumps(key.value, ensure_ascii=False)} already set in map")
                seen.add(key.value)
            waiting.extend(value for _, value in reversed(node.value))
