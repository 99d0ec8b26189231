"""Keys that stand twice in one mapping of a YAML text, in the words of Go's YAML decoder (``sigs.k8s.io/yaml``, strict).

yaml: unmarshal errors:
  line 7: key "a" already set in map
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import orjson

from apiserver.schemas import json_bodies

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
            return parsed.value, duplicate_keys(body) if parsed.has_duplicates else ()
    value = orjson.loads(yaml_to_json(body))
    json_bodies.check_depth(value)
    return value, duplicate_keys(body)


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
