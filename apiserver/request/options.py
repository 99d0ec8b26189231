"""The options of requests (meta/v1 ListOptions, CreateOptions, UpdateOptions, PatchOptions) as their query parameters say them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from apiserver.machinery import field_errors, fields, go_json, labels, object_meta_validation, resource_version, status
from apiserver.machinery.field_errors import FieldError
from apiserver.request.request_info import is_true

Query = Mapping[str, list[str]]

META_GROUP = "meta.k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """``resource_version`` is the text, "" where none is given; ``timeout_seconds`` None likewise. ``send_initial_events`` None: not
    given. ``watch`` is the parameter, which the paths below ``/watch/`` do without."""

    label_selector: labels.Selector = labels.EVERYTHING
    field_selector: fields.Selector = fields.EVERYTHING
    watch: bool = False
    allow_watch_bookmarks: bool = False
    resource_version: str = ""
    resource_version_match: str = ""
    timeout_seconds: int | None = None
    limit: int = 0
    continue_token: str = ""
    send_initial_events: bool | None = None

    def revision(self) -> int:
        """-1 where no resourceVersion is given. Raises ``ResourceVersionError``."""
        return resource_version.parse(self.resource_version) if self.resource_version else -1


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
    """A 64-bit integer, None where it is not given; raises 400, also for an empty one."""
    values = query.get(name)
    if not values:
        return None
    try:
        return go_json.parse_int(values[0])
    except go_json.GoError as error:
        raise status.bad_request(str(error)) from error


def boolean(query: Query, name: str) -> bool | None:
    values = query.get(name)
    return None if not values else is_true(values)


def list_options(query: Query) -> ListOptions:
    """In the order in which kube-apiserver finds fault: numbers and selectors that do not parse (400), then options that do not go
    together (422). Whether the resource version and the continue token can be read, whoever reads says."""
    if not query:
        return NO_LIST_OPTIONS
    watch = is_true(query.get("watch"))
    timeout_seconds, limit = integer(query, "timeoutSeconds"), integer(query, "limit") or 0
    try:
        label_selector, field_selector = labels.parse(text(query, "labelSelector")), fields.parse(text(query, "fieldSelector"))
    except (labels.SelectorError, fields.SelectorError) as error:
        raise status.bad_request(str(error)) from error
    version, match = text(query, "resourceVersion"), text(query, "resourceVersionMatch")
    continue_token, initial = text(query, "continue"), boolean(query, "sendInitialEvents")
    if watch and initial is None and not match and version in ("", "0"):
        # a watch that begins with what is there is a streaming list, also where it is asked for in the old way
        initial, match = True, _NOT_OLDER_THAN
    errors = (_check_watch if watch else _check_list)(match, version, continue_token, initial)
    if errors:
        raise status.invalid(META_GROUP, "ListOptions", "", errors)
    return ListOptions(
        label_selector=label_selector,
        field_selector=field_selector,
        watch=watch,
        allow_watch_bookmarks=bool(boolean(query, "allowWatchBookmarks")),
        resource_version=version,
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
        errors += object_meta_validation.validate_field_manager(field_manager, "fieldManager")
    if field_validation not in ("", "Ignore", "Warn", "Strict"):
        errors.append(field_errors.not_supported("fieldValidation", field_validation, ["", "Ignore", "Strict", "Warn"]))
    force = boolean(query, "force")
    if errors:
        raise status.invalid(META_GROUP, kind, "", errors)
    return WriteOptions(dry_run="dryRun" in query, field_manager=field_manager, field_validation=field_validation, force=force)


def dry_run_errors(values: list[str] | None) -> list[FieldError]:
    if values is None or values == ["All"] or (values and all(value == "All" for value in values)):
        return []
    return [field_errors.not_supported("dryRun", values, ["All"])]
