"""What a method and a path mean (apiserver ``endpoints/request``, RequestInfoFactory).

    /api/v1/namespaces/{ns}/{resource}/{name}/{subresource}      /apis/{group}/{version}/…      /api/v1/watch/…

No regular expressions: the path is split once, and what a path says is kept for the next request of the same one.
"""

from __future__ import annotations

from collections.abc import Mapping

from apiserver.request.request_context import RequestInfo

#: Paths remembered. Clients ask for few paths often; beyond this the memory is emptied, which costs one parse a path.
REMEMBERED_MAX = 8_192
#: Characters of a path that is remembered: names have 253 at most; without this bound anybody could fill the memory with long ones.
REMEMBERED_LENGTH_MAX = 512

_VERB_OF_METHOD = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
#: Subresources of namespaces that are not resources inside of a namespace.
_NAMESPACE_SUBRESOURCES = frozenset(("status", "finalize"))
_SPECIAL_VERBS = frozenset(("proxy", "watch"))

_remembered: dict[tuple[str, str], RequestInfo] = {}


def resolve(method: str, path: str, query: Mapping[str, list[str]]) -> RequestInfo:
    """The facts of one request. The answer is shared between requests: it must not be changed."""
    info = _remembered.get((method, path))
    if info is None:
        info = _parse(method, path)
        if len(path) <= REMEMBERED_LENGTH_MAX:
            if len(_remembered) >= REMEMBERED_MAX:
                _remembered.clear()
            _remembered[(method, path)] = info
    if not query or not info.is_resource_request or info.name:
        return info
    if info.verb in ("list", "watch", "deletecollection"):
        return _with_query(info, query)
    return info


def _parse(method: str, path: str) -> RequestInfo:
    nothing = RequestInfo(is_resource_request=False, path=path, verb=method.lower())
    # an empty part is one that names nothing: what stands behind two slashes is not found
    parts = path.strip("/").split("/")
    if len(parts) < 3 or path.startswith("//"):
        return nothing
    prefix = parts[0]
    if prefix == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif prefix == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return nothing
    verb = _VERB_OF_METHOD.get(method, "")
    if rest[0] in _SPECIAL_VERBS:
        if len(rest) < 2:
            return nothing
        if rest[0] == "watch":
            verb = "watch"
        else:
            verb = "proxy"
        rest = rest[1:]
    namespace = ""
    if rest[0] == "namespaces":
        if len(rest) > 1:
            namespace = rest[1]
            if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
                rest = rest[2:]
    resource = rest[0]
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if not name:
        if verb == "get":
            verb = "list"
        elif verb == "delete":
            verb = "deletecollection"
    return RequestInfo(
        is_resource_request=True,
        path=path,
        verb=verb,
        api_prefix=prefix,
        group=group,
        version=version,
        namespace=namespace,
        resource=resource,
        subresource=subresource,
        name=name,
        parts=tuple(rest),
    )


def _with_query(info: RequestInfo, query: Mapping[str, list[str]]) -> RequestInfo:
    """A list may be a watch, and may name its one object in a field selector (authorization by resourceNames sees it)."""
    verb = info.verb
    if verb == "list" and is_true(query.get("watch")):
        verb = "watch"
    name = ""
    selector = query.get("fieldSelector")
    if selector and "metadata.name" in selector[0]:
        name = required_name(selector[0])
    if verb == info.verb and not name:
        return info
    return RequestInfo(
        is_resource_request=True,
        path=info.path,
        verb=verb,
        api_prefix=info.api_prefix,
        group=info.group,
        version=info.version,
        namespace=info.namespace,
        resource=info.resource,
        name=name,
        parts=info.parts,
    )


def is_true(values: list[str] | None) -> bool:
    """A query flag as apimachinery's conversion reads it: present and neither "0" nor "false"."""
    return values is not None and len(values) > 0 and values[0].lower() not in ("0", "false")


def required_name(selector: str) -> str:
    """The name that ``metadata.name=…`` in a field selector demands, "" if there is none or more than one."""
    names = set()
    for term in selector.split(","):
        field, equals, value = term.partition("=")
        if equals and field.strip() == "metadata.name":
            names.add(value.removeprefix("=").strip())
    return names.pop() if len(names) == 1 else ""
