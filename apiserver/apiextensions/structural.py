"""``StructuralSchema``: what one version of a custom resource says of its objects (apiextensions-apiserver ``pkg/apiserver/schema``).

    schema = StructuralSchema(version["schema"]["openAPIV3Schema"], schemas=schemas)
    decoded = schema.decode(body)          # pruned, with canonical metadata; strict errors as of built-in kinds
    schema.default(decoded.obj)
    errors = schema.validate(decoded.obj, old)

Making one costs nothing: everything is made from the definition's dict, which is kept and not copied, at the first question. Good objects
are recognized by compiled checks (``fast_check``) in some microseconds; the walks that change objects and word errors are for the others.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from apiserver.apiextensions import defaulting, embedded, list_types, numbers, pruning
from apiserver.apiextensions.correlation import Correlation
from apiserver.apiextensions.nodes import Node, Schema, root
from apiserver.apiextensions.type_of_schema import custom_type
from apiserver.machinery import field_errors, go_json
from apiserver.machinery.field_errors import ErrorType, FieldError
from apiserver.machinery.objects import Object
from apiserver.machinery.types import Type
from apiserver.schemas import json_bodies
from apiserver.schemas.decoding import STRICT_ERRORS_MAX, Decoded
from apiserver.schemas.json_bodies import DecodeError

if TYPE_CHECKING:
    from apiserver.apiextensions.fast_check import Check
    from apiserver.apiextensions.rules.evaluation import Rules, Warn
    from apiserver.apiextensions.values import ValueChecker
    from apiserver.schemas.schema_set import SchemaSet

_NOWHERE = "<nil>"
_BLOCKING = frozenset((ErrorType.NOT_SUPPORTED, ErrorType.REQUIRED, ErrorType.TOO_LONG, ErrorType.TOO_MANY, ErrorType.TYPE_INVALID))
_NOT_CHECKED = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

__all__ = ["DecodeError", "Decoded", "StructuralSchema"]


class StructuralSchema:
    """``schema`` is ``openAPIV3Schema`` (None: a version without one); ``schemas`` tell what ObjectMeta is and which formats are known.

    With ``preserve_unknown_fields`` (definitions of old) nothing is pruned.
    """

    __slots__ = (
        "_checker",
        "_form_check",
        "_root",
        "_rules",
        "_schemas",
        "_status_check",
        "_type",
        "_value_check",
        "preserve_unknown_fields",
        "schema",
    )

    def __init__(self, schema: Schema | None, preserve_unknown_fields: bool = False, *, schemas: SchemaSet) -> None:
        self.schema = schema
        self.preserve_unknown_fields = preserve_unknown_fields
        self._schemas = schemas
        self._root: Node | None = None
        self._type: Type | None = None
        self._form_check: Check | None = None
        self._value_check: Check | None = None
        self._status_check: Check | None = None
        self._checker: ValueChecker | None = None
        self._rules: Rules | None = None

    @property
    def root(self) -> Node:
        if self._root is None:
            self._root = root(self.schema)
            if not self.preserve_unknown_fields:
                pruning.prune_defaults(self._root)
        return self._root

    @property
    def type(self) -> Type:
        """For patches, server-side apply and managedFields."""
        if self._type is None:
            self._type = custom_type(self.root, self._meta, free=self.schema is None or self.preserve_unknown_fields)
        return self._type

    @property
    def _meta(self) -> Type:
        return self._schemas.type_named(_OBJECT_META)

    @property
    def _minor(self) -> int:
        return int(self._schemas.kubernetes_version.partition(".")[2])

    # -- from a body to an object ------------------------------------------------------------------------------------------------

    def decode(self, source: bytes | Object) -> Decoded:
        """Raises DecodeError for what is no JSON object or has metadata of a wrong type. Values of a wrong type are ``validate``'s.

        Unknown and duplicate fields are told in ``strict_errors``, in upstream's order: repeated keys, unknown fields of the metadata, of
        the object (sorted), of embedded metadata. An argument that is an object is not changed.
        """
        repeated: list[str] = []
        if isinstance(source, bytes):
            parsed = json_bodies.parse(source)
            value = parsed.value
            if parsed.has_duplicates:
                repeated = [f'duplicate field "{path}"' for path in json_bodies.duplicate_fields(value)]
                value = json_bodies.plain(value)
        else:
            value = source
        if not isinstance(value, dict):
            raise DecodeError(f"json: cannot unmarshal {go_json.kind_of(value)} into Go value of type map[string]interface {{}}")
        if self._has_settled_form(value):
            return Decoded(obj=value, strict_errors=tuple(repeated))
        if not isinstance(source, bytes):
            json_bodies.check_depth(value)
            value = copy.deepcopy(value)
        unknown = self._settle(value, drop_invalid=False)
        return Decoded(obj=value, strict_errors=tuple(dict.fromkeys(repeated + unknown))[:STRICT_ERRORS_MAX])

    def settle_stored(self, obj: Object) -> Object:
        """An object as it was stored, under the schema of now: pruned, defaulted, malformed metadata left out. ``obj`` itself where
        nothing changes, else a changed copy."""
        if not self._has_settled_form(obj):
            obj = copy.deepcopy(obj)
            self._settle(obj, drop_invalid=True)
        elif not self.root.defaults_below:
            return obj
        else:
            obj = copy.deepcopy(obj)
        self.default(obj)
        return obj

    def settle_applied(self, obj: Object) -> Object:
        """A copy of what server-side apply made of an object: without unknown fields, with canonical metadata; nulls stay."""
        obj = copy.deepcopy(obj)
        if not self._has_settled_form(obj):
            embedded.Coercion(self._meta, drop_invalid=True).metadata(obj, "")
            if not self.preserve_unknown_fields:
                pruning.prune(obj, self.root)
            numbers.canonical(obj)
        obj["metadata"] = obj.get("metadata") or {}
        return obj

    def prune(self, obj: Object) -> list[str]:
        """Takes out, in place, what the schema does not name and nulls that may not be; answers the paths of unknown fields, sorted."""
        if self.preserve_unknown_fields:
            return []
        gone = pruning.prune(obj, self.root)
        defaulting.drop_nulls(obj, self.root)
        return gone

    def default(self, obj: Object) -> None:
        """Fills in defaults, in place."""
        if self.root.defaults_below:
            defaulting.default(obj, self.root)

    def _has_settled_form(self, value: Object) -> bool:
        if self._form_check is None:
            from apiserver.apiextensions import fast_check

            self._form_check = fast_check.form_check(self.root, self._meta, pruned=not self.preserve_unknown_fields)
        return self._form_check(value)

    def _settle(self, value: Object, *, drop_invalid: bool) -> list[str]:
        """Brings an object, in place, to the form in which it is kept; answers strict errors."""
        for name in ("kind", "apiVersion"):
            if name in value and not isinstance(value[name], str):
                found = f"{go_json.shown(value[name])} is of the type {go_json.type_name(value[name])}, expected string"
                raise DecodeError(f".{name} accessor error: {found}")
        coercion = embedded.Coercion(self._meta, drop_invalid=drop_invalid)
        if "metadata" in value:
            coercion.metadata(value, "")
        unknown = coercion.unknown
        unknown += self.prune(value)
        if self.root.embedded_below:
            inner = embedded.Coercion(self._meta, drop_invalid=drop_invalid)
            inner.walk(value, self.root)
            unknown += sorted(inner.unknown)
        numbers.canonical(value)
        return [f'unknown field "{path}"' for path in unknown]

    # -- validation --------------------------------------------------------------------------------------------------------------

    def validate(self, obj: Object, old: Object | None = None, between: Sequence[FieldError] = ()) -> list[FieldError]:
        """Of a whole object, metadata aside; with ``old`` what did not change is forgiven, as far as upstream forgives it. ``between`` is
        what else is wrong, told after the values and before embedded objects and lists."""
        node = self.root
        errors: list[FieldError] = []
        if self.schema is not None:
            if self._value_check is None:
                from apiserver.apiextensions import fast_check

                self._value_check = fast_check.value_check(self.schema, self._minor)
            if not self._value_check(obj):
                correlation = None if old is None else Correlation(obj, old, node)
                errors += self._values.check(obj, self.schema, correlation)
        errors += between
        if node.embedded_below:
            errors += embedded.validate(obj, node)
        return errors + self._validate_lists(obj, old)

    def validate_status(self, obj: Object, old: Object, between: Sequence[FieldError] = ()) -> list[FieldError]:
        """Of an update through ``/status``: of values those in ``status`` only."""
        errors: list[FieldError] = []
        schema = ((self.schema or {}).get("properties") or {}).get("status")
        if schema is not None and "status" in obj:
            if self._status_check is None:
                from apiserver.apiextensions import fast_check

                self._status_check = fast_check.value_check(schema, self._minor)
            if not self._status_check(obj["status"]):
                correlation = Correlation(obj, old, self.root).field("status")
                errors += self._values.check(obj["status"], schema, correlation, "status")
        return [*errors, *between, *self._validate_lists(obj, old)]

    def validate_rules(
        self, obj: Object, old: Object | None, found: list[FieldError], warn: Warn, *, patient: bool = True
    ) -> list[FieldError]:
        """What the rules in CEL say of a whole object; ``found`` are the errors so far, some of which say that it is not one of which a
        rule could be asked. Raises LongRunError where it takes long and is not ``patient``."""
        if not self.root.rules_below:
            return []
        if any(error.type in _BLOCKING for error in found):
            return [field_errors.invalid(_NOWHERE, None, _NOT_CHECKED)]
        if self._rules is None:
            from apiserver.apiextensions.rules import evaluation

            self._rules = evaluation.Rules(self.root, self._minor)
        return self._rules.validate(obj, old, warn, patient=patient)

    def validate_form(self, obj: Object, warn: Warn) -> list[FieldError]:
        """What is wrong with an object of another kind, whose values are not looked at."""
        errors = embedded.validate(obj, self.root) if self.root.embedded_below else []
        errors += self._validate_lists(obj, None)
        return errors + self.validate_rules(obj, None, errors, warn)

    @property
    def _values(self) -> ValueChecker:
        if self._checker is None:
            from apiserver.apiextensions.values import ValueChecker

            self._checker = ValueChecker(self._minor)
        return self._checker

    def _validate_lists(self, obj: Object, old: Object | None) -> list[FieldError]:
        """An object that had items twice before may keep doing so."""
        if not self.root.lists_below:
            return []
        errors = list_types.validate(obj, self.root)
        return [] if errors and old is not None and list_types.validate(old, self.root) else errors


def schema_of(definition: Object, version: str) -> Any:
    """``openAPIV3Schema`` of a version of a definition, None where it has none."""
    versions = (definition.get("spec") or {}).get("versions") or ()
    found: Object = next((v for v in versions if v.get("name") == version), {})
    return (found.get("schema") or {}).get("openAPIV3Schema")
