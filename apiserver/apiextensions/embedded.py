"""``metadata``, ``apiVersion`` and ``kind`` of objects inside objects (``x-kubernetes-embedded-resource``; apiextensions-apiserver
``schema/objectmeta``): brought to the form that Go's ObjectMeta gives them, and checked."""

from __future__ import annotations

from typing import Any

from apiserver.apiextensions import numbers
from apiserver.apiextensions.nodes import Node
from apiserver.machinery import field_errors, go_json, names, object_meta_validation
from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.types import Type
from apiserver.schemas import decoding
from apiserver.schemas.json_bodies import DecodeError

_CONTAINERS = (dict, list)
_MUST_BE_STRING = "must be a string"


class CoercionError(DecodeError):
    """Of an embedded object; ``error`` is what is wrong and where."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(error.text())
        self.error = error


class Coercion:
    """One object's. ``unknown``: the paths of unknown fields in the metadata of embedded objects, as they are found."""

    __slots__ = ("_drop_invalid", "_meta", "unknown")

    def __init__(self, meta: Type, *, drop_invalid: bool) -> None:
        self._meta = meta
        self._drop_invalid = drop_invalid
        self.unknown: list[str] = []

    def metadata(self, holder: dict[str, Any], path: str) -> None:
        """Replaces ``metadata`` of ``holder`` by what ObjectMeta keeps of it. Raises DecodeError, or with ``drop_invalid`` leaves out the
        fields of a wrong type."""
        value = holder["metadata"]
        if value is None:
            holder["metadata"] = {}
            return
        try:
            decoded = decode_metadata(self._meta, value)
        except DecodeError:
            if not self._drop_invalid:
                raise
            if not isinstance(value, dict):
                return
            decoded = _by_field(self._meta, value)
        holder["metadata"] = decoded.obj
        at = field_errors.child(path, "metadata")
        self.unknown += [f"{at}.{_unknown_path(text)}" for text in decoded.strict_errors]

    def walk(self, value: Any, node: Node, path: str = "", *, is_embedded: bool = False) -> None:
        """Embedded objects in a value; the value itself is taken for one with ``is_embedded``. Raises CoercionError."""
        if isinstance(value, dict):
            if is_embedded:
                self._embedded(value, path)
            for name, inner in value.items():
                if not isinstance(inner, _CONTAINERS):
                    continue
                field = node.properties.get(name)
                if field is not None:
                    if field.embedded_below:
                        self.walk(inner, field, field_errors.child(path, name), is_embedded=field.embedded)
                elif node.additional is not None and node.additional.embedded_below:
                    self.walk(inner, node.additional, field_errors.key(path, name), is_embedded=node.additional.embedded)
        elif isinstance(value, list) and node.items is not None and node.items.embedded_below:
            for position, item in enumerate(value):
                self.walk(item, node.items, field_errors.index(path, position), is_embedded=node.items.embedded)

    def _embedded(self, value: dict[str, Any], path: str) -> None:
        for name in ("apiVersion", "kind"):
            if name in value and not isinstance(value[name], str):
                if not self._drop_invalid:
                    raise CoercionError(_invalid(field_errors.child(path, name), value[name], _MUST_BE_STRING))
                del value[name]
        if "metadata" in value:
            before = value["metadata"]
            try:
                self.metadata(value, path)
            except DecodeError as error:
                raise CoercionError(_invalid(field_errors.child(path, "metadata"), before, str(error))) from error


def decode_metadata(meta: Type, value: Any) -> decoding.Decoded:
    """Raises DecodeError in Go's words for an ObjectMeta."""
    if not isinstance(value, dict):
        word = go_json.kind_of(value)
        raise DecodeError(f"json: cannot unmarshal {word} into Go value of type v1.ObjectMeta")
    try:
        decoded = decoding.decode(meta, value)
    except DecodeError:
        decoded = None
    if decoded is None or decoded.strict_errors:
        # upstream hands the fields to its decoder in this order, and whole numbers without their point
        return decoding.decode(meta, numbers.canonical(sorted_keys(value)))
    return decoded


def _by_field(meta: Type, value: dict[str, Any]) -> decoding.Decoded:
    obj: dict[str, Any] = {}
    errors: list[str] = []
    for name, inner in value.items():
        try:
            decoded = decoding.decode(meta, {name: inner})
        except DecodeError:
            continue
        obj.update(decoded.obj)
        errors += decoded.strict_errors
    return decoding.Decoded(obj=obj, strict_errors=tuple(errors))


def _unknown_path(text: str) -> str:
    """``labels.x`` of ``unknown field "labels.x"``."""
    return text.partition('"')[2].removesuffix('"')


def _invalid(path: str, value: Any, detail: str) -> FieldError:
    return field_errors.invalid(path, numbers.canonical(sorted_keys(value)), detail)


def sorted_keys(value: Any) -> Any:
    """As Go shows a map: its keys in order."""
    if isinstance(value, dict):
        return {name: sorted_keys(value[name]) for name in sorted(value)}
    return [sorted_keys(item) for item in value] if isinstance(value, list) else value


def validate(value: Any, node: Node, path: str = "", *, is_embedded: bool = False) -> list[FieldError]:
    """What is wrong with embedded objects in a value; the value itself is taken for one with ``is_embedded``."""
    errors: list[FieldError] = []
    _validate(value, node, path, is_embedded, errors)
    return errors


def _validate(value: Any, node: Node, path: str, is_embedded: bool, errors: list[FieldError]) -> None:
    if isinstance(value, dict):
        if is_embedded:
            errors += _validate_embedded(value, path)
        for name, inner in value.items():
            if not isinstance(inner, _CONTAINERS):
                continue
            field = node.properties.get(name)
            if field is not None:
                if field.embedded_below:
                    _validate(inner, field, field_errors.child(path, name), field.embedded, errors)
            elif node.additional is not None and node.additional.embedded_below:
                _validate(inner, node.additional, field_errors.key(path, name), node.additional.embedded, errors)
    elif isinstance(value, list) and node.items is not None and node.items.embedded_below:
        for position, item in enumerate(value):
            _validate(item, node.items, field_errors.index(path, position), node.items.embedded, errors)


def _validate_embedded(value: dict[str, Any], path: str) -> list[FieldError]:
    errors = [field_errors.required(field_errors.child(path, name)) for name in ("apiVersion", "kind") if name not in value]
    for name in value:
        at = field_errors.child(path, name)
        if name == "apiVersion":
            errors += _validate_api_version(value[name], at)
        elif name == "kind":
            errors += _validate_kind(value[name], at)
        elif name == "metadata":
            metadata = value[name]
            if not isinstance(metadata, dict):
                errors.append(_invalid(at, metadata, f"expected map[string]interface{{}}, got {go_json.type_name(metadata)}"))
                continue
            named = metadata if metadata.get("name") else {**metadata, "name": "fakename"}
            errors += object_meta_validation.validate(
                {"metadata": named}, namespaced=bool(metadata.get("namespace")), name_rule="path_segment", builtin=False, path=at
            )
    return errors


def _validate_api_version(value: Any, at: str) -> list[FieldError]:
    if not isinstance(value, str):
        return [_invalid(at, value, _MUST_BE_STRING)]
    if not value:
        return [_invalid(at, value, "must not be empty")]
    if value.count("/") > 1:
        return [_invalid(at, value, f"unexpected GroupVersion string: {value}")]
    return []


def _validate_kind(value: Any, at: str) -> list[FieldError]:
    if not isinstance(value, str):
        return [_invalid(at, value, _MUST_BE_STRING)]
    if not value:
        return [_invalid(at, value, "must not be empty")]
    found = names.dns1035_label(value.lower())
    return [_invalid(at, value, "may have mixed case, but should otherwise match: " + ",".join(found))] if found else []
