"""``CustomDefinition``: one stored CustomResourceDefinition as this server serves it; ``CustomVersion``: one version of it.

Little is kept of a definition: names and which versions there are. Schema, columns, paths are decoded from the stored bytes, which the
watch cache has anyway, when a request first needs them.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import orjson

from apiserver.apiextensions import conditions
from apiserver.machinery import objects
from apiserver.machinery.object_versions import VersionError
from apiserver.machinery.objects import Object
from apiserver.machinery.types import Type
from apiserver.resources.columns import Printer
from apiserver.resources.resource_info import ResourceInfo, SubresourceInfo
from apiserver.resources.table import version_priority
from apiserver.schemas.decoding import Decoded

if TYPE_CHECKING:
    from apiserver.apiextensions.conversion_webhook import Converted
    from apiserver.apiextensions.structural import StructuralSchema
    from apiserver.registry.strategy import Strategy
    from apiserver.schemas.schema_set import SchemaSet

_NAMES = ("plural", "singular", "kind", "listKind")


def is_served(definition: Object) -> bool:
    """Whether the objects of a definition can be reached: it was established once, and its accepted names are whole."""
    names = objects.get(definition, "status", "acceptedNames", default={})
    return conditions.is_true(definition, conditions.ESTABLISHED) and all(names.get(name) for name in _NAMES)


class CustomDefinition:
    """Raises KeyError, TypeError for what no server would have stored. ``raw`` are the stored bytes; they stay alive with this."""

    def __init__(self, definition: Object, raw: bytes, schemas: SchemaSet, since_revision: int = 0) -> None:
        """``since_revision``: of the definition's creation, 0 where that is not known."""
        metadata, spec, names = definition["metadata"], definition["spec"], definition["status"]["acceptedNames"]
        self._raw = raw
        self.schemas = schemas
        self.since_revision = since_revision
        self.name: str = metadata["name"]
        self.group: str = spec["group"]
        self.plural: str = names["plural"]
        self.singular: str = names["singular"]
        self.kind: str = names["kind"]
        self.list_kind: str = names["listKind"]
        self.short_names = tuple(names.get("shortNames") or ())
        self.categories = tuple(names.get("categories") or ())
        self.namespaced = spec["scope"] == "Namespaced"
        self.preserve_unknown_fields = bool(spec.get("preserveUnknownFields"))
        self.converts_by_webhook = objects.get(spec, "conversion", "strategy") == "Webhook"
        self.terminating = bool(metadata.get("deletionTimestamp")) or conditions.is_true(definition, conditions.TERMINATING)
        #: what must stay for watches to go on: another specification, or other names, are another shape
        self.shape = (metadata["uid"], metadata.get("generation"), orjson.dumps(names, option=orjson.OPT_SORT_KEYS))
        self.versions = {version["name"]: CustomVersion(self, version, at) for at, version in enumerate(spec["versions"])}
        self.storage_version: str = next(version["name"] for version in spec["versions"] if version.get("storage"))

    def adopt(self, other: CustomDefinition) -> None:
        """Take over what another of the same shape has made already."""
        assert self.shape == other.shape, (self.name, other.name)
        for name, version in self.versions.items():
            version.adopt(other.versions[name])
        if "converted" in other.__dict__:
            self.__dict__["converted"] = other.__dict__["converted"]

    @cached_property
    def converted(self) -> Converted:
        """What its webhook has made of objects."""
        from apiserver.apiextensions.conversion_webhook import Converted

        return Converted(self)

    @property
    def prefix(self) -> str:
        """Where the objects are stored."""
        return f"{self.group}/{self.plural}"

    def decode(self) -> Object:
        return orjson.loads(self._raw)  # type: ignore[no-any-return]

    def infos(self) -> list[ResourceInfo]:
        """The resource in every version that is served, best first."""
        return [self.info(version) for version in sorted(self.versions.values(), key=lambda v: version_priority(v.name)) if version.served]

    def info(self, version: CustomVersion) -> ResourceInfo:
        return ResourceInfo(
            group=self.group,
            version=version.name,
            resource=self.plural,
            kind=self.kind,
            singular=self.singular,
            namespaced=self.namespaced,
            short_names=self.short_names,
            categories=self.categories,
            subresources=version.subresources(),
            storage_prefix=self.prefix,
            storage_version=self.storage_version,
            list_kind=self.list_kind,
            builtin=False,
            custom=version,
        )

    def deprecation_warning(self, version: str) -> str:
        """Of a version whose definition gives no words: the newer version to use, where there is one that is not deprecated."""
        own = version_priority(version)
        better = [v.name for v in self.versions.values() if v.served and not v.deprecated and version_priority(v.name) < own]
        text = f"{self.group}/{version} {self.kind} is deprecated"
        return f"{text}; use {self.group}/{min(better, key=version_priority)} {self.kind}" if better else text


class CustomVersion:
    """One version of a definition: the ``ResourceInfo.custom`` of its resource, and the ``KindSchema`` of its kind."""

    def __init__(self, definition: CustomDefinition, version: Object, position: int) -> None:
        self.definition = definition
        self.name: str = version["name"]
        self._position = position
        self.served = bool(version.get("served"))
        self.deprecated = bool(version.get("deprecated"))
        self._deprecation_warning = version.get("deprecationWarning")
        subresources = version.get("subresources") or {}
        self.has_status = subresources.get("status") is not None
        self.has_scale = subresources.get("scale") is not None
        self.selectable_paths: tuple[str, ...] = tuple(field["jsonPath"] for field in version.get("selectableFields") or ())

    def adopt(self, other: CustomVersion) -> None:
        for made in ("schema", "printer", "scale"):
            if made in other.__dict__:
                self.__dict__[made] = other.__dict__[made]

    def subresources(self) -> tuple[SubresourceInfo, ...]:
        found = []
        if self.has_status:
            found.append(SubresourceInfo(name="status", kind=self.definition.kind, group=self.definition.group, version=self.name))
        if self.has_scale:
            found.append(SubresourceInfo(name="scale", kind="Scale", group="autoscaling", version="v1"))
        return tuple(found)

    # -- resources.CustomResource

    @property
    def terminating(self) -> bool:
        return self.definition.terminating

    @property
    def warning(self) -> str:
        if not self.deprecated:
            return ""
        return str(self._deprecation_warning) if self._deprecation_warning is not None else self.definition.deprecation_warning(self.name)

    @property
    def mark(self) -> str:
        uid, generation, _ = self.definition.shape
        return f"{uid} {generation}"

    def strategy(self) -> Strategy:
        from apiserver.apiextensions.strategy import CustomResourceStrategy

        return CustomResourceStrategy(self)

    @property
    def converts_by_webhook(self) -> bool:
        return bool(self.definition.converts_by_webhook)

    def converted(self, obj: Object, to: CustomVersion) -> Object:
        from apiserver.apiextensions.strategy import CustomResourceStrategy

        found = obj if to is self else CustomResourceStrategy(self).converted(obj, to)
        to.schema.prune(found)
        return found

    def in_version(self, api_version: str) -> CustomVersion:
        """The version of the same definition that a manager wrote in, served or not. Raises VersionError, in kube-apiserver's words."""
        group, name = objects.group_version(api_version)
        definition = self.definition
        if group != definition.group:
            own = f"{definition.group}/{self.name}, Kind={definition.kind}"
            raise VersionError(f'{own} is unstructured and is not suitable for converting to "{api_version}"')
        found = definition.versions.get(name)
        if found is None:
            raise VersionError(f"request to convert CR to an invalid group/version: {api_version}")
        return found

    def in_version_of_managers(self, obj: Object, to: str) -> Object:
        """An object, which is given away and may be of any version, in the version ``to``: not pruned, since what it has no place for is
        what is wrong with it. Raises VersionError, and NeedsConversionError where the webhook has to be asked first."""
        from apiserver.apiextensions.strategy import CustomResourceStrategy

        return CustomResourceStrategy(self).converted(obj, self.in_version(to))

    def decode_version(self) -> Object:
        """The version as the definition has it."""
        found: Object = self.definition.decode()["spec"]["versions"][self._position]
        return found

    def openapi_v3_schema(self) -> Object | None:
        found: Object | None = objects.get(self.decode_version(), "schema", "openAPIV3Schema")
        return found

    @cached_property
    def printer(self) -> Printer:
        from apiserver.apiextensions import printing

        return printing.printer(self.decode_version().get("additionalPrinterColumns") or ())

    @cached_property
    def scale(self) -> Object | None:
        """``specReplicasPath``, ``statusReplicasPath`` and maybe ``labelSelectorPath``; None: no such subresource."""
        return objects.get(self.decode_version(), "subresources", "scale")  # type: ignore[no-any-return]

    # -- schemas.KindSchema

    @cached_property
    def schema(self) -> StructuralSchema:
        """Compiled at the first request that reads or writes an object."""
        from apiserver.apiextensions.structural import StructuralSchema

        definition = self.definition
        return StructuralSchema(self.openapi_v3_schema(), definition.preserve_unknown_fields, schemas=definition.schemas)

    @property
    def type(self) -> Type:
        return self.schema.type

    def decode(self, source: bytes | Object) -> Decoded:
        return self.schema.decode(source)
