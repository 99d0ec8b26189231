"""Checks that many kinds share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from apiserver.machinery import labels as machinery_labels
from apiserver.machinery import names
from apiserver.machinery.field_errors import FieldError, invalid, not_supported, required
from apiserver.machinery.status import FIELD_ERRORS_MAX
from apiserver.registry.validation import formats

Errors = list[FieldError]
T = TypeVar("T")

NEGATIVE = "must be greater than or equal to 0"
NOT_POSITIVE = "must be greater than zero"
IMMUTABLE = "field is immutable"


def each(out: Errors, items: Iterable[T]) -> Iterator[tuple[int, T]]:
    """``enumerate(items)`` until there are as many errors as an answer tells: of an object with a hundred thousand mistakes the rest would
    be looked for in vain, while everybody waits."""
    for i, item in enumerate(items):
        if len(out) >= FIELD_ERRORS_MAX:
            return
        yield i, item


def checked(out: Errors, path: str, value: str, check: Callable[[str], Iterable[str]]) -> None:
    for message in check(value):
        out.append(invalid(path, value, message))


def required_name(out: Errors, path: str, value: str | None, check: Callable[[str], Iterable[str]]) -> None:
    """A required string that must pass ``check``."""
    if not value:
        out.append(required(path))
        return
    checked(out, path, value, check)


def nonnegative(out: Errors, path: str, value: int | None) -> None:
    if value is not None and value < 0:
        out.append(invalid(path, value, NEGATIVE))


def immutable(out: Errors, path: str, new: Any, old: Any) -> None:
    """A field that an update may not change; missing and null are the same."""
    if new != old and (new or old) and not _same(new, old):
        out.append(invalid(path, new, IMMUTABLE))


def equal(new: Any, old: Any) -> bool:
    """Go's ``apiequality.Semantic.DeepEqual`` on JSON: a missing field, null and an empty container are the same."""
    return bool(new == old) or _same(new, old)


def _same(new: Any, old: Any) -> bool:
    if new == old:
        return True
    if isinstance(new, dict) and isinstance(old, dict):
        return all(_same(new.get(key), old.get(key)) for key in {**new, **old})
    if isinstance(new, list) and isinstance(old, list):
        return len(new) == len(old) and all(map(_same, new, old))
    return new in (None, [], {}) and old in (None, [], {})


def labels(out: Errors, path: str, found: Mapping[str, str] | None) -> None:
    """Keys and values of a label map; errors stand at the map, with the bad key or value."""
    if found:
        out += machinery_labels.validate_labels(found, path)


def label_key(out: Errors, path: str, key: str) -> None:
    checked(out, path, key, formats.qualified_name)


def one_of(out: Errors, path: str, value: str | None, supported: tuple[str, ...], *, need: bool = True, detail: str = "") -> None:
    """``supported`` in the order in which the message tells them."""
    if not value:
        if need:
            out.append(required(path, detail))
    elif value not in supported:
        out.append(not_supported(path, value, list(supported)))


def known_value(out: Errors, path: str, value: str, supported: tuple[str, ...]) -> None:
    """Of an optional field that is there: even "" is no value then."""
    if value not in supported:
        out.append(not_supported(path, value, list(supported)))


def label_selector(out: Errors, path: str, selector: Mapping[str, Any] | None) -> None:
    if selector:
        out += machinery_labels.validate_label_selector(selector, path)


def selector_is_valid(selector: Mapping[str, Any] | None) -> bool:
    return not selector or not machinery_labels.validate_label_selector(selector, "")


def selector_matches(selector: Mapping[str, Any], found: Mapping[str, str]) -> bool:
    """Whether a valid ``LabelSelector`` selects an object with these labels."""
    return machinery_labels.from_label_selector(selector).matches(found)


def selector_is_empty(selector: Mapping[str, Any]) -> bool:
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def port_number_or_name(out: Errors, path: str, port: int | str | None) -> None:
    if isinstance(port, str):
        checked(out, path, port, names.port_name)
    else:
        for message in names.port_number(port or 0):
            out.append(invalid(path, port or 0, message))


def user_or_group_id(out: Errors, path: str, value: int | None) -> None:
    if value is not None and not 0 <= value <= formats.INT32_MAX:
        out.append(invalid(path, value, formats.inclusive_range(0, formats.INT32_MAX)))


def local_descending_path(out: Errors, path: str, value: str) -> None:
    """A relative path that does not leave its directory."""
    if value.startswith("/"):
        out.append(invalid(path, value, "must be a relative path"))
    no_backsteps(out, path, value)


def no_backsteps(out: Errors, path: str, value: str) -> None:
    if ".." in value and ".." in value.split("/"):
        out.append(invalid(path, value, "must not contain '..'"))


def local_non_reserved_path(out: Errors, path: str, value: str) -> None:
    """A relative path that moreover does not begin with ``..``, which the kubelet keeps for itself."""
    local_descending_path(out, path, value)
    if value.startswith("..") and not value.startswith("../"):
        out.append(invalid(path, value, "must not start with '..'"))
