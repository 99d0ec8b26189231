"""The requests that a resource takes, in the words of OpenAPI but in neither version's form (apiserver ``endpoints/installer``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from apiserver.resources.resource_info import ResourceInfo, SubresourceInfo
from apiserver.schemas.openapi.custom import definition_name
from apiserver.schemas.openapi.definitions import META
from apiserver.schemas.openapi.parameters import PRETTY, QUERY, Parameter, path_parameters

DELETE_OPTIONS = META + "DeleteOptions"
PATCH = META + "Patch"
STATUS = META + "Status"

#: response code and its words
CREATED = ("200", "201", "202")
REPLACED = ("200", "201")
DELETED = ("200", "202")
OK = ("200",)
RESPONSE_WORDS = {"200": "OK", "201": "Created", "202": "Accepted", "401": "Unauthorized"}

_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_DELETE = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_LIST = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
_DELETE_COLLECTION = tuple(sorted({*_DELETE, *_LIST} - {"allowWatchBookmarks", "watch"}))
_LOG = ("container", "follow", "insecureSkipTLSVerifyBackend", "limitBytes", "previous", "sinceSeconds", "tailLines", "timestamps")
_CONNECT_PARAMETERS = {
    "attach": ("container", "stderr", "stdin", "stdout", "tty"),
    "exec": ("command", "container", "stderr", "stdin", "stdout", "tty"),
    "portforward": ("ports",),
    "proxy": ("path",),
}
_PROXY_METHODS = ("delete", "get", "head", "options", "patch", "post", "put")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """``path`` with its parameters in braces; ``body`` and ``response`` are definition names, ``response`` "" is plain text. ``query`` are
    names of ``parameters.QUERY``. ``kind`` is what ``x-kubernetes-group-version-kind`` says."""

    path: str
    method: str
    action: str
    id: str
    description: str
    tag: str
    kind: tuple[str, str, str] | None
    response: str
    codes: tuple[str, ...] = OK
    body: str = ""
    body_required: bool = False
    query: tuple[str, ...] = ()
    patch_types: tuple[str, ...] = ()
    watches: bool = False
    custom: bool = False


def group_word(group: str) -> str:
    """``Core``, ``Apps``, ``RbacAuthorization``, ``DemoExampleCom``: the group in the names of operations."""
    if not group:
        return "Core"
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[.\-]", group.removesuffix(".k8s.io")))


def tag_of(group: str, version: str) -> str:
    word = group_word(group)
    return f"{word[:1].lower()}{word[1:]}_{version}"


def prefix_of(group: str, version: str) -> str:
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def operations(info: ResourceInfo) -> list[Operation]:
    """All requests on a resource and its subresources."""
    return _Builder(info).build()


Part = Callable[[Parameter], dict[str, Any]]


def paths(
    found: Iterable[Operation], path_part: Part, query_part: Part, operation_part: Callable[[Operation, tuple[str, ...]], dict[str, Any]]
) -> dict[str, Any]:
    """Both documents' ``paths``: the operations by path, with the parameters that all of one path share beside them. The parts say how the
    document writes a parameter of the path, one of the query, and an operation without those shared ones."""
    by_path: dict[str, list[Operation]] = {}
    for operation in found:
        by_path.setdefault(operation.path, []).append(operation)
    items: dict[str, Any] = {}
    for path in sorted(by_path):
        item: dict[str, Any] = {}
        shared = shared_query(by_path[path])
        kind = by_path[path][0].kind
        if kind is not None:
            in_query = sorted((PRETTY, *(QUERY[name] for name in shared)), key=lambda p: p.name)
            item["parameters"] = [*map(path_part, path_parameters(path, kind[2])), *map(query_part, in_query)]
        for operation in by_path[path]:
            item[operation.method] = operation_part(operation, shared)
        items[path] = item
    return items


def shared_query(operations: Iterable[Operation]) -> tuple[str, ...]:
    """The parameters that all operations of one path have, which stand with the path."""
    first, *others = operations
    return tuple(name for name in first.query if all(name in other.query for other in others))


def discovery_operations(groups: list[str]) -> list[Operation]:
    """The requests that only describe the API: of the whole, of each group, of the version. Groups of custom resources alone have
    none."""
    found = [
        _described("/api/", "get available API versions", "getCoreAPIVersions", "core", META + "APIVersions"),
        _described("/apis/", "get available API versions", "getAPIVersions", "apis", META + "APIGroupList"),
        _described(
            "/version/", "get the version information for this server", "getCodeVersion", "version", "io.k8s.apimachinery.pkg.version.Info"
        ),
    ]
    for group in groups:
        if group:
            word = group_word(group)
            tag = word[:1].lower() + word[1:]
            found.append(_described(f"/apis/{group}/", "get information of a group", f"get{word}APIGroup", tag, META + "APIGroup"))
    return found


def version_operation(group: str, version: str) -> Operation:
    """The request that lists the resources of a group and version."""
    name = f"get{group_word(group)}{version[:1].upper()}{version[1:]}APIResources"
    return _described(prefix_of(group, version) + "/", "get available resources", name, tag_of(group, version), META + "APIResourceList")


def _described(path: str, description: str, id_: str, tag: str, response: str) -> Operation:
    return Operation(path=path, method="get", action="", id=id_, description=description, tag=tag, kind=None, response=response)


class _Builder:
    def __init__(self, info: ResourceInfo) -> None:
        self._info = info
        self._word = group_word(info.group) + info.version[:1].upper() + info.version[1:]
        self._scope = "Namespaced" if info.namespaced else ""
        prefix = prefix_of(info.group, info.version)
        self._everywhere = f"{prefix}/{info.resource}"
        self._collection = f"{prefix}/namespaces/{{namespace}}/{info.resource}" if info.namespaced else self._everywhere
        self._item = self._collection + "/{name}"
        self._own = definition_name(info)
        self._own_kind = (info.group, info.version, info.kind)
        #: that objects of built-in kinds are read at a resourceVersion as well is not told
        self._read_query = () if info.builtin else ("resourceVersion",)
        self._found: list[Operation] = []

    def build(self) -> list[Operation]:
        info, kind = self._info, self._info.kind
        if "list" in info.verbs:
            self._list(self._collection, f"list{self._word}{self._scope}{kind}")
        if "create" in info.verbs:
            self._create(self._collection, self._id("create"), f"create {_a(kind)}", self._own, self._own_kind)
        if "deletecollection" in info.verbs:
            body, query = (DELETE_OPTIONS, _DELETE_COLLECTION) if info.builtin else ("", _LIST)
            self._add(
                self._collection, "delete", "deletecollection", f"delete{self._word}Collection{self._scope}{kind}",
                f"delete collection of {kind}", STATUS, body=body, query=query,
            )  # fmt: skip
        if "get" in info.verbs:
            self._add(self._item, "get", "get", self._id("read"), f"read the specified {kind}", self._own, query=self._read_query)
        if "update" in info.verbs:
            self._add(
                self._item, "put", "put", self._id("replace"), f"replace the specified {kind}", self._own,
                codes=REPLACED, body=self._own, body_required=True, query=_WRITE,
            )  # fmt: skip
        if "delete" in info.verbs:
            # kinds that are deleted at once answer a Status, those with a grace period themselves
            answer = self._own if info.kind in ("Pod", "PersistentVolumeClaim", "PersistentVolume", "Service", "ServiceAccount") else STATUS
            self._add(
                self._item, "delete", "delete", self._id("delete"), f"delete {_a(kind)}", answer,
                codes=DELETED, body=DELETE_OPTIONS, query=_DELETE,
            )  # fmt: skip
        if "patch" in info.verbs:
            self._patch(self._item, self._id("patch"), f"partially update the specified {kind}", self._own, self._own_kind)
        if "list" in info.verbs and info.namespaced:
            self._list(self._everywhere, f"list{self._word}{kind}ForAllNamespaces")
        for subresource in info.subresources:
            self._subresource(subresource)
        return self._found

    def _id(self, verb: str) -> str:
        return f"{verb}{self._word}{self._scope}{self._info.kind}"

    def _add(self, path: str, method: str, action: str, id_: str, description: str, response: str, **more: object) -> None:
        values: dict[str, object] = {"kind": self._own_kind, "custom": not self._info.builtin, **more}
        self._found.append(
            Operation(
                path=path, method=method, action=action, id=id_, description=description, response=response,
                tag=tag_of(self._info.group, self._info.version), **values,  # type: ignore[arg-type]
            )
        )  # fmt: skip

    def _list(self, path: str, id_: str) -> None:
        does, watches = ("list or watch", "watch" in self._info.verbs) if self._info.builtin else ("list", False)
        self._add(
            path, "get", "list", id_, f"{does} objects of kind {self._info.kind}", definition_name(self._info, self._info.list_kind),
            query=_LIST, watches=watches,
        )  # fmt: skip

    def _create(self, path: str, id_: str, description: str, body: str, kind: tuple[str, str, str]) -> None:
        self._add(path, "post", "post", id_, description, body, codes=CREATED, body=body, body_required=True, query=_WRITE, kind=kind)

    def _patch(self, path: str, id_: str, description: str, response: str, kind: tuple[str, str, str]) -> None:
        types = ["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"]
        if self._info.builtin:
            types.insert(2, "application/strategic-merge-patch+json")
        self._add(
            path, "patch", "patch", id_, description, response,
            codes=REPLACED if self._info.builtin else OK, body=PATCH, body_required=True,
            query=(*_WRITE, "force"), patch_types=tuple(types), kind=kind,
        )  # fmt: skip

    def _subresource(self, sub: SubresourceInfo) -> None:
        path, kind = f"{self._item}/{sub.name}", (sub.group, sub.version, sub.kind)
        word = sub.name[:1].upper() + sub.name[1:]
        if sub.kind.endswith("Options"):
            self._connect(sub, path, word, kind)
            return
        body = _definition_of(sub, self._info)
        if not self._info.builtin:
            kind = self._own_kind  # of the scale, too
        owner = self._info.kind
        if "create" in sub.verbs:
            self._create(path, self._id("create") + word, f"create {sub.name} of {_a(owner)}", body, kind)
        if "get" in sub.verbs:
            answer, query = ("", _LOG) if sub.name == "log" else (body, self._read_query)
            self._add(
                path, "get", "get", self._id("read") + word, f"read {sub.name} of the specified {owner}", answer, query=query, kind=kind
            )
        if "update" in sub.verbs:
            self._add(
                path, "put", "put", self._id("replace") + word, f"replace {sub.name} of the specified {owner}", body,
                codes=REPLACED, body=body, body_required=True, query=_WRITE, kind=kind,
            )  # fmt: skip
        if "patch" in sub.verbs:
            self._patch(path, self._id("patch") + word, f"partially update {sub.name} of the specified {owner}", body, kind)

    def _connect(self, sub: SubresourceInfo, path: str, word: str, kind: tuple[str, str, str]) -> None:
        is_proxy = sub.name == "proxy"
        for suffix, where in (("", path), ("WithPath", path + "/{path}")) if is_proxy else (("", path),):
            for method in _PROXY_METHODS if is_proxy else ("get", "post"):
                id_ = f"connect{self._word}{method.capitalize()}{self._scope}{self._info.kind}{word}{suffix}"
                description = f"connect {method.upper()} requests to {sub.name} of {self._info.kind}"
                self._add(where, method, "connect", id_, description, "", query=_CONNECT_PARAMETERS[sub.name], kind=kind)


def _definition_of(sub: SubresourceInfo, info: ResourceInfo) -> str:
    if (sub.group, sub.version, sub.kind) == (info.group, info.version, info.kind):
        return definition_name(info)
    first = sub.group.partition(".")[0] or "core"
    return f"io.k8s.api.{first}.{sub.version}.{sub.kind}"


def _a(kind: str) -> str:
    return f"{'an' if kind[:1] in 'AEIOU' else 'a'} {kind}"
