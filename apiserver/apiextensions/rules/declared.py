"""``Declared``: a schema as the rules in it see it: types, fields by their escaped names, and how big a value can be at most (apiserver
``cel/common/schemas.go``, ``cel/types.go``).

What no type is known of is not seen: a field of any type (``x-kubernetes-preserve-unknown-fields`` without a type) is not a field to a
rule, and a list of such items no list. Bounds are for the estimate of costs: what the schema says, else what fits into one request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apiserver.apiextensions.nodes import Node, Schema
from apiserver.cel.names import escape
from apiserver.machinery.names import DNS1123_SUBDOMAIN_MAX_LENGTH

#: kube-apiserver's, whatever the limit of this server: estimates must not depend on flags
REQUEST_BYTES_MAX = 3 * 1024 * 1024
_DURATION_BYTES_MAX = 32
_TIME_BYTES_MAX = 32
_DATE_BYTES = 12
#: of a name that the server makes from ``generateName`` a character at least is its own
_GENERATE_NAME_MAX = DNS1123_SUBDOMAIN_MAX_LENGTH - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """``name`` is the CEL type of a scalar, else ``list``, ``map`` or ``object``. ``size_max``: characters, items or entries at most;
    ``json_bytes_min``: the shortest JSON of a value."""

    name: str
    size_max: int = 0
    json_bytes_min: int = 2
    element: Declared | None = None
    key: Declared | None = None
    fields: Mapping[str, Declared] = field(default_factory=dict)
    list_type: str | None = None
    list_keys: tuple[str, ...] = ()

    def at(self, path: Sequence[str]) -> Declared | None:
        """What a path in an expression leads to, from this on: names of fields, ``@items``, ``@values``, ``@keys``."""
        current: Declared | None = self
        for step in path:
            if current is None:
                return None
            if step in ("@items", "@values"):
                current = current.element
            elif step == "@keys":
                current = current.key
            else:
                current = current.fields.get(step)
        return current


_KEY = Declared(name="string")
_SCALARS = {
    "boolean": Declared(name="bool", json_bytes_min=4),
    "number": Declared(name="double", json_bytes_min=1),
    "integer": Declared(name="int", json_bytes_min=1),
}


def declared(node: Node, *, is_root: bool) -> Declared | None:
    """None where a rule does not see values of this schema. ``is_root``: of a kind or an embedded object, which has metadata unsaid."""
    if node.int_or_string:
        limit = _max_length(node.schema)
        return Declared(name="dyn", size_max=REQUEST_BYTES_MAX - 2 if limit is None else 4 * limit, json_bytes_min=1)
    if is_root:
        node = with_metadata(node)
    if node.type == "array":
        return _list(node)
    if node.type == "object":
        return _map(node.additional, node.schema) if node.additional is not None else _object(node)
    if node.type == "string":
        return _string(node.schema)
    return _SCALARS.get(node.type)


def with_metadata(node: Node) -> Node:
    """The schema of an object with what every object has, where it does not say so itself."""
    properties = node.properties
    metadata = properties.get("metadata")
    if (
        metadata is not None
        and metadata.type == "object"
        and all(name in properties and properties[name].type == "string" for name in ("kind", "apiVersion"))
        and all(name in metadata.properties and metadata.properties[name].type == "string" for name in ("name", "generateName"))
    ):
        return node
    named = {} if metadata is None else metadata.properties
    limits = (("name", DNS1123_SUBDOMAIN_MAX_LENGTH), ("generateName", _GENERATE_NAME_MAX))
    own = {name: {"type": "string", "maxLength": _tighter(named.get(name), limit)} for name, limit in limits}
    made = Node.__new__(Node)
    for slot in Node.__slots__:
        setattr(made, slot, getattr(node, slot))
    made.properties = {
        **properties,
        "kind": Node({"type": "string"}),
        "apiVersion": Node({"type": "string"}),
        "metadata": Node({"type": "object", "properties": own}),
    }
    return made


def _tighter(said: Node | None, limit: int) -> int:
    own = None if said is None else _max_length(said.schema)
    return limit if own is None else min(own, limit)


def _max_length(schema: Schema) -> int | None:
    said = schema.get("maxLength")
    return None if said is None else max(int(said), 0)


def _list(node: Node) -> Declared | None:
    items = None if node.items is None else declared(node.items, is_root=node.items.embedded)
    if items is None:
        return None
    limit = node.schema.get("maxItems")
    size_max = (REQUEST_BYTES_MAX - 2) // (items.json_bytes_min + 1) if limit is None else max(int(limit), 0)
    return Declared(name="list", element=items, size_max=size_max, list_type=node.list_type or None, list_keys=node.list_map_keys)


def _map(additional: Node, schema: Schema) -> Declared | None:
    values = declared(additional, is_root=additional.embedded)
    if values is None:
        return None
    limit = schema.get("maxProperties")
    # the shortest entry: quotes and two characters of a key, colon, comma
    size_max = (REQUEST_BYTES_MAX - 2) // (values.json_bytes_min + 6) if limit is None else max(int(limit), 0)
    return Declared(name="map", key=_KEY, element=values, size_max=size_max)


def _object(node: Node) -> Declared:
    required = frozenset(node.schema.get("required") or ())
    fields: dict[str, Declared] = {}
    shortest = 2
    for name, sub in node.properties.items():
        found = declared(sub, is_root=sub.embedded)
        if found is None:
            continue
        identifier = escape(name)
        if identifier is not None:
            fields[identifier] = found
        if name in required and not sub.has_default:
            shortest += len(name.encode()) + found.json_bytes_min + 4
    return Declared(name="object", fields=fields, json_bytes_min=shortest)


def _string(schema: Schema) -> Declared:
    format_, limit = schema.get("format"), _max_length(schema)
    if format_ == "byte":
        return Declared(name="bytes", size_max=REQUEST_BYTES_MAX - 2 if limit is None else limit)
    if format_ == "duration":
        return Declared(name="duration", size_max=_DURATION_BYTES_MAX, json_bytes_min=3)
    if format_ == "date":
        return Declared(name="timestamp", size_max=_DATE_BYTES, json_bytes_min=_DATE_BYTES)
    if format_ == "date-time":
        return Declared(name="timestamp", size_max=_TIME_BYTES_MAX, json_bytes_min=21)
    if limit is not None:
        return Declared(name="string", size_max=4 * limit)
    choices: list[Any] = schema.get("enum") or []
    if choices:
        return Declared(name="string", size_max=max((len(c.encode()) for c in choices if isinstance(c, str)), default=0))
    return Declared(name="string", size_max=REQUEST_BYTES_MAX - 2)
