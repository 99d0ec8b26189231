"""The rules of custom objects (apiextensions-apiserver ``registry/customresource``), by what their definition says."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.apiextensions import scale
from apiserver.apiextensions.definitions import CustomVersion
from apiserver.apiextensions.printing import go_float
from apiserver.machinery import json_path, names, object_meta_validation, objects, status
from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.json_path import JsonPath, JsonPathError, PathError
from apiserver.machinery.object_meta_validation import STANDARD_FINALIZERS
from apiserver.machinery.objects import Object
from apiserver.registry.strategy import Strategy, StrategyContext

_FINALIZERS = "metadata.finalizers"
#: apiVersion and kind, which are all that is left of an object where everything was taken out of it
_NAMELESS_FIELDS = 2
_ABSENT = object()
_TERMINATING = "create not allowed while custom resource definition is terminating"


class CustomResourceStrategy(Strategy):
    """Of the resource in one version."""

    allow_unconditional_update = False
    has_generation = True
    reads_otherwise = True

    def __init__(self, version: CustomVersion) -> None:
        self.version = version
        self.has_status = version.has_status
        self.converts_remotely = version.converts_by_webhook
        self.since_revision = version.definition.since_revision
        self._selectable: list[tuple[str, JsonPath]] = []
        for path in version.selectable_paths:
            try:
                self._selectable.append((path.removeprefix("."), json_path.parse(path)))
            except JsonPathError:  # a definition that says so is refused nowadays
                continue
        self.selectable_field_names = frozenset(name for name, _ in self._selectable)

    # -- between the store and the served version

    def from_storage(self, obj: Object) -> Object:
        """A stored object in this version: pruned and defaulted by the schema of the version in which it is stored, since that may have
        changed after the write. Raises StatusError where only a webhook could convert it."""
        definition = self.version.definition
        group, name = objects.group_version(obj["apiVersion"])
        stored = definition.versions.get(name) if group == definition.group else None
        if stored is not None:
            obj = stored.schema.settle_stored(obj)
        if stored is not self.version:
            obj = self.converted(obj, self.version)
            self.version.schema.prune(obj)
        return obj

    def to_storage(self, obj: Object) -> Object:
        """An object of this version in the version in which it is stored. ``obj`` is not changed."""
        definition = self.version.definition
        target = definition.versions[definition.storage_version]
        if target is self.version:
            return obj
        # what the stored version has no place for goes, at any depth
        converted = self.converted(objects.deep_copy(obj), target)
        target.schema.prune(converted)
        return converted

    def converted(self, obj: Object, target: CustomVersion) -> Object:
        """Raises NeedsConversionError where a webhook has to be asked first: not about what says nothing but its kind."""
        definition = target.definition
        api_version = f"{definition.group}/{target.name}"
        if definition.converts_by_webhook and obj["apiVersion"] != api_version and len(obj) > _NAMELESS_FIELDS:
            return definition.converted.get(obj, api_version)
        obj["apiVersion"] = api_version
        return obj

    # -- writes

    def default(self, obj: Object) -> None:
        self.version.schema.default(obj)

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        definition = self.version.definition
        if definition.terminating:
            raise status.forbidden(definition.group, definition.plural, objects.name(obj), _TERMINATING)
        super().prepare_for_create(context, obj)

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        schema = self.version.schema
        errors = schema.validate(obj, None, [*scale.validate_spec(self.version, obj), *scale.validate_status(self.version, obj)])
        return errors + schema.validate_rules(obj, None, errors, context.warn, patient=context.patient)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        errors = [
            *_metadata_again(new, old),
            *self.version.schema.validate(new, old, [*scale.validate_spec(self.version, new), *scale.validate_status(self.version, new)]),
        ]
        return errors + self.version.schema.validate_rules(new, old, errors, context.warn, patient=context.patient)

    def prepare_for_status_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        """Everything but status and managedFields is as it was, other fields of the root as well."""
        sent, managed = new.get("status"), objects.metadata(new).get("managedFields")
        had_status = "status" in new
        new.clear()
        new.update(objects.deep_copy(old))
        if managed is not None:
            new["metadata"]["managedFields"] = managed
        else:
            new["metadata"].pop("managedFields", None)
        if had_status:
            new["status"] = sent
        else:
            new.pop("status", None)

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        errors = [
            *_metadata_again(new, old),
            *self.version.schema.validate_status(new, old, scale.validate_status(self.version, new)),
        ]
        return errors + self.version.schema.validate_rules(new, old, errors, context.warn, patient=context.patient)

    def spec_changed(self, new: Object, old: Object) -> bool:
        """All but metadata counts; a status with an endpoint of its own is the old one by now."""
        keys = new.keys() | old.keys()
        return any(new.get(key, _ABSENT) != old.get(key, _ABSENT) for key in keys if key != "metadata")

    def warnings(self, new: Object, old: Object | None) -> list[str]:
        added = set(objects.finalizers(new)) - (set() if old is None else set(objects.finalizers(old)))
        return [text for finalizer in sorted(added) for text in _finalizer_warnings(finalizer)]

    # -- selection

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        """``obj`` may be of any version that is converted without a webhook."""
        version = self.version
        if obj["apiVersion"] != f"{version.definition.group}/{version.name}":
            obj = self.from_storage(objects.deep_copy(obj))
        elif version.schema.root.defaults_below:
            obj = objects.deep_copy(obj)
            version.schema.default(obj)
        return {name: _text(path, obj) for name, path in self._selectable}


def _metadata_again(new: Object, old: Object) -> list[FieldError]:
    """Kubernetes checks the metadata of an updated custom object again and again, and tells what is wrong as often."""
    return object_meta_validation.validate_update(new, old, builtin=False)


def _text(path: JsonPath, obj: Object) -> str:
    try:
        found = path.find(obj)
    except PathError:
        return ""
    value = found[0] if found else None
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return go_float(value) if isinstance(value, float) else str(value)


def _finalizer_warnings(finalizer: str) -> Sequence[str]:
    shown = f'{_FINALIZERS}: "{finalizer}"'
    found = [f"{shown}: {problem}" for problem in names.qualified_name(finalizer)]
    if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
        path = " including a path (/)" if "." in finalizer else ""
        found.append(f"{shown}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers")
    return found
