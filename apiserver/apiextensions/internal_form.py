"""Kubernetes' internal form of a definition, by which it is checked: what all versions have alike stands once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apiserver.apiextensions.definition_schema import any_schema, walk_schemas
from apiserver.apiextensions.nodes import LIST_MAP_KEYS, RULES, Schema
from apiserver.machinery.objects import Object

Part = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class InternalSpec:
    """The internal form: ``shared`` is what all versions have alike, ``versions`` are what is left of them."""

    spec: Part
    shared: Part
    versions: Sequence[Part]

    def schemas(self) -> list[Schema]:
        found = [v.get("schema") for v in (self.shared, *self.versions)]
        return [s["openAPIV3Schema"] for s in found if s and s.get("openAPIV3Schema") is not None]

    def any_schema(self, predicate: Callable[[Schema], bool]) -> bool:
        return any(any_schema(schema, predicate) for schema in self.schemas())


_PER_VERSION = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


def _said(version: Part, name: str) -> Any:
    """An empty list is none; an empty object is something."""
    value = version.get(name)
    return None if value == [] else value


def internal_spec(definition: Object) -> InternalSpec:
    spec: Part = definition.get("spec") or {}
    versions: list[Part] = list(spec.get("versions") or ())
    if not versions:
        return InternalSpec(spec, {}, versions)
    first = versions[0]
    alike = [name for name in _PER_VERSION if all(_said(v, name) == _said(first, name) for v in versions)]
    shared = {name: first[name] for name in alike if first.get(name) is not None}
    return InternalSpec(spec, shared, [{k: value for k, value in v.items() if k not in alike} for v in versions])


#: fields of a schema that Go does not write when they are empty
_UNWRITTEN_WHEN_EMPTY = (
    "items",
    "required",
    "enum",
    "allOf",
    "anyOf",
    "oneOf",
    "properties",
    "patternProperties",
    "dependencies",
    "definitions",
    LIST_MAP_KEYS,
    RULES,
)


def drop_empty(definition: Object) -> None:
    """Takes away, in place, what the schemas of a definition say by an empty list or object, once they have been looked at; and a webhook
    without anything."""
    conversion = (definition.get("spec") or {}).get("conversion") or {}
    if conversion.get("webhook") is not None and not any(conversion["webhook"].values()):
        del conversion["webhook"]
    for version in (definition.get("spec") or {}).get("versions") or ():
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        for sub in () if schema is None else walk_schemas(schema):
            if all(sub.values()):
                continue
            for name in _UNWRITTEN_WHEN_EMPTY:
                if name in sub and not sub[name] and (name != "items" or not isinstance(sub[name], dict)):
                    del sub[name]
