"""OpenAPI documents of extension API servers, merged into those of this server (kube-openapi ``aggregator``). Pure.

Of a document of version 2 only what is below the APIService's path is taken, with the definitions that it needs. A definition whose name
this server uses for something else gets another name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson

Document = dict[str, Any]

_V2 = "#/definitions/"
_V3 = "#/components/schemas/"
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
#: names tried for a definition whose own is taken
RENAMES_MAX = 100
#: of nested values in a document: deeper ones are no OpenAPI, and would end the interpreter's stack
DEPTH_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteOpenApi:
    """``path``: of the APIService (``/apis/GROUP/VERSION``); ``v3_url``: where its document is on the other server, "" for none."""

    path: str
    v3_url: str
    swagger: bytes

    @property
    def name(self) -> str:
        """Of its document of version 3."""
        return self.path.lstrip("/")


def merged_swagger(local: Document, remotes: Iterable[RemoteOpenApi]) -> Document:
    """``local`` is changed. What cannot be understood is left out."""
    for remote in remotes:
        own = swagger_part(remote)
        if own is not None:
            _merge(local, own)
    local["definitions"] = dict(sorted(local["definitions"].items()))
    return local


def swagger_part(remote: RemoteOpenApi) -> Document | None:
    """Paths and definitions of the APIService alone; None where there are none."""
    if not remote.swagger:
        return None
    try:
        document = orjson.loads(remote.swagger)
        paths = {path: item for path, item in document["paths"].items() if isinstance(item, dict) and path.startswith(remote.path + "/")}
        definitions = document.get("definitions") or {}
        if not all(isinstance(found, dict) for found in definitions.values()):
            return None
        kept = _reachable(paths, definitions)
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, ValueError):
        return None
    return {"paths": paths, "definitions": kept, "parameters": document.get("parameters") or {}} if paths else None


def index(local: Document, remotes: Iterable[RemoteOpenApi]) -> Document:
    """``/openapi/v3`` with the documents of other servers; one that has none of version 3 gets it made of that of version 2."""
    paths = dict(local["paths"])
    for remote in remotes:
        found = v3_hash(remote)
        paths.pop(remote.name, None)
        if found:
            paths[remote.name] = {"serverRelativeURL": f"/openapi/v3/{remote.name}?hash={found}"}
    return {**local, "paths": dict(sorted(paths.items()))}


def v3_hash(remote: RemoteOpenApi) -> str:
    """ "" where there is no document."""
    if remote.v3_url:
        asked = parse_qs(urlsplit(remote.v3_url).query).get("hash")
        return asked[0] if asked else hashlib.sha256(remote.v3_url.encode()).hexdigest().upper()
    return hashlib.sha256(remote.swagger).hexdigest().upper() if swagger_part(remote) is not None else ""


def v3_of_swagger(remote: RemoteOpenApi, title: Document) -> Document | None:
    """The document of version 3 that says what that of version 2 says. ``title``: its ``info``."""
    part = swagger_part(remote)
    if part is None:
        return None
    part = _inlined_parameters(part)
    paths = {path: _path_of_3(item) for path, item in part["paths"].items()}
    schemas = {name: _renamed(schema, _V2, lambda name: _V3 + name) for name, schema in part["definitions"].items()}
    return {"openapi": "3.0.0", "info": title, "paths": paths, "components": {"schemas": schemas}}


def _path_of_3(item: Document) -> Document:
    found: Document = {}
    shared = item.get("parameters") or []
    for method in _METHODS:
        operation = item.get(method)
        if not isinstance(operation, dict):
            continue
        parameters = [*shared, *(operation.get("parameters") or [])]
        new: Document = {k: v for k, v in operation.items() if k not in ("consumes", "produces", "parameters", "responses", "schemes")}
        plain = [_parameter_of_3(p) for p in parameters if isinstance(p, dict) and p.get("in") in ("query", "path", "header")]
        if plain:
            new["parameters"] = plain
        body = next((p for p in parameters if isinstance(p, dict) and p.get("in") == "body"), None)
        if body is not None:
            schema = {"schema": _to_3(body.get("schema") or {})}
            new["requestBody"] = {"content": dict.fromkeys(operation.get("consumes") or ["*/*"], schema)}
        produces = operation.get("produces") or ["application/json"]
        new["responses"] = {code: _response_of_3(answer, produces) for code, answer in (operation.get("responses") or {}).items()}
        found[method] = new
    return found


def _parameter_of_3(parameter: Document) -> Document:
    outer = ("name", "in", "description", "required")
    schema = {key: value for key, value in parameter.items() if key not in outer}
    return {**{key: parameter[key] for key in outer if key in parameter}, "schema": schema}


def _response_of_3(answer: Any, produces: list[str]) -> Document:
    found: Document = {"description": (answer or {}).get("description", "")}
    if (answer or {}).get("schema") is not None:
        found["content"] = {media_type: {"schema": _to_3(answer["schema"])} for media_type in produces}
    return found


def _to_3(schema: Any) -> Any:
    return _renamed(schema, _V2, lambda name: _V3 + name)


def _inlined_parameters(part: Document) -> Document:
    """Shared parameters in place of the references to them."""
    shared = part["parameters"]

    def resolved(parameters: Any) -> list[Any]:
        found = []
        for parameter in parameters or ():
            reference = parameter.get("$ref", "") if isinstance(parameter, dict) else ""
            parameter = shared.get(reference.removeprefix("#/parameters/")) if reference else parameter
            if parameter is not None:
                found.append(parameter)
        return found

    paths = {}
    for path, item in part["paths"].items():
        new = {**item, "parameters": resolved(item.get("parameters"))}
        for method in _METHODS:
            if isinstance(item.get(method), dict):
                new[method] = {**item[method], "parameters": resolved(item[method].get("parameters"))}
        paths[path] = new
    return {**part, "paths": paths}


def _merge(local: Document, own: Document) -> None:
    renames: dict[str, str] = {}
    known = local["definitions"]
    for name, schema in own["definitions"].items():
        if name in known and known[name] != schema:
            renames[name] = _free(name, known, own["definitions"])
    parameters = local.setdefault("parameters", {})
    for name, parameter in own["parameters"].items():
        if isinstance(parameter, dict):
            parameters.setdefault(name, parameter)

    def rename(name: str) -> str:
        return _V2 + renames.get(name, name)

    for name, schema in own["definitions"].items():
        known.setdefault(renames.get(name, name), _renamed(schema, _V2, rename) if renames else schema)
    for path, item in own["paths"].items():
        local["paths"][path] = _renamed(item, _V2, rename) if renames else item


def _free(name: str, known: Document, others: Document) -> str:
    for number in range(2, RENAMES_MAX):
        found = f"{name}_v{number}"
        if found not in known and found not in others:
            return found
    return f"{name}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _renamed(value: Any, prefix: str, rename: Any, depth: int = 0) -> Any:
    """A copy with other references."""
    if depth > DEPTH_MAX:
        raise ValueError("the document is nested too deeply")
    if isinstance(value, dict):
        reference = value.get("$ref")
        if isinstance(reference, str) and reference.startswith(prefix):
            return {**value, "$ref": rename(reference[len(prefix) :])}
        return {key: _renamed(inner, prefix, rename, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_renamed(inner, prefix, rename, depth + 1) for inner in value]
    return value


def _reachable(value: Any, definitions: Document) -> Document:
    """The definitions that a value refers to, and those that they do."""
    found: dict[str, Any] = {}
    waiting = [*_references(value)]
    while waiting:
        name = waiting.pop()
        if name not in found and name in definitions:
            found[name] = definitions[name]
            waiting += _references(definitions[name])
    return found


def _references(value: Any) -> Iterator[str]:
    stack: list[tuple[Any, int]] = [(value, 0)]
    while stack:
        one, depth = stack.pop()
        if depth > DEPTH_MAX:
            raise ValueError("the document is nested too deeply")
        if isinstance(one, dict):
            reference = one.get("$ref")
            if isinstance(reference, str) and reference.startswith(_V2):
                yield reference[len(_V2) :]
            stack += [(inner, depth + 1) for inner in one.values()]
        elif isinstance(one, list):
            stack += [(inner, depth + 1) for inner in one]
