"""Field errors as Kubernetes words them (apimachinery ``util/validation/field``).

``FieldError.text()`` is the line that stands in a Status message; ``cause()`` the entry of ``details.causes``. Order of errors is
the order in which the rules ran. A path is a string built with ``child`` and ``index``/``key``: ``spec.containers[0].name``,
``metadata.labels[a/b]``.
"""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from typing import Any

from apiserver.machinery import go_json


class ErrorType(enum.Enum):
    """(reason in causes, words in the message)"""

    NOT_FOUND = ("FieldValueNotFound", "Not found")
    REQUIRED = ("FieldValueRequired", "Required value")
    DUPLICATE = ("FieldValueDuplicate", "Duplicate value")
    INVALID = ("FieldValueInvalid", "Invalid value")
    NOT_SUPPORTED = ("FieldValueNotSupported", "Unsupported value")
    FORBIDDEN = ("FieldValueForbidden", "Forbidden")
    TOO_LONG = ("FieldValueTooLong", "Too long")
    TOO_MANY = ("FieldValueTooMany", "Too many")
    TYPE_INVALID = ("FieldValueTypeInvalid", "Invalid value")
    INTERNAL = ("InternalError", "Internal error")


_NO_VALUE = object()
_VALUELESS = (ErrorType.REQUIRED, ErrorType.FORBIDDEN, ErrorType.TOO_LONG, ErrorType.INTERNAL)


@dataclass(frozen=True, slots=True)
class FieldError:
    type: ErrorType
    field: str
    value: Any
    detail: str

    def body(self) -> str:
        """Everything after ``field: ``."""
        words = self.type.value[1]
        if self.type not in _VALUELESS and self.value is not _NO_VALUE:
            words += ": " + _shown(self.value)
        return f"{words}: {self.detail}" if self.detail else words

    def text(self) -> str:
        return f"{self.field}: {self.body()}"

    def cause(self) -> dict[str, str]:
        return {"reason": self.type.value[0], "message": self.body(), "field": self.field}


class Pointed(str):
    """A text that Go has behind a pointer, and therefore shows as JSON."""

    __slots__ = ()


def _shown(value: Any) -> str:
    """A bad value as Go shows it: strings quoted as ``%q`` does, numbers bare, all else as JSON."""
    if isinstance(value, str) and not isinstance(value, Pointed):
        return go_json.quote(value)
    if isinstance(value, float):
        return go_json.number(value)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.translate(_ESCAPED_IN_JSON)


#: What Go's JSON writes by number in texts.
_ESCAPED_IN_JSON = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def child(path: str, *names: str) -> str:
    return ".".join([path, *names] if path else names)


def index(path: str, position: int) -> str:
    return f"{path}[{position}]"


def key(path: str, name: str) -> str:
    return f"{path}[{name}]"


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(ErrorType.REQUIRED, path, "", detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(ErrorType.INVALID, path, value, detail)


def invalid_unshown(path: str, detail: str) -> FieldError:
    """Of a value that is not to be shown."""
    return FieldError(ErrorType.INVALID, path, _NO_VALUE, detail)


def type_invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(ErrorType.TYPE_INVALID, path, value, detail)


def not_found(path: str, value: Any) -> FieldError:
    return FieldError(ErrorType.NOT_FOUND, path, value, "")


def duplicate(path: str, value: Any) -> FieldError:
    return FieldError(ErrorType.DUPLICATE, path, value, "")


def duplicate_unshown(path: str) -> FieldError:
    """Of a value that is not to be shown."""
    return FieldError(ErrorType.DUPLICATE, path, _NO_VALUE, "")


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError(ErrorType.FORBIDDEN, path, "", detail)


def internal(path: str, detail: str) -> FieldError:
    return FieldError(ErrorType.INTERNAL, path, "", detail)


def not_supported(path: str, value: Any, supported: list[str]) -> FieldError:
    """``supported`` is shown in the given order (the API sorts what comes from a set)."""
    detail = "supported values: " + ", ".join(go_json.quote(s) for s in supported) if supported else ""
    return FieldError(ErrorType.NOT_SUPPORTED, path, value, detail)


def too_long(path: str, max_length: int) -> FieldError:
    return FieldError(ErrorType.TOO_LONG, path, "", f"may not be more than {max_length} {'byte' if max_length == 1 else 'bytes'}")


def too_many(path: str, actual: int, max_quantity: int) -> FieldError:
    return FieldError(ErrorType.TOO_MANY, path, actual, f"must have at most {max_quantity} {'item' if max_quantity == 1 else 'items'}")
