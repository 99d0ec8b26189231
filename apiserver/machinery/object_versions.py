"""``ObjectVersions``: the objects of one write in the versions that its managers wrote in (apimachinery ``util/managedfields``,
versionConverter; structured-merge-diff compares, and prunes, in each manager's own version).

``versions`` of a kind are told by two functions: its type in a version (None: that version is not served, its managers are forgotten) and
an object in a version.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from apiserver.machinery import apply_types, typed_merge
from apiserver.machinery.apply_types import ApplyType
from apiserver.machinery.objects import Object
from apiserver.machinery.types import Type

#: the type of a kind in another version, by apiVersion; None where the version is not served any more. Raises VersionError.
SchemaOf: TypeAlias = Callable[[str], Type | None]
#: An object, which is not changed, in the version that is named; it may answer the object itself. Raises VersionError.
Convert: TypeAlias = Callable[[Object, str], Object]


class VersionError(ValueError):
    """An object cannot be had in a version."""


class ObjectVersions:
    """``kind`` and ``api_version`` are those of the write. Without ``schema_of`` all versions are alike; without ``convert`` they have the
    same fields. Objects must be without managedFields."""

    def __init__(self, kind: ApplyType, api_version: str, schema_of: SchemaOf | None, convert: Convert | None = None) -> None:
        self.kind = kind
        self.api_version = api_version
        self._schema_of = schema_of
        self._convert = convert
        self._kinds: dict[str, ApplyType | None] = {api_version: kind}

    def shape(self, api_version: str) -> ApplyType | None:
        """None where the version is not served any more. Raises VersionError."""
        if api_version not in self._kinds:
            found = self.kind if self._schema_of is None else None
            if self._schema_of is not None and (type := self._schema_of(api_version)) is not None:
                found = apply_types.of(type)
            self._kinds[api_version] = found
        return self._kinds[api_version]

    @property
    def are_alike(self) -> bool:
        """Whether objects are the same in all versions."""
        return self._convert is None

    def converted(self, obj: Object, to: str, what: str = "") -> Object:
        """``obj``, of whatever version it says, in the version ``to``, which ``shape`` knows. Raises VersionError: ``what`` was tried."""
        if self._convert is None or not obj or obj.get("apiVersion", self.api_version) == to:
            return obj
        shape = self.shape(to)
        assert shape is not None, to
        try:
            made = self._convert(obj, to)
        except VersionError as error:
            raise VersionError(f"{what}{error}") from error
        if problems := typed_merge.validate(shape, made):
            raise VersionError(f"{what}{typed_merge.in_words(problems)}")
        return made
