"""Writes the status of an object that may have changed since it was read."""

from __future__ import annotations

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.client import errors
from controllers.client.interface import Api
from controllers.client.resources import Resource

#: tries of a write that meets a newer version of the object
ATTEMPTS_MAX = 2


async def write_status(api: Api, resource: Resource, obj: Object, status: Object) -> Object:
    """The object with that status, as stored. Writes nothing where it has it already, and nothing on another object of that name; one
    that is gone is no error.

    Only for statuses that hold whatever else of the object changed: on a conflict the same status goes over the newer version.

    Raises:
        StatusError, ConnectionFailed: a second conflict, or any other refusal.
    """
    current = obj
    for attempt in range(1, ATTEMPTS_MAX + 1):
        if (current.get("status") or {}) == status:
            return current
        try:
            return await api.update(resource, {**current, "status": status}, subresource="status")
        except errors.StatusError as error:
            if errors.is_not_found(error):
                return current
            if not errors.is_conflict(error) or attempt == ATTEMPTS_MAX:
                raise
        try:
            current = await api.get(resource, objects.namespace(obj), objects.name(obj))
        except errors.StatusError as error:
            if errors.is_not_found(error):
                return current
            raise
        if objects.uid(current) != objects.uid(obj):
            return current
    raise AssertionError("unreachable: the last attempt returns or raises")
