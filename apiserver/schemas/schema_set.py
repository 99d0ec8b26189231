"""``SchemaSet``: the schemas of one Kubernetes version, read at the first question (some 15 ms) and kept; and those of custom kinds, which
come and go with their definitions. Whoever reads bodies or needs a type asks for a kind's ``KindSchema`` and does not mind which it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from apiserver.machinery.objects import Object
from apiserver.machinery.types import Type
from apiserver.schemas import decoding, published
from apiserver.schemas.decoding import Decoded
from apiserver.schemas.published import GVK, Schema
from apiserver.schemas.type_builder import TypeBuilder

if TYPE_CHECKING:
    from apiserver.schemas.validators import Validator

#: group, version, kind
Key = tuple[str, str, str]


class KindSchema(Protocol):
    """How the objects of one kind in one version are read."""

    @property
    def type(self) -> Type: ...

    def decode(self, source: bytes | Object) -> Decoded:
        """A body, or an object that a patch made: without what the kind does not have, and what was wrong with it. Raises DecodeError."""


class PublishedKind:
    """The ``KindSchema`` of a built-in kind."""

    __slots__ = ("_schemas", "key", "type")

    def __init__(self, schemas: SchemaSet, key: Key) -> None:
        self._schemas = schemas
        self.key = key
        self.type = schemas.type_named(schemas.definition_name(*key))

    def decode(self, source: bytes | Object) -> Decoded:
        return decoding.decode(self.type, source, self._schemas.validator_of(*self.key))


#: kinds that Kubernetes still has types of, though it serves them no more
_KNOWN_BUT_NOT_SERVED = frozenset({("apiextensions.k8s.io", "v1beta1", "CustomResourceDefinition")})


class SchemaSet:
    """Types and validators by group, version and kind. Single-threaded, like everything on the event loop."""

    def __init__(self, kubernetes_version: str) -> None:
        self.kubernetes_version = kubernetes_version
        self._definitions: dict[str, Schema] | None = None
        self._names: dict[tuple[str, str, str], str] = {}
        self._by_short_name: dict[str, str] = {}
        self._builder: TypeBuilder | None = None
        self._validators: dict[str, Validator] = {}
        self._published: dict[Key, PublishedKind] = {}
        self._custom: dict[Key, KindSchema] = {}

    @classmethod
    def load(cls, kubernetes_version: str) -> SchemaSet:
        """For ``"1.25"`` … ``"1.37"``; a version without schemas shows itself at the first question (FileNotFoundError)."""
        return cls(kubernetes_version)

    @property
    def definitions(self) -> dict[str, Schema]:
        """The published definitions by name. Not to be changed."""
        if self._definitions is None:
            self._definitions = published.read_definitions(self.kubernetes_version)
            for name, schema in self._definitions.items():
                kinds = schema.get(GVK)
                # kinds of the machinery (DeleteOptions, Status, WatchEvent) list every group and version that knows them
                if kinds:
                    for kind in kinds:
                        self._names.setdefault((kind["group"], kind["version"], kind["kind"]), name)
            self._builder = TypeBuilder(self._definitions)
        return self._definitions

    def definition_name(self, group: str, version: str, kind: str) -> str:
        """``io.k8s.api.apps.v1.Deployment`` of ("apps", "v1", "Deployment"). Raises KeyError for a kind that does not exist."""
        _ = self.definitions
        return self._names[(group, version, kind)]

    def has_kind(self, group: str, version: str, kind: str) -> bool:
        """Whether Kubernetes knows of such a kind, be it served or not."""
        if (group, version, kind) in self._custom or (group, version, kind) in _KNOWN_BUT_NOT_SERVED:
            return True
        _ = self.definitions
        return (group, version, kind) in self._names

    def description_of(self, field: str) -> str:
        """What the published schemas say of a field, named as ``core.v1.PodStatus.podIP``; of another version of the type where they do
        not have that one, "" where they have none."""
        kind, _, property_name = field.rpartition(".")
        schema = self.definitions.get(self._full_name(kind), {})
        return str((schema.get("properties") or {}).get(property_name, {}).get("description", ""))

    def _full_name(self, short: str) -> str:
        if not self._by_short_name:
            for name in sorted(self.definitions):
                group, _, kind = published.short_name(name).split(".")
                self._by_short_name[published.short_name(name)] = self._by_short_name[f"{group}.{kind}"] = name
        group, _, kind = short.split(".")
        return self._by_short_name.get(short) or self._by_short_name.get(f"{group}.{kind}", "")

    def kind(self, group: str, version: str, kind: str) -> KindSchema:
        """Raises KeyError for a kind that does not exist."""
        key = (group, version, kind)
        found: KindSchema | None = self._published.get(key) or self._custom.get(key)
        if found is None:
            found = self._published[key] = PublishedKind(self, key)
        return found

    def replace_custom(self, remove: Iterable[Key], add: Mapping[Key, KindSchema]) -> None:
        """Custom kinds go and come. One that has the name of a built-in kind is not found before that."""
        for key in remove:
            self._custom.pop(key, None)
        self._custom.update(add)

    def type_of(self, group: str, version: str, kind: str) -> Type:
        """Raises KeyError for a kind that does not exist."""
        return self.kind(group, version, kind).type

    def type_named(self, definition: str) -> Type:
        """The type of a definition by its full name. Raises KeyError."""
        _ = self.definitions
        assert self._builder is not None
        return self._builder.definition(definition)

    def validator_of(self, group: str, version: str, kind: str) -> Validator:
        """The compiled check of a built-in kind, compiled at its first use (up to 15 ms for a Pod). Raises KeyError."""
        name = self.definition_name(group, version, kind)
        validator = self._validators.get(name)
        if validator is None:
            from apiserver.schemas.validators import Validator  # pulls in jsonschema-rs, which is not needed to start

            validator = self._validators[name] = Validator(self.type_named(name))
        return validator
