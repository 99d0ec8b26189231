"""What a definition may say that does not do what it seems to (apiextensions-apiserver ``registry/customresourcedefinition``)."""

from __future__ import annotations

from apiserver.apiextensions import definition_schema, formats
from apiserver.apiextensions.internal_form import internal_spec
from apiserver.apiextensions.nodes import LIST_TYPE
from apiserver.machinery import release
from apiserver.machinery.objects import Object

#: formats are looked up as the newest Kubernetes knows them
_NEWEST_MINOR = 99
#: the minor version of Kubernetes that began to warn of sets of what is no scalar
_SETS_SINCE = 37


def warnings(new: Object, old: Object | None) -> list[str]:
    """What is allowed but does not do what it seems to: unknown formats, sets of objects. Of an update only what is new in it."""
    had_formats = set() if old is None else set(_unknown_formats(old))
    had_sets = set() if old is None else set(_compound_sets(old))
    found = [f'unrecognized format "{name}"' for name in _unknown_formats(new) if name not in had_formats]
    return found + [text for text in _compound_sets(new) if text not in had_sets] if release.since(_SETS_SINCE) else found


def _unknown_formats(definition: Object) -> list[str]:
    return [
        schema["format"]
        for top in internal_spec(definition).schemas()
        for schema in definition_schema.walk_schemas(top)
        if schema.get("format") and not formats.is_recognized(schema.get("type") or "", schema["format"], _NEWEST_MINOR)
    ]


def _compound_sets(definition: Object) -> list[str]:
    types = {
        schema["items"].get("type")
        for top in internal_spec(definition).schemas()
        for schema in definition_schema.walk_schemas(top)
        if schema.get(LIST_TYPE) == "set" and isinstance(schema.get("items"), dict)
    }
    words = 'x-kubernetes-list-type: set for items of type "{}" is not supported by server-side apply or CEL validation rules'
    return [words.format(type_) for type_ in ("array", "object") if type_ in types]
