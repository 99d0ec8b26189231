"""The checks of ``metadata`` that all kinds share (apimachinery ``api/validation/objectmeta.go``).

Both functions answer all errors in Kubernetes' order and change nothing. Objects arrive with their name already generated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.machinery import field_errors, go_json, labels, names, objects, release
from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.objects import Object

#: keys and values of all annotations together, in bytes
ANNOTATIONS_SIZE_MAX = 256 * 1024
FIELD_MANAGER_MAX_LENGTH = 128
SUBRESOURCE_MAX_LENGTH = 256

ORPHAN = "orphan"
FOREGROUND_DELETION = "foregroundDeletion"
#: the finalizers without a domain that built-in kinds may have
STANDARD_FINALIZERS = frozenset({"kubernetes", ORPHAN, FOREGROUND_DELETION})

IMMUTABLE = "field is immutable"
NOT_NEGATIVE = "must be greater than or equal to 0"

_IMMUTABLE_TEXTS = ("name", "namespace", "uid")
_IMMUTABLE_VALUES = ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def validate(obj: Object, *, namespaced: bool, name_rule: str, builtin: bool = True, path: str = "metadata") -> list[FieldError]:
    """Checks the metadata of an object to be created. ``name_rule`` is a key of ``names.NAME_RULES``; ``builtin`` False for custom
    resources and the few other kinds whose finalizers need not be standard or qualified."""
    metadata = objects.metadata(obj)
    rule = names.NAME_RULES[name_rule]
    errors: list[FieldError] = []
    if base := metadata.get("generateName"):
        at = field_errors.child(path, "generateName")
        errors += [field_errors.invalid(at, base, message) for message in rule(base, True)]
    name = metadata.get("name")
    at = field_errors.child(path, "name")
    if not name:
        errors.append(field_errors.required(at, "name or generateName is required"))
    else:
        errors += [field_errors.invalid(at, name, message) for message in rule(name, False)]
    errors += _validate_namespace(metadata.get("namespace") or "", namespaced, field_errors.child(path, "namespace"))
    errors += _validate_generation(metadata, path)
    errors += labels.validate_labels(metadata.get("labels"), field_errors.child(path, "labels"))
    errors += validate_annotations(metadata.get("annotations"), field_errors.child(path, "annotations"))
    errors += validate_owner_references(metadata.get("ownerReferences") or [], field_errors.child(path, "ownerReferences"))
    finalizers = metadata.get("finalizers") or []
    errors += validate_finalizers(finalizers, field_errors.child(path, "finalizers"))
    errors += validate_managed_fields(metadata.get("managedFields") or [], field_errors.child(path, "managedFields"))
    if builtin and finalizers:
        errors += _validate_standard_finalizers(finalizers, field_errors.child(path, "finalizers"))
    return errors


def validate_update(new: Object, old: Object, *, builtin: bool = True, path: str = "metadata") -> list[FieldError]:
    """Checks the metadata of an update: what never changes, what may not be added while an object is being deleted."""
    metadata, before = objects.metadata(new), objects.metadata(old)
    errors: list[FieldError] = []
    finalizers = metadata.get("finalizers") or []
    if before.get("deletionTimestamp"):
        errors += validate_no_new_finalizers(finalizers, before.get("finalizers") or [], field_errors.child(path, "finalizers"))
    if not metadata.get("resourceVersion"):
        errors.append(field_errors.invalid(field_errors.child(path, "resourceVersion"), "", "must be specified for an update"))
    if release.since(37):  # apimachinery v0.37 ValidateObjectMetaAccessorUpdate
        errors += _validate_generation(metadata, path)
    generation = metadata.get("generation") or 0
    if generation < (before.get("generation") or 0):
        errors.append(field_errors.invalid(field_errors.child(path, "generation"), generation, "must not be decremented"))
    for field in _IMMUTABLE_TEXTS:
        errors += validate_immutable(metadata.get(field) or "", before.get(field) or "", field_errors.child(path, field))
    for field in _IMMUTABLE_VALUES:
        errors += validate_immutable(metadata.get(field), before.get(field), field_errors.child(path, field))
    errors += labels.validate_labels(metadata.get("labels"), field_errors.child(path, "labels"))
    errors += validate_annotations(metadata.get("annotations"), field_errors.child(path, "annotations"))
    errors += validate_owner_references(metadata.get("ownerReferences") or [], field_errors.child(path, "ownerReferences"))
    errors += validate_managed_fields(metadata.get("managedFields") or [], field_errors.child(path, "managedFields"))
    if builtin and finalizers:
        errors += _validate_standard_finalizers(finalizers, field_errors.child(path, "finalizers"))
    return errors


def validate_immutable(new: Any, old: Any, path: str) -> list[FieldError]:
    return [] if new == old else [field_errors.invalid(path, new, IMMUTABLE)]


def _validate_namespace(namespace: str, namespaced: bool, path: str) -> list[FieldError]:
    if not namespaced:
        return [field_errors.forbidden(path, "not allowed on this type")] if namespace else []
    if not namespace:
        return [field_errors.required(path)]
    return [field_errors.invalid(path, namespace, message) for message in names.dns1123_label(namespace)]


def _validate_generation(metadata: Mapping[str, Any], path: str) -> list[FieldError]:
    generation = metadata.get("generation") or 0
    if generation >= 0:
        return []
    return [field_errors.invalid(field_errors.child(path, "generation"), generation, NOT_NEGATIVE)]


def validate_annotations(annotations: Mapping[str, str] | None, path: str) -> list[FieldError]:
    """Keys are qualified names in any case; all of them together have a limit."""
    if not annotations:
        return []
    errors = []
    for key in annotations:
        errors += [field_errors.invalid(path, key, message) for message in names.qualified_name(key.lower())]
    if annotations_size(annotations) > ANNOTATIONS_SIZE_MAX:
        errors.append(field_errors.too_long(path, ANNOTATIONS_SIZE_MAX))
    return errors


def annotations_size(annotations: Mapping[str, str]) -> int:
    """What counts towards ``ANNOTATIONS_SIZE_MAX``."""
    return sum(names.byte_length(key) + names.byte_length(value) for key, value in annotations.items())


def validate_owner_references(references: Sequence[Object], path: str) -> list[FieldError]:
    """Since 1.37 each mistake is told with its place in the list, before that with the list alone; since 1.26 two controllers are told with
    their kinds (apimachinery ``ValidateOwnerReferences`` of v0.25, v0.26, v0.36 and v0.37)."""
    errors: list[FieldError] = []
    controller = ""
    for i, reference in enumerate(references):
        if release.since(37):
            errors += _validate_owner_reference(reference, field_errors.index(path, i))
        else:
            errors += _validate_owner_reference_of_old(reference, path)
        if reference.get("controller"):
            name = reference.get("name") or ""
            if release.since(26):
                name = f"{reference.get('kind', '')}/{name}"
            if controller:
                detail = f'Only one reference can have Controller set to true. Found "true" in references for {controller} and {name}'
                errors.append(field_errors.invalid(path, [_as_go_writes(reference) for reference in references], detail))
            else:
                controller = name
    return errors


_REFERENCE_FIELDS = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")


def _as_go_writes(reference: Object) -> Object:
    return {field: reference[field] for field in _REFERENCE_FIELDS if field in reference}


def _validate_owner_reference(reference: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    api_version = reference.get("apiVersion") or ""
    group, version = objects.group_version(api_version)
    if not api_version:
        errors.append(field_errors.required(field_errors.child(path, "apiVersion"), "must not be empty"))
    elif api_version.count("/") > 1 or not version:
        at = field_errors.child(path, "apiVersion")
        errors.append(field_errors.invalid(at, api_version, "must be <group>/<version> or <version>"))
    for field in ("kind", "name", "uid"):
        if not reference.get(field):
            errors.append(field_errors.required(field_errors.child(path, field), "must not be empty"))
    return errors + _validate_owner_kind(reference, group, version, path)


def _validate_owner_reference_of_old(reference: Object, path: str) -> list[FieldError]:
    """Up to 1.36: what is missing is invalid; until 1.33 its field is named once more in the message (apimachinery v0.33, v0.34)."""
    errors: list[FieldError] = []
    api_version = reference.get("apiVersion") or ""
    group, version = objects.group_version(api_version)
    if api_version.count("/") > 1 or not version:
        errors.append(field_errors.invalid(field_errors.child(path, "apiVersion"), api_version, "version must not be empty"))
        group = version = ""
    for field in ("kind", "name", "uid"):
        if not reference.get(field):
            detail = "must not be empty" if release.since(34) else f"{field} must not be empty"
            errors.append(field_errors.invalid(field_errors.child(path, field), "", detail))
    return errors + _validate_owner_kind(reference, group, version, path)


def _validate_owner_kind(reference: Object, group: str, version: str, path: str) -> list[FieldError]:
    if (group, version, reference.get("kind")) != ("", "v1", "Event"):
        return []
    return [field_errors.invalid(path, reference, "/v1, Kind=Event is disallowed from being an owner")]


def validate_finalizers(finalizers: Sequence[str], path: str) -> list[FieldError]:
    errors = [field_errors.invalid(path, f, message) for f in finalizers for message in names.qualified_name(f)]
    if ORPHAN in finalizers and FOREGROUND_DELETION in finalizers:
        detail = f"finalizer {ORPHAN} and {FOREGROUND_DELETION} cannot be both set"
        errors.append(field_errors.invalid(path, list(finalizers), detail))
    return errors


def _validate_standard_finalizers(finalizers: Sequence[str], path: str) -> list[FieldError]:
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        field_errors.invalid(field_errors.index(path, i), finalizer, detail)
        for i, finalizer in enumerate(finalizers)
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS
    ]


def validate_no_new_finalizers(new: Sequence[str], old: Sequence[str], path: str) -> list[FieldError]:
    extra = sorted(set(new) - set(old))
    if not extra:
        return []
    shown = ", ".join(json.dumps(e, ensure_ascii=False) for e in extra)
    detail = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{shown}}}"
    return [field_errors.forbidden(path, detail)]


def validate_field_manager(manager: str, path: str) -> list[FieldError]:
    """``fieldManager`` of requests, ``manager`` of managedFields entries."""
    errors = []
    if names.byte_length(manager) > FIELD_MANAGER_MAX_LENGTH:
        errors.append(field_errors.too_long(path, FIELD_MANAGER_MAX_LENGTH))
    position = 0
    for character in manager:
        if not go_json.is_printable(character):
            detail = f"invalid character U+{ord(character):04X} (at position {position})"
            errors.append(field_errors.invalid(path, manager, detail))
        position += names.byte_length(character)
    return errors


def validate_managed_fields(entries: Sequence[Object], path: str) -> list[FieldError]:
    """An unknown operation is told as such since 1.37 (apimachinery ``ValidateManagedFields`` of v0.36 and v0.37)."""
    errors: list[FieldError] = []
    for i, entry in enumerate(entries):
        at = field_errors.index(path, i)
        operation = entry.get("operation") or ""
        if operation not in ("Apply", "Update") and not release.since(37):
            errors.append(field_errors.invalid(field_errors.child(at, "operation"), operation, "must be `Apply` or `Update`"))
        elif not operation:
            errors.append(field_errors.required(field_errors.child(at, "operation"), "must not be empty"))
        elif operation not in ("Apply", "Update"):
            errors.append(field_errors.not_supported(field_errors.child(at, "operation"), operation, ["Apply", "Update"]))
        if entry.get("fieldsType") not in (None, "", "FieldsV1"):
            errors.append(field_errors.invalid(field_errors.child(at, "fieldsType"), entry["fieldsType"], "must be `FieldsV1`"))
        errors += validate_field_manager(entry.get("manager") or "", field_errors.child(at, "manager"))
        if names.byte_length(entry.get("subresource") or "") > SUBRESOURCE_MAX_LENGTH:
            errors.append(field_errors.too_long(field_errors.child(at, "subresource"), SUBRESOURCE_MAX_LENGTH))
    return errors
