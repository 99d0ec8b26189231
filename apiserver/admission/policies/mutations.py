"""``MutatingPolicy``: a compiled MutatingAdmissionPolicy, and what it makes of an object (apiserver ``admission/plugin/policy/mutating``).

A mutation is an expression whose value is a change: ``Object{…}`` names fields, which are merged as server-side apply merges (without
managedFields, and never a list or map that can only be replaced whole); a list of ``JSONPatch{…}`` are operations of RFC 6902.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apiserver import cel
from apiserver.admission import expressions
from apiserver.admission.expressions import Budget, Expression, OutOfBudgetError, Variables, run
from apiserver.admission.match_conditions import MatchConditions, Verdict
from apiserver.admission.policies import constructions
from apiserver.admission.policies.validating import compile_variables, declared_type
from apiserver.cel import times
from apiserver.machinery import apply_types, json_patch, objects, typed_merge
from apiserver.machinery.apply_types import ApplyType, Form
from apiserver.machinery.json_patch import PatchTestError
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.machinery.types import Type

PATCH = "JSONPatch"


class MutationError(Exception):
    """A change that cannot be made of an expression's value; the text is for the failure policy's refusal."""


class MutatingPolicy:
    """Of a stored ``spec``; ``minor`` is the Kubernetes version's."""

    def __init__(self, spec: Object, minor: int) -> None:
        params = spec.get("paramKind") is not None
        self._variables, environment = compile_variables(spec, expressions.request_environment(minor, params=params, authorizer=True))
        self._conditions = MatchConditions(spec.get("matchConditions") or (), environment)
        self.has_conditions = bool(spec.get("matchConditions"))
        fields = {name: declared_type(found.type) for name, found in self._variables.items()}
        changing = expressions.request_environment(minor, params=params, authorizer=True)
        changing = changing.extended({"variables": cel.ObjectType("kubernetes.variables", fields, nulls=True)})
        self.mutations = [_Mutation.of(said, changing) for said in spec.get("mutations") or ()]
        self.reinvoked = spec.get("reinvocationPolicy") == "IfNeeded"

    def _with_variables(self, values: Mapping[str, Any], patient: bool) -> dict[str, Any]:
        own = dict(values)
        own["variables"] = Variables(self._variables, own, patient=patient)
        return own

    def matches(self, values: Mapping[str, Any], patient: bool) -> Verdict:
        """Raises LongRunError where it takes long and is not ``patient``."""
        return self._conditions.judge(self._with_variables(values, patient), patient=patient)

    def change(self, position: int, values: Mapping[str, Any], type_: Type | None, patient: bool) -> Object:
        """What one of ``mutations`` makes of ``values["object"]``, which is not changed; it is neither decoded nor defaulted yet. ``type_``
        is the kind's. Raises MutationError, and LongRunError where it takes long and is not ``patient``."""
        obj: Object = values["object"]
        mutation = self.mutations[position]
        expression = mutation.expression
        if expression.program is None:
            raise MutationError(expression.fault)
        try:
            result = run(expression, self._with_variables(values, patient), Budget(expressions.POLICY_BUDGET, patient))
        except OutOfBudgetError as error:
            raise MutationError(str(error)) from error
        if result.error:
            raise MutationError(result.error)
        if mutation.misnamed:
            raise MutationError(f"type mismatch: {mutation.misnamed}")
        return _patched(obj, result.value) if mutation.by_patch else _applied(obj, result.value, type_)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mutation:
    """``misnamed`` says which objects in the expression have the name of another field than the one that they are given to."""

    expression: Expression
    by_patch: bool
    misnamed: str = ""

    @classmethod
    def of(cls, said: Object, environment: cel.Environment) -> _Mutation:
        by_patch = said.get("patchType") == PATCH
        source = (said.get("jsonPatch" if by_patch else "applyConfiguration") or {}).get("expression") or ""
        expression = constructions.compile_change(environment, source, by_patch=by_patch)
        misnamed = "" if expression.program is None else "\n".join(constructions.misnamed(expression.program.tree))
        return cls(expression=expression, by_patch=by_patch, misnamed=misnamed)


# --- Object{…} --------------------------------------------------------------------------------------------------------------------------


def _applied(obj: Object, value: Any, type_: Type | None) -> Object:
    said = _json(value, null=0)
    if not isinstance(said, dict):
        raise MutationError(f"unsupported return type from ApplyConfiguration expression: {type(value).__name__}")
    configuration = {**said, "apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    shape = apply_types.of(type_)
    problems = typed_merge.validate(shape, configuration)
    if problems:
        raise MutationError(f"error applying patch: failed to convert patch object to typed object: {_listed(problems)}")
    atomics = _atomics(shape, configuration, "")
    if atomics:
        why = f"invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {', '.join(atomics)}"
        raise MutationError(f"error applying patch: {why}")
    merged: Object = objects.deep_copy(typed_merge.merge(shape, obj, configuration))
    return merged


def _listed(problems: list[str]) -> str:
    return problems[0] if len(problems) == 1 else "\n".join(["errors:", *(f"  {problem}" for problem in problems)])


def _atomics(shape: ApplyType, value: Any, path: str) -> list[str]:
    """The paths of all that would replace what is there, whatever that is."""
    found: list[str] = []
    if isinstance(value, dict):
        if shape.form is Form.LEAF:
            found.append(path)
        for name, inner in value.items():
            if shape.declares(name) or shape.form is Form.MAP:
                found += _atomics(shape.child(name)[1], inner, f"{path}.{name}")
    elif isinstance(value, list):
        if shape.form in (Form.LEAF, Form.DEDUCED):
            found.append(path)
        if shape.element is not None:
            for position, inner in enumerate(value):
                found += _atomics(shape.element, inner, f"{path}[{position}]")
    return found


# --- JSONPatch{…} -----------------------------------------------------------------------------------------------------------------------


def _patched(obj: Object, value: Any) -> Object:
    operations = [_operation(one) for one in value]
    try:
        patched = json_patch.apply(objects.deep_copy(obj), operations)
    except StatusError as error:
        why = str(error.__cause__ or error)
        if isinstance(error.__cause__, PatchTestError):
            return obj
        raise MutationError(f"JSON Patch: {why}") from error
    if not isinstance(patched, dict):
        raise MutationError("JSON Patch: the patched object is no object")
    return patched


def _operation(said: Any) -> dict[str, Any]:
    if not isinstance(said, dict):
        raise MutationError("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch")
    operation = {"op": said.get("op", ""), "path": said.get("path", "")}
    if said.get("from"):
        operation["from"] = said["from"]
    if "value" in said:
        operation["value"] = _json(said["value"])
    return operation


def _json(value: Any, null: Any = None) -> Any:
    """A value of CEL as it stands in JSON. ``null``: what stands for null, which an object of upstream's has as a number. Raises
    MutationError."""
    if isinstance(value, dict):
        for name in value:
            if not isinstance(name, str):
                raise MutationError(f"map key {name!r} is not string")
        return {name: _json(inner, null) for name, inner in value.items()}
    if isinstance(value, list):
        return [_json(inner, null) for inner in value]
    if value is None:
        return null
    if isinstance(value, (bool, str)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise MutationError("a number that is not finite cannot stand in JSON")
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, cel.Timestamp):
        return times.format_timestamp(value)
    if isinstance(value, cel.Duration):
        return times.format_duration(value)
    raise MutationError(f"a value of type {type(value).__name__} cannot stand in JSON")
