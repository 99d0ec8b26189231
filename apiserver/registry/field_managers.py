"""``metadata.managedFields`` of every kind: the machinery's functions with the types of the published schemas."""

from __future__ import annotations

from apiserver.machinery import managed_fields, objects, server_side_apply
from apiserver.machinery.managed_fields import FieldFilter, SchemaOf
from apiserver.machinery.objects import Object
from apiserver.machinery.types import Type
from apiserver.registry import status_metadata
from apiserver.resources.resource_info import ResourceInfo
from apiserver.schemas.schema_set import SchemaSet


class SchemaFieldManagers:
    """Implements ``environment.FieldManagers``."""

    def __init__(self, schemas: SchemaSet) -> None:
        self._schemas = schemas
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
            schema_of=self._types_of(info.kind),
            reset_fields=_reset_fields(info, subresource),
        )
        return managed_fields.with_entries(new, entries)

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
            schema_of=self._types_of(info.kind),
            reset_fields=_reset_fields(info, subresource),
        )

    def _type(self, api_version: str, kind: str) -> Type | None:
        group, version = objects.group_version(api_version)
        try:
            return self._schemas.type_of(group, version, kind)
        except KeyError:
            return None

    def _types_of(self, kind: str) -> SchemaOf:
        found = self._schema_of.get(kind)
        if found is None:

            def schema_of(api_version: str) -> Type | None:
                return self._type(api_version, kind)

            found = self._schema_of[kind] = schema_of
        return found


def _reset_fields(info: ResourceInfo, subresource: str) -> FieldFilter:
    if subresource == "status":
        return status_metadata.reset_fields(info) if info.builtin else managed_fields.ONLY_STATUS
    return managed_fields.WITHOUT_STATUS if info.has_status and not subresource else managed_fields.NO_FILTER
