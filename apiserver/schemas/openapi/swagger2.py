"""``/openapi/v2``: one Swagger 2.0 document for everything that is served."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from apiserver.resources.table import ResourceTable
from apiserver.schemas.openapi import custom, definitions, operations
from apiserver.schemas.openapi.definitions import Dialect
from apiserver.schemas.openapi.operations import RESPONSE_WORDS, Operation
from apiserver.schemas.openapi.parameters import PRETTY, QUERY, Parameter
from apiserver.schemas.published import GVK, Schema

_JSON = "application/json"
_YAML = "application/yaml"
_PROTOBUF = "application/vnd.kubernetes.protobuf"
#: what older clients look for at the operation itself stands there; the others are shared
_INLINE = ("dryRun", "fieldManager", "fieldValidation", "force")


def document(table: ResourceTable, published: Mapping[str, Schema]) -> dict[str, Any]:
    """Of all resources that ``table`` serves now. ``published`` are the published definitions."""
    infos = list(table)
    builtin = {(info.group, info.version) for info in infos if info.builtin}
    groups = {group for group, _ in builtin}
    found: list[Operation] = operations.discovery_operations([group for group in table.groups() if group in groups])
    for group in table.groups():
        for version in table.versions(group):
            if (group, version) in builtin:
                found.append(operations.version_operation(group, version))
            for info in table.resources(group, version):
                found.extend(operations.operations(info))
    # all published kinds, served or not by default, as a release has them in its document
    schemas = {name: definitions.definition(name, schema, Dialect.SWAGGER_2) for name, schema in published.items()}
    for info in infos:
        if not info.builtin:
            schemas.update(custom.definitions(info, Dialect.SWAGGER_2))
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": f"v{table.kubernetes_version}.0"},
        "paths": operations.paths(found, _path_parameter, _parameter, _operation),
        "definitions": dict(sorted(schemas.items())),
        "parameters": {_shared_name(p): _query(p) for p in (PRETTY, *(p for n, p in QUERY.items() if n not in _INLINE))},
        "securityDefinitions": {
            "BearerToken": {"description": "Bearer Token authentication", "in": "header", "name": "authorization", "type": "apiKey"}
        },
        "security": [{"BearerToken": []}],
    }


def _path_parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "description": parameter.description,
        "in": "path",
        "name": parameter.name,
        "required": True,
        "type": parameter.type,
        "uniqueItems": True,
    }


def _operation(operation: Operation, shared: tuple[str, ...]) -> dict[str, Any]:
    produces = [_JSON, _YAML] if operation.custom else [_JSON, _YAML, _PROTOBUF]
    consumes = list(operation.patch_types) or ([_JSON, _YAML] if operation.custom else ["*/*"])
    if operation.kind is None:
        consumes = produces
    if operation.watches:
        produces = [*produces, *(f"{t};stream=watch" for t in ([_JSON] if operation.custom else [_JSON, _PROTOBUF]))]
    if operation.action == "connect":
        produces = ["*/*"]
    elif not operation.response:
        produces = ["text/plain", *produces]
    schema = {"$ref": Dialect.SWAGGER_2.value + operation.response} if operation.response else {"type": "string"}
    out: dict[str, Any] = {
        "consumes": consumes,
        "description": operation.description,
        "operationId": operation.id,
        "produces": produces,
        "responses": {
            **{code: {"description": RESPONSE_WORDS[code], "schema": schema} for code in operation.codes},
            "401": {"description": RESPONSE_WORDS["401"]},
        },
        "schemes": ["https"],
        "tags": [operation.tag],
    }
    parameters: list[dict[str, Any]] = []
    if operation.body:
        body: dict[str, Any] = {"in": "body", "name": "body", "schema": {"$ref": Dialect.SWAGGER_2.value + operation.body}}
        parameters.append({**body, "required": True} if operation.body_required else body)
    parameters += [_parameter(QUERY[name]) for name in operation.query if name not in shared]
    if parameters:
        out["parameters"] = parameters
    if operation.kind is not None:
        group, version, kind = operation.kind
        out["x-kubernetes-action"] = operation.action
        out[GVK] = {"group": group, "kind": kind, "version": version}
    return out


def _parameter(parameter: Parameter) -> dict[str, Any]:
    if parameter.name in _INLINE:
        return _query(parameter)
    return {"$ref": f"#/parameters/{_shared_name(parameter)}"}


def _query(parameter: Parameter) -> dict[str, Any]:
    return {"description": parameter.description, "in": "query", "name": parameter.name, "type": parameter.type, "uniqueItems": True}


def _shared_name(parameter: Parameter) -> str:
    digest = hashlib.sha256(f"{parameter.name} {parameter.type} {parameter.description}".encode()).hexdigest()
    return f"{parameter.name}-{digest[:8]}"
