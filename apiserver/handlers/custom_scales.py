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


#: what stands in a Scale for the replicas of an object that has none, so that a patch that says none can be told from one that does
NO_REPLICAS = -(2**31)


def mark_missing_replicas(custom: CustomResource, obj: Object, scale_object: Object) -> None:
    """Puts ``NO_REPLICAS`` in the Scale of an object that has none."""
    try:
        if scale.spec_replicas(cast(CustomVersion, custom), obj) is None:
            scale_object["spec"] = {"replicas": NO_REPLICAS}
    except scale.AccessorError as error:
        raise StatusError(status.failure(500, "", str(error))) from error


def set_replicas(custom: CustomResource, obj: Object, replicas: int) -> None:
    """In place. Raises 400 where they are ``NO_REPLICAS`` still."""
    version = cast(CustomVersion, custom)
    if replicas == NO_REPLICAS:
        assert version.scale is not None
        raise status.bad_request(f'the spec replicas field "{version.scale["specReplicasPath"]}" cannot be empty')
    try:
        scale.set_replicas(version, obj, replicas)
    except scale.AccessorError as error:
        raise StatusError(status.failure(500, "", str(error))) from error
