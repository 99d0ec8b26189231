"""What a CustomResourceDefinition must be (apiextensions-apiserver ``pkg/apis/apiextensions/validation``).

    validate_definition(new, old, schemas) -> list[FieldError]     old is None for a create

Paths are those of Kubernetes' internal form of a definition, which clients see in its messages: what all versions have alike stands once at
``spec`` (``spec.validation``, ``spec.subresources``, ``spec.additionalPrinterColumns``), else with each version
(``spec.versions[0].schema``); a column's path is ``JSONPath``, a webhook ``spec.conversion.webhookClientConfig``.

An update may keep what the stored definition has wrong, from when rules were laxer, but not add to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from apiserver.apiextensions import (
    definition_defaults,
    definition_parts,
    definition_schema,
    definition_structure,
    formats,
    go_form,
)
from apiserver.apiextensions.definition_schema import SchemaOptions
from apiserver.apiextensions.internal_form import InternalSpec, internal_spec
from apiserver.apiextensions.nodes import EMBEDDED, INT_OR_STRING, LIST_MAP_KEYS, LIST_TYPE, PRESERVE, RULES, Schema
from apiserver.apiextensions.values import ValueChecker
from apiserver.machinery import field_errors, go_json, names
from apiserver.machinery.field_errors import (
    FieldError,
    child,
    forbidden,
    index,
    invalid,
    required,
)
from apiserver.machinery.object_meta_validation import validate_immutable
from apiserver.machinery.objects import Object
from apiserver.schemas.schema_set import SchemaSet

if TYPE_CHECKING:
    from apiserver.apiextensions.rules.definition_rules import RuleCosts, RulePlace

Errors = list[FieldError]
Part = Mapping[str, Any]

APPROVED_ANNOTATION = "api-approved.kubernetes.io"
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_PROPOSAL = "https://github.com/kubernetes/enhancements/pull/1111"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """The rules as they are for this definition: each may be off for an update of one that already breaks it."""

    schema: SchemaOptions = field(default_factory=SchemaOptions)
    require_schema: bool = True
    require_structural: bool = True
    require_pruned_defaults: bool = True
    require_known_review_version: bool = True
    immutable_names: bool = False
    #: versions whose schema is as it was: a single rule of it may cost what it likes
    same_schemas: frozenset[str] = frozenset()
    #: versions ("" for all at once) that keep more selectable fields than are allowed now
    many_selectable: frozenset[str] = frozenset()


class DefinitionValidator:
    """``schemas`` tell what ObjectMeta is, and the Kubernetes version."""

    def __init__(self, schemas: SchemaSet) -> None:
        self._schemas = schemas
        self._minor = int(schemas.kubernetes_version.partition(".")[2])
        self._checker = ValueChecker(self._minor, converted=False)

    def validate(self, new: Object, old: Object | None) -> Errors:
        """Metadata aside, except for what the name must be."""
        internal = internal_spec(new)
        options = _Options() if old is None else _options_of_update(new, old)
        errors = [] if old is not None else _name(new)
        errors += self._spec(internal, options)
        if old is not None:
            errors += _immutable(internal.spec, old.get("spec") or {}, options)
        status = new.get("status") or {}
        errors += _names(status.get("acceptedNames") or {}, "status.acceptedNames")
        errors += _stored_versions(status.get("storedVersions") or [], internal.spec.get("versions") or ())
        return errors + _approval(new, old) + _preserve_unknown(new, old)

    # -- spec ---------------------------------------------------------------------------------------------------------------------

    def _spec(self, internal: InternalSpec, options: _Options) -> Errors:
        spec, shared = internal.spec, internal.shared
        errors = _group(spec.get("group") or "")
        errors += definition_parts.one_of("spec.scope", spec.get("scope") or "", ["Cluster", "Namespaced"])
        preserves = bool(spec.get("preserveUnknownFields"))
        structural = options.require_structural or not preserves
        errors += _missing_schemas(internal, options, preserves)
        if internal.any_schema(lambda schema: schema.get("default") is not None):
            structural = True
            if preserves:
                errors.append(invalid("spec.preserveUnknownFields", True, "must be false in order to use defaults in the schema"))
        structural = structural or internal.any_schema(_has_extensions)
        errors += self._versions(internal, options, structural)
        errors += _names_present(spec.get("names") or {})
        errors += _names(spec.get("names") or {}, "spec.names")
        with_status = any("status" in (v.get("subresources") or {}) for v in (shared, *internal.versions))
        first = next((version.get("name") or "" for version in internal.versions), "")
        errors += self._schema(shared.get("schema"), "spec.validation", with_status, structural, options, first)
        errors += definition_parts.subresources(shared.get("subresources"), "spec.subresources")
        errors += definition_parts.columns(shared.get("additionalPrinterColumns") or (), "spec.additionalPrinterColumns")
        if shared.get("selectableFields"):
            schema = (shared.get("schema") or {}).get("openAPIV3Schema")
            if shared.get("schema") is None:
                errors.append(invalid("spec.selectableFields", "", "may only be set when validations.schema is included"))
            else:
                errors += definition_parts.selectable(
                    shared["selectableFields"], schema, "spec.selectableFields", "" in options.many_selectable
                )
        return errors + definition_parts.conversion(
            spec.get("conversion"), "spec.conversion", preserves=preserves, must_be_known=options.require_known_review_version
        )

    def _versions(self, internal: InternalSpec, options: _Options, structural: bool) -> Errors:
        errors: Errors = []
        own_subresources = any(v.get("subresources") is not None for v in internal.versions)
        for i, version in enumerate(internal.versions):
            at = index("spec.versions", i)
            name = version.get("name") or ""
            if found := names.dns1035_label(name):
                errors.append(invalid(child(at, "name"), name, ",".join(found)))
            subresources = version.get("subresources") if own_subresources else internal.shared.get("subresources")
            errors += definition_parts.deprecation(version, child(at, "deprecationWarning"))
            with_status = "status" in (subresources or {})
            errors += self._schema(version.get("schema"), child(at, "schema"), with_status, structural, options, name)
            errors += definition_parts.subresources(version.get("subresources"), child(at, "subresources"))
            errors += definition_parts.columns(version.get("additionalPrinterColumns") or (), child(at, "additionalPrinterColumns"))
            if version.get("selectableFields"):
                schema = (version.get("schema") or {}).get("openAPIV3Schema")
                where = child(at, "selectableFields")
                if schema is None:
                    detail = "may only be set when `version.schema.openAPIV3Schema` is not included"
                    errors.append(invalid(where, "", detail))
                else:
                    errors += definition_parts.selectable(version["selectableFields"], schema, where, name in options.many_selectable)
        versions = go_form.versions(None if internal.spec.get("versions") is None else internal.versions)
        known = [v.get("name") or "" for v in internal.versions]
        if len(set(known)) < len(known):
            errors.append(invalid("spec.versions", versions, "must contain unique version names"))
        if sum(bool(v.get("storage")) for v in internal.versions) != 1:
            errors.append(invalid("spec.versions", versions, "must have exactly one version marked as storage version"))
        # the first version's name stands at spec.version too
        if known and known[0] and (found := names.dns1035_label(known[0])):
            errors.append(invalid("spec.version", known[0], ",".join(found)))
        return errors

    def _schema(self, validation: Part | None, path: str, with_status: bool, structural: bool, options: _Options, version: str) -> Errors:
        schema: Schema | None = (validation or {}).get("openAPIV3Schema")
        if schema is None:
            return []
        at = child(path, "openAPIV3Schema")
        errors = definition_parts.root_with_status(schema, at) if with_status else []
        if schema.get("nullable"):
            errors.append(forbidden(child(at, "nullable"), "nullable cannot be true at the root"))
        no_structure = ""
        costs: RuleCosts | None = None
        place: RulePlace | None = None
        if structural:
            no_structure = definition_structure.unsupported(schema)
            if not no_structure:
                found = definition_structure.validate(schema, at)
                if not found:
                    meta = self._schemas.type_named(_OBJECT_META)
                    require_pruned, minor = options.require_pruned_defaults, self._minor
                    found = definition_defaults.validate(schema, at, meta, self._checker, require_pruned=require_pruned, minor=minor)
                errors += found
                if not found and definition_schema.any_schema(schema, lambda sub: bool(sub.get(RULES))):
                    from apiserver.apiextensions.rules import definition_rules

                    costs = definition_rules.RuleCosts(minor=self._minor, forgives_each=version in options.same_schemas)
                    place = definition_rules.RulePlace(costs=costs, is_root=True)
        errors += definition_schema.validate(schema, at, options.schema, place)
        if no_structure and not errors:
            errors.append(invalid(at, "", no_structure))
        return errors if costs is None else errors + costs.errors(at)


def validate_definition(new: Object, old: Object | None, schemas: SchemaSet) -> Errors:
    """All errors of a create (``old`` None) or update of a definition, in Kubernetes' order."""
    return DefinitionValidator(schemas).validate(new, old)


def validate_status_update(new: Object) -> Errors:
    return _names((new.get("status") or {}).get("acceptedNames") or {}, "status.acceptedNames")


# --- names and versions ------------------------------------------------------------------------------------------------------------


def _name(definition: Object) -> Errors:
    """``widgets.example.com`` of plural and group; a name that is made up from a base never is."""
    metadata, spec = definition.get("metadata") or {}, definition.get("spec") or {}
    wanted = f"{(spec.get('names') or {}).get('plural') or ''}.{spec.get('group') or ''}"
    said = [(f"metadata.{f}", metadata.get(f) or "") for f in ("generateName", "name")]
    return [invalid(at, name, 'must be spec.names.plural+"."+spec.group') for at, name in said if name and name != wanted]


def _group(group: str) -> Errors:
    if not group:
        return [required("spec.group")]
    if found := names.dns1123_subdomain(group):
        return [invalid("spec.group", group, ",".join(found))]
    return [] if "." in group else [invalid("spec.group", group, "should be a domain with at least one dot")]


def _names_present(said: Part) -> Errors:
    return [required(f"spec.names.{name}") for name in ("plural", "singular", "kind", "listKind") if not said.get(name)]


def _names(said: Part, path: str) -> Errors:
    errors: Errors = []
    for name in ("plural", "singular"):
        value = said.get(name) or ""
        if value and (found := names.dns1035_label(value)):
            errors.append(invalid(child(path, name), value, ",".join(found)))
    for name in ("kind", "listKind"):
        value = said.get(name) or ""
        if value and (found := names.dns1035_label(go_json.lower(value))):
            detail = "may have mixed case, but should otherwise match: " + ",".join(found)
            errors.append(invalid(child(path, name), value, detail))
    errors += _labels(said.get("shortNames") or (), child(path, "shortNames"))
    if said.get("kind") and said.get("kind") == said.get("listKind"):
        errors.append(invalid(child(path, "listKind"), said["listKind"], "kind and listKind may not be the same"))
    return errors + _labels(said.get("categories") or (), child(path, "categories"))


def _labels(values: Sequence[str], path: str) -> Errors:
    checked = ((i, value, names.dns1035_label(value)) for i, value in enumerate(values))
    return [invalid(index(path, i), value, ",".join(found)) for i, value, found in checked if found]


def _missing_schemas(internal: InternalSpec, options: _Options, preserves: bool) -> Errors:
    if (internal.shared.get("schema") or {}).get("openAPIV3Schema") is not None:
        return []
    missing = [(i, version) for i, version in enumerate(internal.versions) if (version.get("schema") or {}).get("openAPIV3Schema") is None]
    if options.require_schema:
        return [required(child(index("spec.versions", i), "schema", "openAPIV3Schema")) for i, _ in missing]
    if preserves:
        return []
    detail = "because otherwise all fields are pruned"
    return [required(child(index("spec.versions", i), "schema", "openAPIV3Schema"), detail) for i, v in missing if v.get("served")]


def _stored_versions(stored: list[str], versions: Sequence[Part]) -> Errors:
    path = "status.storedVersions"
    if not stored:
        return [invalid(path, None, "must have at least one stored version")]
    errors: Errors = []
    waiting = dict.fromkeys(stored)
    for version in versions:
        name = version.get("name") or ""
        if version.get("storage") and name not in waiting:
            errors.append(invalid(path, stored, f"must have the storage version {name}"))
        # each stored version is one version's, so that a second one of the same name has none
        waiting.pop(name, None)
    for i, name in enumerate(stored):
        if name in waiting:
            detail = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage "
                f"migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            )
            errors.append(invalid(index(path, i), name, detail))
    return errors


# --- the whole -------------------------------------------------------------------------------------------------------------------------


def _approval(new: Object, old: Object | None) -> Errors:
    """Groups of the Kubernetes project take definitions that were reviewed, or that say they were not."""
    group = (new.get("spec") or {}).get("group") or ""
    if not (group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))):
        return []
    path = field_errors.key("metadata.annotations", APPROVED_ANNOTATION)
    said = _annotation(new)
    state = approval_state(said)
    if old is not None and approval_state(_annotation(old)) == state:
        return []
    words = f'protected groups must have approval annotation "{APPROVED_ANNOTATION}"'
    if state == "missing":
        return [required(path, f"{words}, see {_PROPOSAL}")]
    if state == "invalid":
        return [invalid(path, said, f'{words} with either a URL or a reason starting with "unapproved", see {_PROPOSAL}')]
    return []


def _annotation(definition: Object) -> str:
    return ((definition.get("metadata") or {}).get("annotations") or {}).get(APPROVED_ANNOTATION) or ""


def approval_state(annotation: str) -> str:
    """``missing``, ``bypassed``, ``approved`` or ``invalid``."""
    if not annotation:
        return "missing"
    if annotation.startswith("unapproved"):
        return "bypassed"
    is_uri = formats.check_of("uri", 0)
    assert is_uri is not None
    if is_uri(annotation):
        parts = urlsplit(annotation)
        if parts.scheme and parts.netloc:
            return "approved"
    return "invalid"


def _preserve_unknown(new: Object, old: Object | None) -> Errors:
    if old is not None and (old.get("spec") or {}).get("preserveUnknownFields"):
        return []
    if not (new.get("spec") or {}).get("preserveUnknownFields"):
        return []
    detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
    return [invalid("spec.preserveUnknownFields", True, detail)]


def _immutable(new: Part, old: Part, options: _Options) -> Errors:
    errors: Errors = []
    names_, before = new.get("names") or {}, old.get("names") or {}
    if options.immutable_names:
        errors += validate_immutable(new.get("scope") or "", old.get("scope") or "", "spec.scope")
        errors += validate_immutable(names_.get("kind") or "", before.get("kind") or "", "spec.names.kind")
    errors += validate_immutable(new.get("group") or "", old.get("group") or "", "spec.group")
    return errors + validate_immutable(names_.get("plural") or "", before.get("plural") or "", "spec.names.plural")


def _has_extensions(schema: Schema) -> bool:
    return bool(
        schema.get(EMBEDDED)
        or schema.get(PRESERVE) is not None
        or schema.get(INT_OR_STRING)
        or schema.get(LIST_MAP_KEYS)
        or schema.get(LIST_TYPE) is not None
        or schema.get(RULES)
    )


def _options_of_update(new: Object, old: Object) -> _Options:
    before = internal_spec(old)
    schemas = before.schemas()
    conditions = (old.get("status") or {}).get("conditions") or ()
    review_versions = ((before.spec.get("conversion") or {}).get("webhook") or {}).get("conversionReviewVersions") or ()
    many = set()
    for name, now, then in _selectable_sets(internal_spec(new), before):
        if len(then) > definition_parts.SELECTABLE_FIELDS_MAX and now == then:
            many.add(name)
    return _Options(
        schema=SchemaOptions(
            require_valid_types=not before.any_schema(lambda s: bool(s.get("type")) and s["type"] not in definition_schema.TYPES),
            require_atomic_sets=not before.any_schema(_has_bad_set),
            require_good_list_keys=not before.any_schema(lambda s: bool(definition_schema.list_key_faults(s, ""))),
        ),
        require_schema=bool((before.shared.get("schema") or {}).get("openAPIV3Schema"))
        or all((v.get("schema") or {}).get("openAPIV3Schema") is not None for v in before.versions),
        require_structural=not any(definition_structure.unsupported(s) or definition_structure.validate(s, "") for s in schemas),
        require_pruned_defaults=not any(definition_defaults.has_unpruned(s) for s in schemas),
        require_known_review_version=not review_versions or bool(set(review_versions) & set(definition_parts.REVIEW_VERSIONS)),
        immutable_names=any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions),
        many_selectable=frozenset(many),
        same_schemas=_same_schemas(internal_spec(new), before),
    )


def _same_schemas(new: InternalSpec, old: InternalSpec) -> frozenset[str]:
    """The versions whose schema did not change."""
    then = {version.get("name") or "": _schema_of(version, old) for version in old.versions}
    now = [(version.get("name") or "", _schema_of(version, new)) for version in new.versions]
    return frozenset(name for name, schema in now if name in then and then[name] == schema)


def _schema_of(version: Part, spec: InternalSpec) -> Any:
    return (version.get("schema") or spec.shared.get("schema") or {}).get("openAPIV3Schema")


def _selectable_sets(new: InternalSpec, old: InternalSpec) -> list[tuple[str, Any, Any]]:
    found = [("", new.shared.get("selectableFields") or (), old.shared.get("selectableFields") or ())]
    before = {v.get("name"): v.get("selectableFields") or () for v in old.versions}
    found += [(v.get("name") or "", v.get("selectableFields") or (), before.get(v.get("name"), ())) for v in new.versions]
    return found


def _has_bad_set(schema: Schema) -> bool:
    items = schema.get("items")
    return schema.get(LIST_TYPE) == "set" and isinstance(items, dict) and bool(definition_schema.set_item_faults(items, ""))
