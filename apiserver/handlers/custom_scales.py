"""The ``Scale`` of a custom resource: its definition says which fields it shows."""

from __future__ import annotations

from typing import cast

from apiserver.apiextensions import scale
from apiserver.apiextensions.definitions import CustomVersion
from apiserver.machinery import status
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.resources.resource_info import CustomResource


def scale_of(custom: CustomResource, obj: Object, *, must_have_replicas: bool) -> Object:
    """Raises 500 for an object whose fields are not what the definition says, as of one that was written before it said so."""
    version = cast(CustomVersion, custom)
    try:
        if must_have_replicas and scale.spec_replicas(version, obj) is None:
            assert version.scale is not None
            raise status.internal_error(f'the spec replicas field "{version.scale["specReplicasPath"]}" does not exist')
        return scale.view(version, obj)
    except scale.AccessorError as error:
        raise StatusError(status.failure(500, "", str(error))) from error


def replicas_path(custom: CustomResource) -> list[str]:
    """The fields on the way to the replicas."""
    version = cast(CustomVersion, custom)
    assert version.scale is not None
    return str(version.scale["specReplicasPath"]).strip(".").split(".")


def set_replicas(custom: CustomResource, obj: Object, patched: Object | None, replicas: int) -> None:
    """In place. ``patched``: the Scale after a patch, which must say something where the object has no replicas yet."""
    version = cast(CustomVersion, custom)
    try:
        if patched is not None and "replicas" not in (patched.get("spec") or {}) and scale.spec_replicas(version, obj) is None:
            assert version.scale is not None
            raise status.bad_request(f'the spec replicas field "{version.scale["specReplicasPath"]}" cannot be empty')
        scale.set_replicas(version, obj, replicas)
    except scale.AccessorError as error:
        raise StatusError(status.failure(500, "", str(error))) from error
