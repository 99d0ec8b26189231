"""Resource versions: opaque to clients, an unsigned 64-bit decimal to the server (apiserver ``storage.APIObjectVersioner``)."""

from __future__ import annotations

from apiserver.machinery import field_errors, go_json
from apiserver.machinery.field_errors import FieldError


class ResourceVersionError(ValueError):
    """The text is Kubernetes' message; ``field_error`` the same for a 422."""

    def __init__(self, field_error: FieldError) -> None:
        super().__init__(field_error.text())
        self.field_error = field_error


def parse(text: str) -> int:
    """The revision of a resource version; 0 for "" and "0", which both mean "any"."""
    if text in ("", "0"):
        return 0
    try:
        return go_json.parse_uint(text)
    except go_json.GoError as e:
        raise ResourceVersionError(field_errors.invalid("resourceVersion", text, str(e))) from e


def of_object(text: str) -> int:
    """The revision that stands in an object that a client sent. ``go_json.GoError`` has the bare text of the parser, as
    Kubernetes answers it (400)."""
    return go_json.parse_uint(text) if text else 0


def shown(revision: int) -> str:
    return str(revision) if revision else ""
