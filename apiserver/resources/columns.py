"""Which columns a resource's Table has and what stands in their cells: ``printer_for(info, minor)``.

    printer = printer_for(info, 37)
    rows = [table.row(printer.cells(obj, now), obj, include, conditions=printer.conditions(obj)) for obj in objects]

``now`` is in seconds since 1970; cells are JSON values in the order of the columns. Cells are always the wide ones: which columns are
shown is the client's choice by their priority. Objects of resources without columns of their own show their name and when they
were created.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from apiserver.machinery import table, timestamps
from apiserver.machinery.objects import Object, metadata
from apiserver.resources.resource_info import Column, ResourceInfo

Cells = Callable[[Object, float], list[Any]]
Conditions = Callable[[Object], list[Object]]

#: modules that define ``PRINTERS``, by group and kind
_MODULES = ("columns_core", "columns_workloads", "columns_network", "columns_storage", "columns_access")

_CREATED = "meta.v1.ObjectMeta.creationTimestamp"


def no_conditions(obj: Object) -> list[Object]:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Printer:
    """``cells`` answers as many values as there are ``columns``; ``conditions`` are a row's (a pod that is done is greyed out); ``order``
    is a sort key for the rows of a list, where they do not stand in the order of their names."""

    columns: tuple[Column, ...]
    cells: Cells
    conditions: Conditions = no_conditions
    order: Callable[[Object], Any] | None = None

    def definitions(self, describe: Callable[[str], str] = lambda field: "") -> list[Object]:
        """The columns in the form in which a Table has them. ``describe`` answers the description of a field of the published schemas."""
        return [
            table.column_definition(c.name, c.type, c.format, describe(c.documented) if c.documented else c.description, c.priority)
            for c in self.columns
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dated:
    """A column that only some versions of Kubernetes have."""

    column: Column
    since: int = 0
    until: int = 1_000_000


def column(name: str, type_: str = "string", *, priority: int = 0, description: str = "", documented: str = "") -> Column:
    return Column(name=name, type=type_, priority=priority, description=description, documented=documented)


NAME = Column(name="Name", type="string", format="name", documented="meta.v1.ObjectMeta.name")
AGE = Column(name="Age", type="string", documented=_CREATED)
_CREATED_AT = Column(name="Created At", type="date", documented=_CREATED)


def printer(
    *columns: Column | Dated, cells: Cells, conditions: Conditions = no_conditions, order: Callable[[Object], Any] | None = None
) -> Callable[[int], Printer]:
    """What stands in a module's ``PRINTERS``: a function from the minor of Kubernetes to the printer. ``cells`` answers a value for every
    column, dated or not."""

    def of_minor(minor: int) -> Printer:
        kept = [i for i, c in enumerate(columns) if not isinstance(c, Dated) or c.since <= minor <= c.until]
        shown = tuple(c.column if isinstance(c, Dated) else c for c in (columns[i] for i in kept))
        if len(kept) == len(columns):
            return Printer(columns=shown, cells=cells, conditions=conditions, order=order)

        def kept_cells(obj: Object, now: float) -> list[Any]:
            values = cells(obj, now)
            return [values[i] for i in kept]

        return Printer(columns=shown, cells=kept_cells, conditions=conditions, order=order)

    return of_minor


def printer_for(info: ResourceInfo, minor: int) -> Printer:
    """The printer of a built-in resource, or the one that a definition of a custom resource asks for."""
    if info.custom is not None:
        own: Printer = info.custom.printer
        return own
    if not info.builtin:
        return _CUSTOM
    return printer_of_kind(info.group, info.kind, minor)


@lru_cache(maxsize=256)
def printer_of_kind(group: str, kind: str, minor: int) -> Printer:
    """The printer of a built-in kind, also of one that is no resource (``Scale``)."""
    for name in _MODULES:
        found = importlib.import_module(f"apiserver.resources.{name}").PRINTERS.get((group, kind))
        if found is not None:
            return found(minor)  # type: ignore[no-any-return]
    return _DEFAULT


def name(obj: Object) -> str:
    return str(metadata(obj).get("name") or "")


def age(obj: Object, now: float) -> str:
    """How long ago the object was created, as people read it."""
    return since(metadata(obj).get("creationTimestamp"), now)


def since(moment: str | None, now: float) -> str:
    """``<unknown>`` where there is no moment."""
    return timestamps.age(moment or "", now)


_DEFAULT = Printer(columns=(NAME, _CREATED_AT), cells=lambda obj, now: [name(obj), metadata(obj).get("creationTimestamp")])
_CUSTOM = Printer(columns=(NAME, replace(AGE, type="date")), cells=lambda obj, now: [name(obj), age(obj, now)])
