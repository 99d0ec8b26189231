"""Parts of a definition that stand with each version, or once for all of them: deprecation, subresources, columns, selectable fields; and
conversion (apiextensions-apiserver ``validation.go``). Each answers the errors of its part, which is at ``path``."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.apiextensions import field_paths, go_form
from apiserver.apiextensions.nodes import PRESERVE, RULES, Schema, root
from apiserver.machinery import names
from apiserver.machinery.field_errors import (
    FieldError,
    Pointed,
    child,
    duplicate,
    forbidden,
    index,
    invalid,
    not_supported,
    required,
    too_many,
)
from apiserver.registry.validation import webhooks

Errors = list[FieldError]
Part = Mapping[str, Any]

SELECTABLE_FIELDS_MAX = 8
DEPRECATION_WARNING_BYTES_MAX = 256
REVIEW_VERSIONS = ("v1", "v1beta1")
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE_TYPES = ("string", "boolean", "integer")
#: what may stand at the root of a schema whose kind has a status of its own, by the names that Kubernetes has in its message
_AT_ROOT_WITH_STATUS = {
    "description": "Description",
    "type": "Type",
    "format": "Format",
    "title": "Title",
    "maximum": "Maximum",
    "exclusiveMaximum": "ExclusiveMaximum",
    "minimum": "Minimum",
    "exclusiveMinimum": "ExclusiveMinimum",
    "maxLength": "MaxLength",
    "minLength": "MinLength",
    "pattern": "Pattern",
    "maxItems": "MaxItems",
    "minItems": "MinItems",
    "uniqueItems": "UniqueItems",
    "multipleOf": "MultipleOf",
    "required": "Required",
    "items": "Items",
    "properties": "Properties",
    "externalDocs": "ExternalDocs",
    "example": "Example",
    PRESERVE: "XPreserveUnknownFields",
    RULES: "XValidations",
}
_BEFORE_TYPE = ("id", "$schema", "$ref")


def deprecation(version: Part, path: str) -> Errors:
    warning = version.get("deprecationWarning")
    if warning is None:
        return []
    if not version.get("deprecated"):
        return [invalid(path, Pointed(warning), "can only be set for deprecated versions")]
    errors: Errors = []
    if names.byte_length(warning) > DEPRECATION_WARNING_BYTES_MAX:
        errors.append(invalid(path, Pointed(warning), "must be <= 256 characters long"))
    if not warning:
        errors.append(invalid(path, Pointed(warning), "must not be an empty string"))
    position = 0
    for character in warning:
        if not _is_printable(character):
            detail = f"must only contain printable UTF-8 characters; non-printable character found at index {position}"
            errors.append(invalid(path, Pointed(warning), detail))
            break
        position += names.byte_length(character)
    return errors


def _is_printable(character: str) -> bool:
    """Go's: letters, marks, numbers, punctuation, symbols, and of spaces the ASCII one."""
    return character == " " or unicodedata.category(character)[0] in "LMNPS"


def root_with_status(schema: Schema, path: str) -> Errors:
    """A status is checked by its own part of the schema, so nothing at the root may speak of the whole."""
    said = go_form.said(schema)
    if not said.intersection(_BEFORE_TYPE) and schema.get("type") and schema["type"] != "object":
        detail = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        return [invalid(child(path, "type"), schema["type"], detail)]
    if said <= _AT_ROOT_WITH_STATUS.keys():
        return []
    allowed = " ".join(_AT_ROOT_WITH_STATUS.values())
    detail = f"only [{allowed}] fields are allowed at the root of the schema if the status subresource is enabled"
    return [invalid(path, go_form.schema(schema), detail)]


def one_of(path: str, value: str, accepted: list[str]) -> Errors:
    if not value:
        return [required(path)]
    return [] if value in accepted else [not_supported(path, value, accepted)]


def subresources(said: Part | None, path: str) -> Errors:
    scale = (said or {}).get("scale")
    if scale is None:
        return []
    errors: Errors = []
    for name, prefix in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        at, value = child(path, "scale", name), scale.get(name) or ""
        if not value:
            errors.append(required(at))
        elif found := _simple_path(value, at):
            errors += found
        elif not value.startswith(prefix + "."):
            errors.append(invalid(at, value, f"should be a json path under {prefix}"))
    value, at = scale.get("labelSelectorPath") or "", child(path, "scale", "labelSelectorPath")
    if value:
        if found := _simple_path(value, at):
            errors += found
        elif not value.startswith((".spec.", ".status.")):
            errors.append(invalid(at, value, "should be a json path under either .spec or .status"))
    return errors


def _simple_path(value: str, path: str) -> Errors:
    return [] if value.startswith(".") else [invalid(path, value, "must be a simple json path starting with .")]


def columns(columns: Sequence[Part], path: str) -> Errors:
    errors: Errors = []
    for i, column in enumerate(columns):
        at = index(path, i)
        if not column.get("name"):
            errors.append(required(child(at, "name")))
        type_, detail = column.get("type") or "", f"must be one of {','.join(_COLUMN_TYPES)}"
        if not type_:
            errors.append(required(child(at, "type"), detail))
        elif type_ not in _COLUMN_TYPES:
            errors.append(invalid(child(at, "type"), type_, detail))
        format_ = column.get("format") or ""
        if format_ and format_ not in _COLUMN_FORMATS:
            errors.append(invalid(child(at, "format"), format_, f"must be one of {','.join(_COLUMN_FORMATS)}"))
        where = column.get("jsonPath") or ""
        errors += _simple_path(where, child(at, "JSONPath")) if where else [required(child(at, "JSONPath"))]
    return errors


def selectable(fields: Sequence[Part], schema: Schema | None, path: str, any_number: bool) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    node = root(schema)
    for i, said in enumerate(fields):
        at, value = child(index(path, i), "jsonPath"), said.get("jsonPath") or ""
        if not value:
            errors.append(required(at))
            continue
        try:
            found = field_paths.resolve(value, node, brackets=False)
        except field_paths.FieldPathError as error:
            errors.append(invalid(at, value, f"is an invalid path: {error}"))
            continue
        if found.root == "metadata":
            errors.append(invalid(at, value, "must not point to fields in metadata"))
        if found.node is None or found.node.type not in _SELECTABLE_TYPES:
            detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
            errors.append(invalid(at, value, detail))
        if found.text in seen:
            errors.append(duplicate(at, value))
        seen.add(found.text)
    if len(seen) > SELECTABLE_FIELDS_MAX and not any_number:
        errors.append(too_many(path, len(seen), SELECTABLE_FIELDS_MAX))
    return errors


def conversion(said: Part | None, path: str, *, preserves: bool, must_be_known: bool) -> Errors:
    """``must_be_known``: whether a webhook must take a review version that this server speaks."""
    if said is None:
        return []
    strategy = said.get("strategy") or ""
    webhook: Part = said.get("webhook") or {}
    config, versions = webhook.get("clientConfig"), webhook.get("conversionReviewVersions")
    errors: Errors = []
    if strategy != "None" and preserves:
        errors.append(invalid(child(path, "strategy"), strategy, "must be None if spec.preserveUnknownFields is true"))
    errors += one_of(child(path, "strategy"), strategy, ["None", "Webhook"])
    if strategy != "Webhook":
        detail = "should not be set when strategy is not set to Webhook"
        if config is not None:
            errors.append(forbidden(child(path, "webhookClientConfig"), detail))
        if versions:
            errors.append(forbidden(child(path, "conversionReviewVersions"), detail))
        return errors
    at = child(path, "webhookClientConfig")
    if config is None:
        errors.append(required(at, "required when strategy is set to Webhook"))
    else:
        webhooks.client_config(errors, at, config)
    return errors + _review_versions(versions or [], child(path, "conversionReviewVersions"), must_be_known)


def _review_versions(versions: Sequence[str], path: str, must_be_known: bool) -> Errors:
    if not versions:
        return [required(path)]
    errors: Errors = []
    seen: set[str] = set()
    for i, version in enumerate(versions):
        if version in seen:
            errors.append(invalid(index(path, i), version, "duplicate version"))
            continue
        seen.add(version)
        errors += [invalid(index(path, i), version, detail) for detail in names.dns1035_label(version)]
    if must_be_known and not seen.intersection(REVIEW_VERSIONS):
        errors.append(invalid(path, list(versions), f"must include at least one of {', '.join(REVIEW_VERSIONS)}"))
    return errors
