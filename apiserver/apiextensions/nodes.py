"""``Node``: a structural schema as the walks over objects need it (apiextensions-apiserver ``pkg/apiserver/schema``).

A schema is a dict as it stands in a definition (``JSONSchemaProps``). What decides the structure of a value (types, properties, items,
extensions, defaults) is read out of it once; what only restricts values stays in ``Node.schema`` and is read by ``values``. Flags tell a
walk where it need not go: of most schemas only a few branches hold defaults, lists with keys or embedded objects.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Schema: TypeAlias = dict[str, Any]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
LIST_TYPE = "x-kubernetes-list-type"
LIST_MAP_KEYS = "x-kubernetes-list-map-keys"
MAP_TYPE = "x-kubernetes-map-type"
RULES = "x-kubernetes-validations"

#: what every object, embedded ones too, has without saying so
META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})


class Node:
    """``additional`` is the schema of the values of a map; ``has_additional`` is True too where ``additionalProperties`` is a boolean.

    ``defaults_below``, ``embedded_below``, ``lists_below``, ``rules_below``: here or deeper is a default, an embedded object, a set or
    keyed list, a rule.
    """

    __slots__ = (
        "additional",
        "default",
        "defaults_below",
        "embedded",
        "embedded_below",
        "has_additional",
        "has_default",
        "int_or_string",
        "items",
        "list_map_keys",
        "list_type",
        "lists_below",
        "nullable",
        "preserve",
        "properties",
        "rules_below",
        "schema",
        "type",
    )

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.type: str = schema.get("type") or ""
        self.nullable = bool(schema.get("nullable"))
        self.default: Any = schema.get("default")
        #: a default of null is none
        self.has_default = self.default is not None
        self.preserve = bool(schema.get(PRESERVE))
        self.embedded = bool(schema.get(EMBEDDED))
        self.int_or_string = bool(schema.get(INT_OR_STRING))
        self.list_type: str = schema.get(LIST_TYPE) or ""
        self.list_map_keys: tuple[str, ...] = tuple(schema.get(LIST_MAP_KEYS) or ())
        self.properties: dict[str, Node] = {name: Node(sub) for name, sub in (schema.get("properties") or {}).items()}
        additional = schema.get("additionalProperties")
        self.has_additional = additional is not None
        self.additional = Node(additional) if isinstance(additional, dict) else None
        items = schema.get("items")
        self.items = Node(items) if isinstance(items, dict) else None
        below = [*self.properties.values(), *(n for n in (self.additional, self.items) if n is not None)]
        self.defaults_below: bool = any(n.has_default or n.defaults_below for n in below)
        self.embedded_below: bool = self.embedded or any(n.embedded_below for n in below)
        self.lists_below: bool = self.list_type in ("set", "map") or any(n.lists_below for n in below)
        self.rules_below: bool = bool(schema.get(RULES)) or any(n.rules_below for n in below)

    def field(self, name: str) -> Node | None:
        """The schema of a field or of a map's value; None where nothing is said of it."""
        found = self.properties.get(name)
        return self.additional if found is None else found


def root(schema: Schema | None) -> Node:
    """Of the schema of a kind: an embedded object of its own. A version without a schema has nothing but what every object has."""
    node = Node(schema or {})
    node.embedded = True
    return node
