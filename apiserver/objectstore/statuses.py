"""Where errors of the store and of the object store become Statuses. The one place for it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from apiserver.machinery import status
from apiserver.machinery.status import StatusError
from apiserver.objectstore import interface
from apiserver.resources.resource_info import ResourceInfo
from storage import errors

#: the object is larger than the store takes
TooLargeError = errors.RequestTooLargeError


@contextlib.contextmanager
def as_statuses(info: ResourceInfo, name: str) -> Iterator[None]:
    """Raise ``StatusError`` in place of what the lower rooms raise, but for ``KeyExistsError``, which creates handle themselves."""
    try:
        yield
    except interface.KeyNotFoundError as error:
        raise status.not_found(info.group, info.resource, name) from error
    except interface.ContendedError as error:
        raise status.conflict(info.group, info.resource, name, status.MODIFIED) from error
    except interface.FutureRevisionError as error:
        raise status.too_large_resource_version(error.wanted, error.current) from error
    except interface.ExpiredError as error:
        raise status.gone(str(error)) from error
    except (interface.UnreadableObjectError, interface.EncryptionError) as error:
        raise status.internal_error(str(error)) from error
    except interface.ReadOnlyError as error:
        raise status.service_unavailable(str(error)) from error
    except errors.StoreError as error:
        raise of_store(error) from error


def of_store(error: errors.StoreError) -> StatusError:
    """What a client is told when the store refuses. Texts are the store's, since operators look for them."""
    text = str(error)
    if isinstance(error, errors.RequestTooLargeError):
        return status.request_entity_too_large(f"etcdserver: request is too large: {text}" if "too large" not in text else text)
    if isinstance(error, errors.RequestTimeoutError):
        return status.timeout(text)
    if isinstance(error, errors.TooManyRequestsError):
        return status.too_many_requests(text)
    if isinstance(error, errors.UnavailableError):
        return status.service_unavailable(text)
    return status.internal_error(text)
