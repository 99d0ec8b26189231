"""From a structural schema to ``machinery.types.Type``, by which patches and server-side apply merge custom objects
(apiextensions-apiserver ``buildOpenAPIModelsForApply`` and kube-openapi ``schemaconv``)."""

from __future__ import annotations

from apiserver.apiextensions.nodes import MAP_TYPE, Node
from apiserver.machinery.types import ListType, Shape, Type

#: the formats of strings that are strings to server-side apply; whatever has another one may be any scalar
_TEXT_FORMATS = frozenset(("", "byte"))
_SCALARS = {"string": Shape.STRING, "integer": Shape.INTEGER, "number": Shape.NUMBER, "boolean": Shape.BOOLEAN}
_LIST_TYPES = {"map": ListType.MAP, "set": ListType.SET}


def custom_type(root: Node, meta: Type, *, free: bool) -> Type:
    """Of a kind. ``meta`` is the type of ObjectMeta; with ``free`` the schema says nothing of what may be beside what it names."""
    return _of(root, meta, free)


def _of(node: Node, meta: Type, free: bool) -> Type:
    """``free``: unknown fields are preserved here or somewhere above, which counts for all that is below."""
    free = free or node.preserve
    shape = _shape(node)
    made = Type(
        shape=shape,
        description=node.schema.get("description") or "",
        format=node.schema.get("format") or "",
        required=tuple(node.schema.get("required") or ()),
        default=node.default,
        has_default=node.has_default,
        preserve_unknown=free or shape is Shape.ANY,
        embedded_object=node.embedded,
        map_is_atomic=node.schema.get(MAP_TYPE) == "atomic",
    )
    if shape is Shape.LIST:
        made.element = Type(shape=Shape.ANY) if node.items is None else _of(node.items, meta, free)
        made.list_type = _LIST_TYPES.get(node.list_type, ListType.ATOMIC)
        made.list_map_keys = node.list_map_keys
    elif shape is Shape.MAP:
        made.element = Type(shape=Shape.ANY, preserve_unknown=True) if node.additional is None else _of(node.additional, meta, free)
    elif shape is Shape.STRUCT:
        made.fields = {name: _of(field, meta, free) for name, field in node.properties.items()}
        if node.embedded:
            text = Type(shape=Shape.STRING)
            made.fields |= {"apiVersion": text, "kind": text, "metadata": meta}
    return made


def _shape(node: Node) -> Shape:
    """A value without a type of its own, an int-or-string too, may be anything; so may the fields of an object that names none."""
    if node.type == "array":
        return Shape.LIST
    if node.type == "object" or node.embedded:
        return Shape.STRUCT if node.properties or node.embedded else Shape.MAP
    if node.type == "string" and (node.schema.get("format") or "") not in _TEXT_FORMATS:
        return Shape.INT_OR_STRING
    return _SCALARS.get(node.type, Shape.ANY)
