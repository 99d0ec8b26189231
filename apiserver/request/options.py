"""The options of requests (meta/v1 ListOptions, CreateOptions, UpdateOptions, PatchOptions) as their query parameters say them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from apiserver.machinery import field_errors, go_json, resource_version, status
from apiserver.machinery.field_errors import FieldError
from apiserver.request.request_info import is_true

Query = Mapping[str, list[str]]

META_GROUP = "meta.k8s.io"
FIELD_MANAGER_MAX_LENGTH = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """``resource_version`` is None where none is given; ``timeout_seconds`` likewise. ``send_initial_events`` None: not given."""

    label_selector: str = ""
    field_selector: str = ""
    watch: bool = False
    allow_watch_bookmarks: bool = False
    resource_version: int | None = None
    resource_version_match: str = ""
    timeout_seconds: int | None = None
    limit: int = 0
    continue_token: str = ""
    send_initial_events: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Of create, update and patch. ``force`` is apply's; None where it is not given."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = ""
    force: bool | None = None


NO_LIST_OPTIONS = ListOptions()
NO_WRITE_OPTIONS = WriteOptions()


def text(query: Query, name: str) -> str:
    values = query.get(name)
    return values[0] if values else ""


def integer(query: Query, name: str) -> int | None:
    """A 64-bit integer, None where it is not given or empty; raises 400."""
    value = text(query, name)
    if not value:
        return None
    try:
        return go_json.parse_int(value)
    except go_json.GoError as error:
        raise status.bad_request(str(error)) from error


def boolean(query: Query, name: str) -> bool | None:
    values = query.get(name)
    return None if not values else is_true(values)


def list_options(query: Query, *, watch: bool = False) -> ListOptions:
    """Raises 400 for values that do not parse and 422 for those that do not go together."""
    if not query and not watch:
        return NO_LIST_OPTIONS
    watch = watch or is_true(query.get("watch"))
    timeout_seconds, limit = integer(query, "timeoutSeconds"), integer(query, "limit") or 0
    version_text, match = text(query, "resourceVersion"), text(query, "resourceVersionMatch")
    continue_token, initial = text(query, "continue"), boolean(query, "sendInitialEvents")
    errors = (_check_watch if watch else _check_list)(match, version_text, continue_token, initial)
    if errors:
        raise status.invalid(META_GROUP, "ListOptions", "", errors)
    revision: int | None = None
    if version_text:
        try:
            revision = resource_version.parse(version_text)
        except resource_version.ResourceVersionError as error:
            if watch:
                raise status.invalid(META_GROUP, "ListOptions", "", [error.field_error]) from error
            raise status.bad_request(f"invalid resource version: {error}") from error
    if continue_token and revision:
        raise status.bad_request("specifying resource version is not allowed when using continue")
    return ListOptions(
        label_selector=text(query, "labelSelector"),
        field_selector=text(query, "fieldSelector"),
        watch=watch,
        allow_watch_bookmarks=bool(boolean(query, "allowWatchBookmarks")),
        resource_version=revision,
        resource_version_match=match,
        timeout_seconds=timeout_seconds,
        limit=max(limit, 0),
        continue_token=continue_token,
        send_initial_events=initial,
    )


_MATCH = "resourceVersionMatch"
_NOT_OLDER_THAN = "NotOlderThan"
_EXACT = "Exact"


def _check_list(match: str, version: str, continue_token: str, initial: bool | None) -> list[FieldError]:
    errors = []
    if match:
        if not version:
            errors.append(field_errors.forbidden(_MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if continue_token:
            errors.append(field_errors.forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided"))
        if match not in (_EXACT, _NOT_OLDER_THAN):
            errors.append(field_errors.not_supported(_MATCH, match, [_EXACT, _NOT_OLDER_THAN, ""]))
        if match == _EXACT and version == "0":
            errors.append(field_errors.forbidden(_MATCH, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if initial is not None:
        errors.append(field_errors.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _check_watch(match: str, version: str, continue_token: str, initial: bool | None) -> list[FieldError]:
    errors = []
    if initial is not None and match != _NOT_OLDER_THAN:
        why = f"sendInitialEvents requires setting resourceVersionMatch to {_NOT_OLDER_THAN}"
        errors.append(field_errors.forbidden(_MATCH, why))
    if match:
        if initial is None:
            why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            errors.append(field_errors.forbidden(_MATCH, why))
        if match != _NOT_OLDER_THAN:
            errors.append(field_errors.not_supported(_MATCH, match, [_NOT_OLDER_THAN]))
        if continue_token:
            errors.append(field_errors.forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided"))
    return errors


def write_options(query: Query, kind: str) -> WriteOptions:
    """``kind`` is CreateOptions, UpdateOptions or PatchOptions. Raises 422."""
    if not query:
        return NO_WRITE_OPTIONS
    errors = dry_run_errors(query.get("dryRun"))
    field_manager, field_validation = text(query, "fieldManager"), text(query, "fieldValidation")
    if field_manager:
        errors += field_manager_errors(field_manager)
    if field_validation not in ("", "Ignore", "Warn", "Strict"):
        errors.append(field_errors.not_supported("fieldValidation", field_validation, ["", "Ignore", "Strict", "Warn"]))
    force = boolean(query, "force")
    if errors:
        raise status.invalid(META_GROUP, kind, "", errors)
    return WriteOptions(
        dry_run="dryRun" in query, field_manager=field_manager, field_validation=field_validation, force=force
    )


def dry_run_errors(values: list[str] | None) -> list[FieldError]:
    if values is None or values == ["All"] or (values and all(value == "All" for value in values)):
        return []
    return [field_errors.not_supported("dryRun", values, ["All"])]


def field_manager_errors(manager: str) -> list[FieldError]:
    errors = []
    if len(manager.encode()) > FIELD_MANAGER_MAX_LENGTH:
        errors.append(field_errors.too_long("fieldManager", FIELD_MANAGER_MAX_LENGTH))
    for position, character in enumerate(manager):
        if not character.isprintable():
            why = f"should only contain printable characters (character at position {position})"
            errors.append(field_errors.invalid("fieldManager", manager, why))
            break
    return errors
