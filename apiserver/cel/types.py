"""CEL's types, and how a JSON value becomes a value of its declared type.

A type is immutable and compared by its text (`str(type)`, as cel-go writes types in its messages). An `ObjectType` has a name and
fields, which may be given by a function for types that contain themselves; two object types of one name are taken for the same.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping


class Kind(enum.Enum):
    """The families of types that the checker and the cost rules tell apart."""

    BOOL = "bool"
    INT = "int"
    UINT = "uint"
    DOUBLE = "double"
    STRING = "string"
    BYTES = "bytes"
    NULL = "null"
    DYN = "dyn"
    ANY = "any"
    ERROR = "!error!"
    TIMESTAMP = "timestamp"
    DURATION = "duration"
    LIST = "list"
    MAP = "map"
    STRUCT = "struct"
    OPAQUE = "opaque"
    TYPE = "type"
    PARAMETER = "parameter"


class Type:
    """A type: its family, its name, and the types it is made of. `size_max` is the greatest size of a value (0 for what has none)."""

    __slots__ = ("generic", "kind", "list_keys", "list_type", "name", "parameters", "size_max", "text")

    def __init__(
        self, kind: Kind, name: str, parameters: tuple[Type, ...] = (), *, list_type: str | None = None, list_keys: tuple[str, ...] = ()
    ) -> None:
        self.kind = kind
        self.name = name
        self.parameters = parameters
        self.list_type = list_type
        self.list_keys = list_keys
        self.size_max = 0
        self.text: str = f"{name}({', '.join(p.text for p in parameters)})" if parameters else name
        self.generic: bool = kind is Kind.PARAMETER or any(p.generic for p in parameters)

    def sized(self, size_max: int) -> Type:
        """The same type for values of at most so many characters, bytes, elements or entries: what costs are estimated from."""
        assert self.kind is not Kind.STRUCT, self
        twin = Type(self.kind, self.name, self.parameters, list_type=self.list_type, list_keys=self.list_keys)
        twin.size_max = size_max
        return twin

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Type({self.text})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


class ObjectType(Type):
    """A type with named fields. `fields` is a mapping, or a function that gives it when it is first needed. With `nulls` a field that
    is null is a field; else it is as good as absent, as in JSON with a schema."""

    __slots__ = ("_fields", "nulls")

    def __init__(self, name: str, fields: Mapping[str, Type] | Callable[[], Mapping[str, Type]], *, nulls: bool = False) -> None:
        super().__init__(Kind.STRUCT, name)
        self._fields = fields
        self.nulls = nulls

    @property
    def fields(self) -> Mapping[str, Type]:
        """The fields by the names that expressions use."""
        if not isinstance(self._fields, Mapping):
            self._fields = self._fields()
        return self._fields


BOOL = Type(Kind.BOOL, "bool")
INT = Type(Kind.INT, "int")
UINT = Type(Kind.UINT, "uint")
DOUBLE = Type(Kind.DOUBLE, "double")
STRING = Type(Kind.STRING, "string")
BYTES = Type(Kind.BYTES, "bytes")
NULL = Type(Kind.NULL, "null")
DYN = Type(Kind.DYN, "dyn")
ANY = Type(Kind.ANY, "any")
ERROR = Type(Kind.ERROR, "!error!")
TIMESTAMP = Type(Kind.TIMESTAMP, "timestamp")
DURATION = Type(Kind.DURATION, "duration")
TYPE = Type(Kind.TYPE, "type")

URL = ObjectType("kubernetes.URL", {})
QUANTITY = ObjectType("kubernetes.Quantity", {})
SEMVER = ObjectType("kubernetes.Semver", {})
FORMAT = ObjectType("kubernetes.NamedFormat", {})
IP = Type(Kind.OPAQUE, "net.IP")
CIDR = Type(Kind.OPAQUE, "net.CIDR")
AUTHORIZER = ObjectType("kubernetes.authorization.Authorizer", {})
PATH_CHECK = ObjectType("kubernetes.authorization.PathCheck", {})
GROUP_CHECK = ObjectType("kubernetes.authorization.GroupCheck", {})
RESOURCE_CHECK = ObjectType("kubernetes.authorization.ResourceCheck", {})
DECISION = ObjectType("kubernetes.authorization.Decision", {})

SELECTABLE_KINDS = frozenset({Kind.MAP, Kind.STRUCT, Kind.PARAMETER})


def list_of(element: Type, *, list_type: str | None = None, keys: tuple[str, ...] = ()) -> Type:
    """The type of a list. `list_type` ("set", "map") with the `keys` of a map gives it the equality and addition of such lists."""
    return Type(Kind.LIST, "list", (element,), list_type=list_type if list_type != "atomic" else None, list_keys=keys)


def map_of(key: Type, value: Type) -> Type:
    """The type of a map."""
    return Type(Kind.MAP, "map", (key, value))


def optional_of(element: Type) -> Type:
    """The type of a value that may be absent."""
    return Type(Kind.OPAQUE, "optional_type", (element,))


def type_of(inner: Type) -> Type:
    """The type of a type."""
    return Type(Kind.TYPE, "type", (inner,))


def parameter(name: str) -> Type:
    """A type that the checker has yet to find."""
    return Type(Kind.PARAMETER, name)


def is_optional(of: Type) -> bool:
    """Whether values of this type may be absent."""
    return of.kind is Kind.OPAQUE and of.name == "optional_type"


def is_dyn(of: Type) -> bool:
    """Whether the checker leaves values of this type alone."""
    return of.kind is Kind.DYN or of.kind is Kind.ANY


def is_dyn_or_error(of: Type) -> bool:
    """Whether nothing is known of this type, because of an earlier error or by wish."""
    return of.kind is Kind.DYN or of.kind is Kind.ANY or of.kind is Kind.ERROR
