"""A good definition, and how to make a bad one of it."""

from __future__ import annotations

import copy
from typing import Any

GROUP = "defs.example.com"
#: takes a field away, in ``changed``
GONE: Any = object()
TEXT: dict[str, Any] = {"type": "string"}
WHOLE: dict[str, Any] = {"type": "integer"}


def version(name: str = "v1", schema: Any = None, **more: Any) -> dict[str, Any]:
    shape = {"type": "object", "properties": {"spec": {"type": "object"}}} if schema is None else schema
    return {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": shape}, **more}


def definition(*versions: dict[str, Any], group: str = GROUP, plural: str = "widgets", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": list(versions) or [version()],
            **spec,
        },
    }


def of_root(schema: Any) -> dict[str, Any]:
    return definition(version(schema=schema))


def of_field(schema: Any, **beside: Any) -> dict[str, Any]:
    return of_root({"type": "object", "properties": {"x": schema}, **beside})


def changed(body: Any, changes: dict[str, Any]) -> Any:
    """A copy with values set at paths ``a.b.0.c``; a list is made longer by the index after its last."""
    body = copy.deepcopy(body)
    for path, value in changes.items():
        *above, last = path.split(".")
        holder = body
        for step in above:
            holder = holder[int(step)] if isinstance(holder, list) else holder.setdefault(step, {})
        if isinstance(holder, list):
            if value is GONE:
                del holder[int(last)]
            elif int(last) == len(holder):
                holder.append(value)
            else:
                holder[int(last)] = value
        elif value is GONE:
            holder.pop(last, None)
        else:
            holder[last] = value
    return body
