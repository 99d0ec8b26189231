"""How Go names the types of fields, since its decoder's messages do (``… into Go struct field PodSpec.spec.nodeName of type string``)."""

from __future__ import annotations

from apiserver.machinery.types import Shape, Type
from apiserver.schemas.published import short_name

_SCALARS = {
    Shape.STRING: "string",
    Shape.NUMBER: "float64",
    Shape.BOOLEAN: "bool",
    Shape.QUANTITY: "resource.Quantity",
    Shape.INT_OR_STRING: "intstr.IntOrString",
    Shape.TIME: "v1.Time",
    Shape.MICRO_TIME: "v1.MicroTime",
    Shape.ANY: "interface {}",
}


def go_type(type_: Type, struct: str = "", field: str = "", *, element: bool = False) -> str:
    """The name of a value's Go type; ``struct`` (a definition's name) and ``field`` say where the value, or with ``element`` its container,
    stands."""
    named = _named(struct, field, element)
    if named:
        return named
    if type_.shape is Shape.STRUCT:
        version = type_.definition.split(".")[-2] if "." in type_.definition else "v1"
        return f"{version}.{type_.go_name}"
    if type_.shape is Shape.LIST:
        assert type_.element is not None
        return "[]" + go_type(type_.element, struct, field, element=True)
    if type_.shape is Shape.MAP:
        assert type_.element is not None
        return "map[string]" + go_type(type_.element)
    if type_.shape is Shape.INTEGER:
        return type_.format or "int64"
    if type_.format == "byte":
        return "[]uint8"
    return _SCALARS[type_.shape]


def _named(struct: str, field: str, element: bool) -> str:
    if not struct:
        return ""
    from apiserver.schemas.named_types import NAMED_ELEMENTS, NAMED_TYPES  # only to word an error

    found = (NAMED_ELEMENTS if element else NAMED_TYPES).get(short_name(struct), "")
    return next((entry.partition("=")[2] for entry in found.split() if entry.startswith(field + "=")), "")
