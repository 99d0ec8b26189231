"""The scale subresource of custom resources: which fields it shows, and the checks of these (``registry/customresource``, ScaleREST)."""

from __future__ import annotations

from typing import Any

from apiserver.apiextensions.definitions import CustomVersion
from apiserver.apiextensions.numbers import WholeFloat
from apiserver.machinery import field_errors, go_json
from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.objects import Object

_INT32_MAX = 2**31 - 1
_INT64 = "int64"
_STRING = "string"


class AccessorError(ValueError):
    """A path of the definition meets a value of another type."""


def _parts(path: str) -> list[str]:
    return path.removeprefix(".").split(".")


def _find(obj: Object, path: str) -> Any:
    """The value at a path, None where there is none. Raises AccessorError where the way there is no object."""
    parts, value = _parts(path), obj
    for position, part in enumerate(parts):
        if value is None:
            return None
        if not isinstance(value, dict):
            way = ".".join(parts[: position + 1])
            raise AccessorError(
                f".{way} accessor error: {_shown(value)} is of the type {_go_type(value)}, expected map[string]interface{{}}"
            )
        if part not in value:
            return None
        value = value[part]
    return value


def _typed(obj: Object, path: str, go_type: str) -> Any:
    value = _find(obj, path)
    fits = isinstance(value, str) if go_type == _STRING else isinstance(value, int) and type(value) not in (bool, WholeFloat)
    if value is not None and not fits:
        way = ".".join(_parts(path))
        raise AccessorError(f".{way} accessor error: {_shown(value)} is of the type {_go_type(value)}, expected {go_type}")
    return value


def _shown(value: Any) -> str:
    if isinstance(value, WholeFloat):
        return go_json.number(float(value))
    return go_json.shown(value) if not isinstance(value, str) else value


def _go_type(value: Any) -> str:
    return "float64" if isinstance(value, WholeFloat) else go_json.type_name(value)


def spec_replicas(version: CustomVersion, obj: Object) -> int | None:
    """None: the field is not there. Raises AccessorError."""
    assert version.scale is not None
    found: int | None = _typed(obj, version.scale["specReplicasPath"], _INT64)
    return found


def view(version: CustomVersion, obj: Object) -> Object:
    """The ``Scale`` of an object. Raises AccessorError."""
    paths = version.scale
    assert paths is not None
    metadata = obj["metadata"]
    shown = {key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp") if key in metadata}
    spec: Object = {}
    if replicas := spec_replicas(version, obj):
        spec["replicas"] = replicas
    answered: Object = {"replicas": _typed(obj, paths["statusReplicasPath"], _INT64) or 0}
    if paths.get("labelSelectorPath") and (selector := _typed(obj, paths["labelSelectorPath"], _STRING)):
        answered["selector"] = selector
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": shown, "spec": spec, "status": answered}


def set_replicas(version: CustomVersion, obj: Object, replicas: int) -> None:
    """In place. Raises AccessorError where something else than an object is in the way."""
    assert version.scale is not None
    *way, last = _parts(version.scale["specReplicasPath"])
    place = obj
    for position, part in enumerate(way):
        inner = place.setdefault(part, {})
        if not isinstance(inner, dict):
            path = ".".join(way[: position + 1])
            raise AccessorError(f"value cannot be set because .{path} is not a map[string]interface{{}}")
        place = inner
    place[last] = replicas


def validate_spec(version: CustomVersion, obj: Object) -> list[FieldError]:
    return [] if not version.has_scale or version.scale is None else _validate_count(obj, version.scale["specReplicasPath"])


def validate_status(version: CustomVersion, obj: Object) -> list[FieldError]:
    if not version.has_scale or version.scale is None:
        return []
    errors = _validate_count(obj, version.scale["statusReplicasPath"])
    if path := version.scale.get("labelSelectorPath"):
        try:
            _typed(obj, path, _STRING)
        except AccessorError as error:
            errors.append(field_errors.invalid(path, "", str(error)))
    return errors


def _validate_count(obj: Object, path: str) -> list[FieldError]:
    try:
        count = _typed(obj, path, _INT64) or 0
    except AccessorError as error:
        return [field_errors.invalid(path, 0, str(error))]
    if count < 0:
        return [field_errors.invalid(path, count, "should be a non-negative integer")]
    if count > _INT32_MAX:
        return [field_errors.invalid(path, count, f"should be less than or equal to {_INT32_MAX}")]
    return []
