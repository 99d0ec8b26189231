"""How requests to custom resources are refused, where that differs from built-in ones (apiextensions-apiserver ``crdHandler``)."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.machinery import field_errors, status
from apiserver.machinery.status import StatusError
from apiserver.request import negotiation
from apiserver.request.request_context import RequestContext
from apiserver.resources.resource_info import ResourceInfo

_ACROSS_NAMESPACES = frozenset(("list", "watch"))
_NAMED = frozenset(("get", "update", "patch", "delete"))
_SUBRESOURCE_VERBS = frozenset(("get", "update", "patch"))


def check(resource: ResourceInfo, context: RequestContext) -> bool:
    """Whether the path is one of the resource's; says what is deprecated. Raises StatusError for what the resource does not have."""
    info, custom = context.info, resource.custom
    if resource.namespaced != bool(info.namespace) and not (resource.namespaced and info.verb in _ACROSS_NAMESPACES):
        return False
    if custom is not None and custom.warning:
        context.warn(custom.warning)
    if info.subresource:
        if all(sub.name != info.subresource for sub in resource.subresources):
            raise status.not_found(resource.group, resource.resource, info.name)
        if info.verb not in _SUBRESOURCE_VERBS:
            raise not_supported(resource, info.verb)
    elif info.verb not in resource.verbs:
        raise not_supported(resource, info.verb)
    elif info.verb in _NAMED and not info.name:
        if info.verb == "patch":
            negotiation.patch_type(context.headers, builtin=False)
        raise status.bad_request("name must be provided")
    return True


def another_kind(
    resource: ResourceInfo, kind: str, api_version: str, name: str, further: Sequence[field_errors.FieldError] = ()
) -> StatusError:
    """An object that says to be of another kind or version gets as far as the resource's validation, which then refuses that and what is
    ``further`` wrong with it, but not its values."""
    errors = []
    if kind != resource.kind:
        errors.append(field_errors.invalid("kind", kind, f"must be {resource.kind}"))
    if api_version != resource.api_version:
        errors.append(field_errors.invalid("apiVersion", api_version, f"must be {resource.api_version}"))
    return status.invalid(api_version.rpartition("/")[0], kind, name, [*errors, *further])


def not_supported(resource: ResourceInfo, verb: str) -> StatusError:
    what = status.qualified(resource.group, resource.resource)
    details = {"group": resource.group, "kind": resource.resource}
    return StatusError(status.failure(405, "MethodNotAllowed", f'{verb} is not supported on resources of kind "{what}"', details))
