"""``SchemaSet``: the schemas of one Kubernetes version, read at the first question (some 15 ms) and kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apiserver.machinery.types import Type
from apiserver.schemas import published
from apiserver.schemas.published import GVK, Schema
from apiserver.schemas.type_builder import TypeBuilder

if TYPE_CHECKING:
    from apiserver.schemas.validators import Validator


class SchemaSet:
    """Types and validators by group, version and kind. Single-threaded, like everything on the event loop."""

    def __init__(self, kubernetes_version: str) -> None:
        self.kubernetes_version = kubernetes_version
        self._definitions: dict[str, Schema] | None = None
        self._names: dict[tuple[str, str, str], str] = {}
        self._by_short_name: dict[str, str] = {}
        self._builder: TypeBuilder | None = None
        self._validators: dict[str, Validator] = {}

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

    def type_of(self, group: str, version: str, kind: str) -> Type:
        """The type of a built-in kind. Raises KeyError for a kind that does not exist."""
        return self.type_named(self.definition_name(group, version, kind))

    def type_named(self, definition: str) -> Type:
        """The type of a definition by its full name. Raises KeyError."""
        _ = self.definitions
        assert self._builder is not None
        return self._builder.definition(definition)

    def validator_of(self, group: str, version: str, kind: str) -> Validator:
        """The compiled check of a kind, compiled at its first use (up to 15 ms for a Pod). Raises KeyError."""
        name = self.definition_name(group, version, kind)
        validator = self._validators.get(name)
        if validator is None:
            from apiserver.schemas.validators import Validator  # pulls in jsonschema-rs, which is not needed to start

            validator = self._validators[name] = Validator(self.type_named(name))
        return validator
