"""From a structural schema to ``machinery.types.Type``, by which patches and server-side apply merge custom objects
(apiextensions-apiserver ``buildOpenAPIModelsForApply`` and kube-openapi ``schemaconv``)."""

from __future__ import annotations

from apiserver.apiextensions.nodes import MAP_TYPE, Node
from apiserver.machinery.types import ListType, Shape, Type

_SCALARS = {"string": Shape.STRING, "integer": Shape.INTEGER, "number": Shape.NUMBER, "boolean": Shape.BOOLEAN}
_LIST_TYPES = {"map": ListType.MAP, "set": ListType.SET}


def custom_type(root: Node, meta: Type, *, free: bool) -> Type:
    """Of a kind. ``meta`` is the type of ObjectMeta; with ``free`` the schema says nothing of what may be beside it."""
    made = _of(root, meta)
    if free:
        made.preserve_unknown = True
    return made


def _of(node: Node, meta: Type) -> Type:
    made = Type(
        shape=_shape(node),
        description=node.schema.get("description") or "",
        format=node.schema.get("format") or "",
        required=tuple(node.schema.get("required") or ()),
        default=node.default,
        has_default=node.has_default,
        preserve_unknown=node.preserve,
        embedded_object=node.embedded,
        map_is_atomic=node.schema.get(MAP_TYPE) == "atomic",
    )
    if made.shape is Shape.LIST:
        made.element = Type(shape=Shape.ANY) if node.items is None else _of(node.items, meta)
        made.list_type = _LIST_TYPES.get(node.list_type, ListType.ATOMIC)
        made.list_map_keys = node.list_map_keys
    elif made.shape is Shape.MAP:
        made.element = Type(shape=Shape.ANY, preserve_unknown=True) if node.additional is None else _of(node.additional, meta)
    elif made.shape is Shape.STRUCT:
        made.fields = {name: _of(field, meta) for name, field in node.properties.items()}
        if node.embedded:
            text = Type(shape=Shape.STRING)
            made.fields |= {"apiVersion": text, "kind": text, "metadata": meta}
    return made


def _shape(node: Node) -> Shape:
    if node.int_or_string:
        return Shape.INT_OR_STRING
    if node.type == "array":
        return Shape.LIST
    if node.type == "object" or node.embedded:
        return Shape.MAP if node.has_additional and not node.properties and not node.embedded else Shape.STRUCT
    return _SCALARS.get(node.type, Shape.ANY)
