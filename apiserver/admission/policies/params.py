"""The objects that a binding gives to a policy as parameters (apiserver ``admission/plugin/policy/generic`` CollectParams)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from apiserver.machinery import labels, objects
from apiserver.machinery.objects import Object
from apiserver.machinery.types import Type
from apiserver.resources.resource_info import ResourceInfo

Part = Mapping[str, Any]


class ConfigurationError(Exception):
    """A policy or binding that cannot do what it says; the failure policy says what follows."""


class ServedObjects(Protocol):
    """Resources of all kinds, custom ones too, in the version that is asked for."""

    @property
    def generation(self) -> int:
        """Another number whenever something else is served."""

    def by_kind(self, group: str, version: str, kind: str) -> ResourceInfo | None: ...

    async def get_object(self, info: ResourceInfo, namespace: str, name: str) -> Object | None: ...

    async def list_objects(self, info: ResourceInfo, namespace: str) -> list[Object]: ...

    def equivalents(self, info: ResourceInfo) -> Sequence[ResourceInfo]:
        """The same stored objects as other groups and versions serve them."""

    async def converted(self, obj: Object, current: ResourceInfo, wanted: ResourceInfo) -> Object:
        """An object in another of its versions; ``obj`` is not changed. Raises StatusError."""

    def type_of(self, group: str, version: str, kind: str) -> Type | None: ...

    def settled(self, obj: Object, info: ResourceInfo, subresource: str) -> Object:
        """An object that was changed: decoded anew and with its defaults. Raises StatusError."""


def kind_of_params(said: Part, served: ServedObjects) -> ResourceInfo:
    """What ``paramKind`` is. Raises ConfigurationError where nothing like it is served."""
    api_version, kind = said.get("apiVersion") or "", said.get("kind") or ""
    group, _, version = api_version.rpartition("/")
    found = served.by_kind(group, version, kind)
    if found is None:
        raise ConfigurationError(f"failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'")
    return found


async def collect(info: ResourceInfo | None, reference: Part | None, namespace: str, served: ServedObjects) -> list[Object | None]:
    """The parameters, one run of the policy for each: ``[None]`` is a run without any. ``info`` is what ``paramKind`` names, None where
    the policy takes none; ``namespace`` is the request's. Raises ConfigurationError."""
    if info is None or reference is None:
        return [None]
    wanted = reference.get("namespace") or ""
    if info.namespaced:
        wanted = wanted or namespace
        if not wanted:
            raise ConfigurationError("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
    elif wanted:
        raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    found: list[Object | None] = []
    name, selector = reference.get("name") or "", reference.get("selector")
    if name:
        one = await served.get_object(info, wanted, name)
        found = [] if one is None else [one]
    elif selector is not None:
        try:
            chosen = labels.from_label_selector(selector)
        except labels.SelectorError as error:
            raise ConfigurationError(str(error)) from error
        found += [one for one in await served.list_objects(info, wanted) if chosen.matches(objects.labels(one))]
    else:
        raise ConfigurationError("one of name or selector must be provided")
    if not found and reference.get("parameterNotFoundAction") == "Deny":
        raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
    return found
