"""Takes out of an object what its type has no field for.

Defaults and strategies are written for the newest Kubernetes; an older version that is served must not show, nor keep, fields that came
later (``podReplacementPolicy`` of a Job in 1.25), or clients that send its objects back would be refused for them.
"""

from __future__ import annotations

from typing import Any

from apiserver.machinery.types import Shape, Type


def drop_unknown(type_: Type, value: Any) -> None:
    """Changes ``value`` in place."""
    if type_.shape is Shape.STRUCT:
        if not isinstance(value, dict):
            return
        for name in list(value):
            field = type_.fields.get(name)
            if field is not None:
                drop_unknown(field, value[name])
            elif not (type_.preserve_unknown or type_.embedded_object):
                del value[name]
    elif type_.shape is Shape.ANY and type_.element is not None:
        # a union with a schema: whatever object stands there, or in a list there, is one
        for schema in value if isinstance(value, list) else [value]:
            drop_unknown(type_.element, schema)
    elif type_.element is not None:
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            drop_unknown(type_.element, item)
