"""``/openapi/v3``: an index, and an OpenAPI 3.0 document for each group and version."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from apiserver.resources.resource_info import ResourceInfo
from apiserver.resources.table import ResourceTable
from apiserver.schemas.openapi import custom, definitions, operations
from apiserver.schemas.openapi.definitions import META, Dialect
from apiserver.schemas.openapi.operations import RESPONSE_WORDS, Operation
from apiserver.schemas.openapi.parameters import QUERY, Parameter
from apiserver.schemas.published import GVK, Schema

#: raised with every change of how documents are made from the same facts, so that clients drop the ones they keep
FORM = 2

_ANSWER_TYPES = ("application/json", "application/vnd.kubernetes.protobuf", "application/yaml")
_CUSTOM_ANSWER_TYPES = ("application/json", "application/yaml")


def document_names(table: ResourceTable) -> list[str]:
    """``api``, ``api/v1``, ``apis``, ``apis/apps``, ``apis/apps/v1``, …, ``version``."""
    names = ["api", "apis", "version"]
    for group in table.groups():
        if group:
            names.append(f"apis/{group}")
        names += [(f"apis/{group}/" if group else "api/") + version for version in table.versions(group)]
    return sorted(names)


def document_hash(table: ResourceTable, name: str) -> str:
    """A hash that changes with the document, made from what the document is made from. Raises KeyError for a name without a document."""
    group, version = _split(table, name)
    facts: list[Any] = [FORM, table.kubernetes_version, name]
    if version:
        facts += [[repr(_facts(info)), custom.mark_of(info)] for info in table.resources(group, version)]
    else:
        facts += [table.groups(), table.versions(group) if group else []]
    return hashlib.sha512(orjson.dumps(facts)).hexdigest().upper()


def _facts(info: ResourceInfo) -> tuple[object, ...]:
    return (info.resource, info.kind, info.list_kind, info.namespaced, info.verbs, info.subresources, info.builtin)


def index(table: ResourceTable) -> dict[str, Any]:
    """Where each document is, with its hash."""
    paths = {name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={document_hash(table, name)}"} for name in document_names(table)}
    return {"paths": paths}


def document(table: ResourceTable, published: Mapping[str, Schema], name: str) -> dict[str, Any]:
    """The document under a name of the index. Raises KeyError for a name that is not there."""
    group, version = _split(table, name)
    infos = table.resources(group, version) if version else []
    if version and not any(info.builtin for info in infos):
        return _custom_document(infos, published)
    if version:
        found = [operations.version_operation(group, version)]
        for info in infos:
            found.extend(operations.operations(info))
    else:
        found = [o for o in operations.discovery_operations(table.groups()) if o.path == f"/{name}/"]
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": f"v{table.kubernetes_version}.0"},
        "paths": _paths(found),
        "components": {
            "schemas": _schemas(found, infos, published),
            "securitySchemes": {
                "BearerToken": {"type": "apiKey", "description": "Bearer Token authentication", "name": "authorization", "in": "header"}
            },
        },
    }


def _custom_document(infos: list[ResourceInfo], published: Mapping[str, Schema]) -> dict[str, Any]:
    """Of a group and version of custom resources alone (apiextensions-apiserver ``controller/openapiv3``)."""
    found = [operation for info in infos for operation in operations.operations(info)]
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
        "paths": _paths(found),
        "components": {"schemas": _schemas(found, infos, published)},
    }


def _split(table: ResourceTable, name: str) -> tuple[str, str]:
    """Group and version of a document's name; no version where it is of a group or of the whole."""
    parts = name.split("/")
    if name in ("api", "apis", "version"):
        return "", ""
    if parts[0] == "api" and len(parts) == 2 and table.serves("", parts[1]):
        return "", parts[1]
    if parts[0] == "apis" and len(parts) == 2 and parts[1] and table.versions(parts[1]):
        return parts[1], ""
    if parts[0] == "apis" and len(parts) == 3 and parts[1] and table.serves(parts[1], parts[2]):
        return parts[1], parts[2]
    raise KeyError(name)


def _schemas(found: list[Operation], infos: Iterable[ResourceInfo], published: Mapping[str, Schema]) -> dict[str, Schema]:
    named = {name for o in found for name in (o.body, o.response) if name}
    own: dict[str, Schema] = {}
    for info in infos:
        if not info.builtin:
            own.update(custom.definitions(info, Dialect.OPENAPI_3))
            named |= {META + "ObjectMeta", META + "ListMeta"}
        if "watch" in info.verbs:
            named.add(META + "WatchEvent")
    schemas = {name: definitions.definition(name, published[name], Dialect.OPENAPI_3) for name in definitions.reachable(published, named)}
    return dict(sorted({**schemas, **own}.items()))


def _paths(found: list[Operation]) -> dict[str, Any]:
    return operations.paths(found, _path_parameter, _query, _operation)


def _path_parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": "path",
        "description": parameter.description,
        "required": True,
        "schema": _unique(parameter.type),
    }


def _operation(operation: Operation, shared: tuple[str, ...]) -> dict[str, Any]:
    out: dict[str, Any] = {"tags": [operation.tag], "description": operation.description, "operationId": operation.id}
    query = [name for name in operation.query if name not in shared]
    if query:
        out["parameters"] = [_query(QUERY[name]) for name in query]
    if operation.body:
        schema = {"schema": {"$ref": Dialect.OPENAPI_3.value + operation.body}}
        types = operation.patch_types or (_CUSTOM_ANSWER_TYPES if operation.custom else ("*/*",))
        out["requestBody"] = {"content": dict.fromkeys(sorted(types), schema)}
        if operation.body_required:
            out["requestBody"]["required"] = True
    content = _content(operation)
    out["responses"] = {
        **{code: {"description": RESPONSE_WORDS[code], "content": content} for code in operation.codes},
        "401": {"description": RESPONSE_WORDS["401"]},
    }
    if operation.kind is not None:
        group, version, kind = operation.kind
        out["x-kubernetes-action"] = operation.action
        out[GVK] = {"group": group, "version": version, "kind": kind}
    return out


def _content(operation: Operation) -> dict[str, Any]:
    if operation.action == "connect":
        return {"*/*": {"schema": {"type": "string"}}}
    types = list(_CUSTOM_ANSWER_TYPES if operation.custom else _ANSWER_TYPES)
    if not operation.response:
        return {type_: {"schema": {"type": "string"}} for type_ in sorted([*types, "text/plain"])}
    if operation.watches:
        types += [f"{type_};stream=watch" for type_ in types if type_ != "application/yaml"]
    return {type_: {"schema": {"$ref": Dialect.OPENAPI_3.value + operation.response}} for type_ in sorted(types)}


def _query(parameter: Parameter) -> dict[str, Any]:
    return {"name": parameter.name, "in": "query", "description": parameter.description, "schema": _unique(parameter.type)}


def _unique(type_: str) -> dict[str, Any]:
    return {"type": type_, "uniqueItems": True}
