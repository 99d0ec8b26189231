"""What the API server knows of one resource of one group and version (API conventions, "Resources")."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a resource's Table; ``priority`` 1 shows with -o wide. ``documented`` names the field of the published schemas whose
    description is the column's (``core.v1.PodStatus.podIP``), where it has none of its own."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0
    documented: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubresourceInfo:
    """``kind`` and ``group``/``version`` are of the body that the subresource takes (``Scale`` of autoscaling/v1 …)."""

    name: str
    kind: str
    group: str = ""
    version: str = ""
    verbs: tuple[str, ...] = ("get", "patch", "update")
    #: first minor of Kubernetes that serves it, 0 where it came with its resource
    since: int = 0


class CustomResource(Protocol):
    """What a definition says of one version of its resource, beyond the names: made when it is asked for."""

    @property
    def terminating(self) -> bool:
        """The definition is being deleted: no further objects come to be."""

    @property
    def warning(self) -> str:
        """The sentence that answers of a deprecated version carry, or ""."""

    @property
    def printer(self) -> Any:
        """A ``columns.Printer``: its Table."""

    @property
    def mark(self) -> str:
        """Another one once the schema is another one."""

    def strategy(self) -> Any:
        """A ``registry.Strategy``: the rules of its objects."""

    @property
    def selectable_paths(self) -> tuple[str, ...]:
        """JSON paths of the fields by which objects may be selected."""

    @property
    def converts_by_webhook(self) -> bool:
        """Whether only a webhook can tell what an object looks like in another version."""

    def converted(self, obj: dict[str, Any], to: Any) -> dict[str, Any]:
        """An object of this version, which is given away, in the version ``to`` of the same definition. Raises NeedsConversionError
        where its webhook has to be asked first."""

    def in_version(self, api_version: str) -> Any:
        """The same definition's version of that name, served or not. Raises VersionError."""

    def in_version_of_managers(self, obj: dict[str, Any], to: str) -> dict[str, Any]:
        """An object of any version of the definition, which is given away, in the version ``to``, as field managers need it. Raises
        VersionError, NeedsConversionError."""

    def openapi_v3_schema(self) -> dict[str, Any] | None:
        """The schema as the definition has it, decoded anew at each call; None: any object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceInfo:
    """``resource`` is the plural, lower case. ``schema`` names the definition of the kind in the published schemas.

    ``storage_version`` is the version in which objects are stored; ``storage_group`` and ``storage_resource`` differ from
    ``group`` and ``resource`` only where two API groups share one stored type (events). The key of an object is
    ``/registry/<storage_prefix>/[<namespace>/]<name>``.

    ``custom`` is there for custom resources (``builtin`` False) that come from a definition.
    """

    group: str
    version: str
    resource: str
    kind: str
    singular: str = ""
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[SubresourceInfo, ...] = ()
    storage_prefix: str = ""
    storage_version: str = ""
    storage_group: str | None = None
    columns: tuple[Column, ...] = ()
    list_kind: str = ""
    schema: str = ""
    builtin: bool = True
    #: of a built-in resource: the first and last minor of Kubernetes that serves it by default
    since: int = 0
    until: int = 1_000_000
    extra: dict[str, object] = field(default_factory=dict)
    custom: CustomResource | None = field(default=None, compare=False, repr=False)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def has_status(self) -> bool:
        return any(s.name == "status" for s in self.subresources)
