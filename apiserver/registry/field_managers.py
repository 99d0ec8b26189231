"""``metadata.managedFields`` of every kind: the machinery's functions with the types of the published schemas and of definitions, and
objects in the versions that managers wrote in."""

from __future__ import annotations

from apiserver.machinery import managed_fields, objects, server_side_apply
from apiserver.machinery.managed_fields import FieldFilter
from apiserver.machinery.object_versions import Convert, SchemaOf
from apiserver.machinery.objects import Object
from apiserver.machinery.types import Type
from apiserver.registry import conversion, status_metadata
from apiserver.resources.resource_info import ResourceInfo
from apiserver.resources.table import ResourceTable
from apiserver.schemas.schema_set import SchemaSet


class SchemaFieldManagers:
    """Implements ``environment.FieldManagers``."""

    def __init__(self, schemas: SchemaSet, table: ResourceTable | None = None) -> None:
        """``table`` None: built-in kinds look the same in all versions."""
        self._schemas = schemas
        self._table = table
        self._schema_of: dict[str, SchemaOf] = {}

    def update(self, info: ResourceInfo, subresource: str, live: Object | None, new: Object, manager: str, now: str) -> Object:
        entries = managed_fields.update(
            live,
            new,
            type=self._type(info.api_version, info.kind),
            manager=manager,
            api_version=info.api_version,
            subresource=subresource,
            now=now,
            schema_of=self._types_of(info),
            convert=self._convert(info),
            reset_fields=_reset_fields(info, subresource),
        )
        return managed_fields.with_entries(new, entries)

    def untracked(self, live: Object | None, new: Object) -> Object:
        return managed_fields.with_entries(new, managed_fields.after_failure(live))

    def apply(
        self, info: ResourceInfo, subresource: str, live: Object | None, applied: Object, manager: str, force: bool, now: str
    ) -> Object:
        return server_side_apply.apply(
            live,
            applied,
            type=self._type(info.api_version, info.kind),
            manager=manager,
            force=force,
            api_version=info.api_version,
            kind=info.kind,
            subresource=subresource,
            now=now,
            schema_of=self._types_of(info),
            convert=self._convert(info),
            reset_fields=_reset_fields(info, subresource),
        )

    def _type(self, api_version: str, kind: str) -> Type | None:
        group, version = objects.group_version(api_version)
        try:
            return self._schemas.type_of(group, version, kind)
        except KeyError:
            return None

    def _types_of(self, info: ResourceInfo) -> SchemaOf:
        custom, kind = info.custom, info.kind
        if custom is not None:
            return lambda api_version: custom.in_version(api_version).type
        found = self._schema_of.get(kind)
        if found is None:

            def schema_of(api_version: str) -> Type | None:
                return self._type(api_version, kind)

            found = self._schema_of[kind] = schema_of
        return found

    def _convert(self, info: ResourceInfo) -> Convert | None:
        custom, table = info.custom, self._table
        if custom is not None:
            return lambda obj, to: custom.in_version_of_managers(objects.deep_copy(obj), to)
        if table is None or not info.storage_prefix:
            return None

        def convert(obj: Object, to: str) -> Object:
            current, wanted = (table.by_kind(*objects.group_version(version), info.kind) for version in (obj["apiVersion"], to))
            if current is None or wanted is None:
                return obj
            stored = table.storage_info(current) or current
            return conversion.convert(conversion.convert(objects.deep_copy(obj), stored), wanted)

        return convert


def _reset_fields(info: ResourceInfo, subresource: str) -> FieldFilter:
    if subresource == "status":
        return status_metadata.reset_fields(info) if info.builtin else managed_fields.ONLY_STATUS
    if not info.has_status or subresource:
        return managed_fields.NO_FILTER
    return managed_fields.WITHOUT_STATUS if info.builtin else managed_fields.WITHOUT_OWN_STATUS
